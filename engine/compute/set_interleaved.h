/*
 * set_interleaved.h - interleaved weights (interleave.h) times columns of 8-bit numbers.
 *
 * Lanes are rows, as in set_mul_tile.h, but nothing has to be transposed: 32 values of a tile
 * are unpacked to 16 registers, and multiplied with one column after the other.  So a tile also
 * pays for one column.  Sums and additions are those of set_mul_tile.h.
 *
 * Only for vectors of 16 lanes with 32 registers.  With AVX2, one column takes 0.9 to 1.2 times
 * as long as four rows at a time, and 64 columns of K-quants 1.3 times as long as tiles of rows
 * in the file; with SSE4.1, everything takes longer.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_INTERLEAVED_H
#define MEMWALL_ENGINE_COMPUTE_SET_INTERLEAVED_H

#include "engine/compute/interleave.h"
#include "engine/compute/set_mul_rows.h"

#define HAS_INTERLEAVED

_Static_assert(VN == INTERLEAVED_ROWS && TILE_VECTORS == 2, "a tile is two groups");

INLINE size_t block_bytes(enum tensor_type type)
{
    return has_heads(type) ? traits_of(type).bytes / 8 : traits_of(type).bytes;
}

/* The dwords and heads of a group from a span on. */
struct lanes {
    const uint8_t *dwords, *heads;
};

/* Dword i of block b of the span. */
INLINE vb dword_at(enum tensor_type type, const struct lanes *l, size_t b, size_t i)
{
    return vb_load(l->dwords + 4 * INTERLEAVED_ROWS * (b * (block_bytes(type) / 4) + i));
}

/* The scales of block b of the span. */
INLINE vf head_at(enum tensor_type type, const struct lanes *l, size_t b)
{
    return type == TYPE_MXFP4 ? vf_load_e8m0(l->heads + INTERLEAVED_ROWS * b)
                              : vf_load_f16(l->heads + 2 * INTERLEAVED_ROWS * b);
}

/* The parts that the scales of a span are made of, for the types of 256. */
struct lane_scales {
    vb sc[2], mn[2];
    vf d, dmin;
};

INLINE void open_scales(enum tensor_type type, const struct lanes *l, struct lane_scales *to)
{
    vb head[4];

    if (type == TYPE_Q4_K || type == TYPE_Q5_K) {
        UNROLL
        for (size_t i = 0; i < 4; i++)
            head[i] = dword_at(type, l, 0, i);
        q4_k_scale_bytes(head, to->sc, to->mn);
        to->d = vf_of_low_f16(head[0], true);
        to->dmin = vf_of_high_f16(head[0], true);
    } else if (type == TYPE_Q6_K) {
        to->d = head_at(type, l, 0);
    } else if (type == TYPE_IQ4_XS) {
        to->sc[0] = dword_at(type, l, 0, 0);
        to->sc[1] = dword_at(type, l, 0, 1);
        to->d = vf_of_low_f16(to->sc[0], true);
    }
}

INLINE vf iq4_xs_scale(const struct lane_scales *from, int b)
{
    vb nibble = b % 2 == 0 ? vb_and(vi_byte(from->sc[1], b / 2), vb_all(15))
                           : vi_shift_right(vi_byte(from->sc[1], b / 2), 4);
    vb two = bits_at(vi_byte(from->sc[0], 2 + b / 4), 2 * (b % 4), 3, 4);

    return vf_mul(vf_sub(vf_of_vi(vb_or(nibble, two)), vf_all(32)), from->d);
}

/*
 * The scales of run b, or of its halves, and the minima that are added.  Each is made when it is
 * needed: all of a span would be kept on the stack.
 */
INLINE void scales_of_run(enum tensor_type type, const struct lanes *l,
                          const struct lane_scales *from, size_t b, vf *s, vf *m)
{
    const int at = (int)b;

    if (type == TYPE_Q4_K || type == TYPE_Q5_K) {
        s[0] = vf_mul(vf_of_vi(vi_byte(from->sc[at / 4], at % 4)), from->d);
        m[0] = vf_mul(vf_of_vi(vi_byte(from->mn[at / 4], at % 4)), from->dmin);
    } else if (type == TYPE_Q6_K) {
        vb sc = dword_at(type, l, 0, offsetof(struct block_q6_k, scales) / 4 + b / 2);

        UNROLL
        for (int h = 0; h < 2; h++)
            s[h] = vf_mul(vf_of_vi(vi_signed_byte(sc, 2 * (at % 2) + h)), from->d);
    } else if (type == TYPE_IQ4_XS) {
        s[0] = iq4_xs_scale(from, at);
    } else if (traits_of(type).has_minima) {
        vb head = dword_at(type, l, b, 0);

        tile_scales_of_heads(type, &head, s, m);
    } else {
        s[0] = head_at(type, l, b);
    }
}

INLINE void q6_k_run(const struct lanes *l, size_t b, vb *w)
{
    const size_t n = b / 4, i = b % 4;

    UNROLL
    for (size_t j = 0; j < 8; j++) {
        vb q = dword_at(TYPE_Q6_K, l, 0, 16 * n + 8 * (i % 2) + j);
        vb high = dword_at(TYPE_Q6_K, l, 0, offsetof(struct block_q6_k, high) / 4 + 8 * n + j);

        w[j] = vb_or(i < 2 ? vb_and(q, vb_all(15)) : vb_high_nibbles(q),
                     bits_at(high, 2 * (int)i, 3, 4));
    }
}

/* Run b of Q4_K and Q5_K: the low or the high nibbles of 32 bytes. */
INLINE void q4_k_run(enum tensor_type type, const struct lanes *l, size_t b, vb *w)
{
    const size_t at =
        (type == TYPE_Q5_K ? offsetof(struct block_q5_k, q) : offsetof(struct block_q4_k, q)) /
        4;

    UNROLL
    for (size_t j = 0; j < 8; j++) {
        vb q = dword_at(type, l, 0, at + 8 * (b / 2) + j);

        w[j] = b % 2 == 0 ? vb_and(q, vb_all(15)) : vb_high_nibbles(q);
        if (type == TYPE_Q5_K)
            w[j] = vb_or(
                w[j], bits_at(dword_at(type, l, 0, offsetof(struct block_q5_k, high) / 4 + j),
                              (int)b, 1, 4));
    }
}

/* Run b of the types with 16 bytes of nibbles for 32 values. */
INLINE void nibbles_run(enum tensor_type type, const struct lanes *l, size_t b, vb *w)
{
    const size_t block = type == TYPE_IQ4_XS ? 0 : b;
    const vb table = dot_bytes(type, vb_same_pieces(nibble_values(type)));
    size_t stride, at = nibbles_at(type, &stride) / 4 + (type == TYPE_IQ4_XS ? 4 * b : 0);
    vb high = vi_zero();

    if (type == TYPE_Q5_0 || type == TYPE_Q5_1)
        high = dword_at(type, l, block, at - 1);
    UNROLL
    for (size_t j = 0; j < 4; j++) {
        vb q = dword_at(type, l, block, at + j);

        w[j] = vb_and(q, vb_all(15));
        w[4 + j] = vb_high_nibbles(q);
    }
    UNROLL
    for (size_t j = 0; j < 8; j++) {
        if (type == TYPE_Q5_0 || type == TYPE_Q5_1)
            w[j] = vb_or(w[j], vb_fifth_bits(high, 4 * (int)j));
        if (has_nibble_values(type))
            w[j] = vb_lookup(table, w[j]);
    }
}

/* The 32 bytes of run b, as dwords. */
INLINE void run_of_lanes(enum tensor_type type, const struct lanes *l, size_t b, vb *w)
{
    if (type == TYPE_Q8_0) {
        UNROLL
        for (size_t j = 0; j < 8; j++)
            w[j] = dot_bytes(type, dword_at(type, l, b, j));
    } else if (type == TYPE_Q6_K) {
        q6_k_run(l, b, w);
    } else if (type == TYPE_Q4_K || type == TYPE_Q5_K) {
        q4_k_run(type, l, b, w);
    } else {
        nibbles_run(type, l, b, w);
    }
}

/* Run b of a tile. */
INLINE void unpack_run(enum tensor_type type, size_t n_g, const struct lanes *l,
                       const struct lane_scales *scales, size_t b, struct tile_run *u)
{
    const size_t n_half = by_16(type) ? 2 : 1;

    UNROLL
    for (size_t v = 0; v < n_g; v++) {
        vf s[2], m[2];
        vb w[8];

        run_of_lanes(type, &l[v], b, w);
        UNROLL
        for (size_t j = 0; j < 8; j++)
            u->w[j][v] = w[j];
        scales_of_run(type, &l[v], &scales[v], b, s, m);
        UNROLL
        for (size_t h = 0; h < n_half; h++) {
            u->s[h][v] = s[h];
            if (traits_of(type).has_minima)
                u->m[h][v] = m[h];
        }
    }
}

/*
 * Prefetch, with run b, an eighth of the span that is way.ahead bytes further.  Two threads, one
 * column from memory, ns for 512 weights (medians of 9 turns):
 *
 *                2048   3072   4352   6144   8192   11264   as in the file   plain reading
 *     Q4_0        9.6    9.5    8.6    8.6    8.9     8.7        10.4             8.2
 *     Q5_1       11.8   10.9   11.2   12.4   12.9    13.1        13.0            11.3
 *     Q8_0       16.3   16.2   16.2   16.8   17.1    17.2        16.3            15.8
 *     Q4_K       11.6    9.3    8.6    8.9    9.1     9.6         9.2             9.0
 *     Q5_K       12.2   10.8   10.6   10.8   11.1    11.6        11.6            10.2
 *     Q6_K       17.9   14.4   13.2   13.5   14.1    15.3        13.0            12.5
 *     MXFP4      11.0    9.8    9.5    9.7    9.8     9.8        11.8             7.9
 *
 * Without it, Q4_0 takes 1.3 times and Q6_K 2.4 times as long.  Prefetching into the second-level
 * cache only takes 1.2 times as long.  All that is on Zen; README.md has a Xeon, where more than a
 * page of 4096 bytes ahead is slower.
 */
INLINE void fetch_lines(const uint8_t *p, size_t bytes, size_t b, struct fetch_way way)
{
    const size_t lines = (bytes + 63) / 64, from = lines * b / 8, to = lines * (b + 1) / 8;

    if (way.hint == FETCH_BOTH)
        fetch_stream(p + way.ahead / 2, from, to, FETCH_FIRST);
    fetch_stream(p + way.ahead, from, to, way.hint);
}

/* Span i of a group. */
INLINE struct lanes lanes_of(enum tensor_type type, const struct q8_product *p,
                             const uint8_t *group, size_t i)
{
    const size_t bytes = INTERLEAVED_ROWS * block_bytes(type),
                 head = INTERLEAVED_ROWS * (block_bytes(type) % 4);
    const size_t n_block = p->n_k / (has_heads(type) ? 32 : SPAN);

    if (has_heads(type))
        return (struct lanes){ .heads = group + 8 * i * bytes,
                               .dwords =
                                   group + 8 * i * bytes + at_most(n_block - 8 * i, 8) * head };
    return (struct lanes){ .heads = group + i * head,
                           .dwords = group + n_block * head + i * (bytes - head) };
}

/* Add a span of n_g groups to the sums of n_c columns. */
INLINE void add_lanes(enum tensor_type type, size_t n_g, bool fetches,
                      const uint8_t *const *group, const struct q8_product *p, size_t i,
                      size_t c, size_t n_c, struct tile_sums *sums)
{
    const size_t n_run = at_most((p->n_k - i * SPAN) / 32, 8);
    struct lane_scales scales[TILE_VECTORS];
    struct lanes l[TILE_VECTORS];

    UNROLL
    for (size_t g = 0; g < n_g; g++) {
        l[g] = lanes_of(type, p, group[g], i);
        open_scales(type, &l[g], &scales[g]);
        if (type == TYPE_Q6_K && fetches)
            fetch_stream(l[g].heads + INTERLEAVED_ROWS * p->w_stride, 0, 1, p->fetch.hint);
    }
    UNROLL
    for (size_t b = 0; b < 8; b++) {
        struct tile_run u;

        if (has_heads(type) && b == n_run)
            break;
        if (fetches)
            UNROLL
        for (size_t g = 0; g < n_g; g++)
            fetch_lines(l[g].dwords, INTERLEAVED_ROWS * traits_of(type).bytes, b, p->fetch);
        /*
         * Runs of these types share dwords, which gcc would load once and keep on the stack.
         * Hiding that the address is the same makes one column of Q5_K 1.5 times as fast from
         * the cache, and 1.1 times the others.
         */
        if (type == TYPE_Q4_K || type == TYPE_Q5_K || type == TYPE_Q6_K)
            UNROLL
        for (size_t g = 0; g < n_g; g++)
            __asm__("" : "+r"(l[g].dwords));
        unpack_run(type, n_g, l, scales, b, &u);
        for (size_t j = 0; j < n_c; j++)
            add_run(type, offset_of(type), n_g, &u, column_span(p, c + j, i), (int)b, &sums[j]);
    }
}

/*
 * n_g groups, r[] are their first rows, times column c.  The sums stay in registers.  On the stack,
 * each run would wait for the one before: an Intel CPU that loads weights whose address has the
 * last 12 bits of a store waits until that is done, and so has fewer lines of memory on their way.
 */
INLINE void mul_lane_column(enum tensor_type type, size_t n_g, const struct q8_product *p,
                            const size_t *r, const uint8_t *const *group, size_t c,
                            bool fetches)
{
    struct tile_sums sums;

    UNROLL
    for (size_t k = 0; k < GROUPS; k++)
        UNROLL
    for (size_t g = 0; g < n_g; g++)
        sums.of[k][g] = vf_zero();
    for (size_t i = 0; i * SPAN < p->n_k; i++)
        add_lanes(type, n_g, fetches, group, p, i, c, 1, &sums);
    UNROLL
    for (size_t g = 0; g < n_g; g++)
        vf_store(p->y + c * p->ldy + r[g], vf_fold_sums(&sums.of[0][g], TILE_VECTORS));
}

/* Prefetch the lines that the results of a group are stored to.  Each column has others, so the
 * processor would wait for memory: 64 columns of 2048 values took 1.02 to 1.05 times as long. */
INLINE void fetch_results(const struct q8_product *p, size_t r, size_t c, size_t n_c)
{
    for (size_t j = 0; j < n_c; j++)
        __builtin_prefetch(p->y + (c + j) * p->ldy + r, 1, 3);
}

/* n_g groups, r[] are their first rows, times columns c .. c + n_c - 1. */
INLINE void mul_lane_tile(enum tensor_type type, size_t n_g, const struct q8_product *p,
                          const size_t *r, size_t c, size_t n_c, bool fetches)
{
    const uint8_t *group[TILE_VECTORS];
    struct tile_sums sums[NEAR_COLS];

    UNROLL
    for (size_t g = 0; g < n_g; g++)
        group[g] = p->w + r[g] * p->w_stride;
    if (n_c == 1) {
        mul_lane_column(type, n_g, p, r, group, c, fetches);
        return;
    }
    for (size_t j = 0; j < n_c; j++)
        for (size_t k = 0; k < GROUPS; k++)
            for (size_t g = 0; g < n_g; g++)
                sums[j].of[k][g] = vf_zero();
    for (size_t i = 0; i * SPAN < p->n_k; i++) {
        if ((i + 1) * SPAN >= p->n_k)
            for (size_t g = 0; g < n_g; g++)
                fetch_results(p, r[g], c, n_c);
        add_lanes(type, n_g, fetches, group, p, i, c, n_c, sums);
    }
    for (size_t j = 0; j < n_c; j++)
        UNROLL
    for (size_t g = 0; g < n_g; g++)
        vf_store(p->y + (c + j) * p->ldy + r[g], vf_fold_sums(&sums[j].of[0][g], TILE_VECTORS));
}

/* The bytes of tile_bytes() from those of dot_bytes(). */
INLINE vb signed_bytes(enum tensor_type type, vb w)
{
    return traits_of(type).is_signed ? vb_xor(w, vb_all(-128)) : tile_bytes(type, w);
}

/* Unpack span i of n_g groups for tiles of AMX. */
INLINE void unpack_lanes(enum tensor_type type, size_t n_g, const struct q8_product *p,
                         const uint8_t *const *group, size_t i, struct tile_span *to)
{
    const size_t n_run = at_most((p->n_k - i * SPAN) / 32, 8);

    if (n_run < 8) /* the row ends here */
        memset(to, 0, sizeof *to);
    for (size_t g = 0; g < n_g; g++) {
        struct lanes l = lanes_of(type, p, group[g], i);
        struct lane_scales scales;

        open_scales(type, &l, &scales);
        UNROLL
        for (size_t b = 0; b < 8; b++) {
            vb w[8];

            if (has_heads(type) && b == n_run)
                break;
            run_of_lanes(type, &l, b, w);
            UNROLL
            for (size_t j = 0; j < 8; j++)
                to->w[8 * b + j][g] = signed_bytes(type, w[j]);
            scales_of_run(type, &l, &scales, b, &to->s[b][g], &to->m[b][g]);
        }
    }
}

/* mul_lane_tile() with tiles of AMX and at most WAYS_LANE_MOST columns. */
INLINE void mul_amx_tile(enum tensor_type type, size_t n_g, const struct q8_product *p,
                         const size_t *r, size_t c, size_t n_c)
{
    const struct tile t = { .p = p, .c = c, .n_c = n_c };
    const size_t n_span = (p->n_k + SPAN - 1) / SPAN;
    const uint8_t *group[TILE_VECTORS];
    struct tile_sums sums[WAYS_LANE_MOST];
    struct tile_span span[TILE_SPANS];
    struct tile_next next = { .n = c == 0 ? n_g : 0,
                              .bytes = TILE_SPANS * INTERLEAVED_ROWS * traits_of(type).bytes };

    UNROLL
    for (size_t g = 0; g < n_g; g++)
        group[g] = p->w + r[g] * p->w_stride;
    for (size_t j = 0; j < n_c; j++)
        for (size_t k = 0; k < GROUPS; k++)
            for (size_t g = 0; g < n_g; g++)
                sums[j].of[k][g] = vf_zero();
    for (size_t i = 0; i < n_span; i += TILE_SPANS) {
        const size_t n = at_most(n_span - i, TILE_SPANS);

        for (size_t s = 0; s < n; s++)
            unpack_lanes(type, n_g, p, group, i + s, &span[s]);
        UNROLL
        for (size_t g = 0; g < n_g; g++)
            next.from[g] = lanes_of(type, p, group[g], i + n).dwords;
        amx_add_spans(n_g, &t, i, n, span, &next, sums);
    }
    for (size_t j = 0; j < n_c; j++)
        UNROLL
    for (size_t g = 0; g < n_g; g++)
        vf_store(p->y + (c + j) * p->ldy + r[g], vf_fold_sums(&sums[j].of[0][g], TILE_VECTORS));
}

/* n_g groups times columns c .. end - 1, while their weights are in the second-level cache.  With
 * few columns, tiles of AMX are slower: they have to be unpacked to memory. */
INLINE void mul_groups(enum tensor_type type, size_t n_g, const struct q8_product *p,
                       const size_t *r, size_t c, size_t end)
{
    if (tiles_take(type) && end - c >= p->amx_from) {
        mul_amx_tile(type, n_g, p, r, c, end - c);
        return;
    }
    for (size_t at = c; at < end; at += NEAR_COLS)
        mul_lane_tile(type, n_g, p, r, at, at_most(end - at, NEAR_COLS), at == c);
}

/* How many columns are multiplied with all rows first: those that fit the second-level cache. */
INLINE size_t lane_cols(const struct q8_product *p)
{
    size_t n = COLUMN_CACHE / p->x_stride / NEAR_COLS * NEAR_COLS;

    return n < NEAR_COLS ? NEAR_COLS : at_most(n, p->lane);
}

INLINE void mul_interleaved_q8(enum tensor_type type, const struct q8_product *p)
{
    const size_t part = p->n_row / INTERLEAVED_ROWS / TILE_VECTORS * INTERLEAVED_ROWS;
    const size_t panel = lane_cols(p);

    for (size_t c = 0; c < p->n_col; c += panel) {
        const size_t end = at_most(c + panel, p->n_col);

        for (size_t r = 0; r < part; r += INTERLEAVED_ROWS)
            mul_groups(type, TILE_VECTORS, p, (const size_t[]){ r, part + r }, c, end);
        if (part * TILE_VECTORS < p->n_row)
            mul_groups(type, 1, p, (const size_t[]){ part * TILE_VECTORS }, c, end);
    }
    AMX_RELEASE();
}

#define MUL_INTERLEAVED(TYPE, name)                                                            \
    static NOINLINE void mul_interleaved_##name(const struct q8_product *p)                    \
    {                                                                                          \
        mul_interleaved_q8(TYPE_##TYPE, p);                                                    \
    }
INTERLEAVED_TYPES(MUL_INTERLEAVED)

#define CALL_MUL_INTERLEAVED(TYPE, name)                                                       \
    case TYPE_##TYPE: mul_interleaved_##name(p); return;

static void mul_interleaved_columns(enum tensor_type type, const struct q8_product *p)
{
    switch ((int)type) {
        INTERLEAVED_TYPES(CALL_MUL_INTERLEAVED)
    default: break;
    }
    assert(false && "only interleaved types get here");
}

#endif
