#include "config.h"

#include "engine/compute/dequant.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "engine/compute/grids.h"
#include "engine/compute/half.h"
#include "engine/compute/quants.h"

static void widen_f32(const uint8_t *p, float *dst, size_t n)
{
    memcpy(dst, p, n * sizeof *dst);
}

static void widen_f16(const uint8_t *p, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = load_f16(p + 2 * i);
}

static void widen_bf16(const uint8_t *p, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = f32_of_bf16(load_u16(p + 2 * i));
}

static void widen_f8_e4m3(const uint8_t *p, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = f32_of_e4m3(p[i]);
}

/* In blocks of 32, low nibbles are values 0 .. 15 and high nibbles are values 16 .. 31. */

static void decode_q4_0(const struct block_q4_0 *b, float *dst)
{
    float d = load_f16(b->d);

    for (int j = 0; j < 16; j++) {
        dst[j] = (float)((b->q[j] & 15) - 8) * d;
        dst[16 + j] = (float)((b->q[j] >> 4) - 8) * d;
    }
}

static void decode_q4_1(const struct block_q4_1 *b, float *dst)
{
    float d = load_f16(b->d), m = load_f16(b->m);

    for (int j = 0; j < 16; j++) {
        dst[j] = (float)(b->q[j] & 15) * d + m;
        dst[16 + j] = (float)(b->q[j] >> 4) * d + m;
    }
}

/* Bit j of high is the fifth bit of value j. */
static void decode_q5_0(const struct block_q5_0 *b, float *dst)
{
    float d = load_f16(b->d);
    uint32_t high = load_u32(b->high);

    for (int j = 0; j < 16; j++) {
        int first = (b->q[j] & 15) | (int)(high >> j & 1) << 4;
        int second = (b->q[j] >> 4) | (int)(high >> (16 + j) & 1) << 4;

        dst[j] = (float)(first - 16) * d;
        dst[16 + j] = (float)(second - 16) * d;
    }
}

static void decode_q5_1(const struct block_q5_1 *b, float *dst)
{
    float d = load_f16(b->d), m = load_f16(b->m);
    uint32_t high = load_u32(b->high);

    for (int j = 0; j < 16; j++) {
        int first = (b->q[j] & 15) | (int)(high >> j & 1) << 4;
        int second = (b->q[j] >> 4) | (int)(high >> (16 + j) & 1) << 4;

        dst[j] = (float)first * d + m;
        dst[16 + j] = (float)second * d + m;
    }
}

static void decode_q8_0(const struct block_q8_0 *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 32; i++)
        dst[i] = (float)(int8_t)b->q[i] * d;
}

/* Two bits per value.  32 bytes hold 128 values: the lowest bits of each are the first 32. */
static int two_bits(const uint8_t q[64], int i)
{
    return q[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
}

/* Four bits per value.  32 bytes hold 64 values: the low nibbles are the first 32. */
static int four_bits(const uint8_t q[128], int i)
{
    return q[32 * (i / 64) + i % 32] >> (4 * (i % 64 / 32)) & 15;
}

/* A byte of scales has the scale of 16 values in the low 4 bits, their minimum in the high. */
static void decode_q2_k(const struct block_q2_k *b, float *dst)
{
    float d = load_f16(b->d);
    float dmin = load_f16(b->dmin);

    for (int i = 0; i < 256; i++) {
        int s = b->scales[i / 16];

        dst[i] = d * (float)(s & 15) * (float)two_bits(b->q, i) - dmin * (float)(s >> 4);
    }
}

/* 16 scales of 6 bits in 12 bytes: the low nibbles first, then pairs of bits. */
static void q3_k_scales(const uint8_t s[12], float sc[16])
{
    for (int j = 0; j < 16; j++) {
        int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
        int high = s[8 + j % 4] >> (2 * (j / 4)) & 3;

        sc[j] = (float)((low | high << 4) - 32);
    }
}

/* Bit i / 32 of high[i % 32] is the third bit of value i. */
static void decode_q3_k(const struct block_q3_k *b, float *dst)
{
    float d = load_f16(b->d);
    float sc[16];

    q3_k_scales(b->scales, sc);
    for (int i = 0; i < 256; i++) {
        int v = two_bits(b->q, i) | (b->high[i % 32] >> (i / 32) & 1) << 2;

        dst[i] = d * sc[i / 16] * (float)(v - 4);
    }
}

/* 8 scales and 8 minima of 6 bits in 12 bytes. */
static void q4_k_scales(const uint8_t s[12], uint8_t sc[8], uint8_t mn[8])
{
    for (int j = 0; j < 4; j++) {
        sc[j] = s[j] & 63;
        mn[j] = s[j + 4] & 63;
        sc[j + 4] = (uint8_t)((s[j + 8] & 15) | s[j] >> 6 << 4);
        mn[j + 4] = (uint8_t)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
}

static void decode_q4_k(const struct block_q4_k *b, float *dst)
{
    float d = load_f16(b->d);
    float dmin = load_f16(b->dmin);
    uint8_t sc[8], mn[8];

    q4_k_scales(b->scales, sc, mn);
    for (int i = 0; i < 256; i++)
        dst[i] = d * (float)sc[i / 32] * (float)four_bits(b->q, i) - dmin * (float)mn[i / 32];
}

/* Bit i / 32 of high[i % 32] is the fifth bit of value i. */
static void decode_q5_k(const struct block_q5_k *b, float *dst)
{
    float d = load_f16(b->d);
    float dmin = load_f16(b->dmin);
    uint8_t sc[8], mn[8];

    q4_k_scales(b->scales, sc, mn);
    for (int i = 0; i < 256; i++) {
        int v = four_bits(b->q, i) | (b->high[i % 32] >> (i / 32) & 1) << 4;

        dst[i] = d * (float)sc[i / 32] * (float)v - dmin * (float)mn[i / 32];
    }
}

/* q has the low nibbles of each 128 values in 64 bytes, high has two more bits of each. */
static void decode_q6_k(const struct block_q6_k *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 256; i++) {
        int low = b->q[64 * (i / 128) + i % 64] >> (4 * (i % 128 / 64)) & 15;
        int v = low | two_bits(b->high, i) << 4;

        dst[i] = d * (float)(int8_t)b->scales[i / 16] * (float)(v - 32);
    }
}

const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113 };

static void decode_iq4_nl(const struct block_iq4_nl *b, float *dst)
{
    float d = load_f16(b->d);

    for (int j = 0; j < 16; j++) {
        dst[j] = d * (float)iq4_values[b->q[j] & 15];
        dst[16 + j] = d * (float)iq4_values[b->q[j] >> 4];
    }
}

/* Entry 8 is +0, not -0. */
const int8_t mxfp4_values[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

static void decode_mxfp4(const struct block_mxfp4 *b, float *dst)
{
    float d = half_of_e8m0(b->d[0]);

    for (int j = 0; j < 16; j++) {
        dst[j] = (float)mxfp4_values[b->q[j] & 15] * d;
        dst[16 + j] = (float)mxfp4_values[b->q[j] >> 4] * d;
    }
}

/* Each 16 values have a scale, and 8 bytes whose low nibbles are the first 8. */
static void decode_nvfp4(const struct block_nvfp4 *b, float *dst)
{
    for (int g = 0; g < 4; g++) {
        float d = half_of_e4m3(b->scales[g]);

        for (int j = 0; j < 8; j++) {
            dst[16 * g + j] = (float)mxfp4_values[b->q[8 * g + j] & 15] * d;
            dst[16 * g + 8 + j] = (float)mxfp4_values[b->q[8 * g + j] >> 4] * d;
        }
    }
}

/* 8 scales of 6 bits: the two high bits of all in 2 bytes, then the low nibbles. */
static void iq4_xs_scales(const uint8_t s[6], float sc[8])
{
    for (int j = 0; j < 8; j++) {
        int low = s[2 + j / 2] >> (4 * (j % 2)) & 15;
        int high = load_u16(s) >> (2 * j) & 3;

        sc[j] = (float)((low | high << 4) - 32);
    }
}

static void decode_iq4_xs(const struct block_iq4_xs *b, float *dst)
{
    float d = load_f16(b->d);
    float sc[8];

    iq4_xs_scales(b->scales, sc);
    for (int i = 0; i < 256; i++) {
        int v = b->q[16 * (i / 32) + i % 16] >> (4 * (i % 32 / 16)) & 15;

        dst[i] = d * sc[i / 32] * (float)iq4_values[v];
    }
}

/*
 * A byte holds base-3 digits as a fraction: byte / 256 = 0.d0 d1 d2 d3 d4 in base 3, rounded
 * up.  Multiplying by 3 moves the first digit out of the byte.
 */
static int ternary_digit(uint8_t byte, int n)
{
    for (; n > 0; n--)
        byte = (uint8_t)(byte * 3);
    return byte * 3 >> 8;
}

/* First the first digits of 32 bytes, then their second ones, up to the fifth.  16 bytes with
 * 5 digits and 4 bytes with 4 digits follow in the same way. */
static void decode_tq1_0(const struct block_tq1_0 *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 256; i++) {
        int v = i < 160   ? ternary_digit(b->q[i % 32], i / 32)
                : i < 240 ? ternary_digit(b->q[32 + i % 16], (i - 160) / 16)
                          : ternary_digit(b->last[i % 4], (i - 240) / 4);

        dst[i] = d * (float)(v - 1);
    }
}

static void decode_tq2_0(const struct block_tq2_0 *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 256; i++)
        dst[i] = d * (float)(two_bits(b->q, i) - 1);
}

/* The n values of a code book entry times s.  Bit i of signs negates value i. */
static void put_grid(uint64_t entry, int n, float s, int signs, float *dst)
{
    for (int i = 0; i < n; i++) {
        int v = (int8_t)(entry >> (8 * i));

        dst[i] = s * (float)(signs >> i & 1 ? -v : v);
    }
}

/* 7 stored bits of signs.  The eighth makes the number of set bits even. */
static int even_signs(uint32_t bits)
{
    return (int)(bits & 127) | __builtin_parity(bits & 127) << 7;
}

static int nibble(const uint8_t *p, int i)
{
    return p[i / 2] >> (4 * (i % 2)) & 15;
}

/* For each 32 values: 4 indices of 8 bits, then 4 x 7 bits of signs and 4 bits of scale. */
static void decode_iq2_xxs(const struct block_iq2_xxs *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 32; i++) {
        const uint8_t *q = b->q + 8 * (i / 4);
        uint32_t signs = load_u32(q + 4);
        float s = d * (0.5f + (float)(signs >> 28)) * 0.25f;

        put_grid(iq2_xxs_grid[q[i % 4]], 8, s, even_signs(signs >> (7 * (i % 4))), dst + 8 * i);
    }
}

/* For each 8 values: 9 bits of index and 7 bits of signs.  A scale for each 16. */
static void decode_iq2_xs(const struct block_iq2_xs *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 32; i++) {
        uint32_t q = load_u16(b->q + 2 * i);
        float s = d * (0.5f + (float)nibble(b->scales, i / 2)) * 0.25f;

        put_grid(iq2_xs_grid[q & 511], 8, s, even_signs(q >> 9), dst + 8 * i);
    }
}

/* For each 8 values: 8 low and 2 high bits of index and a byte of signs. */
static void decode_iq2_s(const struct block_iq2_s *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 32; i++) {
        int index = b->q[i] | (b->high[i / 4] >> (2 * (i % 4)) & 3) << 8;
        float s = d * (0.5f + (float)nibble(b->scales, i / 2)) * 0.25f;

        put_grid(iq2_s_grid[index], 8, s, b->signs[i], dst + 8 * i);
    }
}

/* For each 4 values an index; for each 32, 4 x 7 bits of signs and 4 bits of scale. */
static void decode_iq3_xxs(const struct block_iq3_xxs *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 64; i++) {
        uint32_t signs = load_u32(b->signs + 4 * (i / 8));
        float s = d * (0.5f + (float)(signs >> 28)) * 0.5f;
        int eight = even_signs(signs >> (7 * (i % 8 / 2)));

        put_grid(iq3_xxs_grid[b->q[i]], 4, s, eight >> (4 * (i % 2)), dst + 4 * i);
    }
}

/* For each 4 values: 8 low bits and a high bit of index and 4 signs.  A scale for each 32. */
static void decode_iq3_s(const struct block_iq3_s *b, float *dst)
{
    float d = load_f16(b->d);

    for (int i = 0; i < 64; i++) {
        int index = b->q[i] | (b->high[i / 8] >> (i % 8) & 1) << 8;
        float s = d * (float)(1 + 2 * nibble(b->scales, i / 8));

        put_grid(iq3_s_grid[index], 4, s, nibble(b->signs, i), dst + 4 * i);
    }
}

/*
 * IQ1: the values of an entry are -1, 0 and 1, all shifted by 1/8 or -1/8.  The table has 8
 * times the values, so s is an eighth of the scale.
 */
static void put_shifted(uint64_t entry, float s, bool is_down, float *dst)
{
    for (int i = 0; i < 8; i++)
        dst[i] = s * (float)((int8_t)(entry >> (8 * i)) + (is_down ? -1 : 1));
}

/* For each 32 values: 4 x 3 high bits of index, 3 bits of scale and the sign of the shift. */
static void decode_iq1_s(const struct block_iq1_s *b, float *dst)
{
    float d = load_f16(b->d) / 8;

    for (int i = 0; i < 32; i++) {
        int high = load_u16(b->high + 2 * (i / 4));
        int index = b->q[i] | (high >> (3 * (i % 4)) & 7) << 8;
        float s = d * (float)(2 * (high >> 12 & 7) + 1);

        put_shifted(iq1_grid[index], s, high >> 15, dst + 8 * i);
    }
}

/*
 * For each 8 values a nibble: 3 high bits of index and the sign of the shift.  Each of 4
 * words has 4 scales of 3 bits and on top 4 bits of d, the lowest in the first word.
 */
static void decode_iq1_m(const struct block_iq1_m *b, float *dst)
{
    unsigned half = 0;

    for (int j = 0; j < 4; j++)
        half |= (unsigned)(load_u16(b->scales + 2 * j) >> 12) << (4 * j);

    float d = f32_of_f16((uint16_t)half) / 8;

    for (int i = 0; i < 32; i++) {
        int high = nibble(b->high, i);
        int scale = load_u16(b->scales + 2 * (i / 8)) >> (3 * (i / 2 % 4)) & 7;

        put_shifted(iq1_grid[b->q[i] | (high & 7) << 8], d * (float)(2 * scale + 1), high >> 3,
                    dst + 8 * i);
    }
}

#define WIDEN(TYPE, name, id, bytes)                                                           \
    case TYPE_##TYPE:                                                                          \
        widen_##name(src, dst, n);                                                             \
        return;
#define DECODE(n_value, TYPE, name)                                                            \
    case TYPE_##TYPE:                                                                          \
        for (const struct block_##name *b = src; n != 0; b++, n -= n_value, dst += n_value)    \
            decode_##name(b, dst);                                                             \
        return;
#define DECODE_32(TYPE, name, ...)  DECODE(32, TYPE, name)
#define DECODE_64(TYPE, name, ...)  DECODE(64, TYPE, name)
#define DECODE_256(TYPE, name, ...) DECODE(256, TYPE, name)

void dequant_row(enum tensor_type type, const void *src, float *dst, size_t n)
{
    switch (type) {
        FLOAT_TYPES(WIDEN)
        TYPES_OF_32(DECODE_32)
        TYPES_OF_64(DECODE_64)
        TYPES_OF_256(DECODE_256)
        OTHER_TYPES(CASE_OF)
        break;
    }
    assert(false && "a type without kernels is refused when a model is opened");
}
