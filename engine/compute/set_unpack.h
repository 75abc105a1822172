/*
 * set_unpack.h - packed weights as vectors of 8-bit numbers with float scales.
 *
 * A span is 256 values: one block of the K types, 8 blocks of the types of 32.  It has
 * 8 runs of 32 bytes and, for each 16 values, a scale s and what is to be subtracted, m:
 *     value = s * (byte - offset) - m
 * A block's own scale is exact times its sub-scale, so nothing is rounded here.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_UNPACK_H
#define MEMWALL_ENGINE_COMPUTE_SET_UNPACK_H

#include <stdbool.h>

#include "engine/compute/dequant.h"
#include "engine/compute/half.h"
#include "engine/compute/quants.h"
#include VECTORS

#define SPAN   256
#define CHUNK  (4 * VN) /* bytes of a vector */
#define CHUNKS (SPAN / CHUNK)

/* Bytes of a span; a constant where type is one. */
INLINE size_t span_bytes(enum tensor_type type)
{
    switch ((int)type) {
    case TYPE_Q8_0: return (size_t)8 * 34;
    case TYPE_Q4_0: return (size_t)8 * 18;
    case TYPE_Q4_1: return (size_t)8 * 20;
    case TYPE_Q5_0: return (size_t)8 * 22;
    case TYPE_Q5_1: return (size_t)8 * 24;
    case TYPE_IQ4_NL: return (size_t)8 * 18;
    case TYPE_Q2_K: return 84;
    case TYPE_Q3_K: return 110;
    case TYPE_Q4_K: return 144;
    case TYPE_Q5_K: return 176;
    case TYPE_Q6_K: return 210;
    case TYPE_IQ4_XS: return 136;
    default: return 0;
    }
}

#define SPAN_BYTES_MAX (8 * 34)

/* Bytes are in -128 .. 127, otherwise 0 .. 127. */
INLINE bool has_signed_bytes(enum tensor_type type)
{
    return type == TYPE_Q8_0 || type == TYPE_IQ4_NL || type == TYPE_IQ4_XS;
}

INLINE float offset_of(enum tensor_type type)
{
    switch ((int)type) {
    case TYPE_Q4_0: return 8;
    case TYPE_Q5_0: return 16;
    case TYPE_Q3_K: return 4;
    case TYPE_Q6_K: return 32;
    default: return 0;
    }
}

INLINE bool has_minima(enum tensor_type type)
{
    return type == TYPE_Q4_1 || type == TYPE_Q5_1 || type == TYPE_Q2_K || type == TYPE_Q4_K ||
           type == TYPE_Q5_K;
}

/* 16 bytes of nibbles: 32 values */
INLINE u8x32 nibbles(const uint8_t *p)
{
    u8x16 q = load_16(p);

    return join_16(q & 15, q >> 4);
}

/* Values 32 * b .. 32 * b + 31 of the span at p. */
INLINE u8x32 run_of(enum tensor_type type, const uint8_t *p, int b)
{
    const uint8_t *block = p + (size_t)b * (span_bytes(type) / 8); /* of the types of 32 */
    int half = b / 4, quarter = b % 4;

    switch ((int)type) {
    case TYPE_Q8_0: return load_32(block + 2);
    case TYPE_Q4_0: return nibbles(block + 2);
    case TYPE_Q4_1: return nibbles(block + 4);
    case TYPE_Q5_0: return nibbles(block + 6) | spread_bits(load_u32(block + 2), 16);
    case TYPE_Q5_1: return nibbles(block + 8) | spread_bits(load_u32(block + 4), 16);
    case TYPE_IQ4_NL: return lookup_16(iq4_values, nibbles(block + 2));
    case TYPE_Q2_K: return load_32(p + 16 + 32 * half) >> (2 * quarter) & 3;
    case TYPE_Q3_K:
        return (load_32(p + 32 + 32 * half) >> (2 * quarter) & 3) | (load_32(p) >> b & 1) << 2;
    case TYPE_Q4_K: return load_32(p + 16 + 32 * (b / 2)) >> (4 * (b % 2)) & 15;
    case TYPE_Q5_K:
        return (load_32(p + 48 + 32 * (b / 2)) >> (4 * (b % 2)) & 15) |
               (load_32(p + 16) >> b & 1) << 4;
    case TYPE_Q6_K:
        return (load_32(p + 64 * half + 32 * (quarter % 2)) >> (4 * (quarter / 2)) & 15) |
               (load_32(p + 128 + 32 * half) >> (2 * quarter) & 3) << 4;
    case TYPE_IQ4_XS: return lookup_16(iq4_values, nibbles(p + 8 + 16 * b));
    default: return (u8x32){ 0 };
    }
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

/* Values k .. k + VN - 1 of a row of floats, or fewer. */
INLINE vf load_weights(enum tensor_type type, const uint8_t *row, size_t k)
{
    switch ((int)type) {
    case TYPE_F16: return vf_load_f16(row + 2 * k);
    case TYPE_BF16: return vf_load_bf16(row + 2 * k);
    default: return vf_load(row + 4 * k);
    }
}

INLINE vf load_weights_part(enum tensor_type type, const uint8_t *row, size_t k, size_t n)
{
    switch ((int)type) {
    case TYPE_F16: return vf_load_f16_part(row + 2 * k, n);
    case TYPE_BF16: return vf_load_bf16_part(row + 2 * k, n);
    default: return vf_load_part(row + 4 * k, n);
    }
}

/* The f16 at byte `at` of each of 8 blocks. */
INLINE u16x8 halves_of_blocks(const uint8_t *p, size_t block_bytes, size_t at)
{
    u16x8 h;

    for (size_t b = 0; b < 8; b++)
        h[b] = load_u16(p + b * block_bytes + at);
    return h;
}

INLINE uint64_t load_u64(const uint8_t *p)
{
    return (uint64_t)load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

/* 8 nibbles, or 8 pairs of bits, as 8 bytes */
INLINE uint64_t spread_nibbles(uint64_t v)
{
    v = (v | v << 16) & 0x0000ffff0000ffff;
    v = (v | v << 8) & 0x00ff00ff00ff00ff;
    return (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
}

INLINE uint64_t spread_pairs(uint64_t v)
{
    v = (v | v << 24) & 0x000000ff000000ff;
    v = (v | v << 12) & 0x000f000f000f000f;
    return (v | v << 6) & 0x0303030303030303;
}

/* As q4_k_scales, 4 bytes at a time. */
INLINE void six_bit_scales(const uint8_t *p, uint64_t *sc, uint64_t *mn)
{
    uint32_t a = load_u32(p), b = load_u32(p + 4), c = load_u32(p + 8);
    uint32_t sc_high = (c & 0x0f0f0f0f) | (a >> 6 & 0x03030303) << 4;
    uint32_t mn_high = (c >> 4 & 0x0f0f0f0f) | (b >> 6 & 0x03030303) << 4;

    *sc = (a & 0x3f3f3f3f) | (uint64_t)sc_high << 32;
    *mn = (b & 0x3f3f3f3f) | (uint64_t)mn_high << 32;
}

/* As q3_k_scales, before 32 is subtracted. */
INLINE u8x16 q3_scales(const uint8_t *p)
{
    uint64_t low = load_u64(p), high = load_u32(p + 8);
    uint64_t first = (high & 0x03030303) | (high >> 2 & 0x03030303) << 32;
    uint64_t second = (high >> 4 & 0x03030303) | (high >> 6 & 0x03030303) << 32;

    return (u8x16)(u64x2){ (low & 0x0f0f0f0f0f0f0f0f) | first << 4,
                           (low >> 4 & 0x0f0f0f0f0f0f0f0f) | second << 4 };
}

/* s and, where the type has minima, m of the span's 16 groups of 16 values. */
INLINE void scales_of(enum tensor_type type, const uint8_t *p, vf *s, vf *m)
{
    uint64_t sc, mn;

    switch ((int)type) {
    case TYPE_Q8_0:
    case TYPE_Q4_0:
    case TYPE_Q5_0:
    case TYPE_IQ4_NL: scales_of_f16(halves_of_blocks(p, span_bytes(type) / 8, 0), s); return;
    case TYPE_Q4_1:
    case TYPE_Q5_1:
        scales_of_f16(halves_of_blocks(p, span_bytes(type) / 8, 0), s);
        scales_of_f16(halves_of_blocks(p, span_bytes(type) / 8, 2), m);
        for (int i = 0; i < NS; i++)
            m[i] = vf_mul(m[i], vf_all(-1)); /* the sign of a sum's zero stays as it is */
        return;
    case TYPE_Q2_K:
        scales_of_i8(load_16(p) & 15, f32_of_half(p + 80), s);
        scales_of_i8(load_16(p) >> 4, f32_of_half(p + 82), m);
        return;
    case TYPE_Q3_K: scales_of_i8(q3_scales(p + 96) - 32, f32_of_half(p + 108), s); return;
    case TYPE_Q4_K:
    case TYPE_Q5_K:
        six_bit_scales(p + 4, &sc, &mn);
        scales_of_i8(twice_8(sc), f32_of_half(p), s);
        scales_of_i8(twice_8(mn), f32_of_half(p + 2), m);
        return;
    case TYPE_Q6_K: scales_of_i8(load_16(p + 192), f32_of_half(p + 208), s); return;
    case TYPE_IQ4_XS:
        sc = spread_nibbles(load_u32(p + 4)) | spread_pairs(load_u16(p + 2)) << 4;
        scales_of_i8(twice_8(sc) - 32, f32_of_half(p), s);
        return;
    default: return;
    }
}

/* dst[i] = s * (byte i - offset) - m for 16 values */
INLINE void dequant_16(enum tensor_type type, const uint8_t *bytes, float s, float m,
                       float *dst)
{
    UNROLL
    for (int i = 0; i < 16; i += VN) {
        vf v = has_signed_bytes(type) ? vf_load_i8(bytes + i) : vf_load_u8(bytes + i);

        if (offset_of(type) != 0)
            v = vf_sub(v, vf_all(offset_of(type)));
        v = vf_mul(v, vf_all(s));
        if (has_minima(type))
            v = vf_sub(v, vf_all(m));
        vf_store(dst + i, v);
    }
}

/* The K types: n is a multiple of 256.  Bit for bit as dequant.c defines it. */
INLINE void dequant_spans(enum tensor_type type, const uint8_t *p, float *dst, size_t n)
{
    for (; n >= SPAN; n -= SPAN, p += span_bytes(type), dst += SPAN) {
        _Alignas(64) uint8_t bytes[SPAN];
        float s16[16], m16[16] = { 0 };
        vf s[NS], m[NS];

        scales_of(type, p, s, m);
        UNROLL
        for (int i = 0; i < NS; i++) {
            vf_store(s16 + i * VN, s[i]);
            if (has_minima(type))
                vf_store(m16 + i * VN, m[i]);
        }
        UNROLL
        for (int c = 0; c < CHUNKS; c++)
            vb_store(bytes + c * CHUNK, chunk_of(type, p, c));
        for (int i = 0; i < 16; i++)
            dequant_16(type, bytes + 16 * i, s16[i], m16[i], dst + 16 * i);
    }
}

/* The types with blocks of 32 */
INLINE void dequant_blocks(enum tensor_type type, const uint8_t *p, float *dst, size_t n)
{
    for (; n >= 32; n -= 32, p += span_bytes(type) / 8, dst += 32) {
        _Alignas(32) uint8_t bytes[32];
        u8x32 run = run_of(type, p, 0);
        float s = f32_of_half(p);
        float m = has_minima(type) ? -f32_of_half(p + 2) : 0;

        memcpy(bytes, &run, sizeof run);
        dequant_16(type, bytes, s, m, dst);
        dequant_16(type, bytes + 16, s, m, dst + 16);
    }
}

/* n floats of 16 or 32 bits */
INLINE void widen_floats(enum tensor_type type, const uint8_t *p, float *dst, size_t n)
{
    size_t i = 0;

    for (; i + VN <= n; i += VN)
        vf_store(dst + i, load_weights(type, p, i));
    if (i < n)
        vf_store_part(dst + i, load_weights_part(type, p, i, n - i), n - i);
}

static void set_dequant(enum tensor_type type, const void *src, float *dst, size_t n)
{
    switch ((int)type) {
    case TYPE_Q8_0: dequant_blocks(TYPE_Q8_0, src, dst, n); return;
    case TYPE_Q4_0: dequant_blocks(TYPE_Q4_0, src, dst, n); return;
    case TYPE_Q4_1: dequant_blocks(TYPE_Q4_1, src, dst, n); return;
    case TYPE_Q5_0: dequant_blocks(TYPE_Q5_0, src, dst, n); return;
    case TYPE_Q5_1: dequant_blocks(TYPE_Q5_1, src, dst, n); return;
    case TYPE_IQ4_NL: dequant_blocks(TYPE_IQ4_NL, src, dst, n); return;
    case TYPE_Q2_K: dequant_spans(TYPE_Q2_K, src, dst, n); return;
    case TYPE_Q3_K: dequant_spans(TYPE_Q3_K, src, dst, n); return;
    case TYPE_Q4_K: dequant_spans(TYPE_Q4_K, src, dst, n); return;
    case TYPE_Q5_K: dequant_spans(TYPE_Q5_K, src, dst, n); return;
    case TYPE_Q6_K: dequant_spans(TYPE_Q6_K, src, dst, n); return;
    case TYPE_IQ4_XS: dequant_spans(TYPE_IQ4_XS, src, dst, n); return;
    case TYPE_F16: widen_floats(TYPE_F16, src, dst, n); return;
    case TYPE_BF16: widen_floats(TYPE_BF16, src, dst, n); return;
    default: dequant_row(type, src, dst, n); return;
    }
}

#endif
