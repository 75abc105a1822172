/*
 * quants.h - packed data that the definitions and all kernel sets share: value tables of
 * weight types and the layout of 8-bit activations.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_QUANTS_H
#define MEMWALL_ENGINE_COMPUTE_QUANTS_H

#include <stddef.h>
#include <stdint.h>

/* The values of a nibble in IQ4_NL and IQ4_XS, and, doubled, in MXFP4 and NVFP4 (E2M1). */
extern const int8_t iq4_values[16], mxfp4_values[16];

/*
 * ACT_Q8_SPAN values of a column in form ACT_Q8.  A column is an array of these, and zeros
 * fill the last one, so kernels can read whole vectors.  A span is in one piece because
 * products with many columns read parts of 32 columns in turn, and would need three times as
 * many pages of memory at once.
 *
 * In each 32 values d = max |x| / 127 and q = x * (127 / max |x|), rounded to the nearest,
 * halves to even, so that x = d * q and q is in -127 .. 127.
 */
#define ACT_Q8_SPAN 256

struct act_q8 {
    int8_t q[ACT_Q8_SPAN];
    /* For each 16 values: */
    float d[ACT_Q8_SPAN / 16];      /* the scale, twice for each 32 values */
    float dsum[ACT_Q8_SPAN / 16];   /* d * the sum of q, for minima and offsets */
    int32_t less[ACT_Q8_SPAN / 16]; /* -128 * the sum of q, for weights with 128 added */
};

static inline size_t act_q8_spans(size_t n_k)
{
    return (n_k + ACT_Q8_SPAN - 1) / ACT_Q8_SPAN;
}

/* Value k of a column. */
static inline float act_q8_value(const struct act_q8 *column, size_t k)
{
    const struct act_q8 *span = column + k / ACT_Q8_SPAN;

    k %= ACT_Q8_SPAN;
    return span->d[k / 16] * (float)span->q[k];
}

/* Blocks below 1e-30 are stored as zeros, because 127 / amax must not overflow. */
static inline float act_q8_scale(float amax)
{
    return amax < 1e-30f ? 0 : amax / 127;
}

/* Columns in form ACT_F32 are padded with zeros to a multiple of this many floats. */
#define ACT_F32_PAD 16

#endif
