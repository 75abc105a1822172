/*
 * memwall chat: the screen, or `memwall run` without a terminal.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/beside.h"
#include "src/base/paths.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/models/models.h"
#include "src/models/remote.h"
#include "src/plan/plan_print.h"
#include "src/settings.h"
#include "src/text/once.h"
#include "ui/engine/local.h"
#include "ui/engine/remote.h"
#include "ui/options/kept.h"
#include "ui/store/store.h"
#include "ui/ui.h"
#include "ui/words/clean.h"

/* The first model is opened before the chat draws.  On a new machine that takes some seconds, so
 * a line says why. */
static void limits(struct mw_model *m, const char *path, const struct mw_options *o)
{
    static bool is_drawing; /* the chat, since then */

    limits_ensure_shown(m, path, o, is_drawing);
    is_drawing = true;
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
static int pick_model(struct options *o, const struct ui_chat_options *c)
{
    static char path[PATH_MAX];
    struct ui_pick_options p = {
        .ui = o->ui, .paths = c->paths, .models = c->models, .options = o,
        .kept_file = c->kept_file
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

/* ---- settings that come back ---- */

/* Texts for the user that the screen shows when it begins. */
struct first_notice {
    char text[2400];
};

static void first_say(struct first_notice *f, const char *text)
{
    size_t used = strlen(f->text);

    if (text[0] != '\0')
        snprintf(f->text + used, sizeof f->text - used, "%s%s", used > 0 ? "; " : "", text);
}

/* Use the settings that the chat to resume was held with, except those of the command line. */
static void use_chat_settings(struct options *o, const struct store_facts *chat,
                              struct first_notice *f)
{
    char text[KEPT_BYTES], line[KEPT_BYTES + 60];
    bool taken[N_OPTION];

    if (!o->on_line[OPT_SYSTEM]) /* the chat has its own, or none */
        beside_replaced(OPT_SYSTEM);
    if (!models_is_of_chat(o->model, &chat->model) ||
        !kept_apply(o, chat->settings, o->on_line, taken))
        return;
    for (int id = 0; id < N_OPTION; id++)
        if (taken[id])
            beside_replaced((enum option_id)id);
    kept_say(o, taken, text, sizeof text);
    snprintf(line, sizeof line, "%s, as in this chat before", text);
    first_say(f, line);
}

/* Use the settings that were chosen last for the model, unless others were given. */
static void use_model_settings(struct options *o, const char *file, struct first_notice *f)
{
    const struct kept_model m = { o->model_lasting, o->model };
    bool fixed[N_OPTION], taken[N_OPTION];
    char text[KEPT_BYTES], line[KEPT_BYTES + 80];

    memcpy(fixed, o->given, sizeof fixed);
    if (!kept_apply(o, kept_read(file, &m, text), fixed, taken))
        return;
    kept_say(o, taken, text, sizeof text);
    snprintf(line, sizeof line, "%s, as last time with this model (/forget forgets it)", text);
    first_say(f, line);
}

/* The budget or another setting of last time may be why the model does not fit now. */
static int refuse_kept(const struct options *o, const struct first_notice *f,
                       const struct err *e)
{
    int code = refuse(o, &o->chat.engine, e);

    if (e->code == ERR_BUDGET && f->text[0] != '\0') {
        report_notice(f->text, strlen(f->text));
        fputs("memwall: options such as --memory auto replace them\n", stderr);
    }
    return code;
}

/* Read what is known of the chat to resume.  Returns an exit code, or -1 to go on: a wrong name is
 * reported before anybody chooses a model. */
static int find_chat(const char *name, const char *folder, struct store_facts *out)
{
    char dir[PATH_MAX + 8], path[PATH_MAX + 200];
    struct err e = ERR_INIT;

    snprintf(dir, sizeof dir, "%s/chats", folder);
    if (store_find(dir, name, path, sizeof path, &e) == 0)
        store_facts_of(path, out);
    else if (name[0] != '\0')
        return report_error(&e);
    return -1;
}

/* Write the model of a chat as people read it: "\"Gemma\" (ORG/NAME:Q8_0)". */
static const char *say_model(const struct store_model *chat, char *buf, size_t n)
{
    char text[sizeof *chat + 8];

    if (chat->file[0] != '\0')
        snprintf(text, sizeof text, "\"%s\" (%s)", chat->name, chat->file);
    else
        snprintf(text, sizeof text, "\"%s\"", chat->name);
    clean_line(buf, n, text, strlen(text));
    return buf;
}

/* Find the model of the chat to resume.  Returns an exit code, or -1 to go on, with it or with
 * the one of the configuration file. */
static int use_chat_model(struct options *o, const struct store_model *chat,
                          struct first_notice *f)
{
    char was[500], text[1200];
    struct err e = ERR_INIT;

    say_model(chat, was, sizeof was);
    switch (models_of_chat(o, chat)) {
    case MODELS_CHAT_FOUND:
    case MODELS_CHAT_UNKNOWN: break;
    case MODELS_CHAT_OTHER:
        snprintf(text, sizeof text,
                 "the model of this chat is not found: %s; %.500s has the same name and answers",
                 was, o->model);
        first_say(f, text);
        break;
    case MODELS_CHAT_GONE:
        if (o->model == NULL) {
            err_set(&e, ERR_ARGUMENT,
                    "the model of this chat is not found: %s. Use -m FILE to open the chat with "
                    "another one",
                    was);
            return report_error(&e);
        }
        snprintf(text, sizeof text,
                 "the model of this chat is not found: %s; that of the configuration answers",
                 was);
        first_say(f, text);
        break;
    }
    return -1;
}

/* The model: of the command line, of the chat to resume, of the configuration file, chosen from
 * the list, or the guide.  Returns an exit code, or -1 to go on. */
static int choose_model(struct options *o, struct ui_chat_options *c,
                        const struct store_facts *chat, struct first_notice *f)
{
    struct err e = ERR_INIT;
    int rc;

    if (settings_chat_has_model(o)) {
        if ((rc = use_chat_model(o, &chat->model, f)) >= 0)
            return rc;
        if (o->model != NULL && (rc = models_resolve(o, CMD_CHAT)) != EXIT_OK)
            return rc;
    }
    if (o->model == NULL && !o->ui.plain && models_has_others()) {
        if ((rc = pick_model(o, c)) >= 0)
            return rc;
    }
    if (o->model != NULL)
        return -1;
    if (models_use_guide(o, &e) != 0)
        return report_usage(&cmd_chat, &e);
    first_say(f, models_guide_notice);
    return -1;
}

static int run_screen(struct options *o, struct ui_chat_options *c)
{
    struct mw_options *engine = &o->chat.engine;
    struct first_notice said = { "" }, kept = { "" };
    struct settings_notice notice;
    struct store_facts chat = { .settings = "" };
    struct err e = ERR_INIT;
    uint64_t wish;
    int rc = -1;

    if (o->open_chat != NULL)
        rc = find_chat(o->open_chat, c->paths.data_dir, &chat);
    if (rc < 0)
        rc = choose_model(o, c, &chat, &said);
    if (rc >= 0)
        return rc;
    if (o->open_chat != NULL)
        use_chat_settings(o, &chat, &kept);
    use_model_settings(o, c->kept_file, &kept);
    wish = engine->memory_bytes;
    settings_engine(o, engine, &notice);
    o->memory_wish = engine->memory_bytes != wish ? wish : 0;
    first_say(&said, beside_notice());
    first_say(&said, kept.text);
    first_say(&said, notice.lowered);
    c->notice = said.text;
    rc = ui_chat(c, &e);
    if (rc < 0) {
        settings_report(o, &notice);
        return refuse_kept(o, &kept, &e);
    }
    return rc;
}

/* The same chat with a model of a server. */
static int run_at_server(const struct options *o, struct options *used,
                         struct ui_chat_options *c)
{
    struct mw_server server;
    struct err e = ERR_INIT;
    int rc;

    if (o->json || o->telemetry != NULL) {
        err_set(&e, ERR_ARGUMENT, "--%s shows a model in this process",
                o->json ? "json" : "telemetry");
        return report_usage(&cmd_chat, &e);
    }
    if (remote_settings(used, &server, &e) != 0)
        return report_usage(&cmd_chat, &e);
    c->engine = &engine_remote;
    c->limits = NULL;
    c->server = &server;
    c->kept_file = NULL; /* it has settings of models in this process */
    rc = ui_chat(c, &e);
    return rc < 0 ? report_error(&e) : rc;
}

/* Nothing is resumed without a screen: the model is the one of the configuration file. */
static int resolve_late(struct options *o)
{
    return settings_chat_has_model(o) && o->model != NULL ? models_resolve(o, CMD_CHAT) : EXIT_OK;
}

static int run_chat(const struct options *o)
{
    struct options used = *o;
    struct mw_options *engine = &used.chat.engine;
    struct ui_chat_options c = { .options = &used, .engine = &engine_local, .limits = limits };
    static char kept_file[PATH_MAX + 16];
    struct settings_notice notice;
    struct err e = ERR_INIT;
    struct paths paths;
    int code;

    used.chat.stop = used.stop; /* those of a model that is chosen in the list, too */
    settings_disk(o, engine); /* the list of models plans with it, too */
    settings_screen(o, &used.ui);
    if (o->server == NULL && (o->once || o->json)) {
        if ((code = resolve_late(&used)) != EXIT_OK)
            return code;
        beside_report(o);
        settings_engine(o, engine, &notice);
        settings_report(o, &notice);
        if (models_choose(&used, &e) != 0)
            return report_usage(&cmd_chat, &e);
        return once_chat(&used, engine, &e) == 0 ? EXIT_OK : refuse(&used, engine, &e);
    }
    if (!isatty(STDOUT_FILENO) || (!used.ui.plain && !ui_can_draw())) {
        if (o->server == NULL && (code = resolve_late(&used)) != EXIT_OK)
            return code;
        if (o->server == NULL)
            beside_report(o);
        return cmd_run.run(&used);
    }
    if (o->stdin_too) {
        err_set(&e, ERR_ARGUMENT,
                "a chat on the screen does not read a prompt from standard input; "
                "use \"memwall run\"");
        return report_usage(&cmd_chat, &e);
    }
    if (paths_find(&paths, &e) != 0)
        return report_error(&e);
    c.first = used.arg;
    c.subcommands = command_texts();
    used.open_chat = o->last_chat ? "" : o->open_chat;
    c.paths = (struct ui_paths){ paths.config_file, paths.config_dir, paths.state_dir,
                                 paths.data_dir };
    snprintf(kept_file, sizeof kept_file, "%s/settings", paths.state_dir);
    c.kept_file = kept_file;
    c.models = (struct ui_models){ models_places(), models_describe_options() };
    if (o->server != NULL)
        return run_at_server(o, &used, &c);
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
                "memwall -m model.gguf --memory 2G --once\n"
                "memwall --server http://127.0.0.1:8080\n",
    .bit = CMD_CHAT,
    .needs_model = true,
    .has_guide = true,
    .reads_config = true,
    .run = run_chat,
};
