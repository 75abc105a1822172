/* memwall plan: show what fits and predict the speed from the headers; load nothing. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "src/command.h"
#include "src/known.h"
#include "src/limits.h"
#include "src/models.h"
#include "src/plan_print.h"
#include "src/settings.h"

/* Open the model of this name on this machine, or else the known one.  place gets the file, or
 * the folder where it would be.  Returns an exit code. */
static int open_model(struct mw_model **m, struct options *o, uint64_t memory_bytes,
                      char *place, size_t n)
{
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
    code = models_resolve(o);
    if (code != EXIT_OK)
        return code;
    e = (struct err)ERR_INIT;
    if (mw_model_open_within(m, o->model, memory_bytes, &e) != 0)
        return report_error(&e);
    snprintf(place, n, "%s", o->model);
    return EXIT_OK;
}

static int run_plan(const struct options *given)
{
    struct options options = *given, *o = &options;
    struct err e = ERR_INIT, ignored = ERR_INIT;
    struct mw_model *m = NULL;
    struct mw_model_info info;
    struct settings_notice notice;
    struct mw_options engine;
    struct mw_io_choice io;
    char products[MW_PRODUCTS_TEXT];
    struct plan p = { 0 };
    uint64_t smallest = 0;
    uint32_t largest = 0;
    char place[PATH_MAX];
    int code;

    settings_engine(o, &engine, &notice);
    if (notice.lowered[0] != '\0')
        report_notice(notice.lowered, strlen(notice.lowered));
    code = open_model(&m, o, engine.memory_bytes, place, sizeof place);
    if (code != EXIT_OK)
        return code;
    mw_model_info(m, &info);
    settings_report_context(o, &info);
    limits_ensure(m, place, &engine, true);
    if (mw_io_choose(m, &engine, &io, &e) != 0) {
        code = report_error(&e);
        goto done;
    }
    if (mw_plan(m, &engine, &p, &e) != 0) {
        code = report_error(&e);
        if (e.code != ERR_BUDGET)
            goto done;
    }
    mw_products_text(m, &engine, products, sizeof products);
    mw_plan_fit(m, &engine, &smallest, &largest, &ignored);
    if (info.n_ctx_train > 0 && largest > info.n_ctx_train)
        largest = info.n_ctx_train;
    if (o->json) {
        plan_print_json(stdout, m, &p, &engine, &io, products, code == EXIT_OK,
                        notice.is_mapped, smallest, largest);
    } else if (code == EXIT_OK) {
        char size[16];

        plan_print(stdout, m, &p, &engine, &io, products, notice.is_mapped);
        printf("The smallest budget for this context is %s; the largest context for this "
               "budget is %u.\n",
               units_size(size, sizeof size, smallest), largest);
    } else {
        plan_print_model(stdout, &info);
        plan_print_rows(stdout, &p);
    }
done:
    mw_model_close(m);
    return code;
}

const struct command cmd_plan = {
    .name = "plan",
    .help = "show what fits into memory and predict the speed; load nothing",
    .about = "Print how the memory budget is divided, and how many tokens per second this\n"
             "machine would give with it.  A published model that is not on this machine is\n"
             "planned from its shape: \"memwall doctor\" lists those that are known.",
    .examples = "memwall plan model.gguf\n"
                "memwall plan model.gguf --memory 1G --ctx 32k\n"
                "memwall plan gemma-4-12B:Q4_0\n",
    .bit = CMD_PLAN,
    .needs_model = true,
    .resolves = true,
    .reads_config = true,
    .run = run_plan,
};
