/*
 * set_mul_lanes.h - matrix times columns of 8-bit numbers, four rows at a time in the lanes of a
 * vector of 4 floats.  set_mul_q8.c includes it.
 *
 * Order of additions for each row and column: for each group of 16 or 32 values that share a
 * scale, in rising order,
 *     acc  += float(sum of the group) * (s * d)   s of the weights, d of the column
 *     less += m * dsum                            minima, for each 16 values
 * and at the end acc - less.  If a row ends within a span, zeros fill the span.  Sums of a group
 * are integers, so sets may compute them in any order.
 *
 * With one column, weights are multiplied as they are unpacked, and the sums of four rows are
 * folded together.  With more, the bytes of 32 values of four rows are arranged once so that
 * nothing has to be folded, and stay in registers while one column after the other is multiplied
 * with them (WEIGHTS_LAID and lanes_sum() in vec_neon.h).
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_MUL_LANES_H
#define MEMWALL_ENGINE_COMPUTE_SET_MUL_LANES_H

#include "engine/compute/set_mul_float.h"

#define Q8_COLS 32 /* columns that share an unpacked span */

/* Four rows.  The last rows of a matrix are repeated if there are fewer. */
struct lane_rows {
    const uint8_t *w[VN];
};

INLINE struct lane_rows rows_at(const struct q8_product *p, size_t r)
{
    struct lane_rows rows;

    UNROLL
    for (size_t j = 0; j < VN; j++)
        rows.w[j] = p->w + (r + j < p->n_row ? r + j : p->n_row - 1) * p->w_stride;
    return rows;
}

/* Points *p to span i of four rows.  A short span at the end is copied to tail. */
INLINE void spans_at(enum tensor_type type, const struct lane_rows *rows, size_t n_k, size_t i,
                     union span *tail, const uint8_t **p)
{
    const size_t bytes = traits_of(type).bytes, left = n_k - i * SPAN;

    UNROLL
    for (size_t j = 0; j < VN; j++)
        p[j] = rows->w[j] + i * bytes;
    if (left >= SPAN)
        return;
    memset(tail, 0, VN * sizeof *tail);
    for (size_t j = 0; j < VN; j++) {
        memcpy(&tail[j], p[j], left / 32 * (bytes / 8));
        p[j] = (const uint8_t *)&tail[j];
    }
}

/* 32 values as two vectors of signed bytes without an offset. */
INLINE void run_signed(enum tensor_type type, const uint8_t *p, int b, vb *w)
{
    u8x32 run = run_of(type, p, b);

    UNROLL
    for (int half = 0; half < 2; half++) {
        w[half] = vb_of_half_run(&run, half);
        if (traits_of(type).offset != 0)
            w[half] = vb_less(w[half], traits_of(type).offset);
    }
}

/* The scales and minima of the 16 groups of a span, rows in the lanes. */
INLINE void lane_scales(enum tensor_type type, const uint8_t *const *p, vf *s, vf *m)
{
    vf rows_s[VN][NS], rows_m[VN][NS];

    UNROLL
    for (int j = 0; j < VN; j++)
        scales_of(type, p[j], rows_s[j], rows_m[j]);
    UNROLL
    for (int i = 0; i < NS; i++) {
        vf_transpose(rows_s[0][i], rows_s[1][i], rows_s[2][i], rows_s[3][i], s + VN * i);
        if (traits_of(type).has_minima)
            vf_transpose(rows_m[0][i], rows_m[1][i], rows_m[2][i], rows_m[3][i], m + VN * i);
    }
}

INLINE void store_lanes(const struct q8_product *p, size_t r, size_t c, vf v)
{
    if (p->n_row - r >= VN)
        vf_store(p->y + c * p->ldy + r, v);
    else
        vf_store_part(p->y + c * p->ldy + r, v, p->n_row - r);
}

/* fetch_ahead for a span */
INLINE void fetch_span(enum tensor_type type, const uint8_t *p)
{
    UNROLL
    for (size_t i = 0; i < traits_of(type).bytes; i += 64)
        __builtin_prefetch(p + i, 0, 2);
}

/* Four rows with column c. */
INLINE void lanes_one(enum tensor_type type, const struct q8_product *p, size_t r, size_t c)
{
    const struct lane_rows rows = rows_at(p, r);
    const bool halves = by_16(type);
    vf acc = vf_zero(), less = vf_zero();
    union span tail[VN];

    for (size_t i = 0; i * SPAN < p->n_k; i++) {
        const struct act_q8 *x = column_span(p, c, i);
        const uint8_t *at[VN];
        vf s[16], m[16];

        spans_at(type, &rows, p->n_k, i, tail, at);
        /* Without this a span of Q4_K takes 68 cycles from memory instead of 35. */
        UNROLL
        for (int j = 0; j < VN; j++)
            fetch_span(type, at[j] + VN * p->w_stride);
        lane_scales(type, at, s, m);
        UNROLL
        for (int b = 0; b < SPAN / 32; b++) {
            const vb low = vb_load(x->q + 32 * b), high = vb_load(x->q + 32 * b + 16);
            vi sum[2][VN];

            UNROLL
            for (int j = 0; j < VN; j++) {
                vb w[2];

                run_signed(type, at[j], b, w);
                sum[0][j] = vb_dot_add(vi_zero(), w[0], low);
                sum[1][j] = vb_dot_add(halves ? vi_zero() : sum[0][j], w[1], high);
            }
            UNROLL
            for (int half = halves ? 0 : 1; half < 2; half++) {
                const vi *of = sum[half];
                const int g = halves ? 2 * b + half : 2 * b;

                acc = vf_fma(vf_of_vi(vi_fold(of[0], of[1], of[2], of[3])),
                             vf_mul(s[g], vf_all(x->d[g])), acc);
            }
            if (traits_of(type).has_minima) {
                less = vf_fma(m[2 * b], vf_all(x->dsum[2 * b]), less);
                less = vf_fma(m[2 * b + 1], vf_all(x->dsum[2 * b + 1]), less);
            }
        }
    }
    store_lanes(p, r, c, traits_of(type).has_minima ? vf_sub(acc, less) : acc);
}

/* A span of four rows, for many columns. */
struct lane_tile {
    vb w[SPAN / 32][WEIGHTS_LAID]; /* the bytes of 32 values of four rows, arranged */
    vf s[16][SUMS];                /* the scales of a group as the sums of lanes_sum() need them */
    vf m[16];
};

INLINE void lanes_unpack(enum tensor_type type, const uint8_t *const *p, struct lane_tile *t)
{
    vf s[16];

    lane_scales(type, p, s, t->m);
    for (int g = 0; g < 16; g++)
        lanes_spread(s[g], t->s[g]);
    UNROLL
    for (int b = 0; b < SPAN / 32; b++) {
        vb w[VN][2];

        UNROLL
        for (int j = 0; j < VN; j++)
            run_signed(type, p[j], b, w[j]);
        lanes_lay(w, t->w[b]);
    }
}

/* 32 values of four rows with n_c columns, COLS_TOGETHER at a time. */
INLINE void lanes_block(enum tensor_type type, const struct lane_tile *t, int b,
                        const struct q8_product *p, size_t i, size_t c, size_t n_c,
                        vf (*acc)[SUMS])
{
    const bool halves = by_16(type);
    vb w[WEIGHTS_LAID];

    UNROLL
    for (int k = 0; k < WEIGHTS_LAID; k++)
        w[k] = t->w[b][k];
    for (size_t j = 0; j < n_c; j += COLS_TOGETHER, acc++) {
        const struct act_q8 *x[COLS_TOGETHER];
        vi sum[2][SUMS];

        UNROLL
        for (size_t k = 0; k < COLS_TOGETHER; k++)
            x[k] = column_span(p, c + (j + k < n_c ? j + k : j), i);
        lanes_sum(w, x, b, halves, sum);
        UNROLL
        for (int half = halves ? 0 : 1; half < 2; half++) {
            const int g = halves ? 2 * b + half : 2 * b;
            const vf d = lanes_column_scale(x, g);

            UNROLL
            for (int k = 0; k < SUMS; k++)
                acc[0][k] = vf_fma(vf_of_vi(sum[half][k]), vf_mul(t->s[g][k], d), acc[0][k]);
        }
    }
}

/* Columns c .. c + n_c - 1.  Each span is unpacked once for all of them. */
INLINE void lanes_many(enum tensor_type type, const struct q8_product *p, size_t r, size_t c,
                       size_t n_c)
{
    const struct lane_rows rows = rows_at(p, r);
    vf acc[Q8_COLS / COLS_TOGETHER][SUMS], less[Q8_COLS];
    union span tail[VN];
    struct lane_tile t;

    for (size_t j = 0; j < Q8_COLS / COLS_TOGETHER; j++)
        for (int k = 0; k < SUMS; k++)
            acc[j][k] = vf_zero();
    for (size_t j = 0; j < n_c; j++)
        less[j] = vf_zero();
    for (size_t i = 0; i * SPAN < p->n_k; i++) {
        const uint8_t *at[VN];

        spans_at(type, &rows, p->n_k, i, tail, at);
        lanes_unpack(type, at, &t);
        for (int b = 0; b < SPAN / 32; b++)
            lanes_block(type, &t, b, p, i, c, n_c, acc);
        for (size_t j = 0; j < n_c && traits_of(type).has_minima; j++) {
            const struct act_q8 *x = column_span(p, c + j, i);

            UNROLL
            for (int g = 0; g < 16; g++)
                less[j] = vf_fma(t.m[g], vf_all(x->dsum[g]), less[j]);
        }
    }
    for (size_t j = 0; j < n_c; j += COLS_TOGETHER) {
        vf y[COLS_TOGETHER];

        lanes_results(acc[j / COLS_TOGETHER], y);
        for (size_t k = 0; k < COLS_TOGETHER && j + k < n_c; k++)
            store_lanes(p, r, c + j + k,
                        traits_of(type).has_minima ? vf_sub(y[k], less[j + k]) : y[k]);
    }
}

INLINE void mul_q8(enum tensor_type type, const struct q8_product *p)
{
    for (size_t c = 0; c < p->n_col; c += Q8_COLS) {
        const size_t n_c = at_most(p->n_col - c, Q8_COLS);

        for (size_t r = 0; r < p->n_row; r += VN) {
            if (n_c == 1)
                lanes_one(type, p, r, c);
            else
                lanes_many(type, p, r, c, n_c);
        }
    }
}

#endif
