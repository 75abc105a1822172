/*
 * kv_types.h - storage of one head of keys or values, in plain loops.
 *
 * F32 and F16 rows are arrays.  Q8_0 and Q4_0 rows are blocks of 32 along the head, in the
 * layout of the weight types.  If the head size is not a multiple of 32, zeros fill the last
 * block.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_KV_TYPES_H
#define MEMWALL_ENGINE_COMPUTE_KV_TYPES_H

#include <stddef.h>

#include "engine/compute/kernels.h"

/* Store src[n] as one row of the type. */
void kv_row_store(enum kv_type type, const float *src, size_t n, void *dst);

/* Load values first .. first + n - 1 of a row.  first is a multiple of 32. */
void kv_row_load(enum kv_type type, const void *row, size_t first, float *dst, size_t n);

#endif
