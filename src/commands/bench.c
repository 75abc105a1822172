/* memwall bench: measure a model over a grid of settings. */
#include "config.h"

#include "src/command.h"
#include "src/measure/measure.h"
#include "src/measure/measure_all.h"
#include "src/measure/result_files.h"
#include "src/measure/results_print.h"

struct bench {
    const struct options *o;
    struct results results, before;
    struct result_files files;
};

static int save(void *ctx, const struct results *r, struct err *e)
{
    const struct bench *b = ctx;

    return result_files_save(&b->files, r, e);
}

static int print(struct bench *b, struct err *e)
{
    struct results_look look;

    if (b->o->json) {
        results_json(stdout, &b->results);
        return 0;
    }
    if (b->o->csv) {
        results_csv(stdout, &b->results);
        return 0;
    }
    results_look(&look);
    if (b->o->markdown)
        look.width = 0;
    if (results_print(stdout, &b->results, &look, e) != 0)
        return -1;
    return b->o->compare != NULL
               ? results_print_changes(stdout, &b->before, &b->results, &look, e)
               : 0;
}

/* Whether --draft names a model or a head; without it, measurements draft nothing. */
static bool has_drafter(const struct options *o)
{
    enum mw_draft how = o->chat.engine.draft;

    return options_given(o, OPT_DRAFT) &&
           (how == MW_DRAFT_SELF || how == MW_DRAFT_MTP || how == MW_DRAFT_FILE);
}

/* Everything that can be wrong is found before the first measurement. */
static int prepare(struct bench *b, struct err *e)
{
    const struct options *o = b->o;

    if (o->json + o->csv + o->markdown > 1)
        return err_set(e, ERR_ARGUMENT, "--json, --csv and --markdown cannot be combined");
    if (o->compare != NULL && (o->json || o->csv))
        return err_set(e, ERR_ARGUMENT, "--compare prints tables, not JSON or CSV");
    if (options_given(o, OPT_DRAFT_ACCEPT) && !has_drafter(o))
        return err_set(e, ERR_ARGUMENT,
                       "--draft-accept needs a model that drafts: --draft self, mtp or FILE");
    if (o->compare != NULL && results_load(&b->before, o->compare, e) != 0)
        return -1;
    results_begin(&b->results, "bench", o);
    if (points_make(&b->results.point, &b->results.n_point, o, e) != 0)
        return -1;
    measure_lower_budgets(&b->results);
    return result_files_open(&b->files, o, &b->results, e);
}

static int measure(struct bench *b)
{
    struct measure_all all = { .o = b->o, .results = &b->results, .done = save, .ctx = b,
                               .announces = true };
    struct err e = ERR_INIT;
    int code = measure_all(&all);

    if (b->results.model.arch[0] == '\0') /* no model was opened */
        return code;
    if (print(b, &e) != 0 || result_files_write(&b->files, &b->results, &e) != 0)
        return report_error(&e);
    return code;
}

static int run_bench(const struct options *o)
{
    struct bench b = { .o = o };
    struct err e = ERR_INIT;
    int code;

    if (o->one != ONE_NOTHING)
        return measure_one(o);
    if (prepare(&b, &e) != 0)
        code = e.code == ERR_ARGUMENT ? report_usage(&cmd_bench, &e) : report_error(&e);
    else
        code = measure(&b);
    results_free(&b.results);
    results_free(&b.before);
    return code;
}

const struct command cmd_bench = {
    .name = "bench",
    .help = "measure prompts and answers over budgets and other settings",
    .about =
        "Measure the speed and the memory of a model, and print the prediction of the\n"
        "plan beside each figure.  Lists, separated by commas, make a grid; each point is\n"
        "measured in a process of its own, and the runs go round over all points.",
    .examples = "memwall bench model.gguf\n"
                "memwall bench model.gguf --memory 1G,2G -p 512 -n 64 -d 0,4096 -r 5\n"
                "memwall bench model.gguf --memory 2G -o before.json\n"
                "memwall bench model.gguf --memory 2G --compare before.json\n",
    .asks = "benchmark measure speed",
    .bit = CMD_BENCH,
    .needs_model = true,
    .run = run_bench,
};
