/*
 * blas.h - matrix times many columns through a BLAS, for machines whose instruction set has
 * no kernels here, and to compare with.
 *
 * Weights are widened to float, BLAS_ROWS rows at a time, and multiplied with BLAS_COLS
 * columns at a time.  Every call has these sizes, filled up with zeros, so that a column's
 * result does not depend on how many others came with it.  It does differ in the last bits
 * from what the kernels give: use it for all tokens of a prompt or for none.
 *
 * Measured (BF16 weights, 64 and 256 columns, times the rate of the own kernels): 0.5 to
 * 0.8 on AVX-512, 0.9 to 1.05 on AVX2, 2.8 where only the generic set runs.  Besides, the
 * library takes tens of MB a thread for itself.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_BLAS_H
#define MEMWALL_ENGINE_COMPUTE_BLAS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/compute/kernels.h"

#define BLAS_ROWS 64
#define BLAS_COLS 64

/*
 * Load the library; call this once before the first blas_mul, and do not call blas_mul if it
 * returns false.  The library is used from the threads of our pool, one call on each.
 * Returns true if every place in a tile gives the same bits for the same row and column,
 * which is tried here: OpenBLAS's kernels for Haswell and Zen do not, and with them results
 * would depend on how a prompt is cut into chunks.  Returns false too if there is no library.
 */
bool blas_start(void);

/* "OpenBLAS 0.3.21 NO_LAPACK ..., SkylakeX", or "no BLAS" if the library cannot be loaded.
 * Loads the library.  Static storage. */
const char *blas_name(void);

/* What one thread needs as scratch; aligned to 64. */
size_t blas_scratch_bytes(size_t n_k);

/* As kernels.mul with columns of ACT_F32; widening is done by the set's dequant. */
void blas_mul(const struct kernels *set, enum tensor_type type, const void *w, size_t n_row,
              size_t n_k, const void *x, size_t x_stride, size_t n_col, float *y, size_t ldy,
              void *scratch);

#endif
