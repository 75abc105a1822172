/*
 * quantise.h - floats to weight types with few bits, for copies of weights that draft tokens.
 *
 * Each block is quantised alone, with the scales that give a small squared error.  A block with a
 * value that is not finite gives values that are not numbers, so that nothing hides the damage.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_QUANTISE_H
#define MEMWALL_ENGINE_COMPUTE_QUANTISE_H

#include <stddef.h>

#include "engine/format/tensor_type.h"

/* Store src[n], whole blocks, as TYPE_Q3_K or TYPE_Q2_K. */
void quantise_row(enum tensor_type type, const float *src, size_t n, void *dst);

#endif
