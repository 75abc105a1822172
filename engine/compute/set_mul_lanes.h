/*
 * set_mul_lanes.h - matrix times columns of 8-bit numbers, one row at a time, for vectors of
 * 4 floats.  set_mul_q8.c includes it.
 *
 * Order of additions for each row and column: for each span of 256 values in rising order,
 * chunk by chunk,
 *     acc  += float(lane sums of chunk) * (s * d)     s of the weights, d of the column
 *     less += m * dsum                                minima and offsets of 16 groups
 * and at the end fold(acc) - fold(less).  If a row ends within a span, zeros fill the span.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_MUL_LANES_H
#define MEMWALL_ENGINE_COMPUTE_SET_MUL_LANES_H

#include "engine/compute/set_mul_float.h"

#define Q8_COLS 32 /* columns that share an unpacked span */

/* A span of one row, unpacked. */
struct q8_span {
    vb w[CHUNKS];
    vf s[NS], m[NS];
};

struct q8_sum {
    vf acc;
    vf less[NS]; /* used if the type has minima or an offset */
};

INLINE bool has_less(enum tensor_type type)
{
    return traits_of(type).has_minima || traits_of(type).offset != 0;
}

INLINE void q8_clear(struct q8_sum *sum)
{
    sum->acc = vf_zero();
    for (int i = 0; i < NS; i++)
        sum->less[i] = vf_zero();
}

INLINE float q8_total(enum tensor_type type, const struct q8_sum *sum)
{
    float less = 0;

    if (!has_less(type))
        return vf_sum(sum->acc);
    for (int i = 0; i < NS; i++)
        less += vf_sum(sum->less[i]);
    return vf_sum(sum->acc) - less;
}

INLINE void q8_unpack(enum tensor_type type, const uint8_t *p, struct q8_span *u)
{
    const uint8_t offset = traits_of(type).offset;

    scales_of(type, p, u->s, u->m);
    for (int i = 0; i < NS && offset != 0; i++)
        u->m[i] = vf_mul(u->s[i], vf_all(offset));
    UNROLL
    for (int c = 0; c < CHUNKS; c++)
        u->w[c] = chunk_of(type, p, c);
}

/* Add a span of a column. */
INLINE void q8_add(enum tensor_type type, const struct q8_span *u, const struct act_q8 *x,
                   struct q8_sum *sum)
{
    vf s[NS];

    UNROLL
    for (int j = 0; j < NS; j++) {
        s[j] = vf_mul(u->s[j], vf_load(x->d + (size_t)j * VN));
        if (has_less(type))
            sum->less[j] = vf_fma(u->m[j], vf_load(x->dsum + (size_t)j * VN), sum->less[j]);
    }
    UNROLL
    for (int c = 0; c < CHUNKS; c++) {
        vb q = vb_load(x->q + (size_t)c * CHUNK);
        vi dot = traits_of(type).is_signed ? vb_dot_signed(u->w[c], q) : vb_dot(u->w[c], q);

        sum->acc = vf_fma(vf_of_vi(dot), scales_of_chunk(s, c), sum->acc);
    }
}

/* Returns span i of a row.  A short span at the end is copied to tail. */
INLINE const uint8_t *q8_span_at(enum tensor_type type, const uint8_t *row, size_t n_k,
                                 size_t i, uint8_t *tail)
{
    const uint8_t *p = row + i * traits_of(type).bytes;
    size_t left = n_k - i * SPAN;

    if (left >= SPAN)
        return p;
    memset(tail, 0, sizeof(union span));
    memcpy(tail, p, left / 32 * (traits_of(type).bytes / 8));
    return tail;
}

/* fetch_ahead for a span */
INLINE void fetch_span(enum tensor_type type, const uint8_t *p)
{
    UNROLL
    for (size_t i = 0; i < traits_of(type).bytes; i += 64)
        __builtin_prefetch(p + i, 0, 2);
}

/* Rows r .. r + n_r - 1 with column c. */
INLINE void q8_one(enum tensor_type type, size_t n_r, const struct q8_product *p, size_t r,
                   size_t c)
{
    struct q8_sum sum[Q8_ROWS];
    uint8_t tail[sizeof(union span)];

    UNROLL
    for (size_t j = 0; j < n_r; j++)
        q8_clear(&sum[j]);
    for (size_t i = 0; i * SPAN < p->n_k; i++) {
        UNROLL
        for (size_t j = 0; j < n_r; j++) {
            const uint8_t *row = p->w + (r + j) * p->w_stride;
            struct q8_span u;

            /* Without this a span of Q4_K takes 68 cycles from memory instead of 35. */
            fetch_span(type, row + i * traits_of(type).bytes + 2 * n_r * p->w_stride);
            q8_unpack(type, q8_span_at(type, row, p->n_k, i, tail), &u);
            q8_add(type, &u, column_span(p, c, i), &sum[j]);
        }
    }
    UNROLL
    for (size_t j = 0; j < n_r; j++)
        p->y[c * p->ldy + r + j] = q8_total(type, &sum[j]);
}

/* Columns c .. c + n_c - 1.  Each span is unpacked once for all of them. */
INLINE void q8_many(enum tensor_type type, size_t n_r, const struct q8_product *p, size_t r,
                    size_t c, size_t n_c)
{
    struct q8_sum sums[Q8_COLS][Q8_ROWS];
    struct q8_span u[Q8_ROWS];
    uint8_t tail[sizeof(union span)];

    for (size_t j = 0; j < n_c; j++)
        for (size_t k = 0; k < n_r; k++)
            q8_clear(&sums[j][k]);
    for (size_t i = 0; i * SPAN < p->n_k; i++) {
        for (size_t k = 0; k < n_r; k++)
            q8_unpack(type, q8_span_at(type, p->w + (r + k) * p->w_stride, p->n_k, i, tail),
                      &u[k]);
        for (size_t j = 0; j < n_c; j++) {
            const struct act_q8 *x = column_span(p, c + j, i);

            UNROLL
            for (size_t k = 0; k < n_r; k++)
                q8_add(type, &u[k], x, &sums[j][k]);
        }
    }
    for (size_t j = 0; j < n_c; j++)
        for (size_t k = 0; k < n_r; k++)
            p->y[(c + j) * p->ldy + r + k] = q8_total(type, &sums[j][k]);
}

INLINE void mul_q8(enum tensor_type type, const struct q8_product *p)
{
    for (size_t c = 0; c < p->n_col; c += Q8_COLS) {
        size_t n_c = at_most(p->n_col - c, Q8_COLS);
        size_t r = 0;

        for (; r + Q8_ROWS <= p->n_row; r += Q8_ROWS) {
            if (n_c == 1)
                q8_one(type, Q8_ROWS, p, r, c);
            else
                q8_many(type, Q8_ROWS, p, r, c, n_c);
        }
        for (; r < p->n_row; r++)
            for (size_t j = 0; j < n_c; j++)
                q8_one(type, 1, p, r, c + j);
    }
}

#endif
