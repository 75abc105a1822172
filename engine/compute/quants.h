/*
 * quants.h - what the kernels share about packed data: scales of the 256-value types,
 * the layout of 8-bit activations, the blocks of a quantised KV row.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_QUANTS_H
#define MEMWALL_ENGINE_COMPUTE_QUANTS_H

#include <stddef.h>
#include <stdint.h>

/* The 16 values that nibbles of IQ4_NL and IQ4_XS stand for. */
extern const int8_t iq4_values[16];

/* Q3_K: 16 scales of 6 bits in 12 bytes; the low nibbles first, then pairs of bits. */
static inline void q3_k_scales(const uint8_t s[12], int8_t sc[16])
{
    for (int j = 0; j < 16; j++) {
        int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
        int high = s[8 + j % 4] >> (2 * (j / 4)) & 3;

        sc[j] = (int8_t)((low | high << 4) - 32);
    }
}

/* Q4_K, Q5_K: 8 scales and 8 minima of 6 bits in 12 bytes. */
static inline void q4_k_scales(const uint8_t s[12], uint8_t sc[8], uint8_t mn[8])
{
    for (int j = 0; j < 4; j++) {
        sc[j] = s[j] & 63;
        mn[j] = s[j + 4] & 63;
        sc[j + 4] = (uint8_t)((s[j + 8] & 15) | s[j] >> 6 << 4);
        mn[j + 4] = (uint8_t)(s[j + 8] >> 4 | s[j + 4] >> 6 << 4);
    }
}

/* IQ4_XS: 8 scales of 6 bits in 6 bytes, two high bits each first. */
static inline void iq4_xs_scales(const uint8_t s[6], int8_t sc[8])
{
    unsigned high = (unsigned)(s[0] | s[1] << 8);

    for (int b = 0; b < 8; b++) {
        int low = s[2 + b / 2] >> (4 * (b % 2)) & 15;

        sc[b] = (int8_t)((low | (int)(high >> (2 * b) & 3) << 4) - 32);
    }
}

/*
 * A column in form ACT_Q8.  n is n_k rounded up to ACT_Q8_PAD values; what is past n_k is
 * zero, so that kernels read whole vectors.
 *
 *     int8_t q[n];          x = d * q, q in -127 .. 127
 *     float  d[n / 16];     the scale of each 32, twice: most types have scales of 16
 *     float  dsum[n / 16];  d * the sum of the q, for minima and offsets
 *
 * d = max |x| / 127 in each 32, q = x * (127 / max |x|) rounded to the nearest, halves to
 * even.
 */
#define ACT_Q8_PAD 256

struct act_q8 {
    const int8_t *q;
    const float *d, *dsum;
};

static inline size_t act_q8_padded(size_t n_k)
{
    return (n_k + ACT_Q8_PAD - 1) / ACT_Q8_PAD * ACT_Q8_PAD;
}

static inline struct act_q8 act_q8_at(const void *column, size_t n_k)
{
    size_t n = act_q8_padded(n_k);
    const int8_t *q = column;
    const float *d = (const float *)(const void *)(q + n);

    return (struct act_q8){ .q = q, .d = d, .dsum = d + n / 16 };
}

/* A block below 1e-30 counts as zeros: 127 / amax must not overflow. */
static inline float act_q8_scale(float amax)
{
    return amax < 1e-30f ? 0 : amax / 127;
}

/* Columns in form ACT_F32 end in zeros up to a multiple of this many floats. */
#define ACT_F32_PAD 16

#endif
