/* See measure.h. */
#include "config.h"

#include "src/measure/measure.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/greatest.h"
#include "engine/base/numbers.h"
#include "engine/base/small_file.h"
#include "src/command.h"
#include "src/machine/kept_limits.h"
#include "src/machine/limits_print.h"
#include "src/measure/point.h"
#include "src/settings.h"

#define STAGE_NS     200000000u          /* between two lines of progress */
#define HOLES_SHARE  64 /* a file with more than 1/64 of it missing is not measured */
#define IO_FILE_MAX  4096 /* of /proc/self/io */
#define WHY_NOT_PLAN "there is no prediction without measured limits"

struct measure {
    const struct options *o;
    struct mw_options engine;
    struct mw_model *m;
    struct mw_session *session;
    struct mw_model_info info;
    struct plan plan;
    uint64_t files_bytes; /* of the predicted peak: pages of the program's files */
    struct metrics predicted, figures;
    const char *why[N_METRIC]; /* static reasons for figures that are not known */
    uint64_t stage_ns;         /* of the last line of progress */
    uint64_t random;           /* state of the token ids */
    struct mw_sample sample;
    uint64_t start_ns; /* of the run, for --time-limit */
    uint32_t *expected; /* [n_gen] the answer whose drafts are simulated; NULL: none is */
};

/* --- output --- */

static bool drafts(const struct measure *x)
{
    return x->engine.draft != MW_DRAFT_OFF;
}

/* Write the figures of each place of a pass. */
static void drafts_json(const struct measure *x, struct json *j)
{
    struct mw_draft_rates rates;

    mw_draft_rates(&x->sample.draft, 1, &rates);
    json_array(j, "accepted_at");
    for (uint32_t i = 0; i < rates.depth; i++)
        json_double(j, NULL, rates.accepted_at[i], 6);
    json_end(j);
    json_array(j, "pass_costs");
    for (uint32_t i = 0; i <= rates.depth; i++)
        if (rates.cost[i] > 0)
            json_double(j, NULL, rates.cost[i], 6);
        else
            json_null(j, NULL);
    json_end(j);
}

static void stage(struct measure *x, const char *name, uint32_t done, uint32_t total)
{
    uint64_t now = clock_ns();
    struct json j;

    if (done > 0 && now - x->stage_ns < STAGE_NS)
        return;
    x->stage_ns = now;
    json_start_stream(&j, stdout);
    json_object(&j, NULL);
    json_string(&j, "stage", name);
    json_u64(&j, "done", done);
    json_u64(&j, "total", total);
    json_end(&j);
    json_line(&j);
    report_flush();
}

static void model_json(struct json *j, const struct mw_model_info *info)
{
    json_object(j, "model");
    json_string(j, "name", info->name);
    json_string(j, "arch", info->arch);
    json_string(j, "type", info->type);
    json_u64(j, "n_layer", info->n_layer);
    json_u64(j, "file_bytes", info->file_bytes);
    json_u64(j, "hot_bytes", info->hot_bytes);
    json_end(j);
}

/* The plan as it was used, and the budgets between which a sweep goes. */
static void plan_json(struct measure *x, struct json *j)
{
    struct err ignored = ERR_INIT;
    struct mw_limits limits;
    uint64_t smallest = 0;
    uint32_t largest;

    mw_plan_fit(x->m, &x->engine, &smallest, &largest, &ignored);
    json_object(j, "plan");
    json_u64(j, "budget_bytes", x->plan.budget_bytes);
    json_u64(j, "ctx", x->plan.n_ctx);
    json_u64(j, "chunk", x->plan.chunk);
    json_u64(j, "pinned_bytes", x->plan.pinned_bytes);
    json_u64(j, "smallest_budget_bytes", smallest);
    json_u64(j, "all_pinned_budget_bytes", mw_reads_nothing_budget(x->m, &x->engine));
    json_u64(j, "program_files_bytes", x->files_bytes);
    json_string(j, "binds", mw_binds_name(x->plan.binds));
    mw_model_limits(x->m, &limits);
    limits_json(j, &limits);
    json_end(j);
}

static void result_json(struct measure *x, const struct err *e, bool is_measured)
{
    struct json j;
    char text[sizeof e->file + sizeof e->field + sizeof e->what + 64] = "";

    json_start_stream(&j, stdout);
    json_object(&j, NULL);
    json_string(&j, "status",
                e->code == ERR_NONE     ? "ok"
                : e->code == ERR_BUDGET ? "refused"
                                        : "failed");
    if (e->code != ERR_NONE) {
        err_text(e, text, sizeof text);
        json_string(&j, "error", text);
    } else {
        json_null(&j, "error");
    }
    if (x->m != NULL) {
        model_json(&j, &x->info);
        plan_json(x, &j);
        metrics_json(&j, "predicted", &x->predicted, true);
    }
    if (is_measured) {
        json_string(&j, "io", x->sample.run.io);
        json_u64(&j, "threads", x->sample.run.threads);
        metrics_json(&j, "figures", &x->figures, false);
        json_object(&j, "unknown");
        for (int i = 0; i < N_METRIC; i++)
            if (x->why[i] != NULL)
                json_string(&j, metric_table[i].name, x->why[i]);
        json_end(&j);
        if (drafts(x))
            drafts_json(x, &j);
    }
    json_end(&j);
    json_line(&j);
}

/* --- the plan --- */

static double known(double value)
{
    return value > 0 ? value : NAN;
}

static void predict_times(const struct plan_run *run, double prompt_s, double token_s,
                          struct metrics *f)
{
    if (run->n_prompt > 0) {
        f->value[METRIC_PROMPT] = run->n_prompt / known(prompt_s);
        f->value[METRIC_FIRST] = known(prompt_s);
    }
    if (run->n_gen > 0)
        f->value[METRIC_DECODE] = 1 / known(token_s);
}

/* Only a simulated acceptance is known before. */
static void predict_drafted(struct measure *x, struct metrics *f)
{
    struct err ignored = ERR_INIT;
    double rate = 0;

    if (options_given(x->o, OPT_DRAFT_ACCEPT))
        mw_plan_drafted(x->m, &x->engine, (double)x->o->draft_accept, &rate, &ignored);
    f->value[METRIC_DECODE] = known(rate);
    f->value[METRIC_READ] = NAN;
}

static void predict(struct measure *x)
{
    struct plan_run run = { .n_token = x->o->depth + x->o->n_prompt + x->o->n_gen,
                            .n_prompt = x->o->n_prompt,
                            .n_gen = x->o->n_gen };
    struct metrics *f = &x->predicted;
    struct plan_outlook outlook;
    struct err ignored = ERR_INIT;

    if (mw_plan_outlook(x->m, &x->engine, &run, &outlook, &ignored) != 0)
        return;
    predict_times(&run, outlook.prompt_s, outlook.token.wall_s, f);
    if (x->engine.io == MW_IO_MMAP)
        return;
    f->value[METRIC_PEAK] = (double)outlook.peak_bytes;
    x->files_bytes = outlook.files_bytes;
    if (run.n_gen > 0)
        f->value[METRIC_READ] = (double)outlook.streamed_bytes;
    if (drafts(x))
        predict_drafted(x, f);
}

/* Refuse a file that has only its header: its weights would be zeros that no disk read. */
static int check_weights(struct measure *x, struct err *e)
{
    uint64_t holes = mw_model_hole_bytes(x->m);
    char a[16], b[16];

    if (holes <= x->info.file_bytes / HOLES_SHARE)
        return 0;
    err_set(e, ERR_FORMAT,
            "the weights are not there: %s of %s are holes, as if only the header had been "
            "fetched; \"memwall plan\" needs nothing but the header",
            units_size(a, sizeof a, holes), units_size(b, sizeof b, x->info.file_bytes));
    return err_at(e, x->o->model, ERR_NO_OFFSET, NULL);
}

static int open_model(struct measure *x, struct err *e)
{
    if (settings_open(x->o->model, &x->engine, &x->m, e) != 0)
        return -1;
    mw_model_info(x->m, &x->info);
    return check_weights(x, e);
}

static int make_plan(struct measure *x, struct err *e)
{
    uint64_t n_ctx = (uint64_t)x->o->depth + x->o->n_prompt + x->o->n_gen;
    char has[32], ctx[24];

    x->engine = x->o->chat.engine;
    settings_disk(x->o, &x->engine);
    settings_no_screen(&x->engine);
    x->engine.is_artificial = true;
    if (!options_given(x->o, OPT_DRAFT))
        x->engine.draft = MW_DRAFT_OFF; /* the ids of an answer are random, so nothing repeats */
    if (x->engine.n_ctx == 0)
        x->engine.n_ctx = n_ctx > UINT32_MAX ? UINT32_MAX : n_ctx > 0 ? (uint32_t)n_ctx : 1;
    if (n_ctx > x->engine.n_ctx)
        return err_set(e, ERR_ARGUMENT,
                       "depth, prompt and answer have %s tokens, the context has %s",
                       numbers_count(has, sizeof has, n_ctx),
                       numbers_count(ctx, sizeof ctx, x->engine.n_ctx));
    if (open_model(x, e) != 0)
        return -1;
    limits_ensure(x->m, x->o->model, &x->engine,
                  x->o->one == ONE_PLAN ? LIMITS_FRESH : LIMITS_KEPT);
    if (mw_plan(x->m, &x->engine, &x->plan, e) != 0)
        return -1;
    predict(x);
    return 0;
}

/* --- the measurement --- */

static double seconds_since(uint64_t from_ns)
{
    return (double)(clock_ns() - from_ns) / 1e9;
}

/* The next pseudo-random id (splitmix64). */
static uint32_t next_id(struct measure *x)
{
    uint64_t z = x->random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) % x->info.n_vocab);
}

static uint32_t first_id(struct measure *x)
{
    return mw_begin_id(x->m) >= 0 ? (uint32_t)mw_begin_id(x->m) : next_id(x);
}

/* Take the most likely token, as the chat does at temperature 0. */
static void take_token(const struct measure *x)
{
    (void)greatest_of(mw_session_logits(x->session), x->info.n_vocab);
}

/* Evaluate n tokens as one prompt. */
static int eval_tokens(struct measure *x, uint32_t n, struct err *e)
{
    uint32_t *ids;
    int r;

    if (n == 0)
        return 0;
    ids = malloc(n * sizeof *ids);
    if (ids == NULL)
        return err_memory(e, "%u tokens", n);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = i == 0 && mw_session_tokens(x->session) == 0 ? first_id(x) : next_id(x);
    r = mw_session_eval(x->session, ids, n, NULL, NULL, e);
    free(ids);
    return r;
}

/* Do what a chat does before its first message, and evaluate one token: that pass reads all
 * pinned weights. */
static int load(struct measure *x, struct err *e)
{
    uint64_t from_ns;
    struct mw_encoder *encoder;
    struct err ignored = ERR_INIT; /* a model without a vocabulary can still be measured */
    uint32_t kept;

    stage(x, "load", 0, 1);
    if (x->o->cold)
        mw_model_drop_cache(x->m);
    from_ns = clock_ns();
    if (mw_encoder_new(&encoder, x->m, false, &ignored) == 0)
        mw_encoder_free(encoder);
    if (mw_session_open(&x->session, x->m, &x->engine, e) != 0 || eval_tokens(x, 1, e) != 0)
        return -1;
    x->figures.value[METRIC_LOAD] = seconds_since(from_ns);
    return mw_session_rewind(x->session, 0, &kept, e);
}

static int eval_prompt(struct measure *x, struct err *e)
{
    uint64_t from_ns;

    stage(x, "depth", 0, x->o->depth);
    if (eval_tokens(x, x->o->depth, e) != 0)
        return -1;
    if (x->o->n_prompt == 0)
        return 0;
    stage(x, "prompt", 0, x->o->n_prompt);
    from_ns = clock_ns();
    if (eval_tokens(x, x->o->n_prompt, e) != 0)
        return -1;
    x->figures.value[METRIC_PROMPT] = (double)x->o->n_prompt / seconds_since(from_ns);
    take_token(x);
    x->figures.value[METRIC_FIRST] = seconds_since(from_ns);
    return 0;
}

/* Bytes that this process has read from disks so far, with those of page faults; -1: unknown.
 */
static double bytes_read_from_disk(void)
{
    struct err ignored = ERR_INIT;
    char *text = small_file_read("/proc/self/io", IO_FILE_MAX, NULL, &ignored);
    const char *line = text != NULL ? strstr(text, "\nread_bytes: ") : NULL;
    unsigned long long bytes;
    double found =
        line != NULL && sscanf(line, "\nread_bytes: %llu", &bytes) == 1 ? (double)bytes : -1;

    free(text);
    return found;
}

/* Sums over the decoded tokens. */
struct decoded {
    uint32_t n; /* fewer than requested if the time was over */
    double seconds, stall_s;
    uint64_t bytes;           /* that the engine requested */
    double from_disk, joules; /* -1: unknown */
};

/* Would one more token end after --time-limit? */
static bool is_over(const struct measure *x, const struct decoded *d)
{
    return x->o->time_limit > 0 && d->n > 0 &&
           seconds_since(x->start_ns) + d->seconds / d->n > x->o->time_limit;
}

/* Make an answer of random ids, and let the drafter find as many of them as is simulated. */
static int expect(struct measure *x, struct err *e)
{
    uint32_t n = x->o->n_gen;

    if (!options_given(x->o, OPT_DRAFT_ACCEPT) || n == 0)
        return 0;
    x->expected = malloc(n * sizeof *x->expected);
    if (x->expected == NULL)
        return err_memory(e, "%u tokens", n);
    for (uint32_t i = 0; i < n; i++)
        x->expected[i] = next_id(x);
    mw_session_expect(x->session, x->expected, n, (double)x->o->draft_accept);
    return 0;
}

/* Evaluate token i of the answer: a random one, or, since no drafter could guess it, the most
 * likely one. */
static int eval_answer(struct measure *x, uint32_t i, struct err *e)
{
    const float *logits = mw_session_logits(x->session);

    if (!drafts(x))
        return eval_tokens(x, 1, e);
    return mw_session_eval_sampled(x->session,
                                   x->expected != NULL ? x->expected[i]
                                   : logits != NULL    ? greatest_of(logits, x->info.n_vocab)
                                                       : first_id(x),
                                   e);
}

static int decode(struct measure *x, struct decoded *d, struct err *e)
{
    struct mw_energy energy;
    double before = bytes_read_from_disk(), after;

    *d = (struct decoded){ 0 };
    if (expect(x, e) != 0)
        return -1;
    mw_energy_start(&energy);
    while (d->n < x->o->n_gen && !is_over(x, d)) {
        uint64_t from_ns;

        stage(x, "decode", d->n, x->o->n_gen);
        from_ns = clock_ns();
        if (eval_answer(x, d->n, e) != 0)
            return -1;
        take_token(x);
        d->seconds += seconds_since(from_ns);
        d->n++;
        mw_session_sample(x->session, &x->sample);
        d->stall_s += (double)x->sample.pass.stall_ns / 1e9;
        d->bytes += x->sample.pass.bytes_pass;
    }
    x->stage_ns = 0; /* the last count is always printed */
    stage(x, "decode", d->n, x->o->n_gen);
    d->joules = mw_energy_joules(&energy);
    x->why[METRIC_JOULES] = energy.why_not;
    after = bytes_read_from_disk();
    d->from_disk = before >= 0 && after >= 0 ? after - before : -1;
    return 0;
}

/* Figures of drafts. */
static void take_drafts(struct measure *x, const struct decoded *d)
{
    const struct mw_drafts *seen = &x->sample.draft;
    double *value = x->figures.value;
    struct mw_draft_rates rates;

    mw_draft_rates(seen, (uint64_t)(d->seconds * 1e9), &rates);
    value[METRIC_PASS_TOKENS] = rates.tokens_per_pass;
    if (seen->drafted > 0) {
        value[METRIC_ACCEPTED] = (double)seen->accepted / (double)seen->drafted;
        value[METRIC_PASS_COST] = known(rates.cost[rates.usual]);
    }
    if (seen->passes_over[0] == 0)
        x->why[METRIC_PASS_COST] = "all passes had drafts";
    value[METRIC_DRAFTER] = rates.drafter_share;
}

static void take_decoded(struct measure *x, const struct decoded *d)
{
    double *value = x->figures.value, n = d->n, read;
    struct mw_limits limits;

    mw_model_limits(x->m, &limits);
    value[METRIC_DECODE] = n / d->seconds;
    value[METRIC_STALL] = fmin(d->stall_s / d->seconds, 1);
    if (d->joules >= 0)
        value[METRIC_JOULES] = d->joules / n;
    /* Mapped weights are read by page faults, which only Linux counts. */
    read = x->engine.io == MW_IO_MMAP ? d->from_disk : (double)d->bytes;
    if (read >= 0)
        value[METRIC_READ] = read / n;
    else
        x->why[METRIC_READ] = "/proc/self/io cannot be read";
    if (limits.disk_bytes_s > 0 && read >= 0)
        value[METRIC_DISK] = read / d->seconds / limits.disk_bytes_s;
    if (limits.memory_bytes_s > 0)
        value[METRIC_MEMORY] = (double)(x->info.hot_bytes + x->sample.kv.bytes_used) *
                            value[METRIC_DECODE] / limits.memory_bytes_s;
    if (limits.memory_bytes_s <= 0)
        x->why[METRIC_MEMORY] = WHY_NOT_PLAN;
    if (limits.disk_bytes_s <= 0)
        x->why[METRIC_DISK] = WHY_NOT_PLAN;
}

static void take_os(struct measure *x, enum metric_id id, struct mw_os_value v)
{
    if (v.why_not == NULL)
        x->figures.value[id] = (double)v.value;
    else
        x->why[id] = v.why_not;
}

/* Resident memory.  In a control group of its own, the process is compared with the charge to the
 * group, which has no pages of files that others have cached: resident ones are left out, too. */
static struct mw_os_value resident(const struct mw_os *os)
{
    struct mw_os_value rss = os->rss;

    if (rss.why_not == NULL && os->rss_file.why_not == NULL && os->charged_file.why_not == NULL &&
        os->rss_file.value > os->charged_file.value)
        rss.value -= os->rss_file.value - os->charged_file.value;
    return rss;
}

/* Take the kernel's figures now, at the end of the work.  The peak is the high-water mark of
 * this process, with the page tables and swapped pages it has now. */
static int take_memory(struct measure *x, struct err *e)
{
    struct mw_watch *watch;
    struct mw_os_value peak;

    mw_session_sample(x->session, &x->sample);
    if (mw_watch_new(&watch, x->m, e) != 0)
        return -1;
    mw_watch_complete(watch, &x->sample);
    mw_watch_free(watch);
    peak = x->sample.os.rss_peak;
    if (x->sample.os.own.why_not == NULL && x->sample.os.rss.why_not == NULL)
        peak.value += x->sample.os.own.value - x->sample.os.rss.value;
    take_os(x, METRIC_PEAK, peak);
    take_os(x, METRIC_RSS, resident(&x->sample.os));
    take_os(x, METRIC_CACHED, x->sample.os.model_cached);
    return 0;
}

/* A figure that the system may not report is below 0 then. */
static void take_known(struct measure *x, enum metric_id id, double value)
{
    if (value >= 0)
        x->figures.value[id] = value;
    else
        x->why[id] = "this system does not report it";
}

static int run(struct measure *x, struct err *e)
{
    struct mw_disturb disturb;
    struct decoded d;

    x->start_ns = clock_ns();
    mw_disturb_start(&disturb);
    if (load(x, e) != 0 || eval_prompt(x, e) != 0 || decode(x, &d, e) != 0)
        return -1;
    mw_disturb_end(&disturb);
    take_known(x, METRIC_STOLEN, disturb.stolen_share);
    take_known(x, METRIC_OTHERS, disturb.others_share);
    take_known(x, METRIC_THROTTLED, disturb.throttled);
    if (x->o->n_gen > 0)
        take_decoded(x, &d);
    if (x->o->n_gen > 0 && drafts(x))
        take_drafts(x, &d);
    return take_memory(x, e);
}

int measure_one(const struct options *given)
{
    struct options o = *given;
    struct measure *x = calloc(1, sizeof *x);
    struct err e = ERR_INIT;
    bool is_run = o.one == ONE_RUN;
    int r, code;

    if (x == NULL) {
        err_memory(&e, "a measurement");
        return report_error(&e);
    }
    for (int d = 0; d < N_DIMENSION; d++)
        options_set_item(&o, dimension_table[d].option, 0);
    x->o = &o;
    metrics_clear(&x->predicted);
    metrics_clear(&x->figures);
    r = make_plan(x, &e);
    if (r == 0 && is_run)
        r = run(x, &e);
    result_json(x, &e, r == 0 && is_run);
    code = e.code == ERR_NONE ? EXIT_OK : e.code == ERR_BUDGET ? EXIT_NO_FIT : EXIT_FAILED;
    if (x->session != NULL)
        mw_session_close(x->session);
    if (x->m != NULL)
        mw_model_close(x->m);
    free(x->expected);
    free(x);
    return code;
}
