/*
 * kernel_data.h - random rows of every weight type, in memory that ends at a page nobody
 * may touch, for the tests and benchmarks of kernels.
 */
#ifndef MEMWALL_TESTS_LIB_KERNEL_DATA_H
#define MEMWALL_TESTS_LIB_KERNEL_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "engine/format/tensor_type.h"

/* The types that have kernels.  The last entry is TYPE_COUNT. */
extern const enum tensor_type computed_types[];

/* A small generator; equal seeds give equal numbers everywhere. */
uint32_t random_u32(uint64_t *seed);
float random_float(uint64_t *seed); /* about normal, sigma 1 */

/* n values of random blocks.  The largest value of a block is between 1/32 and 4. */
void random_blocks(enum tensor_type type, void *dst, size_t n, uint64_t *seed);

/* Memory of n bytes whose end is the end of what may be read. */
void *fenced_new(size_t n);
void fenced_free(void *p, size_t n);

#endif
