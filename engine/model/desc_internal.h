/* desc_internal.h - what the functions that describe one architecture share. */
#ifndef MEMWALL_ENGINE_MODEL_DESC_INTERNAL_H
#define MEMWALL_ENGINE_MODEL_DESC_INTERNAL_H

#include "engine/model/desc.h"

/* Find "name" or, with layer >= 0, "blk.<layer>.name"; check shape and type. */
struct finder {
    const struct catalogue *c;
    struct err *e;
    int layer;
    bool failed; /* set at the first error, which is kept */
};

/* n_row rows of n_k values.  A tensor that is absent gives an empty mat, an error if it is
 * needed. */
struct mat find_mat(struct finder *f, const char *name, uint64_t n_row, uint64_t n_k,
                    bool is_needed);
/* Rows row0 … row0 + n_row of a fused tensor of n_all rows. */
struct mat find_slice(struct finder *f, const char *name, uint64_t row0, uint64_t n_row,
                      uint64_t n_all, uint64_t n_k, bool is_needed);
/* The same of a tensor with one matrix an expert, which is read by expert. */
const struct tensor_info *find_experts(struct finder *f, const char *name, uint64_t n_row,
                                       uint64_t n_k, bool is_needed);
struct vec find_vec(struct finder *f, const char *name, uint64_t n, bool is_needed);
/* Values first … first + n of a fused tensor of n_all values. */
struct vec find_part(struct finder *f, const char *name, uint64_t first, uint64_t n,
                     uint64_t n_all, bool is_needed);
const struct tensor_info *find_tensor(struct finder *f, const char *name, bool is_needed);

/* q, k, v (fused or apart, with biases where there are some), o, and the kind, window and
 * sizes of layer l.  needs_v false: a missing v means that keys serve as values. */
void describe_attention(struct finder *f, struct model_desc *d, uint32_t l, bool needs_v);

void describe_gemma4(struct finder *f, struct model_desc *d);
void describe_llama(struct finder *f, struct model_desc *d); /* and its relatives */

#endif
