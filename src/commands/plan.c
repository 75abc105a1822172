/* memwall plan: show what fits and predict the speed from the headers; load nothing. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "engine/base/numbers.h"
#include "src/base/beside.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/models/known.h"
#include "src/models/models.h"
#include "src/plan/plan_print.h"
#include "src/plan/plan_table.h"
#include "src/plan/what_if.h"
#include "src/settings.h"

/* A plan also holds for a model that only "memwall eval --ids" can use. */
static void report_no_text(struct mw_model *m)
{
    struct err e = ERR_INIT;
    char text[900];

    if (mw_model_check_text(m, &e) == 0)
        return;
    snprintf(text, sizeof text,
             "this model cannot read or write text, only evaluate ids: %s%s%s", e.field,
             e.field[0] != '\0' ? ": " : "", e.what);
    report_notice(text, strlen(text));
}

/* Open the model of this name on this machine, or else the known one.  place gets the file, or
 * the folder where it would be.  Returns an exit code. */
static int open_model(struct mw_model **m, struct options *o, const struct mw_options *engine,
                      char *place, size_t n)
{
    const char *name = o->model;
    struct err e = ERR_INIT;
    int code;

    if (!models_is_here(o->model)) {
        if (known_open_model(m, o->model, &e) == 0) {
            known_folder(place, n);
            return EXIT_OK;
        }
        if (e.code == ERR_ARGUMENT) {
            report_error(&e);
            return EXIT_USAGE;
        }
        if (e.code != ERR_IO)
            return report_error(&e);
    }
    *m = NULL;
    code = models_resolve(o, CMD_PLAN);
    if (code != EXIT_OK) {
        if (e.code != ERR_NONE)
            known_suggest(name);
        return code;
    }
    beside_report(o);
    e = (struct err)ERR_INIT;
    if (settings_open(o->model, engine, m, &e) != 0)
        return report_error(&e);
    report_no_text(*m);
    snprintf(place, n, "%s", o->model);
    return EXIT_OK;
}

static int explain(struct mw_model *m, const struct mw_options *engine)
{
    struct err e = ERR_INIT;

    if (mw_plan_explain(m, engine, stdout, (int64_t)time(NULL), &e) != 0)
        return report_error(&e);
    return EXIT_OK;
}

/* The engine's options; another machine has its own limit for the budget. */
static void engine_options(const struct options *o, const struct what_if *w,
                           struct mw_options *engine)
{
    struct settings_notice notice;

    settings_engine(o, engine, &notice);
    if (w->ram_bytes > 0)
        engine->memory_bytes = o->chat.engine.memory_bytes;
    else if (notice.lowered[0] != '\0')
        report_notice(notice.lowered, strlen(notice.lowered));
}

static void print(struct mw_model *m, const struct plan *p, const struct mw_options *engine,
                  const struct plan_print_more *more)
{
    char size[16], ctx[24];

    if (more->fits) {
        plan_print(stdout, m, p, engine, more);
        printf("The smallest budget for this context is %s; the largest context for this "
               "budget is %s.\n",
               units_size(size, sizeof size, more->smallest_budget),
               numbers_count(ctx, sizeof ctx, more->largest_ctx));
    } else {
        struct mw_model_info info;

        mw_model_info(m, &info);
        plan_print_model(stdout, &info);
        plan_print_rows(stdout, p);
    }
    plan_table_print(stdout, m, engine);
}

/* The budget of p is too small for a chat, whose screen takes memory: "memwall run" has none. */
static void say_what_runs(struct mw_model *m, const struct mw_options *engine,
                          const struct plan *p)
{
    struct mw_options run = *engine;
    struct err ignored = ERR_INIT;
    char text[160], size[16];
    uint64_t smallest;
    uint32_t ctx;

    settings_no_screen(&run);
    if (run.caller_bytes == engine->caller_bytes && run.saves_kv == engine->saves_kv)
        return;
    if (mw_plan_fit(m, &run, &smallest, &ctx, &ignored) != 0 || smallest > p->budget_bytes)
        return;
    snprintf(text, sizeof text,
             "this is the plan of a chat; \"memwall run\" has no screen, and needs %s",
             units_size_up(size, sizeof size, smallest));
    report_notice(text, strlen(text));
}

static int make_and_print(struct mw_model *m, const struct options *o,
                          struct mw_options *engine, const struct what_if *w)
{
    struct err e = ERR_INIT, ignored = ERR_INIT;
    struct mw_io_choice io;
    char products[MW_PRODUCTS_TEXT];
    struct mw_diagnosis diagnosis = { 0 };
    struct plan_print_more more = { .io = &io, .products = products, .diagnosis = &diagnosis };
    struct mw_model_info info;
    struct mw_machine machine;
    struct plan p = { 0 };
    int code = EXIT_OK;

    if (o->what_if != NULL) {
        what_if_apply(w, m, engine);
        more.what_if = w;
    }
    if (mw_io_choose(m, engine, &io, &e) != 0)
        return report_error(&e);
    if (mw_plan(m, engine, &p, &e) != 0) {
        code = report_error(&e);
        if (e.code != ERR_BUDGET)
            return code;
        if (!o->quiet)
            say_what_runs(m, engine, &p);
    }
    /* The plans of the table have the same budget and threads. */
    engine->memory_bytes = p.budget_bytes;
    if (engine->n_thread <= 0) {
        mw_machine_read(&machine);
        engine->n_thread = machine.n_thread;
    }
    mw_products_text(m, engine, products, sizeof products);
    settings_report_products(o, m, engine);
    mw_plan_fit(m, engine, &more.smallest_budget, &more.largest_ctx, &ignored);
    mw_model_info(m, &info);
    if (info.n_ctx_train > 0 && more.largest_ctx > info.n_ctx_train)
        more.largest_ctx = info.n_ctx_train;
    more.fits = code == EXIT_OK;
    if (more.fits)
        (void)mw_diagnose(m, engine, NULL, &diagnosis, &ignored);
    if (o->json)
        plan_print_json(stdout, m, &p, engine, &more);
    else
        print(m, &p, engine, &more);
    if (o->explain && more.fits)
        code = explain(m, engine);
    return code;
}

static int run_plan(const struct options *given)
{
    struct options options = *given, *o = &options;
    struct what_if what_if = { 0 };
    struct mw_model_info info;
    struct err e = ERR_INIT;
    struct mw_options engine;
    char place[PATH_MAX];
    struct mw_model *m;
    int code;

    if (o->explain && o->json) {
        err_set(&e, ERR_ARGUMENT, "explains in text; leave out --json");
        err_at(&e, NULL, ERR_NO_OFFSET, "--explain");
        return report_usage(&cmd_plan, &e);
    }
    if (o->what_if != NULL && what_if_parse(o->what_if, &what_if, &e) != 0) {
        err_at(&e, NULL, ERR_NO_OFFSET, "--what-if");
        return report_usage(&cmd_plan, &e);
    }
    engine_options(o, &what_if, &engine);
    code = open_model(&m, o, &engine, place, sizeof place);
    if (code != EXIT_OK)
        return code;
    engine.n_ctx = o->chat.engine.n_ctx; /* the model may have a default */
    mw_model_info(m, &info);
    settings_report_context(o, &info);
    limits_ensure_shown(m, place, &engine, o->quiet);
    code = make_and_print(m, o, &engine, &what_if);
    mw_model_close(m);
    return code;
}

const struct command cmd_plan = {
    .name = "plan",
    .help = "show what fits into memory and predict the speed; load nothing",
    .about = "Print how the memory budget is divided, and how many tokens per second this\n"
             "machine would give with it; then the same for each context by the type of keys\n"
             "and values.  A published model that is not on this machine is planned from\n"
             "its shape: \"memwall doctor\" lists those that are known.  NAME:TYPE chooses\n"
             "its weight type, for example Llama-3.1-8B:Q8_0.",
    .examples = "memwall plan model.gguf\n"
                "memwall plan model.gguf --memory 1G --ctx 32k\n"
                "memwall plan gemma-4-12B:Q4_0\n"
                "memwall plan model.gguf --explain\n"
                "memwall plan model.gguf --what-if RAM=8G,DISK=500M/s,BW=40G/s,CORES=4\n",
    .asks = "laptop machine fit fits run enough smallest least budget need nothing read gb ram quantization",
    .bit = CMD_PLAN,
    .needs_model = true,
    .resolves = true,
    .reads_config = true,
    .run = run_plan,
};
