/*
 * memwall serve: answer other programs over HTTP.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/paths.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/models/models.h"
#include "src/plan/plan_print.h"
#include "src/serve/listen.h"
#include "src/serve/server.h"
#include "src/settings.h"

#define REQUEST_S 60

_Static_assert(OPTIONS_TEXTS <= REQUEST_STOPS, "stop texts are defaults of requests");

/* Report an error.  If the budget is too small, print the plan first. */
static int refuse(struct mw_model *m, const struct mw_options *o, const struct err *e)
{
    struct err ignored = ERR_INIT;
    struct plan p = { 0 };

    if (e->code == ERR_BUDGET && mw_plan(m, o, &p, &ignored) != 0 && p.sum_bytes > 0)
        plan_print_rows(stderr, &p);
    return report_error(e);
}

static int serve(const struct options *o, struct mw_model *m, const struct mw_options *engine,
                 const struct ui_options *ui, const struct ui_paths *paths, bool *is_stuck)
{
    struct mw_chat_options chat = { .engine = *engine };
    char name[160], folder[PATH_MAX + 16];
    struct server_options server = { .model = m,
                                     .chat = &chat,
                                     .model_name = name,
                                     .address = o->listen != NULL ? o->listen : LISTEN_DEFAULT,
                                     .key_file = o->api_key_file,
                                     .request_s = o->request_s > 0 ? o->request_s : REQUEST_S,
                                     .allows_settings = o->allow_settings,
                                     .quiet = o->quiet,
                                     .ui = ui,
                                     .paths = paths };
    struct mw_model_info info;
    struct plan plan;
    struct err e = ERR_INIT;

    models_name_of(o, name, sizeof name);
    if (engine->saves_kv) {
        snprintf(folder, sizeof folder, "%s/kv", engine->cache_folder);
        server.kv_folder = folder;
        server.kv_bytes = o->kv_space > 0 ? o->kv_space : mw_kv_limit(folder);
    }
    settings_chat(o, m, &chat);
    chat.engine.caller_bytes = server_bytes(m, engine) + (ui != NULL ? UI_SCREEN_BYTES : 0);
    mw_model_info(m, &info);
    settings_report_context(o, &info);
    limits_ensure(m, o->model, &chat.engine, LIMITS_KEPT);
    models_used(o->model);
    if (mw_plan(m, &chat.engine, &plan, &e) != 0)
        return refuse(m, &chat.engine, &e);
    return server_run(&server, is_stuck);
}

static int run_serve(const struct options *given)
{
    struct options used = *given, *o = &used;
    struct mw_options engine;
    struct settings_notice notice;
    struct paths paths;
    struct mw_model *m = NULL;
    struct ui_options ui;
    struct ui_paths of_ui;
    struct err e = ERR_INIT, ignored = ERR_INIT;
    bool is_stuck = false, has_screen;
    int code;

    if (server_check(o->listen != NULL ? o->listen : LISTEN_DEFAULT, o->api_key_file, &e) != 0 ||
        models_choose(o, &e) != 0)
        return report_usage(&cmd_serve, &e);
    settings_engine(o, &engine, &notice);
    engine.caller_bytes = 0; /* that of a server follows; beginnings are kept as by a chat */
    settings_report(o, &notice);
    paths = (struct paths){ 0 };
    (void)paths_find(&paths, &ignored);
    settings_screen(o, &ui);
    of_ui = (struct ui_paths){ paths.config_file, paths.config_dir, paths.state_dir,
                               paths.data_dir };
    has_screen = !o->quiet && !ui.plain && ui_can_draw() && isatty(STDERR_FILENO) == 1;
    if (settings_open(o->model, &engine, &m, &e) != 0)
        return report_error(&e);
    code = serve(o, m, &engine, has_screen ? &ui : NULL, &of_ui, &is_stuck);
    if (!is_stuck)
        mw_model_close(m);
    return code;
}

const struct command cmd_serve = {
    .name = "serve",
    .help = "answer other programs over HTTP",
    .about =
        "Editors, agents and web pages that speak the protocols of OpenAI, Anthropic or\n"
        "Ollama use the model at http://127.0.0.1:8080.  One request is answered at a\n"
        "time; others wait in a queue.  A request that begins like the one before it\n"
        "evaluates only the rest, and beginnings that requests share are kept on the\n"
        "disk.  Options such as --temp are the defaults of requests.  Without a key,\n"
        "only programs on this machine may ask.  A terminal shows the dashboard with\n"
        "the queue and the requests; without one, or with 2> FILE, each request is a\n"
        "line on standard error.  Ctrl-C ends the server.",
    .examples = "memwall serve -m model.gguf\n"
                "memwall serve -m model.gguf --memory 2G --ctx 16k\n"
                "memwall serve -m model.gguf --listen 0.0.0.0:8080 --api-key-file keys\n",
    .asks = "api openai anthropic ollama http editor agent port",
    .bit = CMD_SERVE,
    .needs_model = true,
    .has_guide = true,
    .reads_config = true,
    .run = run_serve,
};
