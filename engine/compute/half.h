/*
 * half.h - small floats (f16, BF16, E4M3, E8M0) and little-endian bytes.
 *
 * All conversions use integers, so every compiler and CPU gives the same bits.  Subnormals
 * are kept, and rounding is to the nearest even value.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_HALF_H
#define MEMWALL_ENGINE_COMPUTE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t bits_of_float(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
}

static inline void store_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline float f32_of_bf16(uint16_t h)
{
    return float_of_bits((uint32_t)h << 16);
}

static inline float f32_of_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t rest = h & 0x7fff;

    if (rest >= 0x7c00) /* infinity, NaN */
        return float_of_bits(sign | 0x7f800000 | rest << 13);
    if (rest >= 0x0400)
        return float_of_bits(sign | ((rest << 13) + ((127 - 15) << 23)));
    /* Subnormal or zero: rest * 2^-24, exact. */
    return float_of_bits(sign | bits_of_float((float)rest * 0x1p-24f));
}

/* Overflow gives infinity, NaN gives 0x7e00 with the sign. */
static inline uint16_t f16_of_f32(float f)
{
    uint32_t bits = bits_of_float(f);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t rest = bits & 0x7fffffff;

    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000) /* rounds to 65536 or more */
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) {
        /* Below 2^-14: adding 1/2 leaves the value in units of 2^-24, rounded. */
        uint32_t unit = bits_of_float(float_of_bits(rest) + 0.5f) - 0x3f000000;

        return (uint16_t)(sign | unit);
    }
    rest += 0xfff + (rest >> 13 & 1);
    return (uint16_t)(sign | (rest - ((127 - 15) << 23)) >> 13);
}

/* 2^(e - 128): half of the scale that a byte of E8M0 means.  Subnormal for e of 0 and 1. */
static inline float half_of_e8m0(uint8_t e)
{
    return float_of_bits(e < 2 ? (uint32_t)0x00200000 << e : (uint32_t)(e - 1) << 23);
}

/*
 * 8 bits: a sign, 4 bits of exponent and 3 of fraction.  There is no infinity.  The two codes of
 * NaN, which weights do not have, count as 480 and -480.
 */
static inline float f32_of_e4m3(uint8_t h)
{
    uint32_t sign = (uint32_t)(h & 0x80) << 24;
    uint32_t rest = h & 0x7f;

    if (rest >= 8)
        return float_of_bits(sign | ((rest << 20) + ((127 - 7) << 23)));
    return float_of_bits(sign | bits_of_float((float)rest * 0x1p-9f));
}

/* Half of an E4M3 scale, whose sign does not count: the values that it scales are stored doubled.
 * The code 0x7f is 0, as in ggml. */
static inline float half_of_e4m3(uint8_t h)
{
    return h == 0x7f ? 0 : f32_of_e4m3(h & 0x7f) * 0.5f;
}

/* The f16 at p, widened. */
static inline float load_f16(const uint8_t *p)
{
    return f32_of_f16(load_u16(p));
}

#endif
