/*
 * products.h - who multiplies the matrices of a prompt: the kernels, or OpenBLAS.
 */
#ifndef MEMWALL_ENGINE_API_PRODUCTS_H
#define MEMWALL_ENGINE_API_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/api/options.h"

/*
 * The matrices of a prompt can be multiplied by the kernels or by OpenBLAS.  These are the
 * rates of both, with one thread, for one CPU, kernel set, value of `exact` and version of
 * OpenBLAS. MW_BLAS_AUTO chooses for each weight type from rates with MW_PRODUCT_COLS columns;
 * budget and threads have no influence.  Store the rates: the two round differently, so a
 * different choice gives different tokens.
 */
#define MW_PRODUCTS_MAX 8
#define MW_PRODUCT_COLS 64

struct mw_product {
    char type[16];                        /* of weights */
    double kernels_flops_s, blas_flops_s; /* blas is 0 without the library */
};
struct mw_products {
    char kernels[16]; /* name of the kernel set; "": not measured */
    bool exact;
    char blas[64];       /* mw_blas_name(); "": it cannot be used */
    bool is_blas_denied; /* only because the system refuses its buffers, now and here */
    uint32_t n;
    struct mw_product product[MW_PRODUCTS_MAX];
};

/* Measure each weight type of the model's layers with n_col columns, for a few hundredths of a
 * second, in a few MiB that are freed again.  Loads OpenBLAS and unloads it. */
int mw_products_measure(const struct mw_model *m, const struct mw_options *o, uint32_t n_col,
                        struct mw_products *out, struct err *e);
/* Fill in the names without measuring; rates are 0. */
void mw_products_list(const struct mw_model *m, const struct mw_options *o,
                      struct mw_products *out);
/* Let later plans and sessions of m choose by these rates, measured with MW_PRODUCT_COLS. */
void mw_model_set_products(struct mw_model *m, const struct mw_products *p);
/* Returns whether OpenBLAS multiplies any matrix with these options. */
bool mw_products_use_blas(const struct mw_model *m, const struct mw_options *o);
/* Returns a sentence for the user if OpenBLAS should multiply with these options, but a plan or
 * session found that the system refuses its buffers; else "". */
const char *mw_products_notice(const struct mw_model *m, const struct mw_options *o);
/* Describe the choice in words, in at most MW_PRODUCTS_TEXT bytes with the NUL: "the avx2
 * kernels", or "openblas 0.3.21 Haswell in prompts from 7 tokens on, the generic kernels
 * otherwise". */
#define MW_PRODUCTS_TEXT 128
void mw_products_text(const struct mw_model *m, const struct mw_options *o, char *buf,
                      size_t n);

#endif
