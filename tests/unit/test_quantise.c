/* Weights in few bits: small errors, exact where they can be, and nothing hidden of damage. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/compute/dequant.h"
#include "engine/compute/quantise.h"

#define BLOCK 256
#define N     (64 * BLOCK)

static const enum tensor_type types[] = { TYPE_Q3_K, TYPE_Q2_K };

#define N_TYPE (sizeof types / sizeof types[0])

static uint32_t seed;

/* About normal, with the deviation 1. */
static float normal(void)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) {
        seed = seed * 1664525u + 1013904223u;
        sum += (seed >> 8) * 0x1p-24;
    }
    return (float)(sum - 6);
}

static void there_and_back(enum tensor_type type, const float *x, size_t n, float *back)
{
    unsigned char *rows = malloc((size_t)tensor_row_bytes(type, n));

    assert_non_null(rows);
    memset(rows, 0xa5, (size_t)tensor_row_bytes(type, n));
    quantise_row(type, x, n, rows);
    dequant_row(type, rows, back, n);
    free(rows);
}

/* The root of the squared error, relative to the values. */
static double error_of(const float *x, const float *back, size_t n)
{
    double off = 0, all = 0;

    for (size_t i = 0; i < n; i++) {
        off += ((double)x[i] - back[i]) * ((double)x[i] - back[i]);
        all += (double)x[i] * x[i];
    }
    return sqrt(off / all);
}

static void errors_are_small(void **state)
{
    /* For normal values: the best levels that are evenly spaced, without scales for each run, leave
     * 0.19 with 3 bits and 0.34 with 2. */
    static const double most[N_TYPE] = { 0.17, 0.30 };
    static float x[N], back[N];

    (void)state;
    for (size_t t = 0; t < N_TYPE; t++)
        for (int exponent = -12; exponent <= 4; exponent += 4) {
            double off;

            seed = 3;
            for (size_t i = 0; i < N; i++)
                x[i] = ldexpf(normal(), exponent);
            there_and_back(types[t], x, N, back);
            off = error_of(x, back, N);
            print_message("%s, times 2^%d: %.3f\n", tensor_type_info(types[t])->name, exponent,
                          off);
            assert_true(off < most[t]);
        }
}

static void runs_have_scales_of_their_own(void **state)
{
    static float x[N], back[N];

    (void)state;
    seed = 5;
    for (size_t i = 0; i < N; i++)
        x[i] = normal() * (float)(1 + i / 16 % 4);
    for (size_t t = 0; t < N_TYPE; t++) {
        there_and_back(types[t], x, N, back);
        for (size_t i = 0; i < N; i += BLOCK)
            assert_true(error_of(x + i, back + i, BLOCK) < 0.36);
    }
}

static void values_on_the_levels_are_kept(void **state)
{
    float x[BLOCK], back[BLOCK];

    (void)state;
    for (int i = 0; i < BLOCK; i++)
        x[i] = (float)(i * 5 % 8 - 4) * 0.5f * (float)(i / 16 == 15 ? 32 : 1 + i / 16);
    there_and_back(TYPE_Q3_K, x, BLOCK, back);
    for (int i = 0; i < BLOCK; i++)
        assert_true(fabsf(x[i] - back[i]) <= 1e-3f * fabsf(x[i]) + 1e-6f);
    for (int i = 0; i < BLOCK; i++)
        x[i] = (float)(i * 3 % 4) * 0.25f * (float)(i / 16) - 0.5f * (float)(15 - i / 16);
    there_and_back(TYPE_Q2_K, x, BLOCK, back);
    for (int i = 0; i < BLOCK; i++)
        assert_true(fabsf(x[i] - back[i]) <= 2e-3f * fabsf(x[i]) + 1e-3f);
}

static void zeros_and_extremes_are_finite(void **state)
{
    static const float same[] = { 0, -0.0f, 1, -1, 1e-30f, -1e-38f, 60000 };
    float x[BLOCK], back[BLOCK];

    (void)state;
    for (size_t t = 0; t < N_TYPE; t++)
        for (size_t v = 0; v < sizeof same / sizeof same[0]; v++) {
            for (int i = 0; i < BLOCK; i++)
                x[i] = same[v];
            there_and_back(types[t], x, BLOCK, back);
            for (int i = 0; i < BLOCK; i++) {
                assert_true(isfinite(back[i]));
                assert_true(fabsf(back[i] - x[i]) <= 0.01f * fabsf(x[i]) + 1e-5f);
            }
        }
}

/* A single value that is not finite, or too large for a scale. */
static void damage_is_not_hidden(void **state)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY, 3e38f, -3e38f };
    float x[BLOCK], back[BLOCK];

    (void)state;
    for (size_t t = 0; t < N_TYPE; t++)
        for (size_t v = 0; v < sizeof bad / sizeof bad[0]; v++)
            for (int at = 0; at < BLOCK; at += 85) {
                int n_bad = 0;

                for (int i = 0; i < BLOCK; i++)
                    x[i] = normal();
                x[at] = bad[v];
                there_and_back(types[t], x, BLOCK, back);
                for (int i = 0; i < BLOCK; i++)
                    n_bad += !isfinite(back[i]);
                assert_true(n_bad > 0);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_small),
        cmocka_unit_test(runs_have_scales_of_their_own),
        cmocka_unit_test(values_on_the_levels_are_kept),
        cmocka_unit_test(zeros_and_extremes_are_finite),
        cmocka_unit_test(damage_is_not_hidden),
    };

    return cmocka_run_group_tests_name("quantise", tests, NULL, NULL);
}
