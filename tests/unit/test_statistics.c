/* Medians, spreads and Welch's test, against values worked out by hand. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "src/base/statistics.h"

#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-6 * fabs(b) + 1e-12)

static void a_median_is_the_middle_or_the_mean_of_both(void **state)
{
    double odd[] = { 9, 1, 5 }, even[] = { 4, 1, 3, 100 }, none[] = { 0 };

    (void)state;
    assert_near(median(odd, 3), 5.0);
    assert_near(median(even, 4), 3.5);
    assert_true(isnan(median(none, 0)));
}

static void a_spread_is_half_the_distance_of_the_ends(void **state)
{
    static const double x[] = { 4, 1, 3, 100 };

    (void)state;
    assert_near(half_range(x, 4), 49.5);
    assert_near(half_range(x, 1), 0.0);
    assert_true(isnan(half_range(x, 0)));
}

/* Variances 2 and 2: t = 4 / sqrt(1 + 1), df = 4 / (1 + 1); with two degrees of freedom,
 * p = 1 - t / sqrt(2 + t^2). */
static void two_degrees_of_freedom(void **state)
{
    static const double a[] = { 1, 3 }, b[] = { 5, 7 };
    struct welch w = welch_test(a, 2, b, 2);

    (void)state;
    assert_near(w.t, sqrt(8));
    assert_near(w.df, 2.0);
    assert_near(w.p, 1 - sqrt(8) / sqrt(10));
    w = welch_test(b, 2, a, 2);
    assert_near(w.t, -sqrt(8));
    assert_near(w.p, 1 - sqrt(8) / sqrt(10));
}

/* Variances 1 and 1 of three values: t^2 = 4 / (2 / 3), df = 4, and the distribution is
 * 1/2 + 3/8 t / sqrt(1 + t^2/4) (1 - t^2 / (12 + 3 t^2)). */
static void four_degrees_of_freedom(void **state)
{
    static const double a[] = { 1, 2, 3 }, b[] = { 3, 4, 5 };
    struct welch w = welch_test(a, 3, b, 3);
    double below = 0.5 + 0.375 * sqrt(6 / 2.5) * (1 - 6.0 / 30);

    (void)state;
    assert_near(w.t, sqrt(6));
    assert_near(w.df, 4.0);
    assert_near(w.p, 2 * (1 - below));
}

/* Variances 0 and 2: df is that of the second sample alone; with one degree of freedom,
 * p = 1 - 2/pi atan(t). */
static void unequal_variances(void **state)
{
    static const double a[] = { 0, 0, 0, 0 }, b[] = { 1, 3 };
    struct welch w = welch_test(a, 4, b, 2);

    (void)state;
    assert_near(w.t, 2.0);
    assert_near(w.df, 1.0);
    assert_near(w.p, 1 - 2 / acos(-1) * atan(2));
}

static void equal_means_differ_by_chance(void **state)
{
    static const double a[] = { 1, 2, 3 }, b[] = { 2, 1, 3, 2 };

    (void)state;
    assert_near(welch_test(a, 3, b, 4).p, 1.0);
}

static void samples_without_noise(void **state)
{
    static const double a[] = { 2, 2 }, b[] = { 3, 3 };

    (void)state;
    assert_near(welch_test(a, 2, a, 2).p, 1.0);
    assert_true(welch_test(a, 2, b, 2).p <= 0);
}

static void one_value_is_too_few(void **state)
{
    static const double a[] = { 2, 2 };

    (void)state;
    assert_true(isnan(welch_test(a, 1, a, 2).p));
    assert_true(isnan(welch_test(a, 2, a, 0).p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_median_is_the_middle_or_the_mean_of_both),
        cmocka_unit_test(a_spread_is_half_the_distance_of_the_ends),
        cmocka_unit_test(two_degrees_of_freedom),
        cmocka_unit_test(four_degrees_of_freedom),
        cmocka_unit_test(unequal_variances),
        cmocka_unit_test(equal_means_differ_by_chance),
        cmocka_unit_test(samples_without_noise),
        cmocka_unit_test(one_value_is_too_few),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
