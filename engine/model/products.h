/*
 * products.h - choose our kernels or OpenBLAS for the matrices of a prompt.
 *
 * OpenBLAS is used for a weight type if it is at least PRODUCTS_MARGIN times as fast as the
 * kernels with BLAS_COLS columns.  The margin covers the library's memory, and it keeps
 * noise from deciding: with AVX-512 and AVX2 both are about as fast (0.7 to 1.3), on a CPU
 * without kernels of ours the library is 10 times as fast or more.
 *
 * Attention of a token goes the same way as its matrices.  OpenBLAS wins there by more: with
 * the generic set, attention of a prompt of 1024 tokens (32 heads of 64) took 8.5 to 10 s with
 * the kernel and 1.0 s with OpenBLAS; with SSE4.1 the kernel takes 7 to 13 times as long as the
 * two products, with AVX2 1.5 to 5 times, with AVX-512 0.9 to 1.1 times.
 *
 * The two round differently.  The choice therefore depends on the CPU, the kernel set and the
 * weight types only, never on the budget, the threads, or the width of a chunk.
 */
#ifndef MEMWALL_ENGINE_MODEL_PRODUCTS_H
#define MEMWALL_ENGINE_MODEL_PRODUCTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/compute/blas.h"
#include "engine/compute/kernels.h"
#include "engine/model/desc.h"

#define PRODUCTS_MARGIN 1.5

struct products {
    bool by_blas[TYPE_COUNT]; /* weight types that OpenBLAS multiplies in prompts */
    uint32_t n_col;           /* it does if at least this many columns share a tile */
};

/* Operations per second of one thread with n_col columns. */
struct product_rate {
    enum tensor_type type;
    double kernels, blas; /* blas is 0 without the library */
};

/* List at most `most` weight types of the matrices of the layers, with rates of 0. */
uint32_t products_list(const struct model_desc *d, struct product_rate *rates, uint32_t most);

/*
 * Measure n listed weight types for a few hundredths of a second each.  has_blas: blas_open()
 * returned true.  Takes a few MiB and frees them again.  Returns 0, or -1 with *e.
 */
int products_measure(const struct kernels *kernels, bool exact, bool has_blas, uint32_t n_col,
                     struct product_rate *rates, uint32_t n, struct err *e);

/*
 * Returns whether OpenBLAS multiplies a token.  pos is the position of the first of n new
 * tokens of a prompt.  Tiles begin at positions that are multiples of BLAS_COLS.
 */
bool products_tile_prompt(const struct products *p, uint32_t pos, uint32_t n);

#endif
