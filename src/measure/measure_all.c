/* See measure_all.h. */
#include "config.h"

#include "src/measure/measure_all.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "src/base/progress.h"
#include "src/base/signals.h"
#include "src/command.h"
#include "src/measure/measure_child.h"

#define SILENT_NS ((uint64_t)30 * 1000 * 1000 * 1000) /* at most, without a terminal */

/* The state of one call. */
struct work {
    struct measure_all *m;
    struct measure_child child;
    struct progress progress;
    double *wall_s;   /* [n_point] seconds of the last run of a point; 0: none yet */
    uint64_t from_ns; /* start of the run that is in progress */
    size_t point;
    uint32_t round;
    bool is_planning;
    uint64_t said_ns; /* when the last line was printed */
    double open_s;    /* of the fastest plan: to start a process and open the model; 0: none */
};

void measure_lower_budgets(struct results *r)
{
    char why[320], said[320] = "";

    for (size_t i = 0; i < r->n_point; i++) {
        uint64_t *bytes = &r->point[i].setting[DIM_MEMORY].number;

        if (*bytes == 0 || !mw_budget_lower(bytes, why, sizeof why) || strcmp(why, said) == 0)
            continue;
        report_notice(why, strlen(why));
        memcpy(said, why, sizeof said);
    }
}

/* --- progress --- */

/* The seconds that a run should take by the plan; 0: unknown. */
static double expected_s(const struct options *o, const struct point *p)
{
    double prompt = p->predicted.value[METRIC_PROMPT], answer = p->predicted.value[METRIC_DECODE];
    double n_prompt = (double)(p->setting[DIM_PROMPT].number + p->setting[DIM_DEPTH].number);
    double s = p->disk_bytes_s > 0 ? (double)p->pinned_bytes / p->disk_bytes_s : 0;

    if (n_prompt > 0 && !isnan(prompt))
        s += n_prompt / prompt;
    if (!isnan(answer))
        s += (double)p->setting[DIM_GEN].number / answer;
    return o->time_limit > 0 ? fmin(s, o->time_limit) : s;
}

static bool is_open(const struct point *p, uint32_t round)
{
    return p->status != POINT_REFUSED && p->status != POINT_FAILED && p->n_run <= round;
}

/* Returns an estimate of the seconds left.  A point that was measured takes as long again.
 * Other points exceed their plans by the same factor as the measured ones.  0: unknown. */
static double left_s(const struct work *w)
{
    const struct results *r = w->m->results;
    double measured = 0, planned = 0, left = 0, now = (double)(clock_ns() - w->from_ns) / 1e9;

    for (size_t i = 0; i < r->n_point; i++)
        if (w->wall_s[i] > 0) {
            measured += w->wall_s[i];
            planned += expected_s(w->m->o, &r->point[i]);
        }
    for (size_t i = 0; i < r->n_point; i++) {
        double one = w->wall_s[i];

        if (one <= 0)
            one = expected_s(w->m->o, &r->point[i]) * (planned > 0 ? measured / planned : 1);
        for (uint32_t round = w->round; round < r->n_repeat; round++)
            if (is_open(&r->point[i], round))
                left += i == w->point && round == w->round ? fmax(one - now, 0) : one;
    }
    return left;
}

static void draw(struct work *w, const char *stage, uint32_t done, uint32_t total)
{
    const struct results *r = w->m->results;
    const struct point *p = &r->point[w->point];
    char text[200], budget[40], left[24], count[32] = "", end[48] = "";

    if (w->is_planning) {
        snprintf(text, sizeof text, "planning %zu of %zu", w->point + 1, r->n_point);
        progress_text(&w->progress, text);
        return;
    }
    if (total > 1)
        snprintf(count, sizeof count, " %" PRIu32 "/%" PRIu32, done, total);
    if (left_s(w) > 0)
        snprintf(end, sizeof end, ", about %s left",
                 numbers_time(left, sizeof left, left_s(w)));
    snprintf(text, sizeof text, "round %" PRIu32 "/%" PRIu32 ", point %zu/%zu, %s: %s%s%s",
             w->round + 1, r->n_repeat, w->point + 1, r->n_point,
             setting_text(p, DIM_MEMORY, budget, sizeof budget), stage, count, end);
    progress_text(&w->progress, text);
}

/* Does it print lines, because no terminal shows the progress? */
static bool has_lines(const struct work *w)
{
    return w->m->announces && !w->m->o->quiet && !w->progress.is_on && !w->is_planning;
}

/* Print one line: "run 2 of 6, 700 MiB: 2.10 tok/s, about 50 s left". */
static void say(struct work *w, const char *what)
{
    const struct results *r = w->m->results;
    char text[240], budget[40], left[24], end[48] = "";
    double seconds = left_s(w);

    if (seconds > 0)
        snprintf(end, sizeof end, ", about %s left", numbers_time(left, sizeof left, seconds));
    snprintf(text, sizeof text, "run %zu of %zu, %s: %s%s", w->round * r->n_point + w->point + 1,
             r->n_repeat * r->n_point,
             setting_text(&r->point[w->point], DIM_MEMORY, budget, sizeof budget), what, end);
    report_notice(text, strlen(text));
    w->said_ns = clock_ns();
}

static void say_result(struct work *w)
{
    const struct point *p = &w->m->results->point[w->point];
    const struct metrics *f = p->n_run > 0 ? &p->run[p->n_run - 1].figures : NULL;
    char rate[24], text[80];

    if (p->status != POINT_OK || f == NULL)
        snprintf(text, sizeof text, "%s", point_status_name(p->status));
    else if (f->value[METRIC_DECODE] > 0)
        snprintf(text, sizeof text, "%s tok/s",
                 numbers_measured(rate, sizeof rate, f->value[METRIC_DECODE]));
    else if (f->value[METRIC_PROMPT] > 0)
        snprintf(text, sizeof text, "prompt %s tok/s",
                 numbers_measured(rate, sizeof rate, f->value[METRIC_PROMPT]));
    else /* tokens were evaluated only before the prompt */
        snprintf(text, sizeof text, "opened in %s",
                 numbers_time(rate, sizeof rate, f->value[METRIC_LOAD]));
    say(w, text);
}

/* Say how long all runs take, before the first one. */
static void announce(struct work *w)
{
    const struct results *r = w->m->results;
    size_t n = 0;
    char text[200], time[24], about[60] = "";
    double seconds;

    for (size_t i = 0; i < r->n_point; i++)
        for (uint32_t round = 0; round < r->n_repeat; round++)
            n += is_open(&r->point[i], round);
    if (!w->m->announces || w->m->o->quiet || n == 0)
        return;
    w->from_ns = w->said_ns = clock_ns();
    w->point = w->round = 0;
    seconds = left_s(w);
    if (seconds > 0)
        snprintf(about, sizeof about, " take%s about %s", n == 1 ? "s" : "",
                 numbers_time(time, sizeof time, seconds + (double)n * w->open_s));
    snprintf(text, sizeof text, "%zu run%s%s; Ctrl-C keeps what was measured", n,
             n == 1 ? "" : "s", about);
    progress_clear(&w->progress);
    report_notice(text, strlen(text));
}

static void on_stage(void *ctx, const char *stage, uint32_t done, uint32_t total)
{
    struct work *w = ctx;
    char text[80];

    if (progress_is_due(&w->progress))
        draw(w, stage, done, total);
    if (!has_lines(w) || clock_ns() - w->said_ns < SILENT_NS)
        return;
    if (total > 1)
        snprintf(text, sizeof text, "%s %" PRIu32 "/%" PRIu32, stage, done, total);
    say(w, total > 1 ? text : stage);
}

/* --- the work --- */

/* Plan or measure w->point.  Returns -1 with *e if the work must stop. */
static int do_one(struct work *w, enum options_one part, struct err *e)
{
    struct results *r = w->m->results;
    struct point *p = &r->point[w->point];
    struct err failed = ERR_INIT;
    struct json_doc *answer;
    uint64_t charge;
    double took_s;

    w->from_ns = clock_ns();
    draw(w, "start", 0, 0);
    if (measure_child(&w->child, p, part, &answer, &charge, &failed) != 0) {
        if (failed.code == ERR_CANCELLED) {
            *e = failed;
            return -1;
        }
        results_take_failure(p, &failed);
        return 0;
    }
    results_take(r, p, json_root(answer), part == ONE_RUN, charge);
    json_free(answer);
    took_s = (double)(clock_ns() - w->from_ns) / 1e9;
    if (part == ONE_RUN && p->status == POINT_OK)
        w->wall_s[w->point] = took_s;
    if (part == ONE_PLAN) /* the slower ones have measured limits, too */
        w->open_s = w->open_s > 0 ? fmin(w->open_s, took_s) : took_s;
    if (part == ONE_RUN && has_lines(w))
        say_result(w);
    return 0;
}

static int plan_all(struct work *w, struct err *e)
{
    struct results *r = w->m->results;

    w->is_planning = true;
    for (w->point = 0; w->point < r->n_point; w->point++) {
        struct point *p = &r->point[w->point];

        if (p->status != POINT_PENDING || p->budget_bytes > 0)
            continue;
        if (do_one(w, ONE_PLAN, e) != 0)
            return -1;
        if (p->status == POINT_FAILED) /* as all others would: the file is not a model */
            return 0;
    }
    w->is_planning = false;
    return 0;
}

static int run_all(struct work *w, struct err *e)
{
    struct results *r = w->m->results;

    for (w->round = 0; w->round < r->n_repeat; w->round++)
        for (w->point = 0; w->point < r->n_point; w->point++) {
            if (!is_open(&r->point[w->point], w->round))
                continue;
            if (do_one(w, ONE_RUN, e) != 0)
                return -1;
            if (w->m->done != NULL && w->m->done(w->m->ctx, r, e) != 0)
                return -1;
        }
    r->is_complete = true;
    return 0;
}

static int code_of(const struct results *r)
{
    size_t n_refused = 0;

    for (size_t i = 0; i < r->n_point; i++) {
        /* A cage that is too small for mapped weights is a result. */
        if (r->point[i].status == POINT_FAILED && !r->point[i].is_caged)
            return EXIT_FAILED;
        n_refused += r->point[i].status == POINT_REFUSED;
    }
    return n_refused == r->n_point ? EXIT_NO_FIT : EXIT_OK;
}

static int open_work(struct work *w, struct measure_all *m, sigset_t *before, struct err *e)
{
    *w = (struct work){ .m = m };
    w->wall_s = calloc(m->results->n_point + 1, sizeof *w->wall_s);
    if (w->wall_s == NULL)
        return err_memory(e, "%zu points", m->results->n_point);
    progress_open(&w->progress, m->o->quiet);
    sigprocmask(SIG_SETMASK, NULL, before);
    w->child =
        (struct measure_child){ .o = m->o, .before = before, .stage = on_stage, .ctx = w };
    w->child.signals = signals_block(before);
    return 0;
}

static void close_work(struct work *w, const sigset_t *before)
{
    progress_clear(&w->progress);
    if (w->child.signals >= 0) {
        close(w->child.signals);
        sigprocmask(SIG_SETMASK, before, NULL);
    }
    free(w->wall_s);
}

/* Returns whether a plan failed, and reports it: every other point would fail, too. */
static bool has_failed_plan(const struct results *r)
{
    for (size_t i = 0; i < r->n_point; i++)
        if (r->point[i].status == POINT_FAILED && r->point[i].budget_bytes == 0) {
            report_notice(r->point[i].error, strlen(r->point[i].error));
            return true;
        }
    return false;
}

int measure_all(struct measure_all *m)
{
    struct err e = ERR_INIT;
    struct work w;
    sigset_t before;
    int r;

    if (open_work(&w, m, &before, &e) != 0)
        return report_error(&e);
    r = plan_all(&w, &e);
    if (r == 0 && !w.is_planning && !m->is_plan_only) {
        announce(&w);
        r = run_all(&w, &e);
    }
    close_work(&w, &before);
    if (e.code == ERR_CANCELLED)
        return 128 + w.child.stopped_by;
    if (r != 0)
        return report_error(&e);
    return has_failed_plan(m->results) ? EXIT_FAILED : code_of(m->results);
}
