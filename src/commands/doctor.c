/* memwall doctor: measure this machine, and say what limits a model on it. */
#include "config.h"

#include <sys/stat.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/base/progress.h"
#include "src/base/signals.h"
#include "src/command.h"
#include "src/doctor/doctor_advice.h"
#include "src/doctor/doctor_print.h"
#include "src/doctor/doctor_summary.h"
#include "src/doctor/doctor_walls.h"
#include "src/machine/limit_words.h"
#include "src/machine/kept_limits.h"
#include "src/machine/limits_print.h"
#include "src/models/known.h"
#include "src/models/models.h"
#include "src/settings.h"

static _Atomic bool
    cancelled; /* set by Ctrl-C: the measurement ends, what there is is printed */

static void cancel(int signo)
{
    if (atomic_exchange(&cancelled, true))
        _exit(128 + signo);
    signals_end_soon(signo);
}

#define SUMMARY_MAX 8
#define UNITS       "  Sizes are in powers of 1024 (GiB), rates in powers of 1000 (GB/s)."

struct visit {
    const struct options *o;
    struct mw_options engine;
    struct doctor_print print;
    struct progress progress;
    struct mw_model *m; /* NULL: none was given */
    char folder[4096];  /* where a file to read is written, without a model */
    const char *section;
    struct advice_facts facts;
    struct sentence {
        char key[24], text[ADVICE_TEXT + 384];
    } summary[SUMMARY_MAX];
    int n_summary;
    bool is_complete;
};

static void on_fact(void *ctx, const struct mw_fact *f)
{
    struct visit *v = ctx;

    if (f->depth == 0)
        progress_clear(&v->progress);
    advice_note(&v->facts, v->section, f);
    doctor_print_fact(&v->print, f);
}

static void on_clear(void *ctx)
{
    struct visit *v = ctx;

    progress_clear(&v->progress);
}

static void on_step(void *ctx, const char *doing)
{
    struct visit *v = ctx;

    progress_text(&v->progress, doing);
}

/* --- the model --- */

static void put_rate(struct visit *v, const char *key, const char *label, double tps)
{
    struct mw_fact f = { .key = key, .label = label, .unit = MW_UNIT_COUNT, .value = tps };

    if (!(tps > 0))
        f.why_not = "not predicted";
    on_fact(v, &f);
}

static void put_bytes(struct visit *v, const char *key, const char *label, uint64_t bytes)
{
    struct mw_fact f = {
        .key = key, .label = label, .unit = MW_UNIT_BYTES, .value = (double)bytes
    };

    on_fact(v, &f);
}

static void put_count(struct visit *v, const char *key, const char *label, uint32_t count)
{
    struct mw_fact f = { .key = key, .label = label, .unit = MW_UNIT_COUNT, .value = count };

    on_fact(v, &f);
}

static void put_text(struct visit *v, const char *key, const char *label, const char *text)
{
    struct mw_fact f = { .key = key, .label = label };

    snprintf(f.text, sizeof f.text, "%s", text);
    on_fact(v, &f);
}

/* The smallest budget, and the largest context for the budget in use. */
static void put_fit(struct visit *v)
{
    struct err ignored = ERR_INIT;
    struct mw_model_info info;
    uint64_t smallest;
    uint32_t largest;

    if (mw_plan_fit(v->m, &v->engine, &smallest, &largest, &ignored) != 0)
        return;
    mw_model_info(v->m, &info);
    if (info.n_ctx_train > 0 && largest > info.n_ctx_train)
        largest = info.n_ctx_train;
    put_bytes(v, "smallest_budget_bytes", "smallest budget", smallest);
    put_count(v, "largest_ctx", "longest context", largest);
}

static void on_advice(void *ctx, const char *key, const char *text)
{
    struct visit *v = ctx;

    doctor_print_advice(&v->print, key, text);
}

/* Keep a sentence for the first lines. */
static void on_summary(void *ctx, const char *key, const char *text)
{
    struct visit *v = ctx;

    if (v->n_summary == SUMMARY_MAX)
        return;
    snprintf(v->summary[v->n_summary].key, sizeof v->summary[0].key, "%s", key);
    snprintf(v->summary[v->n_summary++].text, sizeof v->summary[0].text, "%s", text);
}

/* Print the advice about the model, which is also one of the first lines. */
static void on_change(void *ctx, const char *key, const char *text)
{
    bool is_change = strcmp(key, "none") != 0 && strcmp(key, "doubt") != 0;
    char change[ADVICE_TEXT];

    on_advice(ctx, key, text);
    snprintf(change, sizeof change, "%s%.*s", is_change ? "Change first: " : "",
             ADVICE_TEXT - 16, text);
    on_summary(ctx, "change", change);
}

/* Print advice about the machine.  A busy one makes all figures doubtful. */
static void on_machine(void *ctx, const char *key, const char *text)
{
    on_advice(ctx, key, text);
    if (strcmp(key, "busy") == 0)
        on_summary(ctx, key, text);
}

/* The sections before have the best rates of this machine, which a model may not reach: it reads
 * in blocks of its own, and predictions begin at those. */
static void put_limits(struct visit *v)
{
    size_t bytes = mw_read_bytes(v->m, &v->engine);
    char text[MW_LIMITS_TEXT], size[24];
    struct mw_limits l;

    mw_model_limits(v->m, &l);
    if (v->o->json) {
        limits_json(&v->print.json, &l);
        return;
    }
    mw_limits_text(&l, (int64_t)time(NULL), text, sizeof text);
    progress_clear(&v->progress);
    fprintf(v->print.to, "  %s\n", text);
    if (bytes > 0 && mw_model_has_file(v->m))
        fprintf(v->print.to,
                "    as this model reads, in blocks of %s; the rates above are the best of all\n"
                "    sizes, and predictions use these\n",
                units_size(size, sizeof size, bytes));
}

static int visit_model(struct visit *v, struct err *e)
{
    struct mw_model_info info;
    struct mw_limits limits;
    char no_drafter[MW_NO_DRAFTER_TEXT];
    struct plan plan = { 0 };

    mw_model_info(v->m, &info);
    put_text(v, "name", "model", info.name[0] != '\0' ? info.name : info.arch);
    if (!mw_model_has_file(v->m)) {
        on_step(v, "measuring the disk for predictions");
        if (!v->o->no_disk && limits_measure_folder(v->folder, &v->engine, e) != 0)
            return -1;
        limits_ensure(v->m, v->o->arg, &v->engine,
                      v->o->no_disk ? LIMITS_NO_DISK : LIMITS_MEASURE);
    } else if (!v->o->no_disk) {
        on_step(v, "measuring with this model");
        if (limits_measure_again(v->m, v->o->arg, &v->engine, e) != 0)
            return -1;
    } else {
        limits_ensure(v->m, v->o->arg, &v->engine, LIMITS_KEPT);
    }
    put_limits(v);
    if (mw_plan(v->m, &v->engine, &plan, e) != 0) {
        put_bytes(v, "smallest_budget_bytes", "smallest budget", plan.sum_bytes);
        on_summary(v, "refused", e->what);
        return -1;
    }
    mw_model_limits(v->m, &limits);
    mw_plan_no_drafter(v->m, &v->engine, &plan, no_drafter, sizeof no_drafter);
    summary_model(info.name[0] != '\0' ? info.name : info.arch, &limits, &plan, no_drafter,
                  on_summary, v);
    put_bytes(v, "budget_bytes", "budget", plan.budget_bytes);
    put_bytes(v, "streamed_bytes", "read from disk per token", plan.streamed_bytes);
    put_rate(v, "decode_tps", "tokens per second of answers, ~", plan.decode_tps);
    put_rate(v, "prefill_tps", "tokens per second of prompts, ~", plan.prefill_tps);
    if (v->o->json)
        put_text(v, "binds", "", mw_binds_name(plan.binds));
    else
        put_text(v, "binds", "what limits answers", limit_words(plan.binds));
    put_fit(v);
    doctor_print_list(&v->print, "advice", "what to change first");
    advice_model(v->m, &v->engine, &plan, on_change, v);
    doctor_print_end_list(&v->print, NULL);
    return 0;
}

/* --- the sections --- */

/* A section that fails does not keep the others from being measured. */
static void end_section(struct visit *v, int rc, const struct err *e)
{
    char text[ADVICE_TEXT];

    progress_clear(&v->progress);
    if (rc == 0)
        return;
    v->is_complete = false;
    doctor_print_error(&v->print, e);
    if (strcmp(v->section, "model") == 0)
        return; /* the summary has its own sentence */
    snprintf(text, sizeof text, "%s: %.240s", v->section, e->what);
    on_summary(v, "incomplete", text);
}

static void begin_section(struct visit *v, const char *name)
{
    v->section = name;
    doctor_print_section(&v->print, name);
}

/* The model whose file is read; NULL: one is written to the folder. */
static const struct mw_model *file_of(const struct visit *v)
{
    return v->m != NULL && mw_model_has_file(v->m) ? v->m : NULL;
}

static int visit_walls(struct visit *v, struct err *e)
{
    const struct doctor_walls w = { .engine = &v->engine,
                                    .folder = v->folder,
                                    .no_disk = v->o->no_disk,
                                    .cancelled = &cancelled,
                                    .step = on_step,
                                    .clear = on_clear,
                                    .ctx = v };
    struct doctor_walls_count count;
    int rc;

    rc = doctor_walls_print(&v->print, &w, &count, e);
    if (rc == 0)
        summary_walls(&v->facts, &count, on_summary, v);
    return rc;
}

static void examine(struct visit *v)
{
    const struct mw_doctor d = {
        .fact = on_fact, .step = on_step, .ctx = v, .cancelled = &cancelled
    };
    struct err e = ERR_INIT;

    begin_section(v, "memory");
    end_section(v, mw_doctor_memory(&d, &e), &e);
    if (!v->o->no_disk && !cancelled) {
        begin_section(v, "disk");
        end_section(v, mw_doctor_disk(&d, file_of(v), v->folder, &e), &e);
    }
    if (!cancelled) {
        on_step(v, "comparing numbers of threads");
        limits_ensure_threads(&v->engine, v->o->no_disk ? LIMITS_NO_DISK : LIMITS_MEASURE);
        limits_use_ways(&v->engine);
        begin_section(v, "arithmetic");
        end_section(v, mw_doctor_arithmetic(&d, &e), &e);
    }
    if (v->m != NULL && !cancelled) {
        begin_section(v, "model");
        end_section(v, visit_model(v, &e), &e);
    }
    if (v->m == NULL && !cancelled) {
        begin_section(v, "walls");
        end_section(v, visit_walls(v, &e), &e);
    }
    doctor_print_end_section(&v->print);
    if (!cancelled) {
        doctor_print_list(&v->print, "advice", "advice");
        advice_machine(&v->facts, on_machine, v);
        doctor_print_end_list(&v->print, "Nothing that was measured here needs attention.");
    }
    signals_end_off();
    v->is_complete &= !cancelled;
}

static void print_summary(struct visit *v)
{
    doctor_print_list(&v->print, "summary", "summary");
    for (int i = 0; i < v->n_summary; i++)
        doctor_print_advice(&v->print, v->summary[i].key, v->summary[i].text);
    doctor_print_end_list(&v->print, NULL);
}

/* The summary comes first, and is known last: the text of the sections is kept until then. */
static void examine_as_text(struct visit *v)
{
    char *text = NULL;
    size_t n = 0;
    FILE *kept = open_memstream(&text, &n);

    if (kept != NULL)
        v->print.to = kept;
    examine(v);
    progress_clear(&v->progress);
    v->print.to = stdout;
    if (cancelled)
        on_summary(v, "stopped", "The measurement was stopped: the figures are not complete.");
    print_summary(v);
    puts(UNITS);
    if (kept != NULL && fclose(kept) == 0)
        fwrite(text, 1, n, stdout);
    free(text);
}

static int open_within_budget(struct visit *v, const char *path, struct err *e)
{
    return settings_open(path, &v->engine, &v->m, e);
}

/* The argument is a model, or a folder where models will be.  Without one, it is the folder in
 * which memwall keeps models, or the current one. */
static int find_place(struct visit *v, struct options *o)
{
    struct err e = ERR_INIT;
    struct stat st;
    bool is_folder;

    known_folder(v->folder, sizeof v->folder);
    if (o->arg == NULL)
        return EXIT_OK;
    is_folder = stat(o->arg, &st) == 0 && S_ISDIR(st.st_mode);
    if (is_folder && open_within_budget(v, o->arg, &e) != 0) {
        snprintf(v->folder, sizeof v->folder, "%s", o->arg);
        return EXIT_OK;
    }
    if (is_folder)
        return EXIT_OK;
    o->model = o->arg;
    if (!models_is_here(o->model)) {
        if (known_open_model(&v->m, o->model, &e) == 0) {
            o->arg = v->folder;
            return EXIT_OK;
        }
        if (e.code != ERR_IO)
            return report_error(&e);
    }
    if (models_resolve(o, CMD_DOCTOR) != EXIT_OK) {
        if (e.code != ERR_NONE)
            known_suggest(o->arg);
        return EXIT_FAILED;
    }
    e = (struct err)ERR_INIT;
    o->arg = o->model;
    if (open_within_budget(v, o->model, &e) != 0)
        return report_error(&e);
    return EXIT_OK;
}

static int run_doctor(const struct options *given)
{
    struct sigaction on_stop = { .sa_handler = cancel };
    struct options o = *given;
    struct visit v = { .o = &o, .is_complete = true };
    struct settings_notice notice;
    int code;

    settings_engine(&o, &v.engine, &notice);
    if (notice.lowered[0] != '\0')
        report_notice(notice.lowered, strlen(notice.lowered));
    code = find_place(&v, &o);
    if (code != EXIT_OK)
        return code;
    sigaction(SIGINT, &on_stop, NULL);
    sigaction(SIGTERM, &on_stop, NULL);
    progress_open(&v.progress, false);
    doctor_print_open(&v.print, stdout, o.json);
    if (o.json) {
        examine(&v);
        print_summary(&v);
        doctor_print_close(&v.print, v.is_complete);
    } else {
        examine_as_text(&v);
    }
    mw_model_close(v.m);
    return cancelled ? EXIT_STOPPED : EXIT_OK;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .args = "[MODEL|FOLDER]",
    .help = "measure memory, disk and arithmetic of this machine",
    .about = "Measure this machine in less than 20 seconds: how fast memory is read, how fast\n"
             "the disk under the model or folder is read, by block size and reads in flight,\n"
             "and how fast the processors multiply.  Then show whether each known model fits,\n"
             "and how fast it would be; or with a model, what limits its answers and what to\n"
             "change first.  For a folder, a temporary file of 128 MiB is written there and\n"
             "removed.  The measured limits are kept in the cache folder.",
    .examples = "memwall doctor\n"
                "memwall doctor model.gguf\n"
                "memwall doctor model.gguf --memory 2G --json\n"
                "memwall doctor gemma-4-12B:Q4_0\n"
                "memwall doctor --no-disk\n",
    .asks = "measure machine hardware",
    .bit = CMD_DOCTOR,
    .takes_arg = true,
    .model_first = true,
    .reads_config = true,
    .run = run_doctor,
};
