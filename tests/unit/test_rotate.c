/*
 * The rotation of quantised keys and values: every set is compared with the definition of the
 * transform, the KV store keeps rotated rows, and the accuracy improves if a few channels are
 * much larger than the others.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/compute/kernels.h"
#include "engine/compute/kv_types.h"
#include "engine/kv/kv.h"
#include "tests/lib/fail_with.h"
#include "tests/lib/kernel_data.h"

#define LONGEST 1024

static const size_t runs[] = { 32, 64, 128, 256, 512, LONGEST };
enum { N_RUN = sizeof runs / sizeof runs[0] };

static void fill(float *x, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = random_float(seed);
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * b[i];
    return sum;
}

/* --- the transform --- */

static void definition_is_the_matrix(void **state)
{
    const struct kernels *set = kernels_by_name("generic");
    float x[LONGEST], y[LONGEST];
    uint64_t seed = 1;

    (void)state;
    for (size_t r = 0; r < N_RUN; r++) {
        size_t run = runs[r];

        fill(x, run, &seed);
        memcpy(y, x, run * sizeof *x);
        set->rotate(y, run, run);
        for (size_t i = 0; i < run; i++) {
            double sum = 0;

            for (size_t j = 0; j < run; j++)
                sum += __builtin_parityll(i & j) != 0 ? -(double)x[j] : (double)x[j];
            sum /= sqrt((double)run);
            if (fabs(y[i] - sum) > 2e-6)
                fail_msg("run %zu, value %zu: %g, expected %g", run, i, (double)y[i], sum);
        }
    }
}

static void gives_the_bits_of_the_definition(void **state)
{
    const struct kernels *set = *state, *generic = kernels_by_name("generic");
    uint64_t seed = 2;

    for (size_t r = 0; r < N_RUN; r++)
        for (size_t times = 1; times <= 3; times++) {
            size_t n = times * runs[r], bytes = n * sizeof(float);
            float *x = fenced_new(bytes), *want = fenced_new(bytes);

            fill(x, n, &seed);
            x[n / 2] *= 1e6f;
            memcpy(want, x, bytes);
            set->rotate(x, n, runs[r]);
            generic->rotate(want, n, runs[r]);
            assert_memory_equal(x, want, bytes);
            fenced_free(x, bytes);
            fenced_free(want, bytes);
        }
}

static void is_orthonormal_and_its_own_inverse(void **state)
{
    const struct kernels *set = *state;
    float a[LONGEST], b[LONGEST], ra[LONGEST], rb[LONGEST];
    uint64_t seed = 3;

    for (size_t r = 0; r < N_RUN; r++) {
        size_t run = runs[r], bytes = run * sizeof *a;

        fill(a, run, &seed);
        fill(b, run, &seed);
        memcpy(ra, a, bytes);
        memcpy(rb, b, bytes);
        set->rotate(ra, run, run);
        set->rotate(rb, run, run);
        assert_true(fabs(dot(ra, ra, run) - dot(a, a, run)) < 1e-6 * dot(a, a, run));
        assert_true(fabs(dot(ra, rb, run) - dot(a, b, run)) < 1e-6 * dot(a, a, run));
        set->rotate(ra, run, run);
        for (size_t i = 0; i < run; i++)
            assert_true(fabs((double)ra[i] - a[i]) < 4e-6);
    }
}

static void spreads_a_channel_over_its_run_only(void **state)
{
    const struct kernels *set = *state;
    float x[3 * LONGEST];

    for (size_t r = 0; r < N_RUN; r++)
        for (size_t at = 0; at < 3 * runs[r]; at += 13) {
            size_t run = runs[r], first = at / run * run;
            float size = 100 / sqrtf((float)run);

            memset(x, 0, sizeof x);
            x[at] = 100;
            set->rotate(x, 3 * run, run);
            for (size_t i = 0; i < 3 * run; i++) {
                float want = i >= first && i < first + run ? size : 0;

                assert_true(fabsf(fabsf(x[i]) - want) <= 1e-6f * size);
            }
        }
}

/* --- the store --- */

enum { HEADS = 3, HEAD = 96, POSITIONS = 40 };

/* Make one layer of the given types and write positions 0 to POSITIONS - 1. */
static struct kv *store_new(enum kv_type k, enum kv_type v, const float *keys,
                            const float *values)
{
    struct kv_spec spec = { .n_head_kv = HEADS, .head_dim_k = HEAD, .head_dim_v = HEAD };
    struct err e = ERR_INIT;
    struct kv *kv;

    if (kv_new(&kv, &spec, 1, k, v, 64, 64, 0, &e) != 0)
        fail_with(&e);
    kv_begin(kv, POSITIONS);
    for (uint32_t pos = 0; pos < POSITIONS; pos++) {
        float krow[HEADS * HEAD], vrow[HEADS * HEAD];

        memcpy(krow, keys + pos * HEADS * HEAD, sizeof krow);
        memcpy(vrow, values + pos * HEADS * HEAD, sizeof vrow);
        kv_write(kv, kernels_best(), 0, pos, krow, vrow);
    }
    kv_commit(kv, POSITIONS);
    return kv;
}

/* Stored rows, rotated back in runs of run (0: not rotated), equal src up to the share `step`
 * of the largest value of a head.  A step of 0 requires equal bits. */
static void check_rows(const struct kv *kv, enum kv_type type, bool is_key, uint32_t run,
                       const float *src, float step)
{
    for (uint32_t pos = 0; pos < POSITIONS; pos++)
        for (uint32_t h = 0; h < HEADS; h++) {
            const float *want = src + ((size_t)pos * HEADS + h) * HEAD;
            size_t stride;
            const void *row =
                is_key ? kv_keys(kv, 0, pos, h, &stride) : kv_values(kv, 0, pos, h, &stride);
            float x[HEAD], top = 0;

            kv_row_load(type, row, 0, x, HEAD);
            if (run > 0)
                kernels_by_name("generic")->rotate(x, HEAD, run);
            for (size_t i = 0; i < HEAD; i++)
                top = fmaxf(top, fabsf(want[i]));
            for (size_t i = 0; i < HEAD; i++)
                assert_true(fabsf(x[i] - want[i]) <= step * top);
        }
}

static void store_rotates_quantised_types_only(void **state)
{
    static float keys[POSITIONS * HEADS * HEAD], values[POSITIONS * HEADS * HEAD];
    static const float step[KV_TYPE_COUNT] = { 0, 0x1p-11f, 0.02f, 0.3f };
    uint64_t seed = 4;

    (void)state;
    fill(keys, POSITIONS * HEADS * HEAD, &seed);
    fill(values, POSITIONS * HEADS * HEAD, &seed);
    for (int k = 0; k < KV_TYPE_COUNT; k++)
        for (int v = 0; v < KV_TYPE_COUNT; v++) {
            struct kv *kv = store_new((enum kv_type)k, (enum kv_type)v, keys, values);
            uint32_t k_run = k >= KV_Q8_0 ? 32 : 0, v_run = v >= KV_Q8_0 ? 32 : 0;

            assert_int_equal(kv_run_k(kv, 0), k_run);
            assert_int_equal(kv_run_v(kv, 0), v_run);
            check_rows(kv, (enum kv_type)k, true, k_run, keys, step[k]);
            check_rows(kv, (enum kv_type)v, false, v_run, values, step[v]);
            kv_free(kv);
        }
}

/* The largest power of two that divides the head size. */
static void runs_follow_the_head_size(void **state)
{
    static const struct {
        uint32_t dim, run;
    } heads[] = { { 32, 32 },  { 64, 64 },   { 96, 32 },  { 128, 128 }, { 160, 32 },
                  { 192, 64 }, { 256, 256 }, { 320, 64 }, { 512, 512 }, { 576, 64 } };

    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct kv_spec spec = { .n_head_kv = 1, .head_dim_k = heads[i].dim, .head_dim_v = 32 };
        struct err e = ERR_INIT;
        struct kv *kv;

        if (kv_new(&kv, &spec, 1, KV_Q4_0, KV_Q8_0, 64, 64, 0, &e) != 0)
            fail_with(&e);
        assert_int_equal(kv_run_k(kv, 0), heads[i].run);
        assert_int_equal(kv_run_v(kv, 0), 32);
        kv_free(kv);
    }
}

/* --- the gain --- */

enum { DIM = 64, N_POS = 96 };

/* Attention of one query over rows of the given types, rotated in runs of run (0: not). */
static void attend(const struct kernels *set, enum kv_type kt, enum kv_type vt, size_t run,
                   const float *query, float (*keys)[DIM], float (*values)[DIM], float *out)
{
    static uint8_t k[N_POS][DIM * 4], v[N_POS][DIM * 4];
    float q[DIM], row[DIM], m = -INFINITY, l = 0;

    for (size_t j = 0; j < N_POS; j++) {
        memcpy(row, keys[j], sizeof row);
        if (run > 0)
            set->rotate(row, DIM, run);
        set->kv_store(kt, row, DIM, k[j]);
        memcpy(row, values[j], sizeof row);
        if (run > 0)
            set->rotate(row, DIM, run);
        set->kv_store(vt, row, DIM, v[j]);
    }
    memcpy(q, query, sizeof q);
    if (run > 0)
        set->rotate(q, DIM, run);
    memset(out, 0, DIM * sizeof *out);
    for (size_t j = 0; j < N_POS; j += ATTN_BLOCK)
        set->attn(&(struct attn_block){ .k_type = kt,
                                        .v_type = vt,
                                        .k = k[j],
                                        .v = v[j],
                                        .k_stride = sizeof k[0],
                                        .v_stride = sizeof v[0],
                                        .n_pos = ATTN_BLOCK,
                                        .n_q = 1,
                                        .dk = DIM,
                                        .dv = DIM,
                                        .q = q,
                                        .scale = 0.125f,
                                        .m = &m,
                                        .l = &l,
                                        .acc = out });
    set->scale(out, 1 / l, DIM);
    if (run > 0)
        set->rotate(out, DIM, run);
}

/* Channels that are 10 times too large, as biases of real models make them, cost 4-bit types
 * most of their accuracy.  Rotated rows lose little. */
static void large_channels_cost_rotated_rows_less(void **state)
{
    static float keys[N_POS][DIM], values[N_POS][DIM];
    const struct kernels *set = *state;
    double square[2][KV_TYPE_COUNT] = { { 0 } };
    float q[DIM], want[DIM], out[DIM];
    uint64_t seed = 5;

    for (int round = 0; round < 20; round++) {
        fill(q, DIM, &seed);
        fill(keys[0], sizeof keys / sizeof(float), &seed);
        fill(values[0], sizeof values / sizeof(float), &seed);
        for (size_t j = 0; j < N_POS; j++)
            for (size_t c = 0; c < 2; c++) {
                keys[j][20 + 33 * c] *= 12;
                values[j][5 + 40 * c] *= 12;
            }
        q[20] /= 12;
        q[53] /= 12;
        attend(set, KV_F32, KV_F32, 0, q, keys, values, want);
        for (int t = KV_Q8_0; t < KV_TYPE_COUNT; t++)
            for (int rotated = 0; rotated < 2; rotated++) {
                attend(set, (enum kv_type)t, (enum kv_type)t, rotated != 0 ? DIM : 0, q, keys,
                       values, out);
                /* The error of large channels in the values grows with their size. */
                for (size_t d = 0; d < DIM; d++)
                    if (d != 5 && d != 45)
                        square[rotated][t] += pow((double)out[d] - want[d], 2);
            }
    }
    for (int t = KV_Q8_0; t < KV_TYPE_COUNT; t++) {
        double gain = sqrt(square[0][t] / square[1][t]);

        print_message("%s: error divided by %.2f\n", kv_type_name((enum kv_type)t), gain);
        assert_true(gain > 2);
    }
}

/* --- the table --- */

static char names[80][96];
static struct CMUnitTest tests[80];
static size_t n_test;

static void add(CMUnitTestFunction fn, const struct kernels *set, const char *what)
{
    snprintf(names[n_test], sizeof names[0], "%s %s", set != NULL ? set->name : "kv", what);
    tests[n_test] =
        (struct CMUnitTest){ names[n_test], fn, NULL, NULL, (void *)(uintptr_t)set };
    n_test++;
}

int main(void)
{
    add(definition_is_the_matrix, kernels_by_name("generic"), "is the matrix");
    add(store_rotates_quantised_types_only, NULL, "store rotates quantised types only");
    add(runs_follow_the_head_size, NULL, "runs follow the head size");
    for (const char *const *name = kernels_names(); *name != NULL; name++) {
        const struct kernels *set = kernels_by_name(*name);

        add(gives_the_bits_of_the_definition, set, "gives the definition's bits");
        add(is_orthonormal_and_its_own_inverse, set, "is orthonormal, its own inverse");
        add(spreads_a_channel_over_its_run_only, set, "spreads a channel over its run only");
        add(large_channels_cost_rotated_rows_less, set, "loses less to large channels");
    }
    return _cmocka_run_group_tests("rotate", tests, n_test, NULL, NULL);
}
