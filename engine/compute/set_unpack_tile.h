/*
 * set_unpack_tile.h - spans of VN rows, unpacked so that the lanes of a vector are the rows.
 *
 * A piece of a vector is 16 bytes.  load_rows() reads 16 bytes of each row, with rows k, 4 + k,
 * 8 + k ... as the pieces of vector k, and transposes 4 x 4 dwords within the pieces.  Vector j
 * then has dword j of every row, in the order of the rows.  Most types are unpacked after that:
 * what takes nibbles and bits apart works on each byte alone, so the place of the
 * byte does not matter, and packed bytes are fewer to transpose.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_UNPACK_TILE_H
#define MEMWALL_ENGINE_COMPUTE_SET_UNPACK_TILE_H

#include "engine/compute/set_unpack.h"

#define GROUPS     (VN / 4)            /* of 16 or 32 values in a step: see set_mul_rows.h */
#define TILE_LANES (TILE_VECTORS * VN) /* rows of a tile */

/* A span of TILE_LANES rows.  Vector v has rows v * VN and the next. */
struct tile_span {
    vb w[SPAN / 4][TILE_VECTORS]; /* dword k of a row, as tile_bytes() has them */
    vf s[16][TILE_VECTORS], m[16][TILE_VECTORS]; /* of each 16 values, or of each 32 */
};

/* VN rows, stride bytes apart */
struct rows {
    const uint8_t *first;
    size_t stride;
};

/*
 * Whether tiles of AMX multiply a type.  With minima, or a scale for each 16 values, they take
 * as long as vectors, or longer: a product and a group take the time of 7 operations of
 * vectors, and scales and minima come on top.
 */
INLINE bool tiles_take(enum tensor_type type)
{
    return HAS_AMX && !by_16(type) && !traits_of(type).has_minima;
}

/*
 * Returns what is added to the numbers of a type in a tile.  A product of bytes that takes 0 ..
 * 255 needs no signs, and all types have 128 then, which the packed columns allow for.  Tiles
 * of AMX take signed numbers.
 */
INLINE int tile_offset(enum tensor_type type)
{
    if (tiles_take(type))
        return 0;
    if (DOT_TAKES_255 && (traits_of(type).is_signed || traits_of(type).offset != 0))
        return 128;
    return traits_of(type).offset;
}

INLINE vb tile_bytes(enum tensor_type type, vb w)
{
    int more = tile_offset(type) - traits_of(type).offset;

    if (traits_of(type).is_signed)
        return more != 0 ? vb_xor(w, vb_all((char)more)) : w;
    return more != 0 ? vb_add(w, vb_all((char)more)) : w;
}

/* v[j] = dword j of the 16 bytes at offset `at` of VN rows. */
INLINE void load_rows(struct rows p, size_t at, vb *v)
{
    UNROLL
    for (size_t k = 0; k < 4; k++)
        v[k] = vb_pieces(p.first + k * p.stride + at, 4 * p.stride);
    vi_transpose(v);
}

/* Store 4 dwords of VN rows. */
INLINE void put(enum tensor_type type, vb (*w)[TILE_VECTORS], size_t v, const vb *bytes)
{
    UNROLL
    for (int j = 0; j < 4; j++)
        w[j][v] = tile_bytes(type, bytes[j]);
}

/* Returns the bits of `mask` of the bytes of v >> shift, shifted left by `left`. */
INLINE vb bits_at(vb v, int shift, char mask, int left)
{
    return vb_and(shift >= left ? vi_shift_right(v, shift - left)
                                : vi_shift_left(v, left - shift),
                  vb_all((char)(mask << left)));
}

/* Blocks of 32: a head, then nibbles or bytes. */

INLINE void tile_scales_of_heads(enum tensor_type type, const vb *head, vf *s, vf *m)
{
    *s = traits_of(type).scale_bytes == 1 ? vf_of_low_e8m0(head[0])
                                          : vf_of_low_f16(head[0], false);
    if (traits_of(type).has_minima)
        *m = vf_mul(vf_of_high_f16(head[0], false), vf_all(-1)); /* see scales_of_blocks */
}

INLINE void tile_nibbles(enum tensor_type type, struct rows p, struct tile_span *t, size_t v)
{
    size_t stride, at = nibbles_at(type, &stride);
    vb table = tile_bytes(type, vb_same_pieces(nibble_values(type)));

    for (int b = 0; b < 8; b++) {
        vb head[4], q[4], w[8], high = vi_zero();

        if (has_heads(type)) {
            load_rows(p, (size_t)b * stride, head);
            tile_scales_of_heads(type, head, &t->s[b][v], &t->m[b][v]);
        }
        if (type == TYPE_Q5_0)
            high = vb_or(vi_shift_right(head[0], 16), vi_shift_left(head[1], 16));
        if (type == TYPE_Q5_1)
            high = head[1];
        load_rows(p, (size_t)b * stride + at, q);
        UNROLL
        for (int j = 0; j < 8; j++) {
            w[j] = j < 4 ? vb_and(q[j], vb_all(15)) : vb_high_nibbles(q[j - 4]);
            if (type == TYPE_Q5_0 || type == TYPE_Q5_1)
                w[j] = vb_or(w[j], vb_fifth_bits(high, 4 * j));
            t->w[8 * b + j][v] =
                has_nibble_values(type) ? vb_lookup(table, w[j]) : tile_bytes(type, w[j]);
        }
    }
}

INLINE void tile_q8_0(struct rows p, struct tile_span *t, size_t v)
{
    for (int b = 0; b < 8; b++) {
        size_t at = (size_t)b * sizeof(struct block_q8_0);
        vb head[4], q[4];

        load_rows(p, at, head);
        tile_scales_of_heads(TYPE_Q8_0, head, &t->s[b][v], &t->m[b][v]);
        for (int h = 0; h < 2; h++) {
            load_rows(p, at + offsetof(struct block_q8_0, q) + 16 * (size_t)h, q);
            put(TYPE_Q8_0, t->w + 8 * b + 4 * h, v, q);
        }
    }
}

/* K-quants */

/* q4_k_scales of set_unpack.h for VN rows, with the 4 dwords of each: d and dmin, then 3 of
 * scales. */
INLINE void q4_k_scale_bytes(const vb *head, vb *sc, vb *mn)
{
    sc[0] = vb_and(head[1], vb_all(0x3f));
    mn[0] = vb_and(head[2], vb_all(0x3f));
    sc[1] = vb_or(vb_and(head[3], vb_all(15)), bits_at(head[1], 6, 3, 4));
    mn[1] = vb_or(vb_high_nibbles(head[3]), bits_at(head[2], 6, 3, 4));
}

/* The scales and minima of 8 runs, to vector v of s and m. */
INLINE void q4_k_scales_of(const vb *head, vf (*s)[TILE_VECTORS], vf (*m)[TILE_VECTORS],
                           size_t v)
{
    vb sc[2], mn[2];

    q4_k_scale_bytes(head, sc, mn);

    vf d = vf_of_low_f16(head[0], true), dmin = vf_of_high_f16(head[0], true);

    UNROLL
    for (int b = 0; b < 8; b++) {
        s[b][v] = vf_mul(vf_of_vi(vi_byte(sc[b / 4], b % 4)), d);
        m[b][v] = vf_mul(vf_of_vi(vi_byte(mn[b / 4], b % 4)), dmin);
    }
}

INLINE void tile_q4_k_scales(struct rows p, struct tile_span *t, size_t v)
{
    vb head[4];

    load_rows(p, 0, head);
    q4_k_scales_of(head, t->s, t->m, v);
}

/* Nibbles of 32 bytes are two runs.  Bit b of the bytes at `fifth` is the fifth of run b. */
INLINE void tile_q4_k(enum tensor_type type, struct rows p, size_t q, size_t fifth,
                      struct tile_span *t, size_t v)
{
    for (int h = 0; h < 2; h++) { /* 16 values of each run */
        vb high[4], q4[4], w[4];

        if (type == TYPE_Q5_K)
            load_rows(p, fifth + 16 * (size_t)h, high);
        UNROLL
        for (int b = 0; b < 8; b++) {
            if (b % 2 == 0)
                load_rows(p, q + 16 * (size_t)(b + h), q4);
            UNROLL
            for (int j = 0; j < 4; j++) {
                w[j] = b % 2 == 0 ? vb_and(q4[j], vb_all(15)) : vb_high_nibbles(q4[j]);
                if (type == TYPE_Q5_K)
                    w[j] = vb_or(w[j], bits_at(high[j], b, 1, 4));
            }
            put(type, t->w + 8 * b + 4 * h, v, w);
        }
    }
}

/* The f16 at p, p + step ... */
INLINE vf vf_f16_of_rows(const uint8_t *p, size_t step)
{
    uint32_t h[VN];

    UNROLL
    for (size_t r = 0; r < VN; r++)
        h[r] = load_u16(p + r * step);
    return vf_of_low_f16(vb_load(h), true);
}

/* 16 signed scales, each times d, to vector v of s. */
INLINE void i8_scales_of(const vb *sc, vf d, vf (*s)[TILE_VECTORS], size_t v)
{
    UNROLL
    for (int g = 0; g < 16; g++)
        s[g][v] = vf_mul(vf_of_vi(vi_signed_byte(sc[g / 4], g % 4)), d);
}

INLINE void tile_i8_scales(struct rows p, size_t scales, size_t d_at, struct tile_span *t,
                           size_t v)
{
    vb sc[4];

    load_rows(p, scales, sc);
    i8_scales_of(sc, vf_f16_of_rows(p.first + d_at, p.stride), t->s, v);
}

INLINE void tile_q6_k(struct rows p, struct tile_span *t, size_t v)
{
    enum { HIGH = offsetof(struct block_q6_k, high) };

    for (size_t n = 0; n < 2; n++)
        for (size_t h = 0; h < 2; h++) {
            vb q[2][4], high[4], w[4];

            load_rows(p, 64 * n + 16 * h, q[0]);
            load_rows(p, 64 * n + 32 + 16 * h, q[1]);
            load_rows(p, HIGH + 32 * n + 16 * h, high);
            UNROLL
            for (int b = 0; b < 4; b++) {
                UNROLL
                for (int j = 0; j < 4; j++) {
                    vb both = q[b % 2][j];

                    w[j] = b < 2 ? vb_and(both, vb_all(15)) : vb_high_nibbles(both);
                    w[j] = vb_or(w[j], bits_at(high[j], 2 * b, 3, 4));
                }
                put(TYPE_Q6_K, t->w + 8 * (4 * n + (size_t)b) + 4 * h, v, w);
            }
        }
}

/* Every other type: rows are unpacked one by one, then transposed. */

struct row_bytes {
    _Alignas(64) uint8_t w[SPAN + 64]; /* rows in different lines of the cache */
};

INLINE void tile_other(enum tensor_type type, struct rows p, struct tile_span *t, size_t v)
{
    struct row_bytes row[VN];
    float s16[VN][16], m16[VN][16];
    const struct rows w = { row[0].w, sizeof row[0] };
    const struct rows s = { (const uint8_t *)s16[0], sizeof s16[0] };
    const struct rows m = { (const uint8_t *)m16[0], sizeof m16[0] };

    for (size_t r = 0; r < VN; r++) {
        const uint8_t *span = p.first + r * p.stride;
        vf rs[NS], rm[NS];

        scales_of(type, span, rs, rm);
        UNROLL
        for (int i = 0; i < NS; i++) {
            vf_store(s16[r] + i * VN, rs[i]);
            if (traits_of(type).has_minima)
                vf_store(m16[r] + i * VN, rm[i]);
        }
        UNROLL
        for (int c = 0; c < CHUNKS; c++)
            vb_store(row[r].w + c * CHUNK, chunk_of(type, span, c));
    }
    for (size_t i = 0; i < SPAN / 16; i++) {
        vb four[4];

        load_rows(w, 16 * i, four);
        put(type, t->w + 4 * i, v, four);
    }
    for (size_t i = 0; i < 4; i++) {
        const size_t n = by_16(type) ? 4 : 2; /* scales of 32 values are stored twice */
        vb four[4];

        load_rows(s, 16 * i, four);
        UNROLL
        for (size_t j = 0; j < n; j++)
            t->s[n * i + j][v] = vf_bits(four[j * 4 / n]);
        if (!traits_of(type).has_minima)
            continue;
        load_rows(m, 16 * i, four);
        UNROLL
        for (size_t j = 0; j < n; j++)
            t->m[n * i + j][v] = vf_bits(four[j * 4 / n]);
    }
}

/* Unpack a span of VN rows to vector v of *t. */
INLINE void unpack_tile(enum tensor_type type, struct rows p, struct tile_span *t, size_t v)
{
    size_t stride;

    if (type == TYPE_Q8_0) {
        tile_q8_0(p, t, v);
    } else if (has_heads(type) && nibbles_at(type, &stride) != 0) {
        tile_nibbles(type, p, t, v);
    } else if (type == TYPE_Q4_K) {
        tile_q4_k_scales(p, t, v);
        tile_q4_k(type, p, offsetof(struct block_q4_k, q), 0, t, v);
    } else if (type == TYPE_Q5_K) {
        tile_q4_k_scales(p, t, v);
        tile_q4_k(type, p, offsetof(struct block_q5_k, q), offsetof(struct block_q5_k, high), t,
                  v);
    } else if (type == TYPE_Q6_K) {
        tile_i8_scales(p, offsetof(struct block_q6_k, scales), offsetof(struct block_q6_k, d),
                       t, v);
        tile_q6_k(p, t, v);
    } else {
        tile_other(type, p, t, v);
    }
}

#endif
