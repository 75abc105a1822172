/*
 * dequant.h - the definition of every weight type, one plain loop per type.
 *
 * All other decoders are compared with it bit for bit.  All products are exact in float,
 * and an addition, where there is one, is the only rounding.  Factors are multiplied from
 * left to right, which decides the sign of a zero.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_DEQUANT_H
#define MEMWALL_ENGINE_COMPUTE_DEQUANT_H

#include <stddef.h>

#include "engine/format/tensor_type.h"

/*
 * Decode the blocks at src to dst[n].  src may have any alignment, n is a multiple of the
 * type's block, and the type has is_computed set.
 */
void dequant_row(enum tensor_type type, const void *src, float *dst, size_t n);

#endif
