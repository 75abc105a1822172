/*
 * trial.h - products of made-up weights that no cache holds, to measure how fast they are.
 */
#ifndef MEMWALL_ENGINE_MODEL_TRIAL_H
#define MEMWALL_ENGINE_MODEL_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/compute/kernels.h"
#include "engine/compute/pool.h"
#include "engine/stream/area.h"

#define TRIAL_N_K ((size_t)2048) /* values of a row */

struct trial {
    const struct kernels *kernels;
    struct pool *pool;
    enum tensor_type type;
    enum weight_form weight_form;
    enum act_form form;
    unsigned char *w, *x;
    float *y;
    size_t w_bytes, row_bytes, x_stride;
    size_t n_row; /* multiplied at once */
    size_t at, n_col;
    struct area weights;
    struct arena others;
};

/* A product: weights of one type, of which `piece` bytes are multiplied at once. */
struct trial_product {
    enum tensor_type type;
    enum weight_form form;
    bool exact;
    size_t n_col, piece;
};

/* Make threads, and buffers of at most buffer_bytes for n_y results and most_cols columns.
 * Returns 0, or -1 with *e.  The caller closes *t in either case; a zeroed one, too. */
int trial_open(struct trial *t, const struct kernels *kernels, int n_thread,
               uint64_t buffer_bytes, size_t n_y, size_t most_cols, struct err *e);
void trial_close(struct trial *t);

/* Prepare products. */
void trial_set(struct trial *t, const struct trial_product *p);

/* Multiply with the next rows of the buffer.  Returns the seconds. */
double trial_next(struct trial *t);

#endif
