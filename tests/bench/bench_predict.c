/*
 * bench_predict - predictions before and after the first answer, beside what comes.
 *
 *     bench_predict [--busy] MODEL...
 *
 * For each model 12 points: three budgets from a little more than the smallest to one with which
 * nothing is read, contexts of 1024 and 4096 tokens, keys and values in F16 and Q8_0.  The first
 * point is the first answer.  Each other one is predicted twice, from the limits that were
 * measured at the start, and from the first answer, and then measured.  The advice after the first
 * answer is followed, too.  --busy: a process computes on one processor meanwhile.
 */
#include "config.h"

#include <sys/wait.h>

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/memwall.h"
#include "tests/bench/turns.h"

enum { BUDGETS = 3, POINTS = 12, PROMPT = 64, WARM = 4, TOKENS = 20 };
#define WITHIN 0.10

struct count {
    int n, before, after, worse;
};

/* Tokens per second of an answer; 0 with *e. */
static double answer(struct mw_model *m, const struct mw_options *o, struct err *e)
{
    struct mw_session *s;
    uint32_t ids[PROMPT];
    double start = 0;
    int rc;

    for (uint32_t i = 0; i < PROMPT; i++)
        ids[i] = 100 + i;
    if (mw_session_open(&s, m, o, e) != 0)
        return 0;
    rc = mw_session_eval(s, ids, PROMPT, NULL, NULL, e);
    for (uint32_t i = 0; i < WARM + TOKENS && rc == 0; i++) {
        if (i == WARM)
            start = clock_s();
        rc = mw_session_eval(s, &(uint32_t){ 200 + i }, 1, NULL, NULL, e);
    }
    start = clock_s() - start;
    mw_session_close(s);
    return rc == 0 ? TOKENS / start : 0;
}

static double predict(struct mw_model *m, const struct mw_options *o,
                      const struct plan_anchor *a)
{
    const struct plan_run run = { PROMPT + WARM + TOKENS, PROMPT, TOKENS };
    struct plan_outlook outlook;
    struct err ignored = ERR_INIT;

    mw_model_set_anchor(m, a);
    return mw_plan_outlook(m, o, &run, &outlook, &ignored) == 0 && outlook.token.wall_s > 0
               ? 1 / outlook.token.wall_s
               : 0;
}

static void follow_advice(struct mw_model *m, const struct mw_options *o, double tps,
                          struct count *n, struct err *e)
{
    struct mw_options then = *o;
    struct mw_diagnosis d = { 0 };
    double came;

    if (mw_diagnose(m, o, NULL, &d, e) != 0 || strcmp(d.advice, "more_budget") != 0)
        return;
    then.memory_bytes = d.budget_bytes;
    came = answer(m, &then, e);
    n->worse += came < tps;
    printf("advice: %.0f MiB for %+.0f %%, came %+.0f %%\n",
           (double)d.budget_bytes / (double)MIB, 100 * (d.to_tps / d.tps - 1),
           100 * (came / tps - 1));
}

static struct mw_options options_of(struct mw_model *m, int point)
{
    struct mw_options o;
    uint64_t least, most;
    uint32_t ignored;
    struct err e = ERR_INIT;

    mw_options_default(&o);
    o.n_ctx = point / BUDGETS % 2 ? 1024 : 4096;
    o.kv_k = o.kv_v = point / BUDGETS / 2 ? MW_KV_Q8_0 : MW_KV_F16;
    o.memory_bytes = GIB;
    if (mw_plan_fit(m, &o, &least, &ignored, &e) != 0)
        return o;
    most = mw_reads_nothing_budget(m, &o);
    o.memory_bytes =
        (uint64_t)((double)least * 1.05 * pow((double)most / (double)least / 1.05,
                                              (point + 1) % BUDGETS / (BUDGETS - 1.0)));
    return o;
}

static int bench(const char *path, struct count *n, struct err *e)
{
    const struct plan_anchor none = { 0 };
    struct plan_anchor first = none;
    struct mw_options o;
    struct mw_limits l;
    struct mw_model *m;

    if (mw_model_open(&m, path, e) != 0)
        return -1;
    o = options_of(m, 0);
    if (mw_limits_measure(m, &o, 1, &l, e) == 0) {
        mw_rates_list(m, &o, &l);
        (void)mw_rates_measure(&o, &l, e);
        mw_model_set_limits(m, &l);
    }
    printf("%s\n| MiB | ctx | kv | before | after | measured | |\n|---|---|---|---|---|---|---|\n",
           path);
    for (int i = 0; i < POINTS && e->code == ERR_NONE; i++) {
        double before, after, came;

        o = options_of(m, i);
        before = predict(m, &o, &none);
        after = predict(m, &o, &first);
        came = answer(m, &o, e);
        if (i == 0) {
            mw_model_anchor(m, &first);
            follow_advice(m, &o, came, n, e);
            continue;
        }
        n->n++;
        n->before += fabs(before / came - 1) <= WITHIN;
        n->after += fabs(after / came - 1) <= WITHIN;
        printf("| %.0f | %u | %s | %.2f | %.2f | %.2f | %+.0f %% |\n",
               (double)o.memory_bytes / (double)MIB, o.n_ctx, mw_kv_name(o.kv_k), before, after,
               came, 100 * (after / came - 1));
        fflush(stdout);
    }
    mw_model_close(m);
    return e->code == ERR_NONE ? 0 : -1;
}

int main(int argc, char **argv)
{
    bool is_busy = argc > 1 && strcmp(argv[1], "--busy") == 0;
    pid_t load = is_busy ? fork() : -1;
    struct count n = { 0 };
    struct err e = ERR_INIT;
    int rc = 0;

    if (load == 0)
        for (volatile unsigned x = 1;;)
            x = x * 1664525u + 1013904223u;
    for (int i = 1 + is_busy; i < argc && rc == 0; i++)
        rc = bench(argv[i], &n, &e);
    if (load > 0) {
        kill(load, SIGKILL);
        waitpid(load, NULL, 0);
    }
    printf("within 10 %%, of %d points: %d before the first answer, %d after it; advice was worse "
           "%d times\n",
           n.n, n.before, n.after, n.worse);
    return rc == 0 ? 0 : bench_fail("bench_predict", &e);
}
