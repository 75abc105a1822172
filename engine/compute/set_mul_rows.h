/*
 * set_mul_rows.h - matrix times columns of 8-bit numbers, four rows at a time.
 * set_mul_q8.c includes it if the vectors have the operations.
 *
 * A group is the 16 or 32 values that share a scale.  A step is a group per 16 bytes of a
 * vector: GROUPS neighbours.  Groups of 32 values are unpacked to two vectors, one with the
 * first and one with the second 16 values of each group.
 *
 *     lane        4g .. 4g + 3 of a product of bytes: sums of 4 products of group g, one row
 *     lane        4g + r after sum_rows: the sum of group g, row r
 *
 * A sum of a group is exact and includes the offset of the type.  Converting, scaling and
 * adding then takes 3 operations for 4 rows and GROUPS groups, which is why it pays to bring
 * four rows together first.
 *
 * Order of additions for each row and column: group g of each step is added to partial sum g,
 * in rising order of steps,
 *     acc += float(sum of products) * (s * d)      s of the weights, d of the column
 *     acc -= m * dsum                              if the type has minima
 * and the partial sums are folded at the end.  If a row ends within a span, zeros fill it.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_MUL_ROWS_H
#define MEMWALL_ENGINE_COMPUTE_SET_MUL_ROWS_H

#include <math.h>

#include "engine/compute/set_mul_float.h"
#if RUNS_PER_CHUNK == 2
#include "engine/compute/set_unpack_wide.h"
#else
#include "engine/compute/set_unpack_steps.h"
#endif

/*
 * Products with words of 16 bits between: how many sums of two products a word can hold.
 * Offsets are powers of 2 up to 128.
 */
INLINE int sums_per_word(enum tensor_type type)
{
    switch ((int)type) {
    case TYPE_Q2_K:
    case TYPE_Q3_K:
    case TYPE_TQ1_0:
    case TYPE_TQ2_0:
    case TYPE_Q4_0:
    case TYPE_Q4_1:
    case TYPE_Q4_K: return 8; /* 8 * 2 * 15 * 127 = 30480 */
    case TYPE_Q5_0:
    case TYPE_Q5_1:
    case TYPE_Q5_K: return 4; /* 4 * 2 * 31 * 127 = 31496 */
    case TYPE_Q6_K: return 2; /* 2 * 2 * 63 * 127 = 32004 */
    default: return 1;
    }
}

#if !DOT_TAKES_255
/* Sums of two products of rows and a column, in words. */
INLINE vi dot_pairs(enum tensor_type type, vb w, vb x)
{
    return traits_of(type).is_signed ? vb_pairs(vb_abs(w), vb_turn(x, w)) : vb_pairs(w, x);
}
#endif

#include "engine/compute/set_mul_tile.h"

/* A step of 4 rows, unpacked. */
struct step {
    vb w[4][2]; /* the second vector only in groups of 32 */
    vf s, m;    /* lane 4g + r */
};

INLINE int steps_of(enum tensor_type type)
{
    return by_16(type) ? CHUNKS : CHUNKS / 2;
}

/*
 * The offset of the unpacked bytes.  A product of bytes that takes 0 .. 255 needs no signs:
 * signed bytes get an offset of 128.
 */
INLINE int offset_of(enum tensor_type type)
{
    return traits_of(type).is_signed && DOT_TAKES_255 ? 128 : traits_of(type).offset;
}

/* The bytes of a signed type as vb_dot_add takes them. */
INLINE vb dot_bytes(enum tensor_type type, vb w)
{
    return traits_of(type).is_signed && DOT_TAKES_255 ? vb_xor(w, vb_all(-128)) : w;
}

INLINE void unpack_nibbles(enum tensor_type type, const uint8_t *p, int step, vb *w)
{
    size_t stride, at = nibbles_at(type, &stride);
    const uint8_t *first = p + (size_t)(step * GROUPS) * stride;
    vb q = vb_pieces(first + at, stride);

    w[0] = vb_and(q, vb_all(15));
    w[1] = vb_high_nibbles(q);
    if (type == TYPE_Q5_0)
        vb_add_fifth_bits(vb_pieces(first, stride), offsetof(struct block_q5_0, high), w);
    if (type == TYPE_Q5_1)
        vb_add_fifth_bits(vb_pieces(first, stride), offsetof(struct block_q5_1, high), w);
    if (has_nibble_values(type)) {
        vb table = dot_bytes(type, vb_same_pieces(nibble_values(type)));

        w[0] = vb_lookup(table, w[0]);
        w[1] = vb_lookup(table, w[1]);
    }
}

/* The bytes of a step of one row. */
INLINE void unpack_step(enum tensor_type type, const uint8_t *p, int step, vb *w)
{
    size_t stride;

    if (unpack_wide(type, p, step, w))
        return;
    if (nibbles_at(type, &stride) != 0) {
        unpack_nibbles(type, p, step, w);
    } else if (by_16(type)) {
        w[0] = dot_bytes(type, chunk_of(type, p, step));
    } else if (type == TYPE_Q8_0) {
        p += (size_t)(step * GROUPS) * stride + offsetof(struct block_q8_0, q);
        w[0] = dot_bytes(type, vb_pieces(p, stride));
        w[1] = dot_bytes(type, vb_pieces(p + 16, stride));
    } else {
        vb_split_runs(dot_bytes(type, chunk_of(type, p, 2 * step)),
                      dot_bytes(type, chunk_of(type, p, 2 * step + 1)), w);
    }
}

/* Steps of 4 rows: lane 4g + r of s[step] is the scale of group g of row r. */
INLINE void scales_of_four(enum tensor_type type, const uint8_t *const *p, vf *s, vf *m)
{
    vf rs[4][NS], rm[4][NS];

    if (wide_scales(type, p, s, m))
        return;
    UNROLL
    for (int r = 0; r < 4; r++)
        scales_of(type, p[r], rs[r], rm[r]);
    vf_four_rows(by_16(type), rs, s);
    if (traits_of(type).has_minima)
        vf_four_rows(by_16(type), rm, m);
}

/* The same for a type of 32, whose scales are in front of each block. */
INLINE void scales_of_heads(enum tensor_type type, const uint8_t *const *p, int step, vf *s,
                            vf *m)
{
    const size_t stride = traits_of(type).bytes / 8;
    vi first = vi_heads(p, (size_t)(step * GROUPS) * stride, stride); /* 4 bytes per block */

    *s = traits_of(type).scale_bytes == 1 ? vf_of_low_e8m0(first) : vf_of_low_f16(first, false);
    if (traits_of(type).has_minima)
        *m = vf_mul(vf_of_high_f16(first, false), vf_all(-1)); /* see scales_of_blocks */
}

INLINE vi add_words_or_lanes(bool words, vi a, vi b)
{
    return words ? vi_add_words(a, b) : vi_add(a, b);
}

/*
 * Lane 4g + r = the sum of lanes 4g .. 4g + 3 of row[r].  With n != 0, rows are words which
 * hold n sums of two products, and are added as words as long as they can hold more.
 */
INLINE vi sum_rows(enum tensor_type type, int n, vi *row)
{
    const int most = sums_per_word(type);
    const bool first = n != 0 && 2 * n <= most, second = n != 0 && 4 * n <= most;

    if (n != 0 && !first) {
        UNROLL
        for (int r = 0; r < 4; r++)
            row[r] = vi_of_words(row[r]);
    }

    vi a =
        add_words_or_lanes(first, vi_low_lanes(row[0], row[1]), vi_high_lanes(row[0], row[1]));
    vi b =
        add_words_or_lanes(first, vi_low_lanes(row[2], row[3]), vi_high_lanes(row[2], row[3]));

    if (first && !second)
        a = vi_of_words(a), b = vi_of_words(b);
    a = add_words_or_lanes(second, vi_low_pairs(a, b), vi_high_pairs(a, b));
    return second ? vi_of_words(a) : a;
}

/*
 * The products of a step of one row and a column: sums of 4 in lanes, or words if one can hold
 * the sum of both halves of a group.  sum_rows() gets what words_of_row() returns as n.
 */
#if DOT_TAKES_255
INLINE int words_of_row(enum tensor_type type)
{
    (void)type;
    return 0;
}

INLINE vi dot_row(enum tensor_type type, const vb *w, const vb *q)
{
    vi sum = vb_dot_add(vi_zero(), w[0], q[0]);

    return by_16(type) ? sum : vb_dot_add(sum, w[1], q[1]);
}
#else
INLINE int words_of_row(enum tensor_type type)
{
    return by_16(type) ? 1 : sums_per_word(type) > 1 ? 2 : 0;
}

INLINE vi dot_row(enum tensor_type type, const vb *w, const vb *q)
{
    vi first = dot_pairs(type, w[0], q[0]);

    if (by_16(type))
        return first;

    vi second = dot_pairs(type, w[1], q[1]);

    return words_of_row(type) != 0 ? vi_add_words(first, second)
                                   : vi_add(vi_of_words(first), vi_of_words(second));
}
#endif

/* Add a step of 4 rows times a column. */
INLINE void add_step(enum tensor_type type, const struct step *u, const struct act_q8 *x,
                     int step, vf *acc)
{
    const int offset = offset_of(type);
    vi dot[4], sum;
    vb q[2];

    if (by_16(type))
        q[0] = vb_load(x->q + (size_t)step * CHUNK);
    else
        vb_halves_of_runs(x->q + (size_t)(2 * step) * CHUNK, q);
    UNROLL
    for (int r = 0; r < 4; r++)
        dot[r] = dot_row(type, u->w[r], q);
    sum = sum_rows(type, words_of_row(type), dot);
    if (offset != 0) {
        vi less = vi_of_groups(x->less, by_16(type), step, 0);

        if (!by_16(type))
            less = vi_add(less, vi_of_groups(x->less, false, step, 1));
        if (offset != 128)
            less = vi_divide(less, __builtin_ctz(128u / (unsigned)offset));
        sum = vi_add(sum, less);
    }
    *acc = vf_fma(vf_of_vi(sum),
                  vf_mul(u->s, vf_bits(vi_of_groups(x->d, by_16(type), step, 0))), *acc);
    if (!traits_of(type).has_minima)
        return;

    vf xsum = vf_bits(vi_of_groups(x->dsum, by_16(type), step, 0));

    if (!by_16(type))
        xsum = vf_add(xsum, vf_bits(vi_of_groups(x->dsum, false, step, 1)));
    *acc = vf_fnma(u->m, xsum, *acc);
}

/* Add span i of 4 rows times columns c .. c + n_c - 1. */
INLINE void add_span(enum tensor_type type, const uint8_t *const *p, const struct q8_product *m,
                     size_t i, size_t c, size_t n_c, vf *acc)
{
    struct step u;
    vf s[CHUNKS], min[CHUNKS];

    if (!has_heads(type))
        scales_of_four(type, p, s, min);
    UNROLL
    for (int step = 0; step < steps_of(type); step++) {
        if (has_heads(type)) {
            scales_of_heads(type, p, step, &u.s, &u.m);
        } else {
            u.s = s[step];
            if (traits_of(type).has_minima)
                u.m = min[step];
        }
        UNROLL
        for (int r = 0; r < 4; r++)
            unpack_step(type, p[r], step, u.w[r]);
        if (n_c == 1)
            add_step(type, &u, column_span(m, c, i), step, acc);
        else
            for (size_t j = 0; j < n_c; j++)
                add_step(type, &u, column_span(m, c + j, i), step, &acc[j]);
    }
}

/* Copy the ends of four rows, shorter than a span, to spans filled with zeros. */
static NOINLINE void copy_tails(struct span_traits t, const struct q8_product *p,
                                const uint8_t **at, uint8_t tail[4][sizeof(union span)])
{
    memset(tail, 0, 4 * sizeof(union span));
    for (int r = 0; r < 4; r++) {
        memcpy(tail[r], at[r], p->n_k % SPAN / 32 * (t.bytes / 8));
        at[r] = tail[r];
    }
}

/* Prefetch lines `from` to `to` of p, which are constants. */
INLINE void fetch_stream(const uint8_t *p, size_t from, size_t to, enum fetch_hint hint)
{
    if (hint == FETCH_SECOND || hint == FETCH_BOTH)
        UNROLL
    for (size_t k = from; k < to; k++)
        __builtin_prefetch(p + 64 * k, 0, 2);
    else if (hint == FETCH_ONCE)
        UNROLL
    for (size_t k = from; k < to; k++)
        __builtin_prefetch(p + 64 * k, 0, 0);
    else if (hint == FETCH_FIRST)
        UNROLL
    for (size_t k = from; k < to; k++)
        __builtin_prefetch(p + 64 * k, 0, 3);
}

/*
 * Prefetch the span that is way.ahead bytes further in the same stream.  The CPU prefetches, too,
 * but probably starts again at each page of 4096 bytes.  Gains in the products of whole tokens,
 * with and without in turn, on Zen: Q8_0 18 %, Q4_0 7 %, Q4_K with Q6_K 7 % (AVX-512), 1 %
 * (AVX2).  There, 512 bytes ahead are slower than no prefetch, 1024 to 3072 are alike, and the
 * second-level cache gains 2 to 4 % less than the first only.  README.md has a Xeon.
 */
INLINE void prefetch_span(enum tensor_type type, const uint8_t *p, struct fetch_way way)
{
    fetch_stream(p + way.ahead, 0, (traits_of(type).bytes + 63) / 64, way.hint);
}

/* n_r <= 4 rows from r on, n_between rows apart, times columns c .. c + n_c - 1. */
INLINE void mul_four(enum tensor_type type, const struct q8_product *p, size_t r,
                     size_t n_between, size_t n_r, size_t c, size_t n_c)
{
    uint8_t tail[4][sizeof(union span)];
    const uint8_t *at[4];
    vf acc[WAYS_FEW_MOST];

    for (size_t j = 0; j < n_c; j++)
        acc[j] = vf_zero();
    UNROLL
    for (size_t k = 0; k < 4; k++)
        at[k] = p->w + (r + at_most(k, n_r - 1) * n_between) * p->w_stride;
    for (size_t i = 0; i * SPAN < p->n_k; i++) {
        UNROLL
        for (int k = 0; k < 4; k++)
            prefetch_span(type, at[k], p->fetch);
        if ((i + 1) * SPAN > p->n_k)
            copy_tails(traits_of(type), p, at, tail);
        add_span(type, at, p, i, c, n_c, acc);
        UNROLL
        for (int k = 0; k < 4; k++)
            at[k] += traits_of(type).bytes;
    }
    for (size_t j = 0; j < n_c; j++) {
        float y[4];

        vf_fold_groups(acc[j], y);
        for (size_t k = 0; k < n_r; k++)
            p->y[(c + j) * p->ldy + r + k * n_between] = y[k];
    }
}

/*
 * The four rows are a quarter of the matrix apart, so that memory is read as 4 long streams,
 * which the prefetcher of the CPU follows.  Q4_0 from memory with two threads: 89 % of the
 * bandwidth, with neighbouring rows 54 %, and 65 % with the best prefetch instructions.
 */
INLINE void mul_rows(enum tensor_type type, const struct q8_product *p, size_t c, size_t n_c)
{
    const size_t quarter = p->n_row / 4, left = p->n_row % 4;

    for (size_t r = 0; r < quarter + (left != 0); r++) {
        bool is_last = r == quarter;

        mul_four(type, p, is_last ? 4 * quarter : r, is_last ? 1 : quarter, is_last ? left : 4,
                 c, n_c);
    }
}

/* Tiles are slower with few columns: unpacking them takes as long as 6 columns on Zen.  They need a
 * vector of rows. */
INLINE void mul_q8(enum tensor_type type, const struct q8_product *p)
{
    const size_t panel = p->n_row < VN ? p->few : even_part(p->n_col, p->panel);

    if (p->n_col == 1) {
        mul_rows(type, p, 0, 1);
        return;
    }
    for (size_t c = 0; c < p->n_col; c += panel) {
        size_t n_c = at_most(p->n_col - c, panel);

        if (n_c <= p->few)
            mul_rows(type, p, c, n_c);
        else
            mul_panel(type, p, c, n_c);
    }
}

#endif
