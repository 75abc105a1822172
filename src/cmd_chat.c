/*
 * memwall chat: the screen, or `memwall run` without a terminal.
 */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "src/command.h"
#include "src/config_file.h"
#include "src/limits.h"
#include "src/once.h"
#include "src/paths.h"
#include "src/plan_print.h"
#include "src/settings.h"
#include "ui/ui.h"

/* Apply the options of the command line to the model's recommendation. */
static void overlay(void *ctx, struct mw_sampling *s)
{
    settings_overlay(ctx, s);
}

static void limits(struct mw_model *m, const char *path, const struct mw_options *o)
{
    limits_ensure(m, path, o, true);
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

static int run_chat(const struct options *o)
{
    struct ui_chat_options c = { .model_path = o->model,
                                 .limits = limits,
                                 .overlay = overlay,
                                 .overlay_ctx = (void *)(uintptr_t)o,
                                 .open_chat = o->last_chat ? "" : o->open_chat,
                                 .telemetry = o->telemetry,
                                 .force = o->force,
                                 .no_save = o->no_save,
                                 .quiet = o->quiet,
                                 .check_setting = config_file_check,
                                 .setting_names = config_file_keys() };
    struct settings_notice notice;
    struct err e = ERR_INIT;
    struct paths paths;
    int rc;

    settings_screen(o, &c.ui);
    if (o->once || o->json) {
        if (settings_engine(o, &c.chat.engine, &notice, &e) != 0)
            return report_error(&e);
        settings_report(o, &notice);
        return once_chat(o, &c.chat.engine, &e) == 0 ? EXIT_OK : refuse(o, &c.chat.engine, &e);
    }
    if (!isatty(STDOUT_FILENO) || (!c.ui.plain && !ui_can_draw()))
        return cmd_run.run(o);
    if (settings_engine(o, &c.chat.engine, &notice, &e) != 0 || paths_find(&paths, &e) != 0)
        return report_error(&e);
    folder_make(paths.cache_dir); /* if that fails, nothing is cached */
    c.notice = notice.lowered;
    c.chat.engine.cache_folder = paths.cache_dir;
    c.chat.system = o->system;
    c.chat.format = o->format;
    c.chat.raw = o->raw;
    c.chat.think = (enum mw_think)o->think;
    c.chat.n_predict = o->predict;
    c.chat.stop = o->stop;
    c.paths = (struct ui_paths){ paths.config_file, paths.config_dir, paths.state_dir,
                                 paths.data_dir };
    rc = ui_chat(&c, &e);
    if (rc < 0) {
        settings_report(o, &notice);
        return refuse(o, &c.chat.engine, &e);
    }
    return rc;
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
    .reads_config = true,
    .run = run_chat,
};
