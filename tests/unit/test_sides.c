/* The words of memwall demo -m MODEL: speeds, what ended a side, and the comparison. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/units.h"
#include "src/measure/sides.h"

#define S ((uint64_t)1000 * 1000 * 1000)

static struct results results;
static struct point points[UI_SIDES];
static struct run runs[UI_SIDES];
static struct sides sides;

/* A side that was measured in 600 MiB: n tokens, tps tokens a second. */
static void measured(int i, uint32_t n, double tps)
{
    struct side *s = &sides.side[i];

    metrics_clear(&points[i].predicted);
    metrics_clear(&runs[i].figures);
    points[i].budget_bytes = 600 * MIB;
    points[i].status = POINT_OK;
    points[i].run = &runs[i];
    points[i].n_run = 1;
    points[i].error[0] = '\0';
    runs[i].figures.value[METRIC_DECODE] = tps;
    runs[i].figures.value[METRIC_READ] = 700 * (double)MIB;
    *s = (struct side){ .name = i == 0 ? "memwall, direct reads" : "mapped pages",
                        .point = &points[i],
                        .state = SIDE_DONE,
                        .n_token = n,
                        .n_total = 32,
                        .start_ns = 1 * S,
                        .decode_ns = 2 * S,
                        .end_ns = 62 * S };
    sides.results = &results;
}

/* The time ended it after n tokens, the last one at token_ns. */
static void ended(int i, uint32_t n, uint64_t token_ns)
{
    struct side *s = &sides.side[i];

    points[i].n_run = 0;
    points[i].status = POINT_FAILED;
    snprintf(points[i].error, sizeof points[i].error, "no answer");
    s->state = SIDE_FAILED;
    s->is_late = true;
    s->n_token = n;
    s->token_ns = token_ns;
}

static void assert_summary(const char *want)
{
    char text[200];

    assert_string_equal(sides_summary(&sides, text, sizeof text), want);
}

static void two_speeds_are_compared(void **state)
{
    bool is_more;

    (void)state;
    measured(0, 32, 3.2);
    measured(1, 32, 0.11);
    assert_summary("memwall 3.20 tok/s, mapped pages 0.11: 29 times as fast");
    assert_true(fabs(sides_times(&sides, &is_more) - 3.2 / 0.11) < 1e-9);
    assert_false(is_more);
    measured(1, 32, 2);
    assert_summary("memwall 3.20 tok/s, mapped pages 2.00: 1.6 times as fast");
    measured(1, 32, 3.1);
    assert_summary("memwall 3.20 tok/s, mapped pages 3.10: about equally fast");
    measured(1, 32, 6.4);
    assert_summary("memwall 3.20 tok/s, mapped pages 6.40: mapped pages are 2.0 times as fast");
}

/* Nobody waits for the end of a token that takes minutes. */
static void a_side_without_a_token_is_slower_than_its_time(void **state)
{
    struct ui_sides shown;
    bool is_more;

    (void)state;
    measured(0, 32, 3.0);
    measured(1, 0, 0);
    ended(1, 0, 0);
    assert_true(side_rate(&sides.side[1]).is_below);
    assert_summary("memwall 3.00 tok/s, mapped pages less than 0.017: more than 180 times as "
                   "fast");
    assert_true(sides_times(&sides, &is_more) > 179.9);
    assert_true(is_more);
    sides_for_screen(&sides, true, &shown);
    assert_string_equal(shown.side[1].line[0],
                        "0 of 32 tokens when the time limit ended it, after 1 min 1 s");
    assert_string_equal(shown.side[1].unit, "tok/s at most");
    /* While it still loads, not even that is known. */
    sides.side[1].decode_ns = 0;
    assert_summary("memwall 3.00 tok/s, mapped pages without an answer");
}

static void tokens_that_came_count_when_the_time_ends_it(void **state)
{
    (void)state;
    measured(0, 32, 3.0);
    measured(1, 0, 0);
    ended(1, 4, 42 * S); /* the fifth one did not come */
    assert_summary("memwall 3.00 tok/s, mapped pages 0.10: 30 times as fast");
}

static void a_side_that_was_not_measured_is_not_compared(void **state)
{
    struct ui_sides shown;
    bool is_more;

    (void)state;
    measured(0, 32, 3.0);
    measured(1, 32, 1.0);
    sides.side[1] = (struct side){ .name = "mapped pages",
                                   .point = &points[1],
                                   .state = SIDE_LEFT_OUT };
    assert_summary("memwall 3.00 tok/s, mapped pages not measured");
    assert_true(sides_times(&sides, &is_more) <= 0);
    sides_for_screen(&sides, true, &shown);
    assert_string_equal(shown.side[1].line[0], "not measured: it needs a control group");
    assert_string_equal(shown.side[1].rate, "-");
    assert_string_equal(shown.side[1].line[1], "");
    assert_true(shown.side[1].own < 0);
    measured(0, 32, 3.0);
    ended(0, 0, 0);
    assert_summary("memwall has no answer to compare");
}

static void memory_is_divided_into_own_and_cached(void **state)
{
    struct ui_sides shown;

    (void)state;
    measured(0, 32, 3.0);
    measured(1, 32, 1.0);
    sides.side[1].now.use.charged.value = 600 * MIB;
    sides.side[1].now.use.cached.value = 540 * MIB;
    sides.side[1].now.use.reread.value = 3 * GIB;
    sides.side[1].now.read_bytes.value = 12 * GIB;
    sides_for_screen(&sides, true, &shown);
    assert_true(fabs(shown.side[1].own - 0.1) < 1e-9);
    assert_true(fabs(shown.side[1].cached - 0.9) < 1e-9);
    assert_string_equal(shown.side[1].line[0], "32 tokens in 32 s");
    assert_string_equal(shown.side[1].line[1], "600 MiB of 600 MiB charged");
    assert_string_equal(shown.side[1].line[2], "page cache 540 MiB, 3.00 GiB read again");
    assert_string_equal(shown.side[1].line[3], "disk 12.0 GiB, 700 MiB a token");
    /* A process without a group of its own shows no memory. */
    sides.side[1].now.use.charged.why_not = "no group";
    sides.side[1].now.use.cached.why_not = "no group";
    sides_for_screen(&sides, true, &shown);
    assert_true(shown.side[1].own < 0);
    assert_string_equal(shown.side[1].line[1], "");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_speeds_are_compared),
        cmocka_unit_test(a_side_without_a_token_is_slower_than_its_time),
        cmocka_unit_test(tokens_that_came_count_when_the_time_ends_it),
        cmocka_unit_test(a_side_that_was_not_measured_is_not_compared),
        cmocka_unit_test(memory_is_divided_into_own_and_cached),
    };

    return cmocka_run_group_tests_name("sides", tests, NULL, NULL);
}
