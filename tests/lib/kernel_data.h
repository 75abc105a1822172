/*
 * kernel_data.h - random rows of every weight type for tests and benchmarks of kernels.  The
 * memory ends at a page that nobody may read or write.
 */
#ifndef MEMWALL_TESTS_LIB_KERNEL_DATA_H
#define MEMWALL_TESTS_LIB_KERNEL_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "engine/format/tensor_type.h"

/* The types that have kernels; ends with TYPE_COUNT. */
extern const enum tensor_type computed_types[];

/* A small generator of random numbers.  Equal seeds give equal numbers on every machine. */
uint32_t random_u32(uint64_t *seed);
float random_float(uint64_t *seed); /* about normal, with sigma 1 */

/* Make n values in random blocks.  The largest value of a block is between 1/32 and 4. */
void random_blocks(enum tensor_type type, void *dst, size_t n, uint64_t *seed);

/* Allocate n bytes that end at a page that cannot be read. */
void *fenced_new(size_t n);
void fenced_free(void *p, size_t n);

#endif
