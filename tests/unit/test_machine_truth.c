/*
 * Predictions and proposals against simulated machines (sim_machine.h): their rates differ from
 * what a probe measured in a bad moment, and change while they run.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/plan/advice.h"
#include "engine/plan/anchor.h"
#include "engine/plan/factors.h"
#include "engine/plan/outlook.h"
#include "tests/lib/sim_machine.h"

#define SITUATIONS 1200
#define PREDICTED  0.10 /* a prediction is right within this */
#define RIGHT      0.95 /* of the situations */
#define SKIPPED    3    /* tokens of an answer that are not measured */
#define MEASURED   10
#define SMALL_BLOCK 500e3 /* bytes of the blocks of small budgets */
#define DRIFT      0.04 /* of the rates, until the next answer */

struct situation {
    struct sim_model model;
    struct sim_machine machine;
    struct plan_input in; /* with a budget that streams */
    uint32_t n_seen;
    bool q8;
};

static struct situation draw(struct chance *c)
{
    struct situation s = { .q8 = chance_below(c, 2) };
    uint64_t low, high;

    sim_draw(c, &s.model, &s.machine);
    s.in = sim_input(c, &s.model, &s.machine, 4096, s.q8, 1);
    s.n_seen = (uint32_t)sim_between(c, 30, 4000);
    low = plan_smallest_budget(&s.in) + 64 * MIB;
    high = plan_reads_nothing_budget(&s.in) - 16 * MIB;
    s.in.budget_bytes = high > low ? low + (uint64_t)((double)(high - low) *
                                                      chance_below(c, 1000) / 1000)
                                   : low;
    return s;
}

/* The pass that a plan gives at this position. */
static struct plan_pass pass_of(const struct plan_input *in, uint32_t n_seen,
                                struct plan *plan)
{
    const struct plan_run run = { n_seen, 0, 1 };
    struct plan_outlook outlook;
    struct err e = ERR_INIT;

    assert_int_equal(plan_make(in, plan, &e), 0);
    plan_outlook(in, plan, &run, &outlook);
    return outlook.pass;
}

static struct sim_means simulate(struct chance *c, const struct situation *s,
                                 const struct plan_input *in, bool q8)
{
    struct plan plan;
    struct plan_pass pass = pass_of(in, s->n_seen, &plan);
    const struct sim_run run = { .n_slot = plan.n_slot > 1 ? plan.n_slot : 2,
                                 .streamed_share = pass.streamed_share,
                                 .n_seen = s->n_seen,
                                 .q8 = q8 };
    struct sim_means means;

    sim_tokens(c, &s->model, &s->machine, &run, SKIPPED, MEASURED, &means);
    return means;
}

/* An answer, as the session measures it.  The kernel counts only a part of the time that others
 * take. */
static struct plan_anchor answer(struct chance *c, const struct situation *s,
                                 const struct plan_anchor *before)
{
    struct plan plan;
    struct plan_pass pass = pass_of(&s->in, s->n_seen, &plan);
    struct sim_means means = simulate(c, s, &s->in, s->q8);
    struct plan_anchor a = { .measured_s = 1,
                             .n_token = MEASURED,
                             .streamed_share = pass.streamed_share,
                             .starts_cold = pass.starts_cold,
                             .n_slot = pass.n_slot,
                             .n_seen = s->n_seen,
                             .token_s = means.token_s,
                             .stall_s = means.stall_s,
                             .lookup_s = means.lookup_s,
                             .attention_s = means.attention_s,
                             .others_s = means.others_s * (0.6 + chance_below(c, 40) / 100.0),
                             .fixed_s = means.fixed_s,
                             .disk_bytes = means.disk_bytes };
    struct plan_input in = s->in;

    in.factors = (struct plan_factors){ 0 };
    plan_anchor_finish(&in, before, &a);
    return a;
}

static double drifted(struct chance *c, double rate)
{
    return rate * (1 + DRIFT * (chance_below(c, 2001) / 1000.0 - 1));
}

static void a_minute_passes(struct chance *c, struct situation *s)
{
    s->machine.disk_bytes_s = drifted(c, s->machine.disk_bytes_s);
    s->machine.column_bytes_s = drifted(c, s->machine.column_bytes_s);
    s->machine.lost = fmin(drifted(c, s->machine.lost), 0.9);
}

static double predicted(const struct situation *s, const struct plan_input *in)
{
    struct plan_outlook t;

    return advice_token(in, s->n_seen, &t);
}

/* Other settings: a budget, the other type of keys and values, or both. */
static bool change(struct chance *c, const struct situation *s, struct plan_input *in)
{
    bool q8 = s->q8 ^ (chance_below(c, 3) == 0);
    uint64_t low, high;

    *in = s->in;
    if (q8 != s->q8)
        sim_set_kv(in, &s->machine, q8);
    low = plan_smallest_budget(in) + 16 * MIB;
    high = plan_reads_nothing_budget(in) + 64 * MIB;
    in->budget_bytes = low + (uint64_t)((double)(high - low) * chance_below(c, 1000) / 1000);
    return q8;
}

/* Does the anchor know what the other settings need?  If tokens never waited for the disk, its
 * rate is known only as a lower bound. */
static bool knows(const struct plan_anchor *a, const struct plan_input *in,
                  const struct situation *s)
{
    struct plan plan;

    return a->disk_bytes_s > 0 || pass_of(in, s->n_seen, &plan).streamed_share <=
                                      a->streamed_share;
}

struct count {
    int n, right, right_before;
};

static void assert_share(const struct count *n, double least, const char *what)
{
    if (n->n < SITUATIONS / 4 || n->right < least * n->n)
        fail_msg("%s: %d of %d are right", what, n->right, n->n);
}

static void predictions_after_an_answer_are_right(void **state)
{
    const struct plan_anchor none = { 0 };
    struct chance c = { 4711 };
    struct count n = { 0 };

    (void)state;
    for (int i = 0; i < SITUATIONS; i++) {
        struct situation s = draw(&c);
        struct plan_anchor a = answer(&c, &s, &none);
        struct plan_input then;
        bool q8 = change(&c, &s, &then);
        double before = predicted(&s, &then), after, truth;

        if (!knows(&a, &then, &s))
            continue;
        then.factors = plan_factors_of(&s.in, &a);
        after = predicted(&s, &then);
        a_minute_passes(&c, &s);
        truth = simulate(&c, &s, &then, q8).token_s;
        n.n++;
        n.right += fabs(after / truth - 1) <= PREDICTED;
        n.right_before += fabs(before / truth - 1) <= PREDICTED;
    }
    assert_share(&n, RIGHT, "predictions after an answer");
    assert_true(n.right_before < n.n / 2); /* the probes were bad */
}

/* Threads that are limited by their own speed, until memory limits them.  Nobody can tell whether
 * fewer threads still reach the rate of memory, so those draws are left out. */
static void predictions_for_other_threads_are_right(void **state)
{
    enum { CORES = 16 };
    const struct plan_anchor none = { 0 };
    struct chance c = { 4715 };
    struct count n = { 0 };

    (void)state;
    for (int i = 0; i < SITUATIONS; i++) {
        struct situation s = draw(&c);
        int measured = 1 + (int)chance_below(&c, CORES);
        double memory = s.in.memory_bytes_s / s.in.weights[0].column_bytes_s, truth, same;
        double ratio;
        struct plan_input then;
        struct plan_anchor a;

        s.in.n_core = CORES;
        s.in.n_thread = measured;
        s.in.costs.load_s *= measured;
        a = answer(&c, &s, &none);
        then = s.in;
        then.n_thread = 1 + (int)chance_below(&c, CORES);
        ratio = (double)then.n_thread / measured;
        if (then.n_thread == measured || (memory < 1.25 && ratio < 1) ||
            (a.disk_bytes >= 1 && a.disk_bytes_s == 0 && ratio > 1))
            continue; /* how fast the disk is was not seen */
        speed_scale_threads(&then, measured);
        then.factors = plan_factors_of(&s.in, &a);
        s.machine.column_bytes_s *= ratio < memory ? ratio : memory;
        s.machine.attend_s /= ratio;
        truth = simulate(&c, &s, &then, s.q8).token_s;
        same = a.token_s;
        n.n++;
        n.right += fabs(predicted(&s, &then) / truth - 1) <= PREDICTED;
        n.right_before += fabs(same / truth - 1) <= PREDICTED;
    }
    assert_share(&n, RIGHT, "predictions for other threads");
    assert_true(n.right_before < 0.85 * n.n); /* the others are limited by the disk */
}

/* The smallest budgets leave a ring of two or three slots, and make small blocks.  Then disk and
 * processors wait for each other, and for the threads that wake each other.  The limits are those
 * of the machine.  Attention takes at most a fifth of the time, as with the contexts that fit. */
static void the_smallest_budgets_are_predicted(void **state)
{
    struct chance c = { 4714 };
    struct count n = { 0 };

    (void)state;
    for (int i = 0; i < SITUATIONS; i++) {
        struct situation s = draw(&c);
        double bytes = fmin(s.model.block_bytes * s.model.n_block, 1e9), truth, p;
        struct plan plan;
        struct plan_pass pass;
        struct plan_time t;

        s.machine.attend_s *= 0.25 * bytes / (s.model.block_bytes * s.model.n_block);
        s.model.n_block = (uint32_t)(bytes / SMALL_BLOCK);
        s.model.block_bytes = bytes / s.model.n_block;
        s.machine.disk_bytes_s = s.machine.column_bytes_s * sim_between(&c, 0.3, 1.5);
        s.machine.lost = s.machine.cpu_slowed = s.machine.disk_slowed = 0;
        s.in = sim_input(&c, &s.model, &s.machine, 4096, s.q8, 0);
        s.in.costs.contention = 0;
        s.in.slot_bytes = 512 * KIB;
        s.in.budget_bytes = plan_smallest_budget(&s.in) + chance_below(&c, 4) * 256 * KIB;
        pass = pass_of(&s.in, s.n_seen, &plan);
        if (plan.n_slot > 3)
            continue;
        p = speed_token(&s.in, &pass, s.n_seen, &t);
        truth = simulate(&c, &s, &s.in, s.q8).token_s;
        n.n++;
        n.right += fabs(p / truth - 1) <= PREDICTED;
        pass.n_slot = 0; /* as if there were slots enough */
        n.right_before += fabs(speed_token(&s.in, &pass, s.n_seen, &t) / truth - 1) <= PREDICTED;
    }
    assert_share(&n, RIGHT, "predictions of the smallest budgets");
    assert_true(n.right_before < n.n / 2);
}

/* The part of the time that the disk takes decides; nobody can tell which of two equal ones
 * is the bound. */
static void the_bound_is_that_of_the_tokens(void **state)
{
    const struct plan_anchor none = { 0 };
    struct chance c = { 4712 };
    struct count n = { 0 };

    (void)state;
    for (int i = 0; i < SITUATIONS; i++) {
        struct situation s = draw(&c);
        struct plan_anchor a = answer(&c, &s, &none);
        double stall = a.stall_s / a.token_s;
        struct plan_outlook t;

        s.in.factors = plan_factors_of(&s.in, &a);
        assert_true(advice_token(&s.in, s.n_seen, &t) > 0);
        if (stall > 0.02 && stall < 0.15)
            continue;
        n.n++;
        n.right += (t.token.binds == MW_BINDS_DISK) == (stall >= 0.15);
    }
    assert_share(&n, 0.99, "the bound");
}

/* A proposal is simulated: it is not slower than no proposal, and at least half of what it
 * promises comes.  If the rest comes as predicted, there is no second proposal. */
static void proposals_hold(void **state)
{
    const struct plan_anchor none = { 0 };
    struct chance c = { 4713 };
    int n = 0, n_worse = 0, n_half = 0, n_again = 0;

    (void)state;
    for (int i = 0; i < SITUATIONS; i++) {
        struct situation s = draw(&c);
        struct plan_anchor a = answer(&c, &s, &none);
        uint64_t most = s.in.budget_bytes +
                        (uint64_t)(sim_between(&c, 0.05, 4) * (double)s.in.budget_bytes);
        struct plan_input then = s.in;
        double least, promised, truth, now, token_s;
        struct plan_outlook t;

        then.factors = plan_factors_of(&s.in, &a);
        (void)advice_token(&then, s.n_seen, &t);
        least = advice_least(&then, &t.token);
        then.budget_bytes = advice_budget(&then, s.n_seen, most);
        promised = then.budget_bytes > 0 ? fmax(advice_token(&then, s.n_seen, &t), least) : 0;
        if (then.budget_bytes == 0 || a.token_s < ADVICE_GAIN * promised)
            continue;
        assert_true(then.budget_bytes <= most);
        truth = simulate(&c, &s, &then, s.q8).token_s;
        now = simulate(&c, &s, &s.in, s.q8).token_s;
        n++;
        n_worse += truth > now;
        n_half += now / truth - 1 < (a.token_s / promised - 1) / 2;
        token_s = advice_token(&then, s.n_seen, &t);
        least = advice_least(&then, &t.token);
        then.budget_bytes = advice_budget(&then, s.n_seen, most);
        n_again += then.budget_bytes > 0 &&
                   token_s >= ADVICE_GAIN * fmax(advice_token(&then, s.n_seen, &t), least);
    }
    assert_true(n > SITUATIONS / 4);
    if (n_worse > 0 || n_half > 0 || n_again > 0)
        fail_msg("of %d proposals, %d were slower, %d gave less than half, and %d needed another",
                 n, n_worse, n_half, n_again);
}

/* "--memory 1.15G" is "1.15 GiB" on all panels, where 1178M would be, too. */
static void proposals_have_the_figures_of_panels(void **state)
{
    (void)state;
    for (double b = MIB; b < 0x1p38; b *= 1.013) {
        uint64_t bytes = (uint64_t)b, up = advice_round_up(bytes), most = advice_within(bytes);
        char shown[24], typed[24], *end;

        assert_true(up >= bytes && (double)up <= 1.07 * b + (double)MIB);
        assert_true(most <= bytes && (double)most >= 0.98 * b);
        units_size(shown, sizeof shown, up);
        units_option(typed, sizeof typed, up);
        if (up >= GIB) {
            assert_float_equal(strtod(typed, &end), strtod(shown, NULL), 1e-9);
            assert_string_equal(end, "G");
        }
        units_size(shown, sizeof shown, most);
        units_option(typed, sizeof typed, most);
        if (most >= GIB)
            assert_float_equal(strtod(typed, NULL), strtod(shown, NULL), 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_after_an_answer_are_right),
        cmocka_unit_test(predictions_for_other_threads_are_right),
        cmocka_unit_test(the_smallest_budgets_are_predicted),
        cmocka_unit_test(the_bound_is_that_of_the_tokens),
        cmocka_unit_test(proposals_hold),
        cmocka_unit_test(proposals_have_the_figures_of_panels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
