/* Predictions that begin at a measurement: the laws of plan/anchor.h. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/plan/advice.h"
#include "engine/plan/anchor.h"
#include "engine/plan/factors.h"
#include "engine/plan/outlook.h"
#include "tests/lib/sim_machine.h"

#define DRAWS 3000

/* A drawn input with the pass of its plan, and a measurement that is nothing like it. */
struct drawn {
    struct plan_input in;
    struct plan_pass pass;
    struct plan_anchor anchor;
};

static void draw(struct chance *c, struct drawn *d)
{
    struct sim_machine machine;
    struct sim_model model;
    double stall, rest;

    sim_draw(c, &model, &machine);
    d->in = sim_input(c, &model, &machine, 4096, chance_below(c, 2), 1);
    d->pass = (struct plan_pass){ .streamed_share = chance_below(c, 101) / 100.0,
                                  .chunk = 512 };
    stall = d->pass.streamed_share > 0 ? chance_below(c, 90) / 100.0 : 0;
    rest = 1 - stall;
    d->anchor = (struct plan_anchor){
        .n_token = 16,
        .streamed_share = d->pass.streamed_share,
        .n_seen = 1 + chance_below(c, 4096),
        .token_s = sim_between(c, 0.002, 20),
        .disk_bytes = d->pass.streamed_share * (double)d->in.hot_bytes,
    };
    d->anchor.stall_s = stall * d->anchor.token_s;
    d->anchor.lookup_s = rest * d->anchor.token_s * chance_below(c, 30) / 100;
    d->anchor.attention_s = rest * d->anchor.token_s * chance_below(c, 60) / 100;
    d->anchor.others_s = chance_below(c, 2) * rest * d->anchor.token_s * 0.3;
    d->anchor.crowding = chance_below(c, 3) / 2.0;
    d->anchor.fixed_s = rest * d->anchor.token_s * chance_below(c, 5) / 100;
    d->in.factors = plan_factors_of(&d->in, &d->anchor);
    assert_true(d->in.factors.is_set);
}

static double seconds(const struct drawn *d, const struct plan_input *in, double streamed_share)
{
    struct plan_pass pass = d->pass;
    struct plan_time t;

    pass.streamed_share = streamed_share;
    return speed_token(in, &pass, (uint32_t)d->anchor.n_seen, &t);
}

static void assert_close(double got, double want)
{
    if (fabs(got - want) > 1e-6 * fabs(want))
        fail_msg("%g instead of %g", got, want);
}

static void the_same_settings_give_the_measured_time(void **state)
{
    struct chance c = { 7 };
    struct drawn d;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        draw(&c, &d);
        assert_close(seconds(&d, &d.in, d.pass.streamed_share), d.anchor.token_s);
    }
}

/* Probes and work change the limits under a measurement that was taken. */
static void changed_limits_change_no_measured_time(void **state)
{
    struct chance c = { 8 };
    struct drawn d;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        draw(&c, &d);
        d.in.factors = (struct plan_factors){ 0 };
        d.in.disk_bytes_s *= sim_between(&c, 0.25, 4);
        d.in.weights[0].column_bytes_s *= sim_between(&c, 0.25, 4);
        d.in.costs.load_s *= sim_between(&c, 0.25, 4);
        d.in.costs.contention = chance_below(&c, 40) / 100.0;
        d.in.factors = plan_factors_of(&d.in, &d.anchor);
        assert_close(seconds(&d, &d.in, d.pass.streamed_share), d.anchor.token_s);
    }
}

static void less_to_read_is_never_slower(void **state)
{
    struct chance c = { 9 };
    struct drawn d;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        double before = 0;

        draw(&c, &d);
        /* The rate of laid out weights is a probe of its own, which may be too slow. */
        snprintf(d.in.weights[0].laid_type, sizeof d.in.weights[0].laid_type, "Q4_K-x16");
        d.in.weights[0].laid_column_bytes_s =
            d.in.weights[0].column_bytes_s * sim_between(&c, 0.3, 3);
        d.in.factors = plan_factors_of(&d.in, &d.anchor);
        for (int percent = 0; percent <= 100; percent += 5) {
            double s = seconds(&d, &d.in, percent / 100.0);

            assert_true(s >= before * (1 - 1e-9));
            if (percent / 100.0 <= d.pass.streamed_share)
                assert_true(s <= d.anchor.token_s * (1 + 1e-6));
            before = s;
        }
    }
}

/* Half the keys and values take away at most the time of attention, and nothing else. */
static void halved_keys_and_values_scale_attention_alone(void **state)
{
    struct chance c = { 10 };
    struct drawn d;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        struct plan_time was, now;
        struct plan_input half;

        draw(&c, &d);
        half = d.in;
        half.costs.load_s /= 2;
        half.kv_far_bytes[0] /= 2;
        half.kv_near_bytes[0] /= 2;
        (void)speed_token(&d.in, &d.pass, (uint32_t)d.anchor.n_seen, &was);
        (void)speed_token(&half, &d.pass, (uint32_t)d.anchor.n_seen, &now);
        assert_close(now.attention_s, was.attention_s / 2);
        assert_close(now.products_s, was.products_s);
        assert_close(now.disk_s + 1, was.disk_s + 1);
        assert_true(now.wall_s <= was.wall_s);
    }
}

/* An answer that streams all weights, waits for the disk as long as it computes, and computes in
 * `share` of the time that the limits tell.  Returns the seconds of a token with all weights in
 * memory by that, as a multiple of those by the limits alone. */
static double in_memory_after(struct chance *c, double memory_of_column, double share)
{
    struct plan_time streamed, plain, then;
    struct plan_pass pass = { .keeps_rows = true, .streamed_share = 1, .chunk = 512 };
    struct drawn d;

    draw(c, &d);
    d.in.factors = (struct plan_factors){ 0 };
    d.in.memory_bytes_s = memory_of_column * d.in.weights[0].column_bytes_s;
    d.in.costs = (struct plan_costs){ 0 };
    d.in.kv_far_bytes[0] = d.in.kv_near_bytes[0] = 0;
    (void)speed_token(&d.in, &pass, 100, &streamed);
    d.in.disk_bytes_s = (double)d.in.hot_bytes / streamed.processors_s;
    d.anchor = (struct plan_anchor){ .n_token = 16,
                                     .streamed_share = 1,
                                     .keeps_rows = 1,
                                     .n_seen = 100,
                                     .token_s = 2 * share * streamed.processors_s,
                                     .stall_s = share * streamed.processors_s,
                                     .disk_bytes = (double)d.in.hot_bytes };
    pass.streamed_share = 0;
    (void)speed_token(&d.in, &pass, 100, &plain);
    d.in.factors = plan_factors_of(&d.in, &d.anchor);
    (void)speed_token(&d.in, &pass, 100, &then);
    return then.wall_s / plain.wall_s;
}

/* Blocks that were just read come from the processor's cache, if memory is the limit of their
 * products.  In memory they have no such help. */
static void weights_in_memory_are_not_in_the_cache(void **state)
{
    struct chance c = { 15 };

    (void)state;
    for (int i = 0; i < DRAWS / 10; i++) {
        assert_close(in_memory_after(&c, 1, 0.85), 1);
        assert_close(in_memory_after(&c, 0.95, 1.1), 1.1); /* slower than the limits */
        assert_close(in_memory_after(&c, 2, 0.85), 0.85);  /* arithmetic is the limit */
        assert_close(in_memory_after(&c, 1, 0.5), 0.5);    /* the limits are wrong */
    }
}

/* The processors' part shrinks with the threads, down to the time that the disk needs, and threads
 * beyond the cores change nothing. */
static void threads_scale_what_processors_do(void **state)
{
    enum { CORES = 8 };
    struct chance c = { 14 };
    struct drawn d;
    int n_faster = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        int measured = 1 + (int)chance_below(&c, CORES);
        double before = 0;

        draw(&c, &d);
        d.in.n_core = CORES;
        d.in.n_thread = measured;
        d.in.costs.load_s *= measured;
        d.in.costs.mac_s *= measured;
        d.in.factors = (struct plan_factors){ 0 };
        d.in.factors = plan_factors_of(&d.in, &d.anchor);
        for (int n = 1; n <= CORES + 4; n++) {
            struct plan_input in = d.in;
            struct plan_time t;
            double s;

            in.n_thread = n;
            speed_scale_threads(&in, measured);
            s = speed_token(&in, &d.pass, (uint32_t)d.anchor.n_seen, &t);
            if (n == measured)
                assert_close(s, d.anchor.token_s);
            assert_true(s >= d.in.factors.whole * t.disk_s);
            if (n > CORES)
                assert_close(s, before);
            else if (n > 1)
                assert_true(s <= before * (1 + 1e-9));
            n_faster += n > 1 && s < 0.9 * before;
            before = s;
        }
    }
    assert_true(n_faster > DRAWS);
}

/* Tokens that wait for the disk tell its rate; tokens that do not, that it is at least as fast
 * as they read. */
static void the_disk_is_known_only_as_the_bound(void **state)
{
    struct chance c = { 11 };
    struct drawn d;
    const struct plan_anchor none = { 0 };
    int n_bound = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        struct plan_anchor a, later;
        struct plan_input in;
        double most;

        draw(&c, &d);
        in = d.in;
        in.factors = (struct plan_factors){ 0 };
        a = d.anchor;
        plan_anchor_finish(&in, &none, &a);
        if (a.stall_s < ANCHOR_STALLS * a.token_s || a.disk_bytes < 1) {
            assert_true(a.disk_bytes_s == 0);
            most = d.in.factors.disk * d.in.factors.whole * a.disk_bytes / in.disk_bytes_s;
            assert_true(most <= a.token_s * (1 + 1e-6) || d.in.factors.disk < 1.0 / 63);
            continue;
        }
        n_bound++;
        assert_true(a.disk_bytes_s > 0);
        /* An answer that no longer waits keeps what the one before it saw. */
        later = a;
        later.stall_s = 0;
        later.disk_bytes = 0;
        later.streamed_share = 0;
        plan_anchor_finish(&in, &a, &later);
        assert_close(later.disk_bytes_s, a.disk_bytes_s);
    }
    assert_true(n_bound > DRAWS / 3);
}

/* Threads that wait for the disk find a processor when they wake.  Without the disk, another
 * program takes its part. */
static void waiting_hides_that_processors_are_crowded(void **state)
{
    struct chance c = { 13 };
    struct drawn d;
    int n = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        double alone, computing, crowded;
        bool is_explained;

        draw(&c, &d);
        d.pass.keeps_rows = true; /* no lookups */
        d.in.costs.contention = 0;
        d.anchor.keeps_rows = 1;
        d.anchor.others_s = d.anchor.lookup_s = d.anchor.attention_s = 0;
        computing = d.anchor.token_s - d.anchor.fixed_s - d.anchor.stall_s;
        d.anchor.crowding = 0;
        d.in.factors = (struct plan_factors){ 0 };
        d.in.factors = plan_factors_of(&d.in, &d.anchor);
        is_explained = fabs(d.in.factors.whole - 1) < 1e-6; /* the disk can be so slow */
        alone = seconds(&d, &d.in, 0) - d.anchor.fixed_s;
        d.anchor.crowding = 0.5;
        d.in.factors = (struct plan_factors){ 0 };
        d.in.factors = plan_factors_of(&d.in, &d.anchor);
        is_explained &= fabs(d.in.factors.whole - 1) < 1e-6;
        crowded = seconds(&d, &d.in, 0) - d.anchor.fixed_s;
        if (d.anchor.stall_s > computing && is_explained) { /* room for half as much again */
            assert_close(crowded, 1.5 * alone);
            n++;
        } else if (d.anchor.stall_s < ANCHOR_STALLS * d.anchor.token_s) {
            assert_close(crowded, alone);
        }
        assert_close(seconds(&d, &d.in, d.pass.streamed_share), d.anchor.token_s);
    }
    assert_true(n > DRAWS / 10);
}

/* Threads that wait for blocks can also lose more than their share, as they wake late.  Tokens
 * that never wait lose their share. */
static void tokens_that_never_wait_lose_only_their_share(void **state)
{
    struct chance c = { 14 };
    struct drawn d;
    int n = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        double rest;

        draw(&c, &d);
        rest = d.anchor.token_s - d.anchor.fixed_s - d.anchor.stall_s - d.anchor.lookup_s;
        d.anchor.others_s = 0.6 * rest; /* 1.5 times what the threads computed */
        d.anchor.crowding = 1;
        d.in.factors = (struct plan_factors){ 0 };
        d.in.factors = plan_factors_of(&d.in, &d.anchor);
        assert_close(d.in.factors.others, 1.5);
        if (d.anchor.stall_s < ANCHOR_STALLS * d.anchor.token_s || d.anchor.disk_bytes < 1) {
            assert_close(d.in.factors.crowded, 1.5);
            continue;
        }
        n++;
        assert_close(d.in.factors.crowded, 1);
        assert_close(seconds(&d, &d.in, d.pass.streamed_share), d.anchor.token_s);
    }
    assert_true(n > DRAWS / 10);
}

/* One thread computed what others did not wake for: the processor time shows how little it is. */
static void the_processor_time_shows_hidden_others(void **state)
{
    struct chance c = { 15 };
    struct drawn d;
    int n = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        double rest;

        draw(&c, &d);
        rest = d.anchor.token_s - d.anchor.fixed_s - d.anchor.stall_s - d.anchor.lookup_s;
        d.anchor.others_s = 0;
        d.anchor.n_thread = 2;
        d.anchor.crowding = 1;
        d.anchor.ran_s = 2 * rest / 1.6;
        d.in.factors = (struct plan_factors){ 0 };
        d.in.factors = plan_factors_of(&d.in, &d.anchor);
        if (d.anchor.stall_s < ANCHOR_STALLS * d.anchor.token_s || d.anchor.disk_bytes < 1) {
            assert_close(d.in.factors.others, 0);
            continue;
        }
        n++;
        assert_close(d.in.factors.others, 0.6);
        assert_close(seconds(&d, &d.in, d.pass.streamed_share), d.anchor.token_s);
        d.anchor.ran_s = 2 * rest / 8; /* more than others can take */
        d.in.factors = (struct plan_factors){ 0 };
        assert_close(plan_factors_of(&d.in, &d.anchor).others, 1);
        d.anchor.crowding = 0; /* there are no others */
        assert_close(plan_factors_of(&d.in, &d.anchor).others, 0);
    }
    assert_true(n > DRAWS / 10);
}

static void too_few_tokens_measure_nothing(void **state)
{
    struct chance c = { 12 };
    struct drawn d;

    (void)state;
    draw(&c, &d);
    d.in.factors = (struct plan_factors){ 0 };
    d.anchor.n_token = ANCHOR_LEAST - 1;
    assert_false(plan_factors_of(&d.in, &d.anchor).is_set);
    d.anchor.n_token = ANCHOR_TOKENS - 1; /* a doubt */
    assert_true(plan_factors_of(&d.in, &d.anchor).is_set);
    d.in.factors = plan_factors_of(&d.in, &d.anchor);
    assert_true(plan_is_doubtful(&d.in));
    d.in.factors = (struct plan_factors){ 0 };
    d.anchor.n_token = ANCHOR_TOKENS;
    d.in.is_doubtful = true; /* the limits */
    assert_true(plan_is_doubtful(&d.in));
    d.in.factors = plan_factors_of(&d.in, &d.anchor);
    assert_false(plan_is_doubtful(&d.in));
    d.in.factors = (struct plan_factors){ 0 };
    d.anchor = (struct plan_anchor){ 0 };
    assert_false(plan_factors_of(&d.in, &d.anchor).is_set);
}

/* A file may have any numbers, and some of them become integers and names of types. */
static void settings_that_cannot_be_measure_nothing(void **state)
{
    static const double wrong[] = { NAN, INFINITY, -1, 1e300 };
    struct chance c = { 17 };
    struct plan_anchor wrong_seen;
    struct drawn d;

    (void)state;
    draw(&c, &d);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct plan_anchor a[] = { d.anchor, d.anchor, d.anchor, d.anchor, d.anchor,
                                   d.anchor, d.anchor, d.anchor, d.anchor };

        a[0].memory_bytes = a[1].disk_rate = a[2].n_ctx = a[3].chunk = a[4].n_seen = wrong[i];
        a[5].kv_k = a[6].kv_v = a[7].streamed_share = a[8].missed_share = wrong[i];
        for (size_t j = 0; j < sizeof a / sizeof a[0]; j++)
            assert_false(plan_factors_of(&d.in, &a[j]).is_set);
    }
    wrong_seen = d.anchor;
    wrong_seen.n_ctx = 1;
    wrong_seen.n_seen = 2;
    assert_false(plan_factors_of(&d.in, &wrong_seen).is_set);
    d.anchor.kv_v = MW_STEPS_KV;
    assert_false(plan_factors_of(&d.in, &d.anchor).is_set);
}

/* The chunk decides which buffers are allocated, so a measurement must not change it. */
static void a_measurement_changes_no_chunk(void **state)
{
    struct chance c = { 13 };
    struct drawn d;
    struct err e = ERR_INIT;

    (void)state;
    for (int i = 0; i < DRAWS / 10; i++) {
        struct plan before, after;
        struct plan_input in;

        draw(&c, &d);
        in = d.in;
        in.budget_bytes = 2 * GIB;
        in.factors = (struct plan_factors){ 0 };
        assert_int_equal(plan_make(&in, &before, &e), 0);
        in.factors = d.in.factors;
        assert_int_equal(plan_make(&in, &after, &e), 0);
        assert_int_equal(before.chunk, after.chunk);
        assert_int_equal(before.pinned_bytes, after.pinned_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_settings_give_the_measured_time),
        cmocka_unit_test(changed_limits_change_no_measured_time),
        cmocka_unit_test(less_to_read_is_never_slower),
        cmocka_unit_test(halved_keys_and_values_scale_attention_alone),
        cmocka_unit_test(weights_in_memory_are_not_in_the_cache),
        cmocka_unit_test(threads_scale_what_processors_do),
        cmocka_unit_test(the_disk_is_known_only_as_the_bound),
        cmocka_unit_test(waiting_hides_that_processors_are_crowded),
        cmocka_unit_test(tokens_that_never_wait_lose_only_their_share),
        cmocka_unit_test(the_processor_time_shows_hidden_others),
        cmocka_unit_test(too_few_tokens_measure_nothing),
        cmocka_unit_test(settings_that_cannot_be_measure_nothing),
        cmocka_unit_test(a_measurement_changes_no_chunk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
