/*
 * products.h - who multiplies the matrices of a prompt: our kernels or OpenBLAS.
 *
 * OpenBLAS is used for a weight type if it is at least PRODUCTS_MARGIN times as fast as the
 * kernels with BLAS_COLS columns.  The margin covers the library's memory, and it keeps
 * noise from deciding: with AVX-512 and AVX2 both are about as fast (0.7 to 1.3), on a CPU
 * without kernels of ours the library is 10 times as fast or more.
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
    uint32_t n_col;           /* it does if so many columns or more share a tile */
};

/* Operations a second of one thread with n_col columns. */
struct product_rate {
    enum tensor_type type;
    double kernels, blas; /* blas 0: there is no library */
};

/* The weight types of the layers' matrices, at most `most` of them, with rates of 0. */
uint32_t products_list(const struct model_desc *d, struct product_rate *rates, uint32_t most);

/*
 * Measure n listed weight types for a few hundredths of a second each; has_blas: blas_open()
 * returned true.  Takes some MiB and gives them back.  Returns 0, or -1 with *e.
 */
int products_measure(const struct kernels *kernels, bool exact, bool has_blas, uint32_t n_col,
                     struct product_rate *rates, uint32_t n, struct err *e);

/*
 * Is a token evaluated through OpenBLAS?  pos: position of the first of the n tokens of a
 * prompt that are new.  Tiles begin at positions that are multiples of BLAS_COLS.
 */
bool products_tile_prompt(const struct products *p, uint32_t pos, uint32_t n);

#endif
