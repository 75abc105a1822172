/* memwall sweep: the speed of a model over one setting, measured and predicted, as a chart. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/command.h"
#include "src/measure/mapped.h"
#include "src/measure/measure_all.h"
#include "src/measure/result_files.h"
#include "src/measure/results_print.h"
#include "src/measure/sweep_chart.h"

#define CHART_HEIGHT 20
#define CHART_WIDTH  100 /* at most, in cells */
#define LIST_BYTES   2048
#define POINTS       8 /* without --points */
#define POINTS_MAX   100

struct sweep {
    struct options o; /* with the defaults of sweep, and the list */
    enum sweep_over over;
    struct results results;
    struct result_files files;
    char list[LIST_BYTES]; /* of the setting that changes, unless the user gave one */
    bool lacks_cage;       /* --against was asked for and is not possible */
};

/* --- the points --- */

static void add_item(struct sweep *s, uint64_t value)
{
    size_t used = strlen(s->list);

    snprintf(s->list + used, sizeof s->list - used, "%s%llu", used > 0 ? "," : "",
             (unsigned long long)value);
}

static int report(const struct err *e)
{
    return e->code == ERR_ARGUMENT ? report_usage(&cmd_sweep, e) : report_error(e);
}

/* Plan with the default budget.  Returns an exit code; *p has the budgets of the plan. */
static int plan_once(struct sweep *s, struct results *probe)
{
    struct measure_all all = { .o = &s->o, .results = probe, .is_plan_only = true };
    struct err e = ERR_INIT;
    int code;

    results_begin(probe, "sweep", &s->o);
    if (points_make(&probe->point, &probe->n_point, &s->o, &e) != 0)
        return report(&e);
    code = measure_all(&all);
    return code == EXIT_NO_FIT ? EXIT_OK : code; /* it is refused, but it is a plan */
}

/* List budgets from the smallest one to the one from which on no weights are read per token, or
 * to the memory of this machine. */
static int list_budgets(struct sweep *s)
{
    uint64_t low, high, budget[POINTS_MAX];
    struct results probe;
    size_t n;
    char why[320];
    int code = plan_once(s, &probe);

    if (code != EXIT_OK) {
        results_free(&probe);
        return code;
    }
    low = probe.point[0].smallest_bytes;
    high = probe.point[0].all_pinned_bytes;
    results_free(&probe);
    if (mw_budget_lower(&high, why, sizeof why))
        report_notice(why, strlen(why));
    n = budgets_between(low, high, s->o.points < POINTS_MAX ? s->o.points : POINTS_MAX,
                        budget);
    for (size_t i = 0; i < n; i++)
        add_item(s, budget[i]);
    return EXIT_OK;
}

static void list_powers(struct sweep *s, uint64_t from, uint64_t to)
{
    for (uint64_t n = from; n <= to; n *= 2)
        add_item(s, n);
}

/* Also one thread per CPU, if that is more than one per core: is it faster here? */
static void list_threads(struct sweep *s)
{
    struct mw_machine machine;
    uint64_t n = 1;

    mw_machine_read(&machine);
    for (; n < (uint64_t)machine.n_core; n *= 2)
        add_item(s, n);
    add_item(s, (uint64_t)machine.n_core);
    if (machine.n_cpu > machine.n_core)
        add_item(s, (uint64_t)machine.n_cpu);
}

/* Choose the values of the setting, unless the user did. */
static int make_list(struct sweep *s)
{
    enum option_id id = dimension_table[sweep_axes[s->over].dimension].option;
    int code = EXIT_OK;

    if (s->o.list[id] != NULL)
        return EXIT_OK;
    switch (s->over) {
    case OVER_BUDGET: code = list_budgets(s); break;
    case OVER_CTX: list_powers(s, 512, 8192); break;
    case OVER_KV: snprintf(s->list, sizeof s->list, "f16,q8_0,q4_0"); break;
    case OVER_THREADS: list_threads(s); break;
    case OVER_BLOCK: list_powers(s, 256 * KIB, 8 * MIB); break;
    case N_OVER: break;
    }
    s->o.list[id] = s->list;
    return code;
}

/* A context is measured when it is full. */
static int fill_contexts(struct results *r, struct err *e)
{
    for (size_t i = 0; i < r->n_point; i++) {
        struct setting *setting = r->point[i].setting;
        uint64_t work = setting[DIM_PROMPT].number + setting[DIM_GEN].number;

        if (setting[DIM_CTX].number < work)
            return err_set(e, ERR_ARGUMENT,
                           "a context of %llu does not hold a prompt and an answer of %llu "
                           "tokens together",
                           (unsigned long long)setting[DIM_CTX].number,
                           (unsigned long long)work);
        setting[DIM_DEPTH].number = setting[DIM_CTX].number - work;
    }
    return 0;
}

/* --- before and after --- */

/* Only the setting that is swept may be a list. */
static int check_lists(const struct sweep *s, struct err *e)
{
    for (int d = 0; d < N_DIMENSION; d++) {
        enum option_id id = dimension_table[d].option;

        if ((enum dimension)d != sweep_axes[s->over].dimension && options_items(&s->o, id) > 1)
            return err_set(e, ERR_ARGUMENT,
                           "--%s has several values, but the sweep is over %s; memwall bench "
                           "measures grids",
                           options_table[id].name, sweep_axes[s->over].name);
    }
    if (s->over == OVER_CTX && s->o.list[OPT_DEPTH] != NULL)
        return err_set(e, ERR_ARGUMENT, "--depth and --over ctx cannot be combined");
    if (s->o.json + s->o.csv + s->o.markdown > 1)
        return err_set(e, ERR_ARGUMENT, "--json, --csv and --markdown cannot be combined");
    return 0;
}

static int draw_svg(void *ctx, FILE *to, struct err *e)
{
    const struct sweep *s = ctx;
    struct sweep_chart chart;

    if (sweep_chart_open(&chart, &s->results, s->over, e) != 0)
        return -1;
    chart_svg(&chart.chart, 720, 400, to);
    sweep_chart_close(&chart);
    return 0;
}

static int save(void *ctx, const struct results *r, struct err *e)
{
    const struct sweep *s = ctx;

    return result_files_save(&s->files, r, e);
}

static int print_chart(const struct sweep *s, const struct results_look *look, struct err *e)
{
    struct chart_look how = { .width = look->width < CHART_WIDTH ? look->width : CHART_WIDTH,
                              .height = CHART_HEIGHT,
                              .ascii = look->ascii,
                              .color = getenv("NO_COLOR") == NULL };
    struct sweep_chart chart;
    int r;

    if (sweep_chart_open(&chart, &s->results, s->over, e) != 0)
        return -1;
    r = chart_print(&chart.chart, &how, stdout, e);
    sweep_chart_close(&chart);
    fputc('\n', stdout);
    return r;
}

static int print(const struct sweep *s, struct err *e)
{
    struct results_look look;

    if (s->o.json) {
        results_json(stdout, &s->results);
        return 0;
    }
    if (s->o.csv) {
        results_csv(stdout, &s->results);
        return 0;
    }
    results_look(&look);
    if (s->o.markdown)
        look.width = 0;
    if (look.width > 0 && print_chart(s, &look, e) != 0)
        return -1;
    return results_print(stdout, &s->results, &look, e);
}

static int prepare(struct sweep *s, struct err *e)
{
    struct results *r = &s->results;

    results_begin(r, "sweep", &s->o);
    snprintf(r->over, sizeof r->over, "%s", sweep_axes[s->over].name);
    if (points_make(&r->point, &r->n_point, &s->o, e) != 0)
        return -1;
    measure_lower_budgets(r);
    if (s->over == OVER_CTX && fill_contexts(r, e) != 0)
        return -1;
    if (s->o.against == AGAINST_MMAP) {
        s->lacks_cage = !mapped_can("--against mmap needs", "sweep");
        if (!s->lacks_cage && mapped_add(r, e) != 0)
            return -1;
    }
    s->files.svg = draw_svg;
    s->files.ctx = s;
    return result_files_open(&s->files, &s->o, r, e);
}

static int measure(struct sweep *s)
{
    struct measure_all all = { .o = &s->o, .results = &s->results, .done = save, .ctx = s,
                               .announces = true };
    struct err e = ERR_INIT;
    int code = measure_all(&all);

    if (s->results.model.arch[0] == '\0') /* no model was opened */
        return code;
    if (print(s, &e) != 0 || result_files_write(&s->files, &s->results, &e) != 0)
        return report_error(&e);
    return code == EXIT_OK && s->lacks_cage ? EXIT_FAILED : code;
}

static int run_sweep(const struct options *given)
{
    struct sweep *s = calloc(1, sizeof *s);
    struct err e = ERR_INIT;
    int code;

    if (s == NULL) {
        err_memory(&e, "a sweep");
        return report_error(&e);
    }
    s->o = *given;
    s->over = (enum sweep_over)given->over;
    if (!options_given(given, OPT_N_PROMPT))
        s->o.n_prompt = 64;
    if (!options_given(given, OPT_N_GEN))
        s->o.n_gen = 32;
    if (!options_given(given, OPT_REPEAT))
        s->o.n_repeat = 1;
    if (s->o.points == 0)
        s->o.points = POINTS;
    if (check_lists(s, &e) != 0)
        code = report(&e);
    else if ((code = make_list(s)) == EXIT_OK)
        code = prepare(s, &e) == 0 ? measure(s) : report(&e);
    results_free(&s->results);
    free(s);
    return code;
}

const struct command cmd_sweep = {
    .name = "sweep",
    .help = "draw the speed of a model over its memory budget",
    .about =
        "Measure answers at several budgets, from the smallest that works to the one with\n"
        "which nothing is read for each token, and draw the curve beside the\n"
        "prediction.  --over changes another setting instead.  --against mmap measures\n"
        "the same budgets as limits of a control group in which the weights are mapped,\n"
        "as other programs do it.",
    .examples = "memwall sweep model.gguf\n"
                "memwall sweep model.gguf -o wall.svg -o wall.json --points 12\n"
                "memwall sweep model.gguf --over ctx --memory 2G --ctx 1k,4k,16k\n"
                "memwall sweep model.gguf --against mmap -o wall.png\n",
    .asks = "curve graph",
    .bit = CMD_SWEEP,
    .needs_model = true,
    .run = run_sweep,
};
