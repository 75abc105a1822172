/*
 * Every set of kernels is compared with sums in double.  The result of a column must have the
 * same bits for all other columns and for every address of the weights.
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

#include "engine/compute/dequant.h"
#include "engine/compute/kernels.h"
#include "engine/compute/kv_types.h"
#include "engine/compute/quants.h"
#include "engine/compute/ways.h"
#include "tests/lib/kernel_data.h"

struct row {
    char name[96];
    const struct kernels *set, *other;
    enum tensor_type type;
    enum act_form form;
    enum kv_type kt, vt;
};

/* the product that is tested */

struct problem {
    enum tensor_type type;
    enum act_form form;
    size_t n_row, n_k, n_col;
    size_t w_bytes, x_stride;
    uint8_t *w; /* [n_row] rows of the type */
    float *xf;  /* [n_col][n_k] */
    uint8_t *x; /* [n_col] packed columns */
    struct weight_scales scales;
    float *scale; /* of scales, or NULL */
    size_t n_scale;
};

/* Rows and columns that share a scale. */
enum scaled { SCALED_NOT, SCALED_ALL, SCALED_ROWS, SCALED_BLOCKS, N_SCALED };

static void problem_make(struct problem *p, const struct kernels *set, enum tensor_type type,
                         enum act_form form, size_t n_row, size_t n_k, size_t n_col)
{
    uint64_t seed = n_row * 1000003 + n_k * 1009 + n_col;

    *p = (struct problem){
        .type = type, .form = form, .n_row = n_row, .n_k = n_k, .n_col = n_col
    };
    p->w_bytes = n_row * (size_t)tensor_row_bytes(type, n_k);
    p->w = fenced_new(p->w_bytes);
    random_blocks(type, p->w, n_row * n_k, &seed);
    p->xf = fenced_new(n_col * n_k * sizeof *p->xf);
    for (size_t i = 0; i < n_col * n_k; i++)
        p->xf[i] = random_float(&seed);
    p->x_stride = act_bytes(form, n_k);
    p->x = fenced_new(n_col * p->x_stride);
    for (size_t c = 0; c < n_col; c++)
        set->act_pack(form, p->xf + c * n_k, n_k, p->x + c * p->x_stride);
}

/* Give the weights scales; the product has rows of a larger matrix. */
static void problem_scale(struct problem *p, enum scaled kind)
{
    uint64_t seed = p->n_k + kind;
    struct weight_scales *s = &p->scales;

    if (kind == SCALED_NOT)
        return;
    s->first = kind == SCALED_ALL ? 0 : 7;
    s->rows = kind == SCALED_ALL ? p->n_row : kind == SCALED_ROWS ? 1 : 4;
    s->cols = kind == SCALED_BLOCKS ? 128 : p->n_k;
    s->stride = (p->n_k + s->cols - 1) / s->cols;
    p->n_scale = ((s->first + p->n_row + s->rows - 1) / s->rows) * s->stride;
    s->w = p->scale = fenced_new(p->n_scale * sizeof *p->scale);
    for (size_t i = 0; i < p->n_scale; i++)
        p->scale[i] = 0.01f + fabsf(random_float(&seed));
}

static void problem_drop(struct problem *p)
{
    if (p->scale != NULL)
        fenced_free(p->scale, p->n_scale * sizeof *p->scale);
    fenced_free(p->w, p->w_bytes);
    fenced_free(p->xf, p->n_col * p->n_k * sizeof *p->xf);
    fenced_free(p->x, p->n_col * p->x_stride);
}

/* Unpack a column. */
static double column_value(const struct problem *p, size_t c, size_t k)
{
    const uint8_t *column = p->x + c * p->x_stride;

    if (p->form == ACT_F32)
        return (double)((const float *)(const void *)column)[k];

    const struct act_q8 *a = (const struct act_q8 *)(const void *)column + k / ACT_Q8_SPAN;

    k %= ACT_Q8_SPAN;
    return (double)a->d[k / 16] * a->q[k];
}

static void check_against_double(const struct problem *p, const float *y, size_t ldy)
{
    float *wr = calloc(p->n_k, sizeof *wr);

    for (size_t r = 0; r < p->n_row; r++) {
        dequant_row(p->type, p->w + r * (p->w_bytes / p->n_row), wr, p->n_k);
        for (size_t c = 0; c < p->n_col; c++) {
            double sum = 0, size = 0;

            for (size_t k = 0; k < p->n_k; k++) {
                double term = (double)wr[k] * (double)weight_scale(&p->scales, r, k) *
                              column_value(p, c, k);

                sum += term;
                size += fabs(term);
            }
            if (!(fabs(y[c * ldy + r] - sum) <= 2e-6 * size + 1e-30))
                fail_msg("%zu x %zu, row %zu, column %zu: %.9g instead of %.9g (sizes %.3g)",
                         p->n_row, p->n_k, r, c, (double)y[c * ldy + r], sum, size);
        }
    }
    free(wr);
}

/* Every division into rows and columns and every address of the weights gives the bits of y. */
static void check_cuts(const struct problem *p, const struct kernels *set, const float *y,
                       size_t ldy)
{
    static const size_t rows[] = { 1, 3, 5 }, cols[] = { 1, 2, 7 };
    size_t row_bytes = p->w_bytes / p->n_row;

    for (size_t shift = 0; shift < 3; shift++) {
        size_t step_r = rows[shift], step_c = cols[shift];
        uint8_t *w = fenced_new(p->w_bytes + shift); /* ends shift bytes before the fence */
        float *part = calloc(step_c * step_r, sizeof *part);

        memcpy(w, p->w, p->w_bytes);
        for (size_t r = 0; r < p->n_row; r += step_r)
            for (size_t c = 0; c < p->n_col; c += step_c) {
                size_t nr = p->n_row - r < step_r ? p->n_row - r : step_r;
                size_t nc = p->n_col - c < step_c ? p->n_col - c : step_c;
                struct weight_scales scales = p->scales;

                scales.first += r;

                set->mul(&(struct matmul){ .type = p->type,
                                           .form = p->form,
                                           .n_row = nr,
                                           .n_k = p->n_k,
                                           .n_col = nc,
                                           .w = w + r * row_bytes,
                                           .x = p->x + c * p->x_stride,
                                           .x_stride = p->x_stride,
                                           .y = part,
                                           .ldy = nr,
                                           .scales = scales });
                for (size_t i = 0; i < nc; i++)
                    assert_memory_equal(part + i * nr, y + (c + i) * ldy + r,
                                        nr * sizeof *part);
            }
        free(part);
        fenced_free(w, p->w_bytes + shift);
    }
}

static void multiplies(const struct row *t, enum scaled kind)
{
    static const struct {
        size_t n_row, n_k, n_col;
    } shapes[] = {
        { 1, 256, 1 },  { 9, 512, 2 },    { 6, 768, 5 },    { 17, 1536, 13 }, { 4, 2048, 33 },
        { 7, 32, 3 },   { 5, 96, 6 },     { 13, 1184, 29 }, { 3, 2880, 7 },   { 3, 1, 1 },
        { 5, 56, 7 },   { 9, 72, 14 },    { 8, 1000, 9 },   { 2, 15, 31 },    { 51, 768, 5 },
        { 32, 288, 8 }, { 35, 1184, 68 }, { 97, 256, 39 }, { 11, 448, 21 }, { 6, 64, 9 },
        { 33, 512, 137 },
    };
    size_t block = tensor_type_info(t->type)->block_elems;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct problem p;
        size_t ldy = shapes[i].n_row + 3;
        size_t n_y = ldy * shapes[i].n_col;

        if (shapes[i].n_k % block != 0)
            continue;
        problem_make(&p, t->set, t->type, t->form, shapes[i].n_row, shapes[i].n_k,
                     shapes[i].n_col);
        problem_scale(&p, kind);

        float *y = calloc(n_y, sizeof *y);

        memset(y, 0x55, n_y * sizeof *y);
        t->set->mul(&(struct matmul){ .type = p.type,
                                      .form = p.form,
                                      .n_row = p.n_row,
                                      .n_k = p.n_k,
                                      .n_col = p.n_col,
                                      .w = p.w,
                                      .x = p.x,
                                      .x_stride = p.x_stride,
                                      .y = y,
                                      .ldy = ldy,
                                      .scales = p.scales });
        check_against_double(&p, y, ldy);
        for (size_t c = 0; c < p.n_col; c++) /* nothing is written between columns */
            for (size_t r = p.n_row; r < ldy; r++)
                assert_int_equal(((uint32_t *)y)[c * ldy + r], 0x55555555);
        check_cuts(&p, t->set, y, ldy);
        free(y);
        problem_drop(&p);
    }
}

static void multiplies_any_shape(void **state)
{
    multiplies(*state, SCALED_NOT);
}

/* A product without columns, or without rows, writes nothing. */
static void multiplies_nothing(void **state)
{
    const struct row *t = *state;

    for (const enum tensor_type *type = computed_types; *type != TYPE_COUNT; type++)
        for (int exact = 0; exact < 2; exact++)
            for (size_t n_row = 0; n_row <= 40; n_row += 40) {
                const enum act_form form = act_form_of(*type, exact);
                float y = 7;
                struct problem p;

                problem_make(&p, t->set, *type, form, 40, 256, 2);
                t->set->mul(&(struct matmul){ .type = *type,
                                              .form = form,
                                              .n_row = n_row,
                                              .n_k = 256,
                                              .n_col = n_row == 0 ? 2 : 0,
                                              .w = p.w,
                                              .x = p.x,
                                              .x_stride = p.x_stride,
                                              .y = &y,
                                              .ldy = 40 });
                assert_true(y == 7);
                problem_drop(&p);
            }
}

static void multiplies_weights_with_scales(void **state)
{
    for (int kind = SCALED_ALL; kind < N_SCALED; kind++)
        multiplies(*state, (enum scaled)kind);
}

/* Vectors of the same size add in the same order, whatever multiplies their bytes. */
static void multiplies_to_the_bits_of_another(void **state)
{
    static const struct {
        size_t n_row, n_k, n_col;
    } shapes[] = { { 9, 256, 1 }, { 17, 1536, 13 }, { 35, 1184, 68 }, { 97, 256, 39 },
                   { 33, 512, 137 } };
    const struct row *t = *state;
    size_t block = tensor_type_info(t->type)->block_elems;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const size_t n_y = shapes[i].n_row * shapes[i].n_col;
        float *y[2] = { calloc(n_y, sizeof(float)), calloc(n_y, sizeof(float)) };
        struct problem p;

        if (shapes[i].n_k % block == 0) {
            problem_make(&p, t->set, t->type, ACT_Q8, shapes[i].n_row, shapes[i].n_k,
                         shapes[i].n_col);
            for (int j = 0; j < 2; j++)
                (j == 0 ? t->set : t->other)
                    ->mul(&(struct matmul){ .type = p.type,
                                            .form = p.form,
                                            .n_row = p.n_row,
                                            .n_k = p.n_k,
                                            .n_col = p.n_col,
                                            .w = p.w,
                                            .x = p.x,
                                            .x_stride = p.x_stride,
                                            .y = y[j],
                                            .ldy = p.n_row });
            assert_memory_equal(y[0], y[1], n_y * sizeof(float));
            problem_drop(&p);
        }
        free(y[0]);
        free(y[1]);
    }
}

/* However weights are prefetched, and at whatever numbers of columns the path changes.
 * test_interleave has interleaved rows. */
static void ways_change_no_bit(void **state)
{
    enum { N_ROW = 33, N_K = 512 };
    static const size_t cols[] = { 1, 3, 6, 137, 300 };
    const struct row *t = *state;

    for (size_t k = 0; k < sizeof cols / sizeof cols[0]; k++) {
        const size_t n_y = N_ROW * cols[k];
        float *want = calloc(n_y, sizeof *want), *y = calloc(n_y, sizeof *y);
        struct problem p;
        struct matmul m;

        problem_make(&p, t->set, t->type, ACT_Q8, N_ROW, N_K, cols[k]);
        m = (struct matmul){ .type = p.type,
                             .form = p.form,
                             .n_row = p.n_row,
                             .n_k = p.n_k,
                             .n_col = p.n_col,
                             .w = p.w,
                             .x = p.x,
                             .x_stride = p.x_stride,
                             .y = want,
                             .ldy = N_ROW };
        t->set->mul(&m);
        m.y = y;
        for (int i = 0; i < WAY_CHOICES; i++) {
            const enum way_choice c = (enum way_choice)i;
            const int before = ways_chosen(c);

            if ((c < WAY_FEW_COLS) != (cols[k] == 1))
                continue;
            for (int way = 0; way < ways_count(c); way++) {
                ways_choose(c, way);
                memset(y, 0x55, n_y * sizeof *y);
                t->set->mul(&m);
                assert_memory_equal(y, want, n_y * sizeof *y);
            }
            ways_choose(c, before);
        }
        free(want);
        free(y);
        problem_drop(&p);
    }
}

static void packs_columns_in_eight_bits(void **state)
{
    const struct row *t = *state;
    enum { N = 7 * 32, USED = sizeof(struct act_q8) };
    float x[N];
    size_t bytes = act_bytes(ACT_Q8, N);
    uint8_t *column = fenced_new(bytes);
    uint8_t *again = fenced_new(bytes);
    uint64_t seed = 5;

    for (int i = 0; i < N; i++)
        x[i] = random_float(&seed) * (i < 64 ? 1.0f : 1e4f);
    for (int i = 0; i < 32; i++) {
        x[96 + i] = 0;
        x[128 + i] = 1e-35f;
        x[160 + i] = i == 7 ? -3.0e38f : 2e30f;
    }
    x[200] = NAN;
    t->set->act_pack(ACT_Q8, x, N, column);
    memset(again, 0xff, bytes);
    t->set->act_pack(ACT_Q8, x, N, again);
    assert_memory_equal(column, again, USED);
    kernels_by_name("generic")->act_pack(ACT_Q8, x, N, again);
    assert_memory_equal(column, again, USED);

    struct act_q8 a;

    memcpy(&a, column, sizeof a);

    for (int i = 0; i < 192; i++) {
        assert_true(a.q[i] >= -127);
        assert_true(fabsf((float)a.q[i] * a.d[i / 16] - x[i]) <= 0.501f * a.d[i / 16] + 1e-30f);
    }
    assert_true(isnan(a.d[12]));
    for (int i = 192; i < 256; i++)
        assert_int_equal(a.q[i], 0);
    for (int b = 0; b < 16; b++) {
        int sum = 0;

        for (int i = 0; i < 16; i++)
            sum += a.q[16 * b + i];
        assert_true(isnan(a.d[b]) || a.dsum[b] == a.d[b] * (float)sum);
        assert_int_equal(a.less[b], -128 * sum);
    }
    fenced_free(column, bytes);
    fenced_free(again, bytes);
}

/* Vectors: each function is compared with its formula in double, for lengths near the
 * vector's */

enum { LONGEST = 70 };

struct vectors {
    float *x, *y; /* [n], fenced */
    size_t n;
};

static struct vectors vectors_make(size_t n, float size)
{
    uint64_t seed = n;
    struct vectors v = { fenced_new(n * 4), fenced_new(n * 4), n };

    for (size_t i = 0; i < n; i++) {
        v.x[i] = random_float(&seed) * size;
        v.y[i] = random_float(&seed);
    }
    return v;
}

static void vectors_drop(struct vectors *v)
{
    fenced_free(v->x, v->n * 4);
    fenced_free(v->y, v->n * 4);
}

static void assert_near(double got, double want, double tolerance, size_t i)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("value %zu is %.9g, not %.9g", i, got, want);
}

static void norms_vectors(void **state)
{
    const struct row *t = *state;

    for (size_t n = 1; n <= LONGEST; n++)
        for (int with_w = 0; with_w < 2; with_w++) {
            struct vectors v = vectors_make(n, 30);
            float *out = fenced_new(n * 4);
            double sum = 0;

            for (size_t i = 0; i < n; i++)
                sum += (double)v.x[i] * v.x[i];
            double s = 1 / sqrt(sum / (double)n + 1e-6);
            t->set->rms_norm(v.x, with_w ? v.y : NULL, n, 1e-6f, out);
            for (size_t i = 0; i < n; i++) {
                double want = v.x[i] * s * (with_w ? (double)v.y[i] : 1);

                assert_near(out[i], want, 5e-7 * fabs(want), i);
            }
            t->set->rms_norm(v.x, with_w ? v.y : NULL, n, 1e-6f, v.x);
            assert_memory_equal(v.x, out, n * 4);
            fenced_free(out, n * 4);
            vectors_drop(&v);
        }
}

static void adds_and_scales(void **state)
{
    const struct row *t = *state;

    for (size_t n = 1; n <= LONGEST; n++) {
        struct vectors v = vectors_make(n, 3);
        float *was = calloc(n, 4);

        memcpy(was, v.x, n * 4);
        t->set->add(v.x, v.y, n);
        for (size_t i = 0; i < n; i++)
            assert_true(v.x[i] == was[i] + v.y[i]);
        t->set->scale(v.x, 0.3f, n);
        for (size_t i = 0; i < n; i++)
            assert_true(v.x[i] == (was[i] + v.y[i]) * 0.3f);
        free(was);
        vectors_drop(&v);
    }
}

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static void curves_are_smooth_and_saturate(void **state)
{
    const struct row *t = *state;
    static const float ends[] = { 0,   -0.0f, 1e-30f, -1e-30f, 9,     -9,     50,    -50,
                                  200, -200,  1e5f,   -1e5f,   3e12f, -3e12f, 3e38f, -3e38f };
    enum { N = 20000, N_END = sizeof ends / sizeof ends[0] };
    float *x = calloc(N, 4), *g = calloc(N, 4), *one = calloc(N, 4);

    for (int i = 0; i < N; i++) {
        x[i] = i < N_END ? ends[i] : (float)(i - N / 2) * (12.0f / (N / 2));
        one[i] = 1;
    }
    memcpy(g, x, N * 4);
    t->set->gelu_mul(g, one, N);
    for (size_t i = 0; i < N; i++)
        assert_near(g[i], gelu(x[i]), 3e-7 * fmax(1, fabs((double)x[i])), i);
    memcpy(g, x, N * 4);
    t->set->silu_mul(g, one, N);
    for (size_t i = 0; i < N; i++)
        assert_near(g[i], silu(x[i]), 3e-7 * fabs(silu(x[i])) + 1e-37, i);
    memcpy(g, x, N * 4);
    t->set->sigmoid_mul(g, g, N);
    for (size_t i = 0; i < N; i++)
        assert_near(g[i], silu(x[i]), 3e-7 * fabs(silu(x[i])) + 1e-37, i);
    memcpy(g, one, N * 4);
    t->set->sigmoid_mul(g, x, N);
    for (size_t i = 0; i < N; i++)
        assert_near(g[i], 1 / (1 + exp(-(double)x[i])), 3e-7, i);
    memcpy(g, x, N * 4);
    t->set->softcap(g, 2.5f, N);
    for (size_t i = 0; i < N; i++)
        assert_near(g[i], 2.5 * tanh(x[i] / 2.5), 4e-7 * fabs(2.5 * tanh(x[i] / 2.5)), i);
    g[0] = NAN;
    t->set->softcap(g, 2.5f, N);
    assert_true(isnan(g[0]));
    free(x);
    free(g);
    free(one);
}

static void a_value_does_not_depend_on_its_place(void **state)
{
    const struct row *t = *state;

    for (size_t n = 1; n <= LONGEST; n++) {
        struct vectors v = vectors_make(n, 3), u = vectors_make(n, 3);

        t->set->gelu_mul(v.x, v.y, n);
        for (size_t i = 0; i < n; i++) {
            t->set->gelu_mul(u.x + i, u.y + i, 1);
            assert_memory_equal(u.x + i, v.x + i, 4);
        }
        t->set->silu_mul(v.x, v.y, n);
        t->set->softcap(v.y, 30, n);
        for (size_t i = 0; i < n; i++) {
            t->set->silu_mul(u.x + i, u.y + i, 1);
            t->set->softcap(u.y + i, 30, 1);
            assert_memory_equal(u.x + i, v.x + i, 4);
            assert_memory_equal(u.y + i, v.y + i, 4);
        }
        vectors_drop(&v);
        vectors_drop(&u);
    }
}

/* Gated delta rule */

/* Several tokens of one head, from another state and then in place, against sums in double. */
static void follows_the_gated_delta_rule(void **state)
{
    static const size_t sizes[] = { 1, 7, 16, 33, 64, 100, 128 };
    const struct row *t = *state;
    uint64_t seed = 11;

    for (size_t z = 0; z < sizeof sizes / sizeof sizes[0]; z++) {
        size_t dk = sizes[z], dv = 5;
        float *from = fenced_new(dk * dv * 4), *to = fenced_new(dk * dv * 4);
        float *q = fenced_new(dk * 4), *k = fenced_new(dk * 4);
        float *v = fenced_new(dv * 4), *out = fenced_new(dv * 4);
        double want[128 * 5];

        for (size_t i = 0; i < dk * dv; i++)
            want[i] = from[i] = random_float(&seed);
        for (int token = 0; token < 4; token++) {
            float decay = 0.9f - 0.2f * (float)token, beta = 0.3f + 0.1f * (float)token;

            for (size_t i = 0; i < dk; i++) {
                q[i] = random_float(&seed);
                k[i] = random_float(&seed) / sqrtf((float)dk);
            }
            for (size_t r = 0; r < dv; r++)
                v[r] = random_float(&seed);
            t->set->delta(&(struct delta_step){ token == 0 ? from : to, to, q, k, v, dk, dv,
                                                decay, beta, out });
            for (size_t r = 0; r < dv; r++) {
                double seen = 0, sum = 0;

                for (size_t i = 0; i < dk; i++)
                    seen += (double)decay * want[r * dk + i] * k[i];
                for (size_t i = 0; i < dk; i++) {
                    want[r * dk + i] =
                        decay * want[r * dk + i] + beta * ((double)v[r] - seen) * k[i];
                    sum += want[r * dk + i] * q[i];
                    assert_near(to[r * dk + i], want[r * dk + i], 1e-5, r * dk + i);
                }
                assert_near(out[r], sum, 1e-6 * (double)dk + 1e-5, r);
            }
        }
        fenced_free(from, dk * dv * 4);
        fenced_free(to, dk * dv * 4);
        fenced_free(q, dk * 4);
        fenced_free(k, dk * 4);
        fenced_free(v, dv * 4);
        fenced_free(out, dv * 4);
    }
}

/* KV */

static void stores_keys_and_values(void **state)
{
    static const double step[KV_TYPE_COUNT] = { 0, 0x1p-11, 0.57 / 127, 1.02 / 8 };
    const struct row *t = *state;

    for (size_t n = 32; n <= 96; n += 16) {
        struct vectors v = vectors_make(n, 2);
        size_t bytes = kv_row_bytes(t->kt, n);
        uint8_t *row = fenced_new(bytes);
        float back[96 + 32];
        float amax = 0;

        t->set->kv_store(t->kt, v.x, n, row);
        if (t->kt == KV_F32)
            memcpy(back, row, n * 4);
        else
            dequant_row(t->kt == KV_F16    ? TYPE_F16
                        : t->kt == KV_Q8_0 ? TYPE_Q8_0
                                           : TYPE_Q4_0,
                        row, back, t->kt == KV_F16 ? n : (n + 31) / 32 * 32);
        for (size_t i = 0; i < n; i++)
            amax = fmaxf(amax, fabsf(v.x[i]));
        for (size_t i = 0; i < n; i++)
            assert_near(back[i], v.x[i],
                        step[t->kt] * (t->kt == KV_F16 ? fabs((double)v.x[i]) : (double)amax),
                        i);
        v.x[n - 3] = n % 64 == 0 ? INFINITY : NAN; /* is never stored as a number */
        t->set->kv_store(t->kt, v.x, n, row);
        kv_row_load(t->kt, row, n - 3, back, 1);
        assert_false(isfinite(back[0]));
        fenced_free(row, bytes);
        vectors_drop(&v);
    }
}

struct attention {
    size_t n_q, n_pos, dk, dv, k_stride, v_stride;
    float *q;       /* [n_q][dk] */
    uint8_t *k, *v; /* [n_pos] rows */
    float *out;     /* [n_q][dv] */
};

/* Attend to all positions from first on, block by block. */
static void attend(const struct row *t, struct attention *a, size_t q0, size_t n_q, float scale,
                   float cap)
{
    float m[64], l[64];

    for (size_t i = 0; i < n_q; i++) {
        m[i] = -INFINITY;
        l[i] = 0;
    }
    memset(a->out + q0 * a->dv, 0, n_q * a->dv * sizeof *a->out);
    for (size_t j = 0; j < a->n_pos; j += ATTN_BLOCK) {
        size_t n = a->n_pos - j < ATTN_BLOCK ? a->n_pos - j : ATTN_BLOCK;

        t->set->attn(&(struct attn_block){ .k_type = t->kt,
                                           .v_type = t->vt,
                                           .k = a->k + j * a->k_stride,
                                           .v = a->v + j * a->v_stride,
                                           .k_stride = a->k_stride,
                                           .v_stride = a->v_stride,
                                           .n_pos = n,
                                           .n_q = n_q,
                                           .dk = a->dk,
                                           .dv = a->dv,
                                           .q = a->q + q0 * a->dk,
                                           .scale = scale,
                                           .cap = cap,
                                           .m = m,
                                           .l = l,
                                           .acc = a->out + q0 * a->dv });
    }
    for (size_t i = 0; i < n_q; i++)
        for (size_t d = 0; d < a->dv; d++)
            a->out[(q0 + i) * a->dv + d] /= l[i];
}

/* Returns a stored row as floats. */
static void widen(enum kv_type type, const uint8_t *row, size_t n, float *out)
{
    static const enum tensor_type same[] = { TYPE_F32, TYPE_F16, TYPE_Q8_0, TYPE_Q4_0 };
    float whole[1024 + 32];

    dequant_row(same[type], row, whole, type >= KV_Q8_0 ? (n + 31) / 32 * 32 : n);
    memcpy(out, whole, n * sizeof *out);
}

static void check_attention(const struct row *t, const struct attention *a, float scale,
                            float cap)
{
    float wide[1024];
    double *s = calloc(a->n_pos, sizeof *s), *out = calloc(a->dv, sizeof *out);

    for (size_t i = 0; i < a->n_q; i++) {
        double top = -INFINITY, sum = 0;

        for (size_t j = 0; j < a->n_pos; j++) {
            s[j] = 0;
            widen(t->kt, a->k + j * a->k_stride, a->dk, wide);
            for (size_t d = 0; d < a->dk; d++)
                s[j] += (double)wide[d] * a->q[i * a->dk + d];
            s[j] *= scale;
            if (cap > 0)
                s[j] = cap * tanh(s[j] / cap);
            top = fmax(top, s[j]);
        }
        memset(out, 0, a->dv * sizeof *out);
        for (size_t j = 0; j < a->n_pos; j++) {
            double p = exp(s[j] - top);

            sum += p;
            widen(t->vt, a->v + j * a->v_stride, a->dv, wide);
            for (size_t d = 0; d < a->dv; d++)
                out[d] += p * wide[d];
        }
        for (size_t d = 0; d < a->dv; d++)
            assert_near(a->out[i * a->dv + d], out[d] / sum, 5e-6, d);
    }
    free(s);
    free(out);
}

static void attends(void **state)
{
    static const struct {
        size_t n_q, n_pos, dk, dv;
        float scale, cap;
    } cases[] = {
        { 1, 1, 64, 64, 1, 0 },       { 8, 33, 256, 256, 0.25f, 0 }, { 3, 64, 32, 96, 0.5f, 0 },
        { 9, 95, 512, 512, 0.1f, 0 }, { 2, 31, 28, 14, 0.3f, 0 },    { 4, 40, 72, 56, 1, 5 },
        { 17, 7, 96, 33, 0.3f, 0 },
    };
    const struct row *t = *state;
    uint64_t seed = 11;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct attention a = {
            .n_q = cases[i].n_q, .n_pos = cases[i].n_pos, .dk = cases[i].dk, .dv = cases[i].dv
        };
        size_t q_bytes = a.n_q * a.dk * 4, out_bytes = a.n_q * a.dv * 4;
        float row[1024];

        /* Rows with a gap between them; the last one ends at the fence. */
        a.k_stride = kv_row_bytes(t->kt, a.dk) + 6;
        a.v_stride = kv_row_bytes(t->vt, a.dv) + 10;
        if (t->kt == KV_F32)
            a.k_stride += 2;
        if (t->vt == KV_F32)
            a.v_stride += 2;
        size_t k_bytes = (a.n_pos - 1) * a.k_stride + kv_row_bytes(t->kt, a.dk);
        size_t v_bytes = (a.n_pos - 1) * a.v_stride + kv_row_bytes(t->vt, a.dv);

        a.q = fenced_new(q_bytes);
        a.out = fenced_new(out_bytes);
        a.k = fenced_new(k_bytes);
        a.v = fenced_new(v_bytes);
        for (size_t j = 0; j < a.n_q * a.dk; j++)
            a.q[j] = random_float(&seed);
        for (size_t j = 0; j < a.n_pos; j++) {
            for (size_t d = 0; d < a.dk; d++)
                row[d] = random_float(&seed);
            t->set->kv_store(t->kt, row, a.dk, a.k + j * a.k_stride);
            for (size_t d = 0; d < a.dv; d++)
                row[d] = random_float(&seed);
            t->set->kv_store(t->vt, row, a.dv, a.v + j * a.v_stride);
        }
        attend(t, &a, 0, a.n_q, cases[i].scale, cases[i].cap);
        check_attention(t, &a, cases[i].scale, cases[i].cap);

        /* A single query gives the same bits as among others. */
        float *together = calloc(1, out_bytes);

        memcpy(together, a.out, out_bytes);
        for (size_t j = 0; j < a.n_q; j++)
            attend(t, &a, j, 1, cases[i].scale, cases[i].cap);
        assert_memory_equal(together, a.out, out_bytes);
        free(together);
        fenced_free(a.q, q_bytes);
        fenced_free(a.out, out_bytes);
        fenced_free(a.k, k_bytes);
        fenced_free(a.v, v_bytes);
    }
}

/* Choice and sizes */

static void sets_are_found_by_name(void **state)
{
    const char *const *names = kernels_names();
    size_t n = 0;

    (void)state;
    while (names[n] != NULL) {
        assert_string_equal(kernels_by_name(names[n])->name, names[n]);
        n++;
    }
    assert_true(n > 0);
    assert_string_equal(names[n - 1], "generic");
    assert_ptr_equal(kernels_best(), kernels_by_name(names[0]));
    assert_null(kernels_by_name("abacus"));
}

static void exact_mode_and_float_weights_keep_columns_in_float(void **state)
{
    (void)state;
    for (int t = 0; computed_types[t] != TYPE_COUNT; t++) {
        bool is_float = tensor_type_info(computed_types[t])->block_elems == 1;

        assert_int_equal(act_form_of(computed_types[t], true), ACT_F32);
        assert_int_equal(act_form_of(computed_types[t], false), is_float ? ACT_F32 : ACT_Q8);
    }
}

static void kv_types_have_names_and_sizes(void **state)
{
    (void)state;
    for (int t = 0; t < KV_TYPE_COUNT; t++)
        assert_int_equal(kv_type_parse(kv_type_name((enum kv_type)t)), t);
    assert_int_equal(kv_type_parse("q9"), -1);
    assert_int_equal(kv_row_bytes(KV_F32, 256), 1024);
    assert_int_equal(kv_row_bytes(KV_F16, 256), 512);
    assert_int_equal(kv_row_bytes(KV_Q8_0, 256), 272);
    assert_int_equal(kv_row_bytes(KV_Q4_0, 256), 144);
}

/* The table */

static struct row rows[1000];
static struct CMUnitTest tests[1000];
static size_t n_test;

static struct row *add_test(CMUnitTestFunction fn, const struct kernels *set)
{
    struct row *r = &rows[n_test];

    r->set = set;
    tests[n_test++] = (struct CMUnitTest){ r->name, fn, NULL, NULL, r };
    return r;
}

static void add_named(CMUnitTestFunction fn, const struct kernels *set, const char *what)
{
    struct row *r = add_test(fn, set);

    snprintf(r->name, sizeof r->name, "%s %s", set != NULL ? set->name : "set:", what);
}

static void add_set(const struct kernels *set)
{
    struct row *r;

    for (int t = 0; computed_types[t] != TYPE_COUNT; t++)
        for (int exact = 1; exact >= 0; exact--) {
            enum act_form form = act_form_of(computed_types[t], exact);

            if (!exact && form == ACT_F32)
                continue;
            r = add_test(multiplies_any_shape, set);
            r->type = computed_types[t];
            r->form = form;
            snprintf(r->name, sizeof r->name, "%s multiplies %s with columns of %s", set->name,
                     tensor_type_info(r->type)->name, form == ACT_F32 ? "floats" : "8 bits");
            if (form == ACT_F32 || !set->has_ways)
                continue;
            r = add_test(ways_change_no_bit, set);
            r->type = computed_types[t];
            snprintf(r->name, sizeof r->name, "%s has the same bits of %s in all ways", set->name,
                     tensor_type_info(r->type)->name);
        }
    r = add_test(multiplies_weights_with_scales, set);
    r->type = TYPE_F8_E4M3;
    r->form = ACT_F32;
    snprintf(r->name, sizeof r->name, "%s multiplies F8_E4M3 with scales", set->name);
    add_named(multiplies_nothing, set, "multiplies nothing");
    add_named(packs_columns_in_eight_bits, set, "packs columns in eight bits");
    add_named(norms_vectors, set, "norms vectors");
    add_named(adds_and_scales, set, "adds and scales");
    add_named(curves_are_smooth_and_saturate, set, "has curves that saturate");
    add_named(a_value_does_not_depend_on_its_place, set, "gives a value at any place");
    add_named(follows_the_gated_delta_rule, set, "follows the gated delta rule");
    for (int t = 0; t < KV_TYPE_COUNT; t++) {
        r = add_test(stores_keys_and_values, set);
        r->kt = (enum kv_type)t;
        snprintf(r->name, sizeof r->name, "%s stores keys as %s", set->name,
                 kv_type_name(r->kt));
        for (int v = 0; v < KV_TYPE_COUNT; v++) {
            r = add_test(attends, set);
            r->kt = (enum kv_type)t;
            r->vt = (enum kv_type)v;
            snprintf(r->name, sizeof r->name, "%s attends to keys in %s and values in %s",
                     set->name, kv_type_name(r->kt), kv_type_name(r->vt));
        }
    }
}

/* Sets whose vectors have the same size */
static void add_pairs(void)
{
    static const char *const pairs[][2] = { { "avx2", "avxvnni" },
                                            { "avx512", "avx512vnni" },
                                            { "avx512", "amx" },
                                            { "neon", "neondot" },
                                            { "neon", "neoni8mm" } };

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct kernels *set = kernels_by_name(pairs[i][0]);
        const struct kernels *other = kernels_by_name(pairs[i][1]);

        for (int t = 0; set != NULL && other != NULL && computed_types[t] != TYPE_COUNT; t++) {
            struct row *r;

            if (act_form_of(computed_types[t], false) != ACT_Q8)
                continue;
            r = add_test(multiplies_to_the_bits_of_another, set);
            r->other = other;
            r->type = computed_types[t];
            snprintf(r->name, sizeof r->name, "%s and %s give the same bits with %s", set->name,
                     other->name, tensor_type_info(r->type)->name);
        }
    }
}

int main(void)
{
    add_named(sets_are_found_by_name, NULL, "found by name");
    add_named(exact_mode_and_float_weights_keep_columns_in_float, NULL, "form of columns");
    add_named(kv_types_have_names_and_sizes, NULL, "types of keys and values");
    for (const char *const *name = kernels_names(); *name != NULL; name++)
        add_set(kernels_by_name(*name));
    add_pairs();
    return _cmocka_run_group_tests("kernels", tests, n_test, NULL, NULL);
}
