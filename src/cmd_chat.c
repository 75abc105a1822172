/*
 * memwall chat: the screen, or `memwall run` without a terminal.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "src/beside.h"
#include "src/command.h"
#include "src/limits.h"
#include "src/models.h"
#include "src/once.h"
#include "src/paths.h"
#include "src/plan_print.h"
#include "src/settings.h"
#include "ui/ui.h"

static void limits(struct mw_model *m, const char *path, const struct mw_options *o)
{
    limits_ensure(m, path, o, LIMITS_MEASURE);
    models_used(path);
}

/* Report an error.  If the budget is too small, print the plan first. */
static int refuse(const struct options *o, const struct mw_options *engine, const struct err *e)
{
    struct err ignored = ERR_INIT;
    struct plan p = { 0 };
    struct mw_model *m;

    if (e->code == ERR_BUDGET && mw_model_open(&m, o->model, &ignored) == 0) {
        if (mw_plan(m, engine, &p, &ignored) != 0 && p.sum_bytes > 0)
            plan_print_rows(stderr, &p);
        mw_model_close(m);
    }
    return report_error(e);
}

/* Let the user choose a model.  Returns an exit code, or -1 to go on: with the chosen model, or
 * without one on a terminal that has no screen. */
static int pick_model(struct options *o, const struct mw_options *engine,
                      const struct ui_chat_options *c)
{
    static char path[PATH_MAX];
    struct ui_pick_options p = {
        .ui = o->ui, .paths = c->paths, .models = c->models, .engine = engine
    };
    struct err e = ERR_INIT;
    int rc = ui_pick(&p, path, sizeof path, &e);

    if (rc == 0) {
        o->model = path;
        rc = models_resolve(o, CMD_CHAT);
        return rc == EXIT_OK ? -1 : rc;
    }
    if (rc < 0 && e.code == ERR_UNSUPPORTED)
        return -1;
    if (rc < 0)
        return report_error(&e);
    return rc == UI_PICK_NONE ? EXIT_OK : rc;
}

/* Open the screen.  If no model is given, it is that of the chat to resume, or is picked. */
static int run_screen(struct options *o, struct ui_chat_options *c)
{
    struct mw_options *engine = &o->chat.engine;
    struct settings_notice notice;
    struct err e = ERR_INIT;
    char text[1600];
    bool may_pick;
    int rc;

    if (o->model == NULL && o->open_chat != NULL)
        models_use_chat(o, c->paths.data_dir, o->open_chat);
    may_pick = o->model == NULL && !o->ui.plain && models_has_others();
    settings_engine(o, engine, &notice);
    c->notice = notice.lowered;
    if (may_pick && (rc = pick_model(o, engine, c)) >= 0)
        return rc;
    if (o->model == NULL) {
        if (models_use_guide(o, &e) != 0)
            return report_usage(&cmd_chat, &e);
        snprintf(text, sizeof text, "%s%s%s", notice.lowered,
                 notice.lowered[0] != '\0' ? "; " : "", models_guide_notice);
        c->notice = text;
    } else if (beside_notice()[0] != '\0') {
        snprintf(text, sizeof text, "%s%s%s", notice.lowered,
                 notice.lowered[0] != '\0' ? ". " : "", beside_notice());
        c->notice = text;
    }
    rc = ui_chat(c, &e);
    if (rc < 0) {
        settings_report(o, &notice);
        return refuse(o, engine, &e);
    }
    return rc;
}

static int run_chat(const struct options *o)
{
    struct options used = *o;
    struct mw_options *engine = &used.chat.engine;
    struct ui_chat_options c = { .options = &used, .limits = limits };
    struct settings_notice notice;
    struct err e = ERR_INIT;
    struct paths paths;

    settings_screen(o, &used.ui);
    if (o->once || o->json) {
        beside_report(o);
        settings_engine(o, engine, &notice);
        settings_report(o, &notice);
        if (models_choose(&used, &e) != 0)
            return report_usage(&cmd_chat, &e);
        return once_chat(&used, engine, &e) == 0 ? EXIT_OK : refuse(&used, engine, &e);
    }
    if (!isatty(STDOUT_FILENO) || (!used.ui.plain && !ui_can_draw())) {
        beside_report(o);
        return cmd_run.run(o);
    }
    if (o->stdin_too) {
        err_set(&e, ERR_ARGUMENT,
                "a chat on the screen does not read a prompt from standard input; "
                "use \"memwall run\"");
        return report_usage(&cmd_chat, &e);
    }
    if (paths_find(&paths, &e) != 0)
        return report_error(&e);
    folder_make(paths.cache_dir); /* if that fails, nothing is cached */
    engine->cache_folder = paths.cache_dir;
    used.chat.stop = o->stop;
    c.first = used.arg;
    used.open_chat = o->last_chat ? "" : o->open_chat;
    c.paths = (struct ui_paths){ paths.config_file, paths.config_dir, paths.state_dir,
                                 paths.data_dir };
    c.models = (struct ui_models){ models_places(), models_describe_options() };
    return run_screen(&used, &c);
}

const struct command cmd_chat = {
    .name = "chat",
    .help = "talk to a model in the terminal, next to a dashboard",
    .about = "The screen has the chat, the dashboard, one input line and a status bar.\n"
             "/help or F1 lists commands and keys.  If standard output is not a terminal,\n"
             "this is \"memwall run\".  --once prints the dashboard as text and exits; --json\n"
             "prints its figures.",
    .examples = "memwall -m model.gguf\n"
                "memwall -m model.gguf --memory 2G --ctx 16k --kv q8_0\n"
                "memwall -m model.gguf --continue\n"
                "memwall -m model.gguf --memory 2G --once\n",
    .bit = CMD_CHAT,
    .needs_model = true,
    .has_guide = true,
    .reads_config = true,
    .run = run_chat,
};
