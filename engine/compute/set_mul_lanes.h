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

/* The bytes of 32 values, with the offset of the type. */
INLINE void run_bytes(enum tensor_type type, const uint8_t *p, int b, vb *w)
{
    u8x32 run = run_of(type, p, b);

    UNROLL
    for (int half = 0; half < 2; half++)
        w[half] = vb_of_half_run(&run, half);
}

/* The same without it. */
INLINE void run_signed(enum tensor_type type, const uint8_t *p, int b, vb *w)
{
    run_bytes(type, p, b, w);
    if (traits_of(type).offset == 0)
        return;
    UNROLL
    for (int half = 0; half < 2; half++)
        w[half] = vb_less(w[half], traits_of(type).offset);
}

/*
 * The parts of the scales of a span of four rows, rows in the lanes.  Scales are made when a run
 * is multiplied: those of a whole span would not fit the registers.
 */
struct lane_heads {
    vb sc[4], mn[2]; /* K-quants: a scale and a minimum in each byte, for the super-block's */
    vf d, dmin;
    vf s[16], m[16]; /* other types of 64 and 256: of each 16 values, or of each 32 */
};

/* The 8 scales and minima of Q4_K and Q5_K, of 6 bits each, from the first 16 bytes of four rows
 * (q4_k_scales of set_unpack.h). */
INLINE void q4_k_heads(const uint8_t *const *p, struct lane_heads *to)
{
    vb head[4];

    vb_dwords(p, 0, head);

    const u8x16 a = (u8x16)head[1], b = (u8x16)head[2], c = (u8x16)head[3];

    to->d = vf_of_low_f16(head[0]);
    to->dmin = vf_of_high_f16(head[0]);
    to->sc[0] = (vb)(a & 63);
    to->mn[0] = (vb)(b & 63);
    to->sc[1] = (vb)((c & 15) | a >> 6 << 4);
    to->mn[1] = (vb)(c >> 4 | b >> 6 << 4);
}

INLINE vf f16_of_rows(const uint8_t *const *p, size_t at)
{
    uint64_t four = 0;

    UNROLL
    for (size_t j = 0; j < VN; j++)
        four |= (uint64_t)load_u16(p[j] + at) << (16 * j);
    return vf_of_four_f16(four);
}

/* Types without a rule of their own: each row by itself, then brought into lanes. */
INLINE void other_heads(enum tensor_type type, const uint8_t *const *p, struct lane_heads *to)
{
    const int step = by_16(type) ? 1 : 2; /* scales of 32 values are there twice */
    vf s[VN][NS], m[VN][NS], four[VN];

    UNROLL
    for (int j = 0; j < VN; j++)
        scales_of(type, p[j], s[j], m[j]);
    UNROLL
    for (int i = 0; i < NS; i++) {
        vf_transpose(s[0][i], s[1][i], s[2][i], s[3][i], four);
        UNROLL
        for (int k = 0; k < VN; k += step)
            to->s[(VN * i + k) / step] = four[k];
        if (!traits_of(type).has_minima)
            continue;
        vf_transpose(m[0][i], m[1][i], m[2][i], m[3][i], four);
        UNROLL
        for (int k = 0; k < VN; k += step)
            to->m[(VN * i + k) / step] = four[k];
    }
}

/* Are the scales two bytes in front of each block of 32? */
INLINE bool has_f16_heads(enum tensor_type type)
{
    return traits_of(type).scale_bytes == 2;
}

INLINE void open_heads(enum tensor_type type, const uint8_t *const *p, struct lane_heads *to)
{
    if (type == TYPE_Q4_K || type == TYPE_Q5_K) {
        q4_k_heads(p, to);
    } else if (type == TYPE_Q6_K) {
        vb_dwords(p, offsetof(struct block_q6_k, scales), to->sc);
        to->d = f16_of_rows(p, offsetof(struct block_q6_k, d));
    } else if (!has_f16_heads(type)) {
        other_heads(type, p, to);
    }
}

/* The scales of run b, one or, of 16 values each, two, and their minima. */
INLINE void scales_of_run(enum tensor_type type, const uint8_t *const *p,
                          const struct lane_heads *from, int b, vf *s, vf *m)
{
    const size_t block = traits_of(type).bytes / 8 * (size_t)b;
    const int n_half = by_16(type) ? 2 : 1;

    if (type == TYPE_Q4_K || type == TYPE_Q5_K) {
        s[0] = vf_mul(vf_of_byte(from->sc[b / 4], b % 4), from->d);
        m[0] = vf_mul(vf_of_byte(from->mn[b / 4], b % 4), from->dmin);
    } else if (type == TYPE_Q6_K) {
        UNROLL
        for (int h = 0; h < 2; h++)
            s[h] = vf_mul(vf_of_signed_byte(from->sc[b / 2], 2 * (b % 2) + h), from->d);
    } else if (has_f16_heads(type)) {
        s[0] = f16_of_rows(p, block);
        if (traits_of(type).has_minima) /* see scales_of_blocks */
            m[0] = vf_mul(f16_of_rows(p, block + 2), vf_all(-1));
    } else {
        UNROLL
        for (int h = 0; h < n_half; h++) {
            s[h] = from->s[n_half * b + h];
            if (traits_of(type).has_minima)
                m[h] = from->m[n_half * b + h];
        }
    }
}

/* The numbers that the offset of a type takes from the sums of its groups, four in a vector. */
INLINE void lane_offsets(enum tensor_type type, const struct act_q8 *x, vi *less)
{
    const unsigned offset = traits_of(type).offset;
    const size_t n = by_16(type) ? 4 : 2;

    if (offset == 0)
        return;
    UNROLL
    for (size_t k = 0; k < n; k++) {
        vi four = by_16(type) ? vi_load(x->less + 4 * k)
                              : vi_pair_sums(vi_load(x->less + 8 * k),
                                             vi_load(x->less + 8 * k + 4));

        less[k] = vi_divide(four, __builtin_ctz(128u / offset));
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

/* A span of four rows with one column. */
INLINE void add_lane_span(enum tensor_type type, const uint8_t *const *at,
                          const struct act_q8 *x, vf *acc, vf *less)
{
    const bool halves = by_16(type);
    const int n_half = halves ? 2 : 1;
    struct lane_heads heads;
    vf d[4], dsum[4];
    vi offset[4];

    open_heads(type, at, &heads);
    lane_offsets(type, x, offset);
    UNROLL
    for (int k = 0; k < 4; k++) {
        d[k] = vf_load(x->d + 4 * k);
        dsum[k] = vf_load(x->dsum + 4 * k);
    }
    UNROLL
    for (int b = 0; b < SPAN / 32; b++) {
        const vb low = vb_load(x->q + 32 * b), high = vb_load(x->q + 32 * b + 16);
        vi sum[2][VN];
        vf s[2], m[2];

        UNROLL
        for (int j = 0; j < VN; j++) {
            vb w[2];

            run_bytes(type, at[j], b, w);
            sum[0][j] = vb_dot_add(vi_zero(), w[0], low);
            sum[1][j] = vb_dot_add(halves ? vi_zero() : sum[0][j], w[1], high);
        }
        scales_of_run(type, at, &heads, b, s, m);
        UNROLL
        for (int h = 0; h < n_half; h++) {
            const vi *of = sum[halves ? h : 1];
            const int g = n_half * b + h;
            vi v = vi_fold(of[0], of[1], of[2], of[3]);

            if (traits_of(type).offset != 0)
                v = vi_add(v, vi_lane(offset[g / 4], g % 4));
            *acc = vf_fma(vf_of_vi(v), vf_mul(s[h], vf_lane(d[b / 2], 2 * (b % 2))), *acc);
        }
        if (traits_of(type).has_minima)
            UNROLL
        for (int h = 0; h < 2; h++)
            *less = vf_fma(m[halves ? h : 0], vf_lane(dsum[b / 2], 2 * (b % 2) + h), *less);
    }
}

/* Four rows with column c. */
INLINE void lanes_one(enum tensor_type type, const struct q8_product *p, size_t r, size_t c)
{
    const struct lane_rows rows = rows_at(p, r);
    vf acc = vf_zero(), less = vf_zero();
    union span tail[VN];

    for (size_t i = 0; i * SPAN < p->n_k; i++) {
        const uint8_t *at[VN];

        spans_at(type, &rows, p->n_k, i, tail, at);
        /* Without this a span of Q4_K takes 68 cycles from memory instead of 35. */
        UNROLL
        for (int j = 0; j < VN; j++)
            fetch_span(type, at[j] + VN * p->w_stride);
        add_lane_span(type, at, column_span(p, c, i), &acc, &less);
    }
    store_lanes(p, r, c, traits_of(type).has_minima ? vf_sub(acc, less) : acc);
}

/* A span of four rows, for many columns. */
struct lane_tile {
    vb w[SPAN / 32][WEIGHTS_LAID]; /* the bytes of 32 values of four rows, arranged */
    vf s[SPAN / 32][2][SUMS];      /* the scales of a run as the sums of lanes_sum() need them */
    vf m[SPAN / 32][2];
};

INLINE void lanes_unpack(enum tensor_type type, const uint8_t *const *p, struct lane_tile *t)
{
    const int n_half = by_16(type) ? 2 : 1;
    struct lane_heads heads;

    open_heads(type, p, &heads);
    UNROLL
    for (int b = 0; b < SPAN / 32; b++) {
        vb w[VN][2];
        vf s[2];

        scales_of_run(type, p, &heads, b, s, t->m[b]);
        UNROLL
        for (int h = 0; h < n_half; h++)
            lanes_spread(s[h], t->s[b][h]);
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
            const vf *s = t->s[b][halves ? half : 0], d = lanes_column_scale(x, 2 * b);

            UNROLL
            for (int k = 0; k < SUMS; k++)
                acc[0][k] = vf_fma(vf_of_vi(sum[half][k]), vf_mul(s[k], d), acc[0][k]);
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
                less[j] = vf_fma(t.m[g / 2][by_16(type) ? g % 2 : 0], vf_all(x->dsum[g]),
                                 less[j]);
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
