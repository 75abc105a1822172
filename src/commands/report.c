/*
 * memwall report: measure this machine and a model, and write a page about both.
 *
 * A folder that cannot be written is noticed before the measurement, and an unfinished page
 * never has the name of the result.
 */
#include "config.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/new_file.h"
#include "engine/base/numbers.h"
#include "src/base/paths.h"
#include "src/base/progress.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/measure/measure_all.h"
#include "src/models/models.h"
#include "src/report/page.h"
#include "src/report/page_record.h"
#include "src/report/page_results.h"
#include "src/report/page_stop.h"
#include "src/settings.h"

#define DEFAULT_OUTPUT "memwall-report.html"
#define MACHINE_S      15 /* what doctor takes */
#define RECORD_PROMPT  64
#define RECORD_TOKENS  64
#define RECORD_S       12.0 /* of decoding */
#define RUN_S          60   /* the most that a run takes, without --time-limit */
#define START_S        0.3  /* of a process that plans a point */
#define LIMITS_S       3    /* to measure disk, memory and processors for a plan */
#define BENCH_PROMPT   64
#define BENCH_TOKENS   16
#define SWEEP_POINTS   5
#define SWEEP_PROMPT   16
#define SWEEP_TOKENS   8

struct job {
    const struct options *o;
    struct mw_options engine;
    struct mw_model *m; /* NULL: none was given */
    bool is_mapped;
    char folder[4096]; /* where a file to read is written, without a model */
    struct page page;
    struct page_stop stop;
    struct progress progress;
};

static void on_step(void *ctx, const char *doing)
{
    struct job *j = ctx;

    progress_text(&j->progress, doing);
}

static void on_token(void *ctx, uint32_t n)
{
    struct job *j = ctx;

    if (n == 0)
        progress_restart(&j->progress, 0);
    else if (progress_is_due(&j->progress))
        progress_count(&j->progress, "recording", "tokens", n, RECORD_TOKENS);
}

static void on_use(void *ctx, struct mw_session *session)
{
    struct job *j = ctx;

    page_stop_use(&j->stop, session);
}

/* A sentence on standard error before something that takes long. */
static void announce(struct job *j, const char *text)
{
    progress_clear(&j->progress);
    if (!j->o->quiet)
        report_notice(text, strlen(text));
}

/* A part failed: the page is written without it. */
static void missing(struct job *j, const char *part, const struct err *e)
{
    if (e->code == ERR_CANCELLED)
        return;
    progress_clear(&j->progress);
    report_error(e);
    page_note(&j->page, "%s is missing: %s", part, e->what);
}

/* --- the machine --- */

static void measure_machine(struct job *j)
{
    const struct page_facts_how how = {
        .m = j->m,
        .folder = j->folder,
        .no_disk = j->o->no_disk,
        .step = on_step,
        .ctx = j,
        .cancelled = &j->stop.cancelled,
    };
    struct err e = ERR_INIT;

    if (j->o->no_measure) {
        page_note(&j->page, "This machine was not measured (--no-measure).");
        return;
    }
    if (page_facts_measure(&j->page.facts, &how, &e) != 0)
        missing(j, "The machine", &e);
}

/* --- the model --- */

static void plan_model(struct job *j)
{
    struct err e = ERR_INIT;

    on_step(j, "measuring with this model");
    limits_ensure(j->m, j->o->model, &j->engine,
                  !j->o->no_measure && !j->stop.cancelled ? LIMITS_MEASURE : LIMITS_KEPT);
    j->page.plan = calloc(1, sizeof *j->page.plan);
    if (j->page.plan == NULL) {
        err_memory(&e, "a plan");
    } else if (page_plan_make(j->page.plan, j->m, &j->engine, j->is_mapped, &e) == 0) {
        return;
    }
    free(j->page.plan);
    j->page.plan = NULL;
    missing(j, "The plan", &e);
}

/* Seconds that a run with this plan takes, roughly. */
static double run_seconds(const struct job *j, const struct plan *p, uint32_t n_prompt,
                          uint32_t n_token)
{
    const struct mw_limits *l = &j->page.plan->limits;
    double token = p->pass_tps > 0 ? 1 / p->pass_tps : 1; /* runs have no drafts */
    double load = l->disk_bytes_s > 0 ? (double)p->pinned_bytes / l->disk_bytes_s : 2;

    double s = 1 + load + (p->prefill_tps > 0 ? n_prompt / p->prefill_tps : token * 2) +
               token * (n_token + 1);

    return j->o->time_limit > 0 && s > j->o->time_limit ? j->o->time_limit : s;
}

/* List the budgets of the sweep: from the smallest one to the one from which on no weights are
 * read per token, or to the largest that the machine can give. */
static size_t sweep_budgets(const struct job *j, uint64_t budget[SWEEP_POINTS])
{
    const struct page_plan *p = j->page.plan;
    uint64_t low = p->smallest_budget, high = p->all.sum_bytes;
    uint64_t most = j->page.machine.budget_bytes / 10 * 9;

    if (most > 0 && high > most)
        high = most;
    if (low == 0 || high < low || p->is_mapped)
        return 0;
    return budgets_between(low, high, SWEEP_POINTS, budget);
}

/* Seconds to plan this many points, each in a process of its own, which measures the machine again
 * if its limits are doubtful, or older than a minute. */
static double plan_seconds(const struct job *j, size_t n_point, double run_s)
{
    double again = mw_limits_doubtful(&j->page.plan->limits) ? (double)n_point : 1 + run_s / 60;

    return (double)n_point * START_S + fmin(again, (double)n_point) * LIMITS_S;
}

/* Announce the runs of which no results were given. */
static void announce_runs(struct job *j, const uint64_t *budget, size_t n)
{
    const struct page_plan *p = j->page.plan;
    bool records = j->page.track == NULL, benches = j->page.bench.n_point == 0;
    size_t n_sweep = j->page.sweep.n_point == 0 ? n : 0;
    size_t n_point = benches + n_sweep, n_run = records + n_point;
    double seconds = 0;
    char text[200], time[24], limit[64] = "";

    if (n_run == 0)
        return;
    if (records)
        seconds += fmin(run_seconds(j, &p->plan, RECORD_PROMPT, RECORD_TOKENS), RECORD_S * 1.5);
    if (benches)
        seconds += run_seconds(j, &p->plan, BENCH_PROMPT, BENCH_TOKENS);
    for (size_t i = 0; i < n_sweep; i++) {
        struct mw_options o = j->engine;
        struct err ignored = ERR_INIT;
        struct plan at;

        o.memory_bytes = budget[i];
        if (mw_plan(j->m, &o, &at, &ignored) == 0)
            seconds += run_seconds(j, &at, SWEEP_PROMPT, SWEEP_TOKENS);
    }
    if (n_point > 0)
        seconds += plan_seconds(j, n_point, seconds);
    if (j->o->time_limit > 0)
        snprintf(limit, sizeof limit, "; each of %zu run%s ends after %u s",
                 n_run, n_run == 1 ? "" : "s", j->o->time_limit);
    snprintf(text, sizeof text,
             "running the model takes about %s, on a busy machine more%s; Ctrl-C keeps what was "
             "measured",
             numbers_time(time, sizeof time, seconds + 1), limit);
    announce(j, text);
}

/*
 * Measure points as bench does.  The processes that it starts take the signals, so the thread
 * that waits for them pauses.
 */
static void measure_points(struct job *j, const char *command, const char *budgets,
                           uint32_t n_prompt, uint32_t n_gen, struct results *out)
{
    struct options o = *j->o;
    struct measure_all all = { .o = &o, .results = out };
    struct err e = ERR_INIT;
    int code;

    if (j->stop.cancelled)
        return;
    memset(o.list, 0, sizeof o.list);
    o.chat.engine = j->engine;
    o.chat.engine.n_ctx = j->page.plan->plan.n_ctx;
    o.list[OPT_BENCH_MEMORY] = budgets;
    o.n_prompt = n_prompt;
    o.n_gen = n_gen;
    o.n_repeat = 1;
    results_begin(out, command, &o);
    if (points_make(&out->point, &out->n_point, &o, &e) != 0) {
        missing(j, "A measurement", &e);
        return;
    }
    progress_clear(&j->progress);
    page_stop_close(&j->stop);
    code = measure_all(&all);
    if (code >= 128) {
        j->stop.signal = code - 128;
        j->stop.cancelled = true;
    } else if (code == EXIT_FAILED) {
        page_note(&j->page, "Some points of %s could not be measured.", command);
    }
    page_results_hide(out);
    if (code < 128 && page_stop_open(&j->stop, &e) != 0)
        report_error(&e);
}

static void bench(struct job *j)
{
    char budget[24];

    if (j->page.bench.n_point > 0)
        return;
    snprintf(budget, sizeof budget, "%" PRIu64, j->page.plan->plan.budget_bytes);
    measure_points(j, "bench", budget, BENCH_PROMPT, BENCH_TOKENS, &j->page.bench);
    j->page.is_own_bench = true;
}

static void sweep(struct job *j, const uint64_t *budget, size_t n)
{
    char budgets[SWEEP_POINTS * 24] = "";

    if (n == 0 || j->page.sweep.n_point > 0)
        return;
    for (size_t i = 0; i < n; i++)
        snprintf(budgets + strlen(budgets), 24, "%s%" PRIu64, i > 0 ? "," : "", budget[i]);
    measure_points(j, "sweep", budgets, SWEEP_PROMPT, SWEEP_TOKENS, &j->page.sweep);
    j->page.is_own_sweep = true;
}

/* Record a run with the chosen budget. */
static void record(struct job *j)
{
    int fd = memfd_create("recording", MFD_CLOEXEC);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    const struct page_record how = {
        .n_prompt = RECORD_PROMPT,
        .n_token = RECORD_TOKENS,
        .seconds = RECORD_S,
        .to = f,
        .cancelled = &j->stop.cancelled,
        .use = on_use,
        .token = on_token,
        .ctx = j,
    };
    struct err e = ERR_INIT, broken = ERR_INIT;
    char path[32];

    on_step(j, "recording a run with the chosen budget: loading and prompt");
    page_stop_limit(&j->stop, j->o->time_limit);
    if (f == NULL)
        err_sys(&e, "cannot create a recording in memory");
    else
        page_record(j->m, &j->engine, &how, &e);
    if (atomic_load(&j->stop.timed_out))
        page_note(&j->page, "The recording ended after %u s (--time-limit).", j->o->time_limit);
    page_stop_limit(&j->stop, 0);
    if (e.code != ERR_NONE)
        missing(j, "A part of the recording", &e);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (f != NULL && fflush(f) == 0) {
        if (track_read(&j->page.track, path, &broken) == 0)
            j->page.is_own_track = true;
        else if (e.code == ERR_NONE)
            missing(j, "The recording", &broken);
    }
    if (f != NULL)
        fclose(f);
    else if (fd >= 0)
        close(fd);
}

static void measure_model(struct job *j)
{
    uint64_t budget[SWEEP_POINTS];
    size_t n;

    plan_model(j);
    if (j->page.plan == NULL || !j->page.plan->fits || j->o->no_measure || j->stop.cancelled)
        return;
    n = sweep_budgets(j, budget);
    announce_runs(j, budget, n);
    if (j->page.track == NULL)
        record(j);
    page_plan_predict(j->page.plan);
    bench(j);
    sweep(j, budget, n);
}

/* --- files --- */

static int open_model(struct job *j, struct options *o)
{
    const char *name;
    struct paths paths;
    struct stat st;
    struct err e = ERR_INIT;

    if (o->arg == NULL) {
        if (paths_find(&paths, &e) != 0 || stat(paths.data_dir, &st) != 0)
            snprintf(j->folder, sizeof j->folder, ".");
        else
            snprintf(j->folder, sizeof j->folder, "%s", paths.data_dir);
        return EXIT_OK;
    }
    o->model = o->arg;
    if (models_resolve(o, CMD_REPORT) != EXIT_OK)
        return EXIT_FAILED;
    if (settings_open(o->model, &j->engine, &j->m, &e) != 0)
        return report_error(&e);
    name = strrchr(o->model, '/');
    snprintf(j->page.file, sizeof j->page.file, "%s", name != NULL ? name + 1 : o->model);
    return EXIT_OK;
}

static struct mw_output output_of(const struct job *j)
{
    return (struct mw_output){ j->o->page != NULL ? j->o->page : DEFAULT_OUTPUT, j->o->force,
                               "--force" };
}

/* Can the page be written? */
static int try_output(const struct job *j, struct err *e)
{
    const struct mw_output file = output_of(j);
    struct new_file unused;

    if (mw_output_check(j->m, &file, e) != 0 ||
        new_file_begin(&unused, file.path, file.replace, e) != 0)
        return -1;
    new_file_drop(&unused);
    return 0;
}

static int write_page(struct job *j, struct err *e)
{
    const struct mw_output file = output_of(j);
    struct new_file page;

    if (mw_output_check(j->m, &file, e) != 0 ||
        new_file_begin(&page, file.path, file.replace, e) != 0)
        return -1;
    page_write(&j->page, page.f);
    return new_file_end(&page, e);
}

static int load_results(struct results *r, const char *path, struct err *e)
{
    if (path == NULL)
        return 0;
    if (results_load(r, path, e) != 0)
        return -1;
    page_results_hide(r);
    return 0;
}

static void measure(struct job *j)
{
    char text[96];

    progress_open(&j->progress, j->o->quiet);
    mw_machine_read(&j->page.machine);
    page_facts_hide(j->page.machine.budget_why);
    if (!j->o->no_measure) {
        snprintf(text, sizeof text,
                 "measuring this machine takes about %d s; Ctrl-C keeps what was measured",
                 MACHINE_S);
        announce(j, text);
    }
    measure_machine(j);
    if (j->m != NULL)
        measure_model(j);
    progress_clear(&j->progress);
}

static int make(struct job *j)
{
    struct err e = ERR_INIT;

    if ((j->o->recording != NULL && track_read(&j->page.track, j->o->recording, &e) != 0) ||
        load_results(&j->page.bench, j->o->bench, &e) != 0 ||
        load_results(&j->page.sweep, j->o->sweep, &e) != 0 || try_output(j, &e) != 0 ||
        page_stop_open(&j->stop, &e) != 0)
        return report_error(&e);
    measure(j);
    j->page.is_stopped = j->stop.signal != 0;
    if (j->stop.signals >= 0)
        page_stop_close(&j->stop);
    if (write_page(j, &e) != 0)
        return report_error(&e);
    puts(output_of(j).path);
    return report_end(j->stop.signal != 0 ? 128 + j->stop.signal : EXIT_OK);
}

static int run_report(const struct options *given)
{
    struct options o = *given;
    struct settings_notice notice;
    struct job *j = calloc(1, sizeof *j);
    struct err e = ERR_INIT;
    int code;

    if (j == NULL) {
        err_memory(&e, "a report");
        return report_error(&e);
    }
    j->o = &o;
    if (!options_given(given, OPT_TIME_LIMIT))
        o.time_limit = RUN_S;
    j->page.made_s = (int64_t)time(NULL);
    settings_engine(&o, &j->engine, &notice);
    settings_report(&o, &notice);
    j->is_mapped = notice.is_mapped;
    code = open_model(j, &o);
    if (code == EXIT_OK)
        code = make(j);
    mw_model_close(j->m);
    page_facts_free(&j->page.facts);
    results_free(&j->page.bench);
    results_free(&j->page.sweep);
    track_free(j->page.track);
    free(j->page.plan);
    free(j);
    return code;
}

const struct command cmd_report = {
    .name = "report",
    .args = "[MODEL]",
    .help = "write a page about this machine and a model",
    .about =
        "Measure this machine and short runs of the model at several budgets, and write\n"
        "one page of HTML: a summary in plain words, the plan, the measured speeds beside\n"
        "the predicted ones, curves of a recording, and all figures as JSON.  The page\n"
        "needs no network and no script, and is made to be shown to others: it has no\n"
        "names of machine, user and folders, and no text of prompts and answers.",
    .examples = "memwall report\n"
                "memwall report model.gguf --memory 2G\n"
                "memwall report model.gguf --recording log.jsonl -o page.html\n",
    .bit = CMD_REPORT,
    .takes_arg = true,
    .model_first = true,
    .reads_config = true,
    .run = run_report,
};
