/*
 * quants.h - packed data that the definitions and all kernel sets share: value tables of
 * weight types and the layout of 8-bit activations.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_QUANTS_H
#define MEMWALL_ENGINE_COMPUTE_QUANTS_H

#include <stddef.h>
#include <stdint.h>

/* The values of a nibble in IQ4_NL and IQ4_XS, and, doubled, in MXFP4 (E2M1). */
extern const int8_t iq4_values[16], mxfp4_values[16];

/*
 * A column in form ACT_Q8.  n is n_k rounded up to ACT_Q8_PAD values.  Values past n_k are
 * zero, so kernels can read whole vectors.
 *
 *     int8_t q[n];          x = d * q, q in -127 .. 127
 *     float  d[n / 16];     the scale of each 32 values, stored twice, because many weight
 *                           types have a scale per 16
 *     float  dsum[n / 16];  d * the sum of 16 q, for minima and offsets
 *
 * In each 32 values d = max |x| / 127 and q = x * (127 / max |x|), rounded to the nearest,
 * halves to even.
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

/* Blocks below 1e-30 are stored as zeros, because 127 / amax must not overflow. */
static inline float act_q8_scale(float amax)
{
    return amax < 1e-30f ? 0 : amax / 127;
}

/* Columns in form ACT_F32 are padded with zeros to a multiple of this many floats. */
#define ACT_F32_PAD 16

#endif
