/*
 * interleave.h - quantised weights with sixteen rows side by side.
 *
 * A vector that takes its lanes from one row has to bring sums together at the end, and one
 * that takes them from sixteen rows has to transpose them first.  Pinned weights are laid out
 * once instead, in the same bytes:
 *
 *     a block of rows:   | group 0 | group 1 | ... | rows that are left, as in the file |
 *     a group, 16 rows:  | heads | dwords |    for each 8 blocks of 32 values, or once for all
 *                                              blocks of 256 values
 *       heads            of each block: the scales of the 16 rows, of one or two bytes, if the
 *                        rest of a block is a number of dwords without it (Q4_0, Q5_0, Q8_0,
 *                        IQ4_NL, MXFP4, Q6_K)
 *       dwords           of each block: dword 0 of the 16 rows, dword 1 of the 16 rows, ...
 *
 * So in most blocks, dword i of the 16 rows is one line of the cache, and the scales of short
 * blocks are near.
 *
 * Groups begin at multiples of 16 * row bytes, so products can start at any of them.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_INTERLEAVE_H
#define MEMWALL_ENGINE_COMPUTE_INTERLEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/tensor_type.h"

#define INTERLEAVED_ROWS 16

/* The types with a kernel for interleaved rows (set_interleaved.h). */
/* clang-format off */
#define INTERLEAVED_TYPES(X)                                                                   \
    X(Q4_0, q4_0) X(Q4_1, q4_1) X(Q5_0, q5_0) X(Q5_1, q5_1) X(Q8_0, q8_0) X(IQ4_NL, iq4_nl)    \
    X(IQ4_XS, iq4_xs) X(MXFP4, mxfp4) X(Q4_K, q4_k) X(Q5_K, q5_k) X(Q6_K, q6_k)
/* clang-format on */

/* Whether rows of this type can be interleaved. */
bool interleave_takes(enum tensor_type type);

/*
 * Lay out n_row rows.  `to` may be `from`, or begin before it in the same memory.  scratch
 * holds INTERLEAVED_ROWS rows.
 */
void interleave(enum tensor_type type, size_t row_bytes, size_t n_row, const void *from,
                void *to, void *scratch);

/* Copy values k .. k + n - 1 of row r of a block of n_row rows to dst, as in the file.  k and n
 * are multiples of the type's blocks. */
void interleaved_values(enum tensor_type type, size_t row_bytes, size_t n_row,
                        const void *block, size_t r, size_t k, size_t n, void *dst);

#endif
