/* When a budget of `auto` gives memory back and takes it: a simulated machine (plan/breath.h). */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "engine/plan/breath.h"
#include "engine/plan/plan.h"
#include "tests/lib/chance.h"

#define MS     1000000u
#define SECOND ((uint64_t)1000 * MS)

/* ---- the machine ---- */

/* A process that holds its budget `delay_ns` after it was decided, and others beside it. */
struct sim {
    struct breath b;
    uint64_t now, next, total, limit; /* limit: of the group; 0: none */
    uint64_t others, own;
    uint64_t delay_ns, fill_s;  /* bytes that the process can take in a second */
    uint64_t some_us, full_us, swapped;
    bool has_pressure;
    uint64_t due_ns, due;       /* a smaller budget, once it has effect */
    uint32_t n_given, n_taken;
    uint64_t worst;             /* most that both together were above the memory */
    uint64_t lowest;            /* budget */
};

#define LEAST ((uint64_t)600 * MIB)

static void sim_begin(struct sim *s, uint64_t total, uint64_t most)
{
    *s = (struct sim){ .now = SECOND, .total = total, .delay_ns = 100 * MS, .fill_s = GIB };
    breath_begin(&s->b, LEAST, most, most < plan_auto_limit(total) ? most : plan_auto_limit(total),
                 total, s->now);
    s->own = s->due = s->lowest = s->b.budget;
}

static uint64_t room_of(const struct sim *s)
{
    uint64_t room = s->limit > 0 && s->limit < s->total ? s->limit : s->total;

    return room > s->others + s->own ? room - s->others - s->own : 0;
}

/* Let time pass, in steps of a millisecond; others change by `rate` bytes a second. */
static void sim_run(struct sim *s, uint64_t ns, int64_t rate)
{
    uint64_t end = s->now + ns;

    for (; s->now < end; s->now += MS) {
        uint64_t room = s->limit > 0 && s->limit < s->total ? s->limit : s->total;
        int64_t others = (int64_t)s->others + rate / 1000;

        s->others = others > 0 ? (uint64_t)others : 0;
        if (s->own > s->due && s->now >= s->due_ns)
            s->own = s->due;
        if (s->own < s->b.budget && s->due == s->b.budget)
            s->own = s->own + s->fill_s / 1000 < s->due ? s->own + s->fill_s / 1000 : s->due;
        if (s->others + s->own > room && s->others + s->own - room > s->worst)
            s->worst = s->others + s->own - room;
        if (s->now < s->next)
            continue;
        s->next = s->now + breath_next_ns(&s->b);
        const struct breath_sample sample = { .t_ns = s->now,
                                              .available = room_of(s),
                                              .is_of_group = s->limit > 0,
                                              .own = s->own,
                                              .swapped = s->swapped,
                                              .some_us = s->some_us,
                                              .full_us = s->full_us,
                                              .has_pressure = s->has_pressure };
        uint64_t before = s->b.budget;

        if (!breath_step(&s->b, &sample)) {
            assert_int_equal(s->b.budget, before);
            continue;
        }
        s->n_given += s->b.budget < before;
        s->n_taken += s->b.budget > before;
        if (s->b.budget < before)
            s->due_ns = s->now + s->delay_ns;
        s->due = s->b.budget;
        s->lowest = s->due < s->lowest ? s->due : s->lowest;
        assert_true(s->due >= s->b.least && s->due <= s->b.most);
    }
}

/* ---- tests ---- */

static void a_quiet_machine_changes_nothing(void **state)
{
    struct sim s;

    (void)state;
    sim_begin(&s, 16 * GIB, 40 * GIB);
    assert_int_equal(s.b.reserve, GIB);
    sim_run(&s, 600 * SECOND, 0);
    assert_int_equal(s.n_given + s.n_taken, 0);
    assert_int_equal(s.b.signal, MW_SIGNAL_NONE);
}

/* Others take and free memory: they get it at once, and later it is taken again. */
static void waves_get_their_memory_and_pass(void **state)
{
    static const uint64_t totals[] = { 2 * GIB, 4 * GIB, 16 * GIB, 64 * GIB };
    struct sim s;

    (void)state;
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++) {
        uint64_t wave = totals[i] / 2, rate = wave < 2 * GIB ? wave : 2 * GIB, budget;

        sim_begin(&s, totals[i], 200 * GIB);
        budget = s.b.budget;
        for (int n = 0; n < 3; n++) {
            /* as fast as a program clears pages */
            sim_run(&s, wave / rate * SECOND, (int64_t)rate);
            assert_int_equal(s.worst, 0);
            sim_run(&s, 30 * SECOND, 0);
            assert_true(s.n_given > 0);
            assert_true(s.total - s.others - s.own >= s.b.reserve || s.b.budget == s.b.least);
            sim_run(&s, SECOND, -(int64_t)wave);
            sim_run(&s, 400 * SECOND, 0);
            assert_int_equal(s.others, 0);
            assert_true(s.b.budget > budget - budget / 8 && s.own == s.b.budget);
        }
        assert_int_equal(s.worst, 0);
        print_message("%5lu MiB: %u given, %u taken, lowest %lu MiB\n",
                      (unsigned long)(totals[i] >> 20), s.n_given, s.n_taken,
                      (unsigned long)(s.lowest >> 20));
        assert_true(s.n_given < 300);
    }
}

static void noise_moves_nothing(void **state)
{
    struct chance c = { 7 };
    struct sim s;

    (void)state;
    sim_begin(&s, 16 * GIB, 40 * GIB);
    sim_run(&s, SECOND, (int64_t)GIB);
    for (int i = 0; i < 20000; i++) {
        uint64_t part = s.b.reserve / 4;

        s.others = GIB + chance_below(&c, (uint32_t)(part >> 10)) * KIB;
        sim_run(&s, 30 * MS, 0);
    }
    assert_int_equal(s.n_given + s.n_taken, 0);
}

/* The limit of the group is moved while the process runs. */
static void a_limit_that_moves_is_followed(void **state)
{
    struct sim s;

    (void)state;
    sim_begin(&s, 8 * GIB, 40 * GIB);
    s.limit = 8 * GIB;
    sim_run(&s, 5 * SECOND, 0);
    assert_int_equal(s.n_given, 0);
    s.limit = 3 * GIB;
    s.delay_ns = 40 * MS;
    sim_run(&s, 200 * MS, 0);
    assert_int_equal(s.b.signal, MW_SIGNAL_GROUP);
    assert_true(s.own <= s.limit - s.b.reserve);
    s.limit = 8 * GIB;
    sim_run(&s, 4 * SECOND, 0);
    assert_int_equal(s.n_taken, 0); /* slowly */
    sim_run(&s, 300 * SECOND, 0);
    assert_true(s.b.budget > 5 * GIB && s.b.budget <= plan_auto_limit(8 * GIB));
    assert_int_equal(s.b.signal, MW_SIGNAL_FREE);
}

static void pressure_counts_while_little_is_spare(void **state)
{
    struct sim s;
    uint64_t before;

    (void)state;
    sim_begin(&s, 16 * GIB, 40 * GIB);
    s.has_pressure = true;
    sim_run(&s, SECOND, (int64_t)(GIB + GIB / 2));
    before = s.b.budget;
    for (int i = 0; i < 20; i++) { /* tasks wait for a fiftieth of the time: not much */
        s.some_us += 1000;
        sim_run(&s, 50 * MS, 0);
    }
    assert_int_equal(s.b.budget, before);
    for (int i = 0; i < 4; i++) { /* half of the time */
        s.some_us += 25000;
        sim_run(&s, 50 * MS, 0);
    }
    assert_int_equal(s.b.signal, MW_SIGNAL_PRESSURE);
    assert_true(s.b.budget < before);

    sim_begin(&s, 64 * GIB, 8 * GIB); /* another program is at its own limit */
    s.has_pressure = true;
    for (int i = 0; i < 100; i++) {
        s.some_us += 40000;
        s.full_us += 30000;
        sim_run(&s, 50 * MS, 0);
    }
    assert_int_equal(s.n_given, 0);
}

static void a_process_that_is_swapped_out_gives_back(void **state)
{
    struct sim s;

    (void)state;
    sim_begin(&s, 16 * GIB, 4 * GIB);
    sim_run(&s, SECOND, 0);
    s.swapped = 10 * MIB;
    sim_run(&s, 200 * MS, 0);
    assert_int_equal(s.b.signal, MW_SIGNAL_SWAP);
    assert_int_equal(s.n_given, 1);
    sim_run(&s, SECOND, 0); /* no more pages */
    assert_int_equal(s.n_given, 1);
}

/* Others take memory each time that some of it was taken again: the waits get longer. */
static void a_step_that_was_wrong_is_repeated_later(void **state)
{
    struct sim s;
    uint64_t first, last = 0;

    (void)state;
    sim_begin(&s, 8 * GIB, 40 * GIB);
    for (int i = 0; i < 6; i++) {
        uint32_t taken;

        sim_run(&s, SECOND, (int64_t)(2 * GIB));
        first = s.now;
        sim_run(&s, SECOND, -(int64_t)(2 * GIB));
        taken = s.n_taken;
        while (s.n_taken == taken && s.now < first + 200 * SECOND)
            sim_run(&s, 100 * MS, 0);
        print_message("%.1f s until memory is taken again\n", (double)(s.now - first) / 1e9);
        first = s.now - first;
        sim_run(&s, 8 * SECOND, 0);
        if (last > 0)
            assert_true(first > last || last > 50 * SECOND);
        last = first;
    }
    assert_true(last > 50 * SECOND && last < 70 * SECOND);
}

static void the_least_stays(void **state)
{
    struct sim s;

    (void)state;
    sim_begin(&s, 4 * GIB, 40 * GIB);
    sim_run(&s, 20 * SECOND, (int64_t)(GIB / 2));
    assert_int_equal(s.b.budget, LEAST);
    assert_int_equal(s.b.spare, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_machine_changes_nothing),
        cmocka_unit_test(waves_get_their_memory_and_pass),
        cmocka_unit_test(noise_moves_nothing),
        cmocka_unit_test(a_limit_that_moves_is_followed),
        cmocka_unit_test(pressure_counts_while_little_is_spare),
        cmocka_unit_test(a_process_that_is_swapped_out_gives_back),
        cmocka_unit_test(a_step_that_was_wrong_is_repeated_later),
        cmocka_unit_test(the_least_stays),
    };

    return cmocka_run_group_tests_name("breath", tests, NULL, NULL);
}
