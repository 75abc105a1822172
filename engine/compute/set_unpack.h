/*
 * set_unpack.h - packed weights as vectors of 8-bit numbers with float scales.
 *
 * A span is 256 values: a block of the types of 256, 4 of those of 64, 8 of those of 32.  It
 * has 8 runs of 32 bytes and, for each 16 values, a scale s and a minimum m:
 *     value = s * (byte - offset) - m
 * The scale of a block times the scale of a group within it is exact, so nothing is
 * rounded here.
 *
 * Each type has a section below.  A type of 32 has one function:
 *     run_NAME(block)          the 32 bytes of a block; scales come from the layout
 * A type of 64 or 256 has two, which get the first block of a span:
 *     run_NAME(block, b)       bytes 32 * b .. 32 * b + 31
 *     scales_NAME(block, s, m) s and, where the type has minima, m of 16 groups of 16
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_UNPACK_H
#define MEMWALL_ENGINE_COMPUTE_SET_UNPACK_H

#include <assert.h>
#include <stdbool.h>

#include "engine/compute/dequant.h"
#include "engine/compute/grids.h"
#include "engine/compute/half.h"
#include "engine/compute/quants.h"
#include VECTORS

#ifndef HAS_AMX
#define HAS_AMX 0
#endif

#define SPAN   256
#define CHUNK  (4 * VN) /* bytes of a vector */
#define CHUNKS (SPAN / CHUNK)

/* 16 bytes of nibbles: 32 values */
INLINE u8x32 nibbles(const uint8_t *p)
{
    u8x16 q = load_16(p);

    return join_16(q & 15, q >> 4);
}

/* Two bits per value: 32 bytes hold runs b % 4 = 0 .. 3 from the lowest bits up. */
INLINE u8x32 two_bits(const uint8_t *q, int b)
{
    return load_32(q + 32 * (b / 4)) >> (2 * (b % 4)) & 3;
}

/* Four bits per value: 32 bytes hold two runs. */
INLINE u8x32 four_bits(const uint8_t *q, int b)
{
    return load_32(q + 32 * (b / 2)) >> (4 * (b % 2)) & 15;
}

/* Bit b of each of 32 bytes. */
INLINE u8x32 one_bit(const uint8_t *high, int b)
{
    return load_32(high) >> b & 1;
}

INLINE uint64_t load_u64(const uint8_t *p)
{
    return (uint64_t)load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

/* 8 nibbles as 8 bytes */
INLINE uint64_t spread_nibbles(uint64_t v)
{
    v = (v | v << 16) & 0x0000ffff0000ffff;
    v = (v | v << 8) & 0x00ff00ff00ff00ff;
    return (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
}

/* 8 pairs of bits as 8 bytes */
INLINE uint64_t spread_pairs(uint64_t v)
{
    v = (v | v << 24) & 0x000000ff000000ff;
    v = (v | v << 12) & 0x000f000f000f000f;
    return (v | v << 6) & 0x0303030303030303;
}

/* 16 nibbles as 16 bytes */
INLINE u8x16 nibbles_of_64(uint64_t v)
{
    u8x16 low = (u8x16)(u64x2){ v & 0x0f0f0f0f0f0f0f0f, 0 };
    u8x16 high = (u8x16)(u64x2){ v >> 4 & 0x0f0f0f0f0f0f0f0f, 0 };

    return __builtin_shufflevector(low, high, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22,
                                   7, 23);
}

/* 8 bytes, `step` bytes apart */
INLINE uint64_t every_byte(const uint8_t *p, size_t step)
{
    uint64_t v = 0;

    UNROLL
    for (size_t b = 0; b < 8; b++)
        v |= (uint64_t)p[b * step] << (8 * b);
    return v;
}

/* One scale for the whole span. */
INLINE void same_scales(float d, vf *s)
{
    for (int i = 0; i < NS; i++)
        s[i] = vf_all(d);
}

typedef uint8_t u8xv __attribute__((vector_size(VN)));
typedef int32_t i32xv __attribute__((vector_size(4 * VN)));
typedef uint32_t u32xv __attribute__((vector_size(4 * VN)));
typedef float f32xv __attribute__((vector_size(4 * VN)));

/* half_of_e4m3 of 16 bytes */
INLINE void scales_of_e4m3(u8x16 e, vf *s)
{
    u8xv bytes[NS];

    memcpy(bytes, &e, sizeof e);
    UNROLL
    for (int i = 0; i < NS; i++) {
        i32xv code = __builtin_convertvector(bytes[i], i32xv), w = code & 0x7f;
        f32xv small = __builtin_convertvector(w, f32xv) * 0x1p-10f;
        u32xv is_small = (u32xv)(w < 8), is_number = (u32xv)(code != 0x7f);
        u32xv bits = (is_small & (u32xv)small) |
                     (~is_small & is_number & ((u32xv)(w << 20) + (119u << 23)));

        memcpy(&s[i], &bits, sizeof bits);
    }
}

/* Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 */

INLINE u8x32 run_q4_0(const struct block_q4_0 *p)
{
    return nibbles(p->q);
}

INLINE u8x32 run_q4_1(const struct block_q4_1 *p)
{
    return nibbles(p->q);
}

INLINE u8x32 run_q5_0(const struct block_q5_0 *p)
{
    return nibbles(p->q) | spread_bits(load_u32(p->high), 16);
}

INLINE u8x32 run_q5_1(const struct block_q5_1 *p)
{
    return nibbles(p->q) | spread_bits(load_u32(p->high), 16);
}

INLINE u8x32 run_q8_0(const struct block_q8_0 *p)
{
    return load_32(p->q);
}

/* Q2_K */

INLINE u8x32 run_q2_k(const struct block_q2_k *p, int b)
{
    return two_bits(p->q, b);
}

INLINE void scales_q2_k(const struct block_q2_k *p, vf *s, vf *m)
{
    scales_of_i8(load_16(p->scales) & 15, f32_of_half(p->d), s);
    scales_of_i8(load_16(p->scales) >> 4, f32_of_half(p->dmin), m);
}

/* Q3_K */

INLINE u8x32 run_q3_k(const struct block_q3_k *p, int b)
{
    return two_bits(p->q, b) | one_bit(p->high, b) << 2;
}

INLINE void scales_q3_k(const struct block_q3_k *p, vf *s, vf *m)
{
    uint64_t low = load_u64(p->scales), high = load_u32(p->scales + 8);
    uint64_t first = (high & 0x03030303) | (high >> 2 & 0x03030303) << 32;
    uint64_t second = (high >> 4 & 0x03030303) | (high >> 6 & 0x03030303) << 32;
    u64x2 sc = { (low & 0x0f0f0f0f0f0f0f0f) | first << 4,
                 (low >> 4 & 0x0f0f0f0f0f0f0f0f) | second << 4 };

    (void)m;
    scales_of_i8((u8x16)sc - 32, f32_of_half(p->d), s);
}

/* Q4_K, Q5_K */

/* q4_k_scales of dequant.c, 4 bytes at a time. */
INLINE void q4_k_scales(const uint8_t *p, uint64_t *sc, uint64_t *mn)
{
    uint32_t a = load_u32(p), b = load_u32(p + 4), c = load_u32(p + 8);
    uint32_t sc_high = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
    uint32_t mn_high = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4;

    *sc = (a & 0x3f3f3f3f) | (uint64_t)sc_high << 32;
    *mn = (b & 0x3f3f3f3f) | (uint64_t)mn_high << 32;
}

INLINE u8x32 run_q4_k(const struct block_q4_k *p, int b)
{
    return four_bits(p->q, b);
}

INLINE void scales_q4_k(const struct block_q4_k *p, vf *s, vf *m)
{
    uint64_t sc, mn;

    q4_k_scales(p->scales, &sc, &mn);
    scales_of_i8(twice_8(sc), f32_of_half(p->d), s);
    scales_of_i8(twice_8(mn), f32_of_half(p->dmin), m);
}

INLINE u8x32 run_q5_k(const struct block_q5_k *p, int b)
{
    return four_bits(p->q, b) | one_bit(p->high, b) << 4;
}

INLINE void scales_q5_k(const struct block_q5_k *p, vf *s, vf *m)
{
    uint64_t sc, mn;

    q4_k_scales(p->scales, &sc, &mn);
    scales_of_i8(twice_8(sc), f32_of_half(p->d), s);
    scales_of_i8(twice_8(mn), f32_of_half(p->dmin), m);
}

/* Q6_K */

INLINE u8x32 run_q6_k(const struct block_q6_k *p, int b)
{
    const uint8_t *q = p->q + 64 * (b / 4) + 32 * (b % 2);

    return (load_32(q) >> (4 * (b % 4 / 2)) & 15) | two_bits(p->high, b) << 4;
}

INLINE void scales_q6_k(const struct block_q6_k *p, vf *s, vf *m)
{
    (void)m;
    scales_of_i8(load_16(p->scales), f32_of_half(p->d), s);
}

/* IQ4_NL, IQ4_XS */

INLINE u8x32 run_iq4_nl(const struct block_iq4_nl *p)
{
    return lookup_16(iq4_values, nibbles(p->q));
}

INLINE u8x32 run_iq4_xs(const struct block_iq4_xs *p, int b)
{
    return lookup_16(iq4_values, nibbles(p->q + 16 * b));
}

INLINE void scales_iq4_xs(const struct block_iq4_xs *p, vf *s, vf *m)
{
    uint64_t low = spread_nibbles(load_u32(p->scales + 2));
    uint64_t high = spread_pairs(load_u16(p->scales));

    (void)m;
    scales_of_i8(twice_8(low | high << 4) - 32, f32_of_half(p->d), s);
}

/* MXFP4 */

INLINE u8x32 run_mxfp4(const struct block_mxfp4 *p)
{
    return lookup_16(mxfp4_values, nibbles(p->q));
}

/* NVFP4: 16 bytes of nibbles are two groups of 16 values. */

INLINE u8x32 run_nvfp4(const struct block_nvfp4 *p, int b)
{
    u8x16 q = load_16(p[b / 2].q + 16 * (b % 2)), low = q & 15, high = q >> 4;
    u8x16 first = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20,
                                          21, 22, 23);
    u8x16 second = __builtin_shufflevector(low, high, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26,
                                           27, 28, 29, 30, 31);

    return lookup_16(mxfp4_values, join_16(first, second));
}

INLINE void scales_nvfp4(const struct block_nvfp4 *p, vf *s, vf *m)
{
    u32x4 four = { load_u32(p[0].scales), load_u32(p[1].scales), load_u32(p[2].scales),
                   load_u32(p[3].scales) };

    (void)m;
    scales_of_e4m3((u8x16)four, s);
}

/* TQ1_0: runs 0 .. 4 are digits 0 .. 4 of 32 bytes, runs 5 .. 7 consist of parts. */

/* q * 3^n modulo 256: digit n moves to the front. */
INLINE u8x32 times_3_to(u8x32 q, int n)
{
    UNROLL
    for (int i = 0; i < n; i++)
        q = q + q + q;
    return q;
}

/* The first base-3 digit, q * 3 / 256, in 8 bits: the mean of q and q / 2 is q * 3 / 4. */
INLINE u8x32 first_digit(u8x32 q)
{
    u8x32 half = q >> 1;

    return ((q & half) + ((q ^ half) >> 1)) >> 6;
}

INLINE u8x32 run_tq1_0(const struct block_tq1_0 *p, int b)
{
    u8x16 q = load_16(p->q + 32), q3 = q + q + q;
    uint64_t last = load_u32(p->last) * (uint64_t)0x100000001;
    u8x16 power = { 1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27 };

    if (b < 5)
        return first_digit(times_3_to(load_32(p->q), b));
    if (b < 7)
        return first_digit(times_3_to(join_16(q, q3), 2 * (b - 5)));
    return first_digit(join_16(q * 81, (u8x16)(u64x2){ last, last } * power));
}

INLINE void scales_tq1_0(const struct block_tq1_0 *p, vf *s, vf *m)
{
    (void)m;
    same_scales(f32_of_half(p->d), s);
}

/* TQ2_0 */

INLINE u8x32 run_tq2_0(const struct block_tq2_0 *p, int b)
{
    return two_bits(p->q, b);
}

INLINE void scales_tq2_0(const struct block_tq2_0 *p, vf *s, vf *m)
{
    (void)m;
    same_scales(f32_of_half(p->d), s);
}

/* IQ2, IQ3: magnitudes from a code book (grids.h), and bits of signs. */

/* Negate the bytes whose bit is set. */
INLINE u8x32 with_signs(u8x32 v, uint32_t signs)
{
    u8x32 negative = spread_bits(signs, -1);

    return (v ^ negative) - negative;
}

/* Four bytes of 7 signs each.  The eighth makes the number of set bits even. */
INLINE uint32_t even_signs(uint32_t s)
{
    uint32_t odd = s ^ s >> 4;

    odd ^= odd >> 2;
    odd ^= odd >> 1;
    return s | (odd & 0x01010101) << 7;
}

/* The same from the low 28 bits. */
INLINE uint32_t even_signs_of_28(uint32_t v)
{
    return even_signs((v & 0x7f) | (v << 1 & 0x7f00) | (v << 2 & 0x7f0000) |
                      (v << 3 & 0x7f000000));
}

/* s = d * (2 * sc + 1) */
INLINE void odd_scales(u8x16 sc, float d, vf *s)
{
    scales_of_i8(sc + sc + 1, d, s);
}

INLINE u8x32 run_iq2_xxs(const struct block_iq2_xxs *p, int b)
{
    const uint8_t *q = p->q + 8 * b;
    u64x4 v = { iq2_xxs_grid[q[0]], iq2_xxs_grid[q[1]], iq2_xxs_grid[q[2]],
                iq2_xxs_grid[q[3]] };

    return with_signs((u8x32)v, even_signs_of_28(load_u32(q + 4)));
}

INLINE void scales_iq2_xxs(const struct block_iq2_xxs *p, vf *s, vf *m)
{
    uint64_t sc = every_byte(p->q + 7, 8) >> 4 & 0x0f0f0f0f0f0f0f0f;

    (void)m;
    odd_scales(twice_8(sc), f32_of_half(p->d) * 0.125f, s);
}

INLINE u8x32 run_iq2_xs(const struct block_iq2_xs *p, int b)
{
    uint64_t q = load_u64(p->q + 8 * b);
    u64x4 v = { iq2_xs_grid[q & 511], iq2_xs_grid[q >> 16 & 511], iq2_xs_grid[q >> 32 & 511],
                iq2_xs_grid[q >> 48 & 511] };
    uint64_t signs =
        (q >> 9 & 0x7f) | (q >> 17 & 0x7f00) | (q >> 25 & 0x7f0000) | (q >> 33 & 0x7f000000);

    return with_signs((u8x32)v, even_signs((uint32_t)signs));
}

INLINE void scales_iq2_xs(const struct block_iq2_xs *p, vf *s, vf *m)
{
    (void)m;
    odd_scales(nibbles_of_64(load_u64(p->scales)), f32_of_half(p->d) * 0.125f, s);
}

INLINE u8x32 run_iq2_s(const struct block_iq2_s *p, int b)
{
    const uint8_t *q = p->q + 4 * b;
    unsigned high = p->high[b];
    u64x4 v = { iq2_s_grid[q[0] | (high << 8 & 0x300)], iq2_s_grid[q[1] | (high << 6 & 0x300)],
                iq2_s_grid[q[2] | (high << 4 & 0x300)],
                iq2_s_grid[q[3] | (high << 2 & 0x300)] };

    return with_signs((u8x32)v, load_u32(p->signs + 4 * b));
}

INLINE void scales_iq2_s(const struct block_iq2_s *p, vf *s, vf *m)
{
    (void)m;
    odd_scales(nibbles_of_64(load_u64(p->scales)), f32_of_half(p->d) * 0.125f, s);
}

INLINE u8x32 run_iq3_xxs(const struct block_iq3_xxs *p, int b)
{
    const uint8_t *q = p->q + 8 * b;
    const uint32_t *grid = iq3_xxs_grid;
    u32x8 v = { grid[q[0]], grid[q[1]], grid[q[2]], grid[q[3]],
                grid[q[4]], grid[q[5]], grid[q[6]], grid[q[7]] };

    return with_signs((u8x32)v, even_signs_of_28(load_u32(p->signs + 4 * b)));
}

INLINE void scales_iq3_xxs(const struct block_iq3_xxs *p, vf *s, vf *m)
{
    uint64_t sc = every_byte(p->signs + 3, 4) >> 4 & 0x0f0f0f0f0f0f0f0f;

    (void)m;
    odd_scales(twice_8(sc), f32_of_half(p->d) * 0.25f, s);
}

INLINE u8x32 run_iq3_s(const struct block_iq3_s *p, int b)
{
    const uint8_t *q = p->q + 8 * b;
    const uint32_t *grid = iq3_s_grid;
    unsigned high = p->high[b];
    u32x8 v = { grid[q[0] | (high << 8 & 256)], grid[q[1] | (high << 7 & 256)],
                grid[q[2] | (high << 6 & 256)], grid[q[3] | (high << 5 & 256)],
                grid[q[4] | (high << 4 & 256)], grid[q[5] | (high << 3 & 256)],
                grid[q[6] | (high << 2 & 256)], grid[q[7] | (high << 1 & 256)] };

    return with_signs((u8x32)v, load_u32(p->signs + 4 * b));
}

INLINE void scales_iq3_s(const struct block_iq3_s *p, vf *s, vf *m)
{
    (void)m;
    odd_scales(twice_8(spread_nibbles(load_u32(p->scales))), f32_of_half(p->d), s);
}

/* IQ1: bytes are 8 times the value plus the shift, 1 or -1, so s is an eighth. */

INLINE u8x32 run_iq1_s(const struct block_iq1_s *p, int b)
{
    const uint8_t *q = p->q + 4 * b;
    unsigned high = load_u16(p->high + 2 * b);
    u64x4 v = { iq1_grid[q[0] | (high << 8 & 0x700)], iq1_grid[q[1] | (high << 5 & 0x700)],
                iq1_grid[q[2] | (high << 2 & 0x700)], iq1_grid[q[3] | (high >> 1 & 0x700)] };

    return (u8x32)v + (uint8_t)(high & 0x8000 ? -1 : 1);
}

INLINE void scales_iq1_s(const struct block_iq1_s *p, vf *s, vf *m)
{
    uint64_t sc = every_byte(p->high + 1, 2) >> 4 & 0x0707070707070707;

    (void)m;
    odd_scales(twice_8(sc), f32_of_half(p->d) * 0.125f, s);
}

INLINE u8x32 run_iq1_m(const struct block_iq1_m *p, int b)
{
    const uint8_t *q = p->q + 4 * b;
    unsigned high = load_u16(p->high + 2 * b);
    u64x4 v = { iq1_grid[q[0] | (high << 8 & 0x700)], iq1_grid[q[1] | (high << 4 & 0x700)],
                iq1_grid[q[2] | (high & 0x700)], iq1_grid[q[3] | (high >> 4 & 0x700)] };
    uint32_t down =
        (high >> 3 & 1) | (high << 1 & 0x100) | (high << 5 & 0x10000) | (high << 9 & 0x1000000);

    return (u8x32)v + (spread_bits(down * 0xff, -1) | 1);
}

INLINE void scales_iq1_m(const struct block_iq1_m *p, vf *s, vf *m)
{
    uint64_t v = load_u64(p->scales);
    uint64_t half =
        (v >> 12 & 0x0f) | (v >> 24 & 0xf0) | (v >> 36 & 0xf00) | (v >> 48 & 0xf000);
    u32x4 word = { v & 0xfff, v >> 16 & 0xfff, v >> 32 & 0xfff, v >> 48 & 0xfff };
    u32x4 sc =
        (word & 7) | (word << 5 & 0x700) | (word << 10 & 0x70000) | (word << 15 & 0x7000000);
    uint8_t d[2];

    (void)m;
    store_u16(d, (uint16_t)half);
    odd_scales((u8x16)sc, f32_of_half(d) * 0.125f, s);
}

/*
 * Nothing below is specific to a type.
 *
 * Each switch is generated from the table of types and folds to one case, because type is
 * a constant wherever these functions are inlined.  Only block types get here.
 */

struct span_traits {
    size_t bytes;       /* per span */
    size_t scale_bytes; /* of a block of 32: 2 for f16, 1 for E8M0 */
    int group;          /* values that share a scale: 16 or 32 */
    bool is_signed;     /* bytes are -128 .. 127, otherwise 0 .. 127 */
    bool has_minima;
    uint8_t offset;
};

#define TRAITS(TYPE, span_bytes, d_bytes, n_same, sign, off, minima)                           \
    case TYPE_##TYPE:                                                                          \
        return (struct span_traits){ .bytes = span_bytes,                                      \
                                     .scale_bytes = d_bytes,                                   \
                                     .group = n_same,                                          \
                                     .is_signed = sign,                                        \
                                     .has_minima = minima,                                     \
                                     .offset = off };
#define TRAITS_32(TYPE, name, id, bytes, group, sign, off, minima, ...)                        \
    TRAITS(TYPE, sizeof(struct block_##name[8]), sizeof((struct block_##name *)0)->d, group,   \
           sign, off, minima)
#define TRAITS_64(TYPE, name, id, bytes, group, sign, off, minima, ...)                        \
    TRAITS(TYPE, sizeof(struct block_##name[4]), 0, group, sign, off, minima)
#define TRAITS_256(TYPE, name, id, bytes, group, sign, off, minima, ...)                       \
    TRAITS(TYPE, sizeof(struct block_##name), 0, group, sign, off, minima)

INLINE struct span_traits traits_of(enum tensor_type type)
{
    switch (type) {
        TYPES_OF_32(TRAITS_32)
        TYPES_OF_64(TRAITS_64)
        TYPES_OF_256(TRAITS_256)
        FLOAT_TYPES(CASE_OF)
        OTHER_TYPES(CASE_OF)
        break;
    }
    __builtin_unreachable();
}

/* Do the scales of this type stand for 16 values each? */
INLINE bool by_16(enum tensor_type type)
{
    return traits_of(type).group == 16;
}

/* Is this a type of 32, whose scales are in front of each block? */
INLINE bool has_heads(enum tensor_type type)
{
    return traits_of(type).scale_bytes != 0;
}

/* Nibbles of these types are places in a table of 16 values. */
INLINE bool has_nibble_values(enum tensor_type type)
{
    return type == TYPE_IQ4_NL || type == TYPE_IQ4_XS || type == TYPE_MXFP4;
}

INLINE const int8_t *nibble_values(enum tensor_type type)
{
    return type == TYPE_MXFP4 ? mxfp4_values : iq4_values;
}

/* Returns the offset of the first of 16 bytes of nibbles per group of 32 values, and the
 * distance of the next in *stride; 0 if the type has another layout. */
INLINE size_t nibbles_at(enum tensor_type type, size_t *stride)
{
    *stride = traits_of(type).bytes / 8;
    switch ((int)type) {
    case TYPE_Q4_0: return offsetof(struct block_q4_0, q);
    case TYPE_Q4_1: return offsetof(struct block_q4_1, q);
    case TYPE_Q5_0: return offsetof(struct block_q5_0, q);
    case TYPE_Q5_1: return offsetof(struct block_q5_1, q);
    case TYPE_IQ4_NL: return offsetof(struct block_iq4_nl, q);
    case TYPE_MXFP4: return offsetof(struct block_mxfp4, q);
    case TYPE_IQ4_XS: *stride = 16; return offsetof(struct block_iq4_xs, q);
    default: return 0;
    }
}

#define SPAN_OF_32(TYPE, name, ...)  struct block_##name name[8];
#define SPAN_OF_64(TYPE, name, ...)  struct block_##name name[4];
#define SPAN_OF_256(TYPE, name, ...) struct block_##name name;

union span {
    TYPES_OF_32(SPAN_OF_32)
    TYPES_OF_64(SPAN_OF_64)
    TYPES_OF_256(SPAN_OF_256)
};

#define RUN_32(TYPE, name, ...)                                                                \
    case TYPE_##TYPE:                                                                          \
        return run_##name((const struct block_##name *)(const void *)p + b);
#define RUN_256(TYPE, name, ...)                                                               \
    case TYPE_##TYPE: return run_##name((const void *)p, b);

/* Values 32 * b .. 32 * b + 31 of the span at p. */
INLINE u8x32 run_of(enum tensor_type type, const uint8_t *p, int b)
{
    switch (type) {
        TYPES_OF_32(RUN_32)
        TYPES_OF_64(RUN_256)
        TYPES_OF_256(RUN_256)
        FLOAT_TYPES(CASE_OF)
        OTHER_TYPES(CASE_OF)
        break;
    }
    __builtin_unreachable();
}

INLINE vb chunk_of(enum tensor_type type, const uint8_t *p, int c)
{
#if RUNS_PER_CHUNK == 2
    u8x32 run[2] = { run_of(type, p, 2 * c), run_of(type, p, 2 * c + 1) };

    return vb_of_runs(run);
#elif RUNS_PER_CHUNK == 1
    u8x32 run = run_of(type, p, c);

    return vb_of_runs(&run);
#else /* half a run */
    u8x32 run = run_of(type, p, c / 2);

    return vb_of_half_run(&run, c % 2);
#endif
}

/* The f16 at byte `at` of each of 8 blocks. */
INLINE u16x8 halves_of_blocks(const uint8_t *p, size_t block_bytes, size_t at)
{
    u16x8 h;

    for (size_t b = 0; b < 8; b++)
        h[b] = load_u16(p + b * block_bytes + at);
    return h;
}

/* half_of_e8m0 of 16 bytes */
INLINE void scales_of_e8m0(u8x16 e, vf *s)
{
    u8xv bytes[NS];

    memcpy(bytes, &e, sizeof e);
    UNROLL
    for (int i = 0; i < NS; i++) {
        u32xv w = __builtin_convertvector(bytes[i], u32xv);
        u32xv is_small = (u32xv)(w < 2);
        u32xv bits = (is_small & (0x00200000 + (w << 21))) | (~is_small & (w - 1) << 23);

        memcpy(&s[i], &bits, sizeof bits);
    }
}

/* The scales of 8 blocks of 32, and their minima. */
INLINE void scales_of_blocks(struct span_traits t, const uint8_t *p, vf *s, vf *m)
{
    if (t.scale_bytes == 1)
        scales_of_e8m0(twice_8(every_byte(p, t.bytes / 8)), s);
    else
        scales_of_f16(halves_of_blocks(p, t.bytes / 8, 0), s);
    if (!t.has_minima)
        return;
    scales_of_f16(halves_of_blocks(p, t.bytes / 8, 2), m);
    for (int i = 0; i < NS; i++)
        m[i] = vf_mul(m[i], vf_all(-1)); /* 0 - m would change the sign of a zero */
}

#define SCALES_256(TYPE, name, ...)                                                            \
    case TYPE_##TYPE: scales_##name((const void *)p, s, m); return;

/* s and, where the type has minima, m of the span's 16 groups of 16 values. */
INLINE void scales_of(enum tensor_type type, const uint8_t *p, vf *s, vf *m)
{
    switch (type) {
        TYPES_OF_32(CASE_OF)
        scales_of_blocks(traits_of(type), p, s, m);
        return;
        TYPES_OF_64(SCALES_256)
        TYPES_OF_256(SCALES_256)
        FLOAT_TYPES(CASE_OF)
        OTHER_TYPES(CASE_OF)
        break;
    }
    __builtin_unreachable();
}

/* dst[i] = s * (byte i - offset) - m for 16 values */
INLINE void dequant_16(struct span_traits t, const uint8_t *bytes, float s, float m, float *dst)
{
    UNROLL
    for (int i = 0; i < 16; i += VN) {
        vf v = t.is_signed ? vf_load_i8(bytes + i) : vf_load_u8(bytes + i);

        if (t.offset != 0)
            v = vf_sub(v, vf_all(t.offset));
        v = vf_mul(v, vf_all(s));
        if (t.has_minima)
            v = vf_sub(v, vf_all(m));
        vf_store(dst + i, v);
    }
}

/* Decode a type of 256, with the bits of dequant.c.  n is a multiple of 256. */
INLINE void dequant_spans(enum tensor_type type, const uint8_t *p, float *dst, size_t n)
{
    const struct span_traits t = traits_of(type);

    for (; n >= SPAN; n -= SPAN, p += t.bytes, dst += SPAN) {
        _Alignas(64) uint8_t bytes[SPAN];
        float s16[16], m16[16] = { 0 };
        vf s[NS], m[NS];

        scales_of(type, p, s, m);
        UNROLL
        for (int i = 0; i < NS; i++) {
            vf_store(s16 + i * VN, s[i]);
            if (t.has_minima)
                vf_store(m16 + i * VN, m[i]);
        }
        UNROLL
        for (int c = 0; c < CHUNKS; c++)
            vb_store(bytes + c * CHUNK, chunk_of(type, p, c));
        for (int i = 0; i < 16; i++)
            dequant_16(t, bytes + 16 * i, s16[i], m16[i], dst + 16 * i);
    }
}

/* Decode a type of 64.  n is a multiple of 64. */
INLINE void dequant_parts(enum tensor_type type, const uint8_t *p, float *dst, size_t n)
{
    const size_t whole = n / SPAN * SPAN, bytes = traits_of(type).bytes;
    union span end;
    float last[SPAN];

    dequant_spans(type, p, dst, whole);
    if (whole == n)
        return;
    memset(&end, 0, sizeof end);
    memcpy(&end, p + whole / SPAN * bytes, (n - whole) / 64 * (bytes / 4));
    dequant_spans(type, (const uint8_t *)&end, last, SPAN);
    memcpy(dst + whole, last, (n - whole) * sizeof *dst);
}

/* Decode a type of 32.  n is a multiple of 32. */
INLINE void dequant_blocks(enum tensor_type type, const uint8_t *p, float *dst, size_t n)
{
    const struct span_traits t = traits_of(type);

    for (; n >= 32; n -= 32, p += t.bytes / 8, dst += 32) {
        _Alignas(32) uint8_t bytes[32];
        u8x32 run = run_of(type, p, 0);
        float s = t.scale_bytes == 1 ? half_of_e8m0(*p) : f32_of_half(p);
        float m = t.has_minima ? -f32_of_half(p + 2) : 0;

        memcpy(bytes, &run, sizeof run);
        dequant_16(t, bytes, s, m, dst);
        dequant_16(t, bytes + 16, s, m, dst + 16);
    }
}

/* Floats of 8, 16 and 32 bits.  Those of 8 bits are loaded as a fraction of their value. */

INLINE vf vf_load_f8_e4m3(const void *p)
{
    return vf_mul(vf_load_f8(p), vf_all(F8_UNIT));
}

INLINE vf vf_load_f8_e4m3_part(const void *p, size_t n)
{
    uint8_t bytes[VN] = { 0 };

    memcpy(bytes, p, n);
    return vf_load_f8_e4m3(bytes);
}

INLINE vf vf_load_f32(const void *p)
{
    return vf_load(p);
}

INLINE vf vf_load_f32_part(const void *p, size_t n)
{
    return vf_load_part(p, n);
}

#define LOAD(TYPE, name, id, bytes)                                                            \
    case TYPE_##TYPE:                                                                          \
        return vf_load_##name(row + bytes * k);
#define LOAD_PART(TYPE, name, id, bytes)                                                       \
    case TYPE_##TYPE: return vf_load_##name##_part(row + bytes * k, n);

/* Values k .. k + VN - 1 of a row of floats. */
INLINE vf load_weights(enum tensor_type type, const uint8_t *row, size_t k)
{
    switch (type) {
        FLOAT_TYPES(LOAD)
        BLOCK_TYPES(CASE_OF)
        OTHER_TYPES(CASE_OF)
        break;
    }
    __builtin_unreachable();
}

/* Values k .. k + n - 1, fewer than VN. */
INLINE vf load_weights_part(enum tensor_type type, const uint8_t *row, size_t k, size_t n)
{
    switch (type) {
        FLOAT_TYPES(LOAD_PART)
        BLOCK_TYPES(CASE_OF)
        OTHER_TYPES(CASE_OF)
        break;
    }
    __builtin_unreachable();
}

/* The same with a scale, if the type has scales; `unit` is F8_UNIT times the scale. */
INLINE vf load_scaled(enum tensor_type type, const uint8_t *row, size_t k, vf unit)
{
    return type == TYPE_F8_E4M3 ? vf_mul(vf_load_f8(row + k), unit)
                                : load_weights(type, row, k);
}

INLINE vf load_scaled_part(enum tensor_type type, const uint8_t *row, size_t k, size_t n,
                           vf unit)
{
    uint8_t bytes[VN] = { 0 };

    if (type != TYPE_F8_E4M3)
        return load_weights_part(type, row, k, n);
    memcpy(bytes, row + k, n);
    return vf_mul(vf_load_f8(bytes), unit);
}

INLINE void widen_floats(enum tensor_type type, const uint8_t *p, float *dst, size_t n)
{
    size_t i = 0;

    for (; i + VN <= n; i += VN)
        vf_store(dst + i, load_weights(type, p, i));
    if (i < n)
        vf_store_part(dst + i, load_weights_part(type, p, i, n - i), n - i);
}

#endif
