#include "config.h"

#include "engine/compute/dequant.h"

#include <string.h>

#include "engine/compute/half.h"
#include "engine/compute/quants.h"

static void dequant_f16(const uint8_t *p, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = load_f16(p + 2 * i);
}

static void dequant_bf16(const uint8_t *p, float *dst, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = f32_of_bf16(load_u16(p + 2 * i));
}

/* d f16, 16 bytes of nibbles: low ones are values 0..15, high ones 16..31. */
static void dequant_q4_0(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 32, dst += 32, p += 18) {
        float d = load_f16(p);

        for (int j = 0; j < 16; j++) {
            dst[j] = (float)((p[2 + j] & 15) - 8) * d;
            dst[16 + j] = (float)((p[2 + j] >> 4) - 8) * d;
        }
    }
}

static void dequant_q4_1(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 32, dst += 32, p += 20) {
        float d = load_f16(p);
        float m = load_f16(p + 2);

        for (int j = 0; j < 16; j++) {
            dst[j] = (float)(p[4 + j] & 15) * d + m;
            dst[16 + j] = (float)(p[4 + j] >> 4) * d + m;
        }
    }
}

/* As Q4_0; bit j of qh is the fifth bit of value j. */
static void dequant_q5_0(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 32, dst += 32, p += 22) {
        float d = load_f16(p);
        uint32_t qh = load_u32(p + 2);

        for (int j = 0; j < 16; j++) {
            int low = (p[6 + j] & 15) | (int)(qh >> j & 1) << 4;
            int high = (p[6 + j] >> 4) | (int)(qh >> (16 + j) & 1) << 4;

            dst[j] = (float)(low - 16) * d;
            dst[16 + j] = (float)(high - 16) * d;
        }
    }
}

static void dequant_q5_1(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 32, dst += 32, p += 24) {
        float d = load_f16(p);
        float m = load_f16(p + 2);
        uint32_t qh = load_u32(p + 4);

        for (int j = 0; j < 16; j++) {
            int low = (p[8 + j] & 15) | (int)(qh >> j & 1) << 4;
            int high = (p[8 + j] >> 4) | (int)(qh >> (16 + j) & 1) << 4;

            dst[j] = (float)low * d + m;
            dst[16 + j] = (float)high * d + m;
        }
    }
}

static void dequant_q8_0(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 32, dst += 32, p += 34) {
        float d = load_f16(p);

        for (int j = 0; j < 32; j++)
            dst[j] = (float)(int8_t)p[2 + j] * d;
    }
}

/* 16 scales of 4 bits with 16 minima of 4 bits, 2-bit quants, d, dmin. */
static void dequant_q2_k(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 256, dst += 256, p += 84) {
        const uint8_t *q = p + 16;
        float d = load_f16(p + 80);
        float dmin = load_f16(p + 82);

        for (int i = 0; i < 256; i++) {
            int s = p[i / 16];
            int v = q[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;

            dst[i] = d * (float)(s & 15) * (float)v - dmin * (float)(s >> 4);
        }
    }
}

/* 32 bytes of high bits, 2-bit quants, 16 scales of 6 bits, d. */
static void dequant_q3_k(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 256, dst += 256, p += 110) {
        const uint8_t *q = p + 32;
        float d = load_f16(p + 108);
        int8_t sc[16];

        q3_k_scales(p + 96, sc);
        for (int i = 0; i < 256; i++) {
            int v = q[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;

            if ((p[i % 32] >> (i / 32) & 1) == 0)
                v -= 4;
            dst[i] = d * (float)sc[i / 16] * (float)v;
        }
    }
}

/* d, dmin, 8 scales and 8 minima of 6 bits, nibbles in groups of 64 values. */
static void dequant_q4_k(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 256, dst += 256, p += 144) {
        const uint8_t *q = p + 16;
        float d = load_f16(p);
        float dmin = load_f16(p + 2);
        uint8_t sc[8], mn[8];

        q4_k_scales(p + 4, sc, mn);
        for (int i = 0; i < 256; i++) {
            int v = q[32 * (i / 64) + i % 32] >> (4 * (i % 64 / 32)) & 15;

            dst[i] = d * (float)sc[i / 32] * (float)v - dmin * (float)mn[i / 32];
        }
    }
}

/* As Q4_K; bit i/32 of qh[i%32] is the fifth bit of value i. */
static void dequant_q5_k(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 256, dst += 256, p += 176) {
        const uint8_t *qh = p + 16;
        const uint8_t *q = p + 48;
        float d = load_f16(p);
        float dmin = load_f16(p + 2);
        uint8_t sc[8], mn[8];

        q4_k_scales(p + 4, sc, mn);
        for (int i = 0; i < 256; i++) {
            int v = q[32 * (i / 64) + i % 32] >> (4 * (i % 64 / 32)) & 15;

            v |= (qh[i % 32] >> (i / 32) & 1) << 4;
            dst[i] = d * (float)sc[i / 32] * (float)v - dmin * (float)mn[i / 32];
        }
    }
}

/* 128 bytes of low nibbles, 64 bytes of 2 high bits, 16 signed scales, d. */
static void dequant_q6_k(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 256, dst += 256, p += 210) {
        const uint8_t *qh = p + 128;
        const uint8_t *sc = p + 192;
        float d = load_f16(p + 208);

        for (int i = 0; i < 256; i++) {
            int half = i / 128, k = i % 128;
            int v = (p[64 * half + k % 64] >> (4 * (k / 64)) & 15) |
                    (qh[32 * half + k % 32] >> (2 * (k / 32)) & 3) << 4;

            dst[i] = d * (float)(int8_t)sc[i / 16] * (float)(v - 32);
        }
    }
}

const int8_t iq4_values[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113 };

static void dequant_iq4_nl(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 32, dst += 32, p += 18) {
        float d = load_f16(p);

        for (int j = 0; j < 16; j++) {
            dst[j] = d * (float)iq4_values[p[2 + j] & 15];
            dst[16 + j] = d * (float)iq4_values[p[2 + j] >> 4];
        }
    }
}

/* d, 8 scales of 6 bits (2 high bits each in u16, then low nibbles), nibbles. */
static void dequant_iq4_xs(const uint8_t *p, float *dst, size_t n)
{
    for (; n != 0; n -= 256, dst += 256, p += 136) {
        const uint8_t *q = p + 8;
        float d = load_f16(p);
        int8_t sc[8];

        iq4_xs_scales(p + 2, sc);
        for (int i = 0; i < 256; i++) {
            int v = q[16 * (i / 32) + i % 16] >> (4 * (i % 32 / 16)) & 15;

            dst[i] = d * (float)sc[i / 32] * (float)iq4_values[v];
        }
    }
}

void dequant_row(enum tensor_type type, const void *src, float *dst, size_t n)
{
    /* Types without kernels are refused when a model is opened. */
    switch ((int)type) {
    case TYPE_F32: memcpy(dst, src, n * sizeof *dst); return;
    case TYPE_F16: dequant_f16(src, dst, n); return;
    case TYPE_BF16: dequant_bf16(src, dst, n); return;
    case TYPE_Q4_0: dequant_q4_0(src, dst, n); return;
    case TYPE_Q4_1: dequant_q4_1(src, dst, n); return;
    case TYPE_Q5_0: dequant_q5_0(src, dst, n); return;
    case TYPE_Q5_1: dequant_q5_1(src, dst, n); return;
    case TYPE_Q8_0: dequant_q8_0(src, dst, n); return;
    case TYPE_Q2_K: dequant_q2_k(src, dst, n); return;
    case TYPE_Q3_K: dequant_q3_k(src, dst, n); return;
    case TYPE_Q4_K: dequant_q4_k(src, dst, n); return;
    case TYPE_Q5_K: dequant_q5_k(src, dst, n); return;
    case TYPE_Q6_K: dequant_q6_k(src, dst, n); return;
    case TYPE_IQ4_NL: dequant_iq4_nl(src, dst, n); return;
    case TYPE_IQ4_XS: dequant_iq4_xs(src, dst, n); return;
    default: memset(dst, 0, n * sizeof *dst); return;
    }
}
