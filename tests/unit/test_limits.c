/* Measured limits: slices, the load of others, what work corrects, and their words. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/limits/limits.h"
#include "engine/limits/observe.h"
#include "engine/machine/load_meter.h"
#include "engine/machine/slices.h"
#include "engine/memwall.h"
#include "tests/lib/tree.h"

#define NOW    1800000000
#define MINUTE 60
#define HOUR   3600
#define SECOND 1000000000u
#define GB     1000000000u

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-6 * fabs(b) + 1e-9)

/* --- slices --- */

static void a_burst_in_one_slice_changes_little(void **state)
{
    static const double rates[] = { 2.0, 0.2, 2.1, 1.9 };
    struct slices s = { 0 };

    (void)state;
    assert_near(slices_rate(&s), 0.0);
    for (int i = 0; i < 2; i++)
        slices_add(&s, rates[i]);
    assert_true(slices_spread(&s) > 0.8); /* two slices do not tell which one is wrong */
    for (int i = 2; i < 4; i++)
        slices_add(&s, rates[i]);
    assert_near(slices_rate(&s), 1.95);
    assert_near(slices_spread(&s), 0.1 / 1.95);
}

static void slices_that_all_differ_are_far_apart(void **state)
{
    struct slices s = { 0 };

    (void)state;
    for (int i = 1; i <= 100; i++)
        slices_add(&s, i);
    assert_int_equal(s.n, SLICES_MAX);
    assert_true(slices_spread(&s) > 0.5);
}

/* --- load --- */

static void only_other_programs_that_are_not_nice_are_load(void **state)
{
    long hz = sysconf(_SC_CLK_TCK);
    char text[200];
    struct load l;

    (void)state;
    tree_put("/proc/stat", "cpu 1000 500 0 9000 0 0 0 0\ncpu0 1 2\n");
    load_begin(&l, tree_root);
    /* Two processors ran for 100 s: 80 s for others, 60 s for nice programs. */
    snprintf(text, sizeof text, "cpu %ld %ld 0 %ld 0 0 0 0\n", 1000 + 80 * hz, 500 + 60 * hz,
             9000 + 60 * hz);
    tree_put("/proc/stat", text);
    assert_true(fabs(load_of_others(&l, tree_root) - 0.4) < 0.01);
}

static void without_figures_the_load_is_unknown(void **state)
{
    struct load l;

    (void)state;
    load_begin(&l, tree_root);
    assert_true(load_of_others(&l, tree_root) < 0);
    tree_put("/proc/stat", "cpu 1 2 three\n");
    load_begin(&l, tree_root);
    assert_true(load_of_others(&l, tree_root) < 0);
    tree_put("/proc/stat", "cpu 10 0 0 10 0 0 0 0\n");
    load_begin(&l, tree_root);
    assert_true(load_of_others(&l, tree_root) < 0); /* no tick has passed */
}

#define SECOND_NS ((uint64_t)1000000000)

/* In each second of two processors, others use others_s, and the host takes stolen_s. */
static void put_second(int second, double others_s, double stolen_s)
{
    double hz = (double)sysconf(_SC_CLK_TCK);
    char text[200];

    snprintf(text, sizeof text, "cpu %.0f 0 0 %.0f 0 0 0 %.0f\n",
             1000 + second * others_s * hz, 9000 + second * (2 - others_s - stolen_s) * hz,
             second * stolen_s * hz);
    tree_put("/proc/stat", text);
}

/* Threads of this program wait for each other, too, so a wait alone says nothing of
 * others. */
static void only_other_programs_take_time_from_threads(void **state)
{
    struct load_meter m = { .n = 0 };
    uint64_t wall_ns = 450000000, waited_ns = 80000000;

    (void)state;
    assert_int_equal(load_meter_others_ns(&m, waited_ns, wall_ns), waited_ns); /* unknown */
    put_second(1, 0, 0);
    load_meter_begin(&m, SECOND_NS, tree_root);
    assert_int_equal(load_meter_others_ns(&m, waited_ns, wall_ns), 0); /* not known yet */
    put_second(2, 0, 0);
    load_meter_end(&m, 2 * SECOND_NS, tree_root);
    assert_in_range(load_meter_others_ns(&m, waited_ns, wall_ns), 0, wall_ns / 50);

    put_second(3, 0.5, 0); /* 1.5 s of others in the second before */
    load_meter_end(&m, 3 * SECOND_NS, tree_root);
    assert_int_equal(load_meter_others_ns(&m, waited_ns, wall_ns), waited_ns);
}

static void the_time_of_the_host_counts_as_another_program(void **state)
{
    struct load_meter m = { .n = 0 };

    (void)state;
    for (int i = 1; i <= 20; i++) {
        put_second(i, 0, 0.2); /* a tenth of two processors */
        load_meter_begin(&m, (uint64_t)i * SECOND_NS, tree_root);
        load_meter_end(&m, (uint64_t)i * SECOND_NS, tree_root);
    }
    assert_near((double)load_meter_others_ns(&m, 0, SECOND_NS), 0.1e9);
    assert_int_equal(load_meter_others_ns(&m, SECOND_NS, SECOND_NS / 2), SECOND_NS / 20);

    load_meter_begin(&m, 99 * SECOND_NS, tree_root); /* after a pause */
    assert_int_equal(load_meter_others_ns(&m, SECOND_NS, SECOND_NS), 0);
}

/* Two seconds beside other programs. */
static double crowding_beside(double others_s, double stolen_s, int n_thread)
{
    struct load_meter m = { .n = 0 };

    for (int i = 1; i <= 2; i++) {
        put_second(i, others_s, stolen_s);
        load_meter_begin(&m, (uint64_t)i * SECOND_NS, tree_root);
        load_meter_end(&m, (uint64_t)i * SECOND_NS, tree_root);
    }
    return load_meter_crowding(&m, n_thread, 2);
}

static void the_slowest_thread_shares_the_fullest_processor(void **state)
{
    static const struct {
        double others_s, stolen_s;
        int n_thread;
        double crowding;
    } rows[] = {
        { 0, 0, 2, 0 },
        { 1, 0, 1, 0 }, /* on the other processor */
        { 0.25, 0, 2, 0.25 },
        { 1, 0, 2, 1 },
        { 2, 0, 2, 1 },
        { 0, 0, 5, 1.5 },
        { 0, 0.4, 2, 0.25 }, /* the host takes a fifth */
        { 1, 0.4, 2, 1.5 },
    };
    const struct load_meter unknown = { .n = 0 };

    (void)state;
    assert_true(load_meter_crowding(&unknown, 2, 2) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double got = crowding_beside(rows[i].others_s, rows[i].stolen_s, rows[i].n_thread);

        if (fabs(got - rows[i].crowding) > 1e-3)
            fail_msg("row %zu: %g", i, got);
    }
}

static void pressure_is_the_larger_of_processors_and_disk(void **state)
{
    (void)state;
    assert_true(load_pressure(tree_root) == 0); /* unknown */
    tree_put("/proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.00 total=9\n");
    assert_near(load_pressure(tree_root), 0.125);
    tree_put("/proc/pressure/io", "some avg10=40.00 avg60=1.00 avg300=0.00 total=9\n"
                                  "full avg10=99.00 avg60=1.00 avg300=0.00 total=9\n");
    assert_near(load_pressure(tree_root), 0.4);
}

/* --- the rule --- */

static void a_faster_rate_counts_at_once(void **state)
{
    struct slow slow = { 0 };
    double rate = 10, unknown = 0;
    int64_t now_s = NOW;

    (void)state;
    assert_true(observe_rate(&slow, 12, false, now_s += MINUTE, &rate)); /* a limit or not */
    assert_near(rate, 12.0);
    assert_false(observe_rate(&slow, 11.5, true, now_s += MINUTE, &rate));
    assert_near(rate, 12.0);
    assert_false(observe_rate(&slow, 5, true, now_s += MINUTE, &unknown));
    assert_true(unknown == 0);
}

static void three_slow_rates_lower_it_to_their_mean(void **state)
{
    struct slow slow = { 0 };
    double rate = 10;
    int64_t now_s = NOW;

    (void)state;
    assert_false(observe_rate(&slow, 4, true, now_s += MINUTE, &rate));
    assert_false(observe_rate(&slow, 8, true, now_s += MINUTE, &rate));
    assert_false(observe_rate(&slow, 1, false, now_s += MINUTE, &rate)); /* something else was the reason */
    assert_near(rate, 10.0);
    assert_true(observe_rate(&slow, 6, true, now_s += MINUTE, &rate));
    assert_near(rate, 6.0);
    assert_false(observe_rate(&slow, 3, true, now_s += MINUTE, &rate)); /* the count begins again */
    assert_false(observe_rate(&slow, 3, true, now_s += MINUTE, &rate));
    assert_false(observe_rate(&slow, 5.5, true, now_s += MINUTE, &rate)); /* as fast as expected */
    assert_false(observe_rate(&slow, 3, true, now_s += MINUTE, &rate));
    assert_false(observe_rate(&slow, 3, true, now_s += MINUTE, &rate));
    assert_near(rate, 6.0);
}

/* Another program copies a file for a minute, and then for two more. */
static void one_slow_minute_is_one_slow_time(void **state)
{
    struct slow slow = { 0 };
    double rate = 10;

    (void)state;
    for (int64_t s = 0; s < OBSERVE_APART_S; s++)
        assert_false(observe_rate(&slow, 4, true, NOW + s, &rate));
    for (int64_t s = 0; s < 2 * OBSERVE_APART_S; s++)
        (void)observe_rate(&slow, 4, true, NOW + 1000 + s, &rate);
    assert_near(rate, 4.0);
}

static void types_agree_within_their_known_ratio(void **state)
{
    struct mw_limits l = { .n_rate = 2, .memory_bytes_s = 20e9 };

    (void)state;
    assert_true(limits_types_agree("Q4_0", 7.2e9, "Q8_0", 4.9e9));
    assert_true(limits_types_agree("F32", 10.7e9, "IQ1_S", 1.1e9)); /* as measured */
    assert_true(limits_types_agree("Q4_0-x16", 5e9, "BF16-packed", 10.4e9));
    assert_false(limits_types_agree("Q4_0", 2.77e9, "Q8_0", 92e9));
    assert_false(limits_types_agree("Q8_0", 92e9, "Q4_0", 2.77e9));
    assert_false(limits_types_agree("Q8_0", 2e9, "Q4_0", 8e9)); /* fewer bytes of a wider type */
    assert_true(limits_types_agree("Q4_0", 2.77e9, "no type", 92e9));
    assert_true(limits_types_agree("Q4_0", 0, "Q8_0", 92e9)); /* not measured */
    snprintf(l.rate[0].type, sizeof l.rate[0].type, "Q4_0");
    snprintf(l.rate[1].type, sizeof l.rate[1].type, "Q8_0");
    l.rate[0].column_bytes_s = l.rate[1].column_bytes_s = 20e9;
    assert_true(limits_agree(&l));
    l.rate[1].column_bytes_s = 50e9;
    assert_true(limits_agree(&l));
    l.rate[0].column_bytes_s = 30e9;
    l.rate[1].column_bytes_s = 61e9; /* no memory is as fast */
    assert_false(limits_agree(&l));
    l.memory_bytes_s = 0;
    assert_true(limits_agree(&l));
}

/* Slow kernels of one type contradict the others every time they are measured. */
static void rates_of_one_go_are_believed(void **state)
{
    struct mw_limits l = { .n_rate = 2 };

    (void)state;
    l.rate[0] = (struct mw_rate){ "IQ2_XXS", 1.6e9, 1.6e9, 1e11, false, NOW };
    l.rate[1] = (struct mw_rate){ "Q6_K", 30e9, 30e9, 1e11, false, NOW + 1 };
    assert_false(limits_agree(&l));
    assert_true(limits_of_one_go(&l));
    l.memory_bytes_s = 9e9; /* but not what no memory allows */
    assert_false(limits_of_one_go(&l));
    l.memory_bytes_s = 0;
    l.rate[0].measured_s -= HOUR;
    assert_false(limits_of_one_go(&l));
    l.rate[0].measured_s = 0;
    assert_false(limits_of_one_go(&l));
}

/* --- threads --- */

static int threads(double core_s, double fewer_s, double cpu_s, char *why, size_t n)
{
    const struct mw_threads t = { .n_core = 8, .n_cpu = 16, .core_s = core_s,
                                  .fewer_s = fewer_s, .cpu_s = cpu_s, .measured_s = NOW };

    mw_threads_text(&t, why, n);
    return limits_threads(&t);
}

/* One per core, unless another number is clearly better. */
static void threads_are_one_per_core_unless_another_number_is_faster(void **state)
{
    struct mw_threads t = { .n_core = 8, .n_cpu = 16, .core_s = 10, .fewer_s = 2, .cpu_s = 1 };
    char why[MW_THREADS_WHY];

    (void)state;
    assert_int_equal(threads(10, 9.6, 9.6, why, sizeof why), 8);
    assert_string_equal(why, "one per core: measured times, one fewer 0.96, one per processor "
                             "0.96, one per core 1");
    assert_int_equal(threads(10, 9.5, 11, why, sizeof why), 7);
    assert_string_equal(why, "one fewer than cores: measured times, one fewer 0.95, one per "
                             "processor 1.10, one per core 1");
    assert_int_equal(threads(10, 11, 9.5, why, sizeof why), 16);
    assert_int_equal(threads(10, 9, 8, why, sizeof why), 16);
    assert_int_equal(threads(10, 8, 9, why, sizeof why), 7);
    assert_int_equal(threads(10, 0, 9, why, sizeof why), 16);
    assert_string_equal(why, "one per processor: measured times, one per processor 0.90, one per "
                             "core 1");
    assert_int_equal(threads(10, 0, 0, why, sizeof why), 8);
    assert_string_equal(why, "one per core");
    assert_int_equal(limits_threads(&t), 8); /* not measured */
    t.measured_s = NOW;
    t.is_doubtful = true;
    assert_int_equal(limits_threads(&t), 8);
    t.is_doubtful = false;
    assert_int_equal(limits_threads(&t), 16);
}

/* --- work --- */

static int64_t a_minute_after(const struct slow *slow)
{
    return slow->last_s > 0 ? slow->last_s + MINUTE : NOW;
}

/* Feed a window of 2 GB that took `ms` milliseconds. */
static bool window(struct observer *w, struct observe_at *at, uint64_t ms, double busy,
                   bool is_throttled, struct mw_limits *l)
{
    at->bytes += 2 * (uint64_t)GB;
    at->t_ns += ms * 1000000u;
    at->busy_ns += (uint64_t)((double)ms * 1e6 * busy);
    return observe_disk(w, at, is_throttled, a_minute_after(&w->slow), l);
}

static void a_faster_disk_raises_the_limit_at_once(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 125e6,
                           .direct_bytes_s = 125e6,
                           .is_doubtful = true,
                           .measured_s = NOW - HOUR };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    observe_begin(&w, &at);
    assert_true(window(&w, &at, 1000, 0.1, true, &l)); /* busy or not, throttled or not */
    assert_near(l.disk_bytes_s, 2e9);
    assert_near(l.direct_bytes_s, 2e9);
    assert_false(l.is_doubtful);
    assert_int_equal(l.measured_s, NOW);
    assert_false(window(&w, &at, 1050, 1, false, &l));
    assert_near(l.disk_bytes_s, 2e9);
}

static void a_limit_that_was_not_measured_stays_unknown(void **state)
{
    struct mw_limits l = { .measured_s = 0 };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    observe_begin(&w, &at);
    assert_false(window(&w, &at, 4000, 0.2, false, &l));
    assert_true(l.disk_bytes_s == 0);
    assert_int_equal(l.measured_s, 0);
}

static void a_short_run_says_nothing(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 1e9 };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    at.bytes = OBSERVE_BYTES - 1;
    at.t_ns = 1000;
    assert_false(observe_disk(&w, &at, false, NOW, &l));
    at.bytes++;
    assert_true(observe_disk(&w, &at, false, NOW, &l)); /* the window went on */
}

static double after_slow_windows(struct mw_limits l, double busy, bool is_throttled)
{
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    for (int i = 0; i < OBSERVE_SLOW; i++)
        (void)window(&w, &at, 2000, busy, is_throttled, &l); /* 1 GB/s */
    return l.disk_bytes_s;
}

static void only_a_disk_that_was_the_reason_lowers_its_limit(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 2e9 };
    struct observe_at at = { 0 };
    struct observer w = { 0 };

    (void)state;
    assert_near(after_slow_windows(l, 0.95, false), 1e9);
    assert_near(after_slow_windows(l, 0.8, false), 2e9);
    assert_near(after_slow_windows(l, 0.95, true), 2e9);
    for (int i = 0; i < OBSERVE_SLOW; i++) {
        at.pinned_bytes += GB; /* filling fresh memory takes time, too */
        assert_false(window(&w, &at, 2000, 1, false, &l));
    }
    for (int i = 0; i < 4 * OBSERVE_SLOW; i++) /* as fast as expected in between */
        assert_false(window(&w, &at, i % OBSERVE_SLOW == 0 ? 1050 : 2000, 1, false, &l));
    assert_near(l.disk_bytes_s, 2e9);
    l.contention = 1; /* computing explains half of the rate */
    assert_near(after_slow_windows(l, 0.95, false), 2e9);
}

static void faster_products_raise_the_limit_of_memory(void **state)
{
    struct mw_limits l = { .memory_bytes_s = 1e10 };

    (void)state;
    assert_false(observe_memory(GB, SECOND, NOW, &l));
    assert_true(observe_memory(2 * (uint64_t)GB, SECOND / 10, NOW, &l));
    assert_near(l.memory_bytes_s, 2e10);
    for (int i = 0; i < 9; i++) /* slower says nothing */
        assert_false(observe_memory(GB, SECOND, NOW, &l));
    assert_false(observe_memory(OBSERVE_MEMORY_BYTES - 1, 1000, NOW, &l)); /* a cache */
}

static void sessions_are_averaged_by_their_tokens(void **state)
{
    struct mw_expert_use use = { .share = { 1 }, .n_token = OBSERVE_USES - 1 };
    struct mw_limits l = { 0 };

    (void)state;
    assert_false(observe_use(&use, NOW, &l)); /* too few */
    assert_int_equal(l.expert_use.observed_s, 0);
    use.n_token = 300;
    assert_true(observe_use(&use, NOW, &l));
    assert_near(l.expert_use.share[0], 1.0);
    use.share[0] = use.share[1] = 0.5;
    use.n_token = 100;
    assert_true(observe_use(&use, NOW + 5, &l));
    assert_near(l.expert_use.share[0], 0.875);
    assert_near(l.expert_use.share[1], 0.125);
    assert_near(l.expert_use.n_token, 400.0);
    assert_int_equal(l.expert_use.observed_s, NOW + 5);
    l.expert_use.n_token = 1e6; /* old texts do not count forever */
    use.n_token = OBSERVE_USES_KEPT;
    assert_true(observe_use(&use, NOW, &l));
    assert_near(l.expert_use.share[0], 0.6875);
}

/* --- products at work --- */

static struct mw_limits with_rates(void)
{
    struct mw_limits l = { .n_rate = 2, .measured_s = NOW - HOUR };

    l.rate[0] = (struct mw_rate){ "Q4_0", 20e9, 20e9, 1e11, true, NOW - HOUR };
    l.rate[1] = (struct mw_rate){ "Q6_K", 10e9, 10e9, 1e11, false, NOW - HOUR };
    l.steps.round_s = 10e-6;
    l.steps.mac_s[1] = 1e-12;
    l.steps.is_doubtful = true;
    l.steps.measured_s = NOW - HOUR;
    return l;
}

/* A token of an answer, one of four that are verified together and one of a prompt count, with
 * 0.5625 bytes and two operations a weight. */
static void forms_are_compared_by_answers_drafts_and_prompts(void **state)
{
    struct mw_limits l = { .n_rate = 3 };
    double file, laid;

    (void)state;
    l.rate[0] = (struct mw_rate){ "Q4_0", 28.125e9, 28.125e9, 4e11, false, NOW };
    l.rate[1] = (struct mw_rate){ "Q4_0-x16", 22.5e9, 56.25e9, 5e11, false, NOW };
    l.rate[2] = (struct mw_rate){ "Q6_K", 22.5e9, 22.5e9, 5e11, false, NOW };
    assert_true(limits_forms(&l, "Q4_0", &file, &laid));
    assert_near(1e11 * file, 3.0);
    assert_near(1e11 * laid, 3.15);
    assert_false(limits_forms(&l, "Q6_K", &file, &laid));
    assert_false(limits_forms(&l, "Q4_0-x16", &file, &laid));
    l.rate[1].is_doubtful = true;
    assert_false(limits_forms(&l, "Q4_0", &file, &laid));
    l.rate[1].is_doubtful = false;
    l.rate[0].few_bytes_s = 0; /* not known */
    assert_false(limits_forms(&l, "Q4_0", &file, &laid));
    l.rate[0].few_bytes_s = 28.125e9;
    assert_true(limits_forms(&l, "Q4_0", &file, &laid));
    l.rate[1].measured_s += MINUTE; /* another go */
    assert_false(limits_forms(&l, "Q4_0", &file, &laid));
    l.rate[1].measured_s = 0;
    assert_false(limits_forms(&l, "Q4_0", &file, &laid));
}

/* Feed n passes that were expected to take 100 ms. */
static bool passes(struct product_observer *w, int n, uint64_t ms, struct mw_limits *l)
{
    int64_t now_s = a_minute_after(&w->slow);
    bool is_corrected = false;

    for (int i = 0; i < n; i++)
        is_corrected |= observe_products(w, OBSERVE_COLUMN, 0.1, ms * 1000000u, now_s, l);
    return is_corrected;
}

static void faster_products_raise_all_rates_and_steps(void **state)
{
    struct mw_limits l = with_rates();
    struct product_observer w = { 0 };

    (void)state;
    assert_false(passes(&w, OBSERVE_PASSES - 1, 80, &l));
    assert_true(passes(&w, 1, 80, &l));
    assert_near(l.rate[0].column_bytes_s, 25e9);
    assert_near(l.rate[1].column_bytes_s, 12.5e9);
    assert_near(l.rate[1].few_bytes_s, 12.5e9);
    assert_true(l.rate[0].few_bytes_s == 0); /* in doubt, and no pass shows it */
    assert_near(l.rate[0].chunk_flops_s, 1e11); /* prompts are another matter */
    assert_int_equal(l.rate[0].measured_s, NOW);
    assert_near(1e6 * l.steps.round_s, 8.0);
    assert_near(1e12 * l.steps.mac_s[1], 0.8);
    assert_false(l.rate[0].is_doubtful || l.steps.is_doubtful);
    assert_true(l.memory_bytes_s == 0);
}

static void a_burst_of_another_program_changes_no_rate(void **state)
{
    struct mw_limits l = with_rates();
    struct product_observer w = { 0 };

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_false(passes(&w, OBSERVE_PASSES / 2 + 1, 101, &l)); /* the median counts */
        assert_false(passes(&w, OBSERVE_PASSES - OBSERVE_PASSES / 2 - 1, 300, &l));
    }
    assert_near(l.rate[0].column_bytes_s, 20e9);
}

static void slower_products_lower_the_rates_to_their_mean(void **state)
{
    struct mw_limits l = with_rates();
    struct product_observer w = { 0 };

    (void)state;
    assert_false(passes(&w, OBSERVE_PASSES, 200, &l));
    assert_false(passes(&w, OBSERVE_PASSES, 200, &l));
    assert_true(passes(&w, OBSERVE_PASSES, 500, &l));
    assert_near(l.rate[0].column_bytes_s, 20e9 * (0.5 + 0.5 + 0.2) / 3);
    assert_near(l.rate[0].column_bytes_s, 2 * l.rate[1].column_bytes_s);
}

static void rates_that_were_not_measured_stay_unknown(void **state)
{
    struct mw_limits l = { .n_rate = 1, .rate = { { .type = "Q4_0" } } };
    struct product_observer w = { 0 };

    (void)state;
    (void)passes(&w, OBSERVE_PASSES, 10, &l);
    assert_true(l.rate[0].column_bytes_s == 0);
    assert_int_equal(l.rate[0].measured_s, 0);
    /* Nothing was expected, for example of a mixture of experts. */
    l = with_rates();
    for (int i = 0; i < OBSERVE_PASSES; i++)
        assert_false(observe_products(&w, OBSERVE_CHUNK, 0, 1000, NOW, &l));
}

/* --- words --- */

static void limits_are_described_with_age_and_doubt(void **state)
{
    struct mw_limits l = { .disk_bytes_s = 2e9,
                           .memory_bytes_s = 2e10,
                           .measured_s = NOW - 3 * HOUR },
                     none = { 0 };
    char text[MW_LIMITS_TEXT];

    (void)state;
    mw_limits_text(&l, NOW, text, sizeof text);
    assert_string_equal(text, "disk 2 GB/s, memory 20 GB/s, measured 3 h ago");
    assert_false(mw_limits_doubtful(&l));
    l.is_doubtful = true;
    mw_limits_text(&l, NOW, text, sizeof text);
    assert_string_equal(
        text,
        "disk 2 GB/s, memory 20 GB/s, measured 3 h ago; doubtful: the machine was busy, or "
        "the budget too small to measure it");
    mw_limits_text(&none, NOW, text, sizeof text);
    assert_string_equal(text, "not measured");
    l.is_doubtful = false;
    l.n_rate = 1;
    l.rate[0].is_doubtful = true;
    assert_true(mw_limits_doubtful(&l));
    l.n_rate = 0;
    l.steps.is_doubtful = true;
    assert_true(mw_limits_doubtful(&l));
}

int main(void)
{
#define in_a_tree(test) cmocka_unit_test_setup_teardown(test, tree_make, tree_drop)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_in_one_slice_changes_little),
        cmocka_unit_test(slices_that_all_differ_are_far_apart),
        in_a_tree(only_other_programs_that_are_not_nice_are_load),
        in_a_tree(without_figures_the_load_is_unknown),
        in_a_tree(only_other_programs_take_time_from_threads),
        in_a_tree(the_time_of_the_host_counts_as_another_program),
        in_a_tree(the_slowest_thread_shares_the_fullest_processor),
        in_a_tree(pressure_is_the_larger_of_processors_and_disk),
        cmocka_unit_test(a_faster_rate_counts_at_once),
        cmocka_unit_test(three_slow_rates_lower_it_to_their_mean),
        cmocka_unit_test(one_slow_minute_is_one_slow_time),
        cmocka_unit_test(types_agree_within_their_known_ratio),
        cmocka_unit_test(rates_of_one_go_are_believed),
        cmocka_unit_test(threads_are_one_per_core_unless_another_number_is_faster),
        cmocka_unit_test(a_faster_disk_raises_the_limit_at_once),
        cmocka_unit_test(a_limit_that_was_not_measured_stays_unknown),
        cmocka_unit_test(a_short_run_says_nothing),
        cmocka_unit_test(only_a_disk_that_was_the_reason_lowers_its_limit),
        cmocka_unit_test(faster_products_raise_the_limit_of_memory),
        cmocka_unit_test(sessions_are_averaged_by_their_tokens),
        cmocka_unit_test(forms_are_compared_by_answers_drafts_and_prompts),
        cmocka_unit_test(faster_products_raise_all_rates_and_steps),
        cmocka_unit_test(a_burst_of_another_program_changes_no_rate),
        cmocka_unit_test(slower_products_lower_the_rates_to_their_mean),
        cmocka_unit_test(rates_that_were_not_measured_stay_unknown),
        cmocka_unit_test(limits_are_described_with_age_and_doubt),
    };

    return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}
