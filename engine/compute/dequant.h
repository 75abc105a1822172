/*
 * dequant.h - what the bytes of each weight type mean, one plain loop a type.
 *
 * This is the definition: every other reading of weights is compared with it bit for
 * bit.  All products are exact in float; where there is an addition it is the only
 * rounding.  The sign of a zero comes from multiplying from left to right.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_DEQUANT_H
#define MEMWALL_ENGINE_COMPUTE_DEQUANT_H

#include <stddef.h>

#include "engine/format/tensor_type.h"

/*
 * dst[n] from the blocks at src, any alignment; n is a multiple of the type's block.
 * The type is one with is_computed set; any other gives zeros.
 */
void dequant_row(enum tensor_type type, const void *src, float *dst, size_t n);

#endif
