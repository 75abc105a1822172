/*
 * attend_item.h - attention divided into items of work: a column, and query heads that share a key
 * head.
 *
 * The caller says which positions an item sees, and computes their blocks in an order that follows
 * from the position of the column alone, so the result does not depend on how the work is cut.
 */
#ifndef MEMWALL_ENGINE_MODEL_ATTEND_ITEM_H
#define MEMWALL_ENGINE_MODEL_ATTEND_ITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/model/forward.h"

#define ATTEND_ITEM_Q 64 /* the most query heads of an item */

/* n_q queries from `head` on of a column: their values, the maxima and sums so far, and the sums
 * of values, which start at 0. */
struct attend_item {
    uint32_t col, head, n_q;
    float m[ATTEND_ITEM_Q], l[ATTEND_ITEM_Q];
    float *q, *sum;
    unsigned char *rows; /* attend_rows_bytes(): keys, then values, of gathered positions */
    uint32_t n_row;
    bool values_are_keys;
};

/* Add the positions that the item sees. */
typedef void attend_item_fn(struct forward *f, const struct layer_desc *layer,
                            struct attend_item *a);

/* The end of the run of positions from `at` on that is one call of attend_item_run(): at most `end`,
 * up to a multiple of ATTN_BLOCK, so that the order of additions stays the same. */
uint32_t attend_run_end(uint32_t at, uint32_t end);

/* Add n rows of keys and values, which are strides apart. */
void attend_item_run(struct forward *f, const struct layer_desc *layer, struct attend_item *a,
                     const void *k, size_t k_stride, const void *v, size_t v_stride, uint32_t n);

/*
 * The same for positions that are chosen one by one or in short runs: their rows are copied until
 * there are ATTN_BLOCK of them, or the item ends.  v is k if the values are the first ones of the
 * keys.
 */
void attend_item_gather(struct forward *f, const struct layer_desc *layer, struct attend_item *a,
                        const void *k, size_t k_stride, const void *v, size_t v_stride, uint32_t n);
/* Compute what was gathered. */
void attend_item_flush(struct forward *f, const struct layer_desc *layer, struct attend_item *a);
/* Bytes that a thread needs to gather rows; 0 if no layer of the model chooses positions. */
uint64_t attend_rows_bytes(const struct model_desc *d);

/* Attention of all columns from `first` on, with all threads. */
void attend_items(struct forward *f, const struct layer_desc *layer, uint32_t first,
                  attend_item_fn *fn);

#endif
