/*
 * recurrent.h - what a model remembers of all positions besides keys and values.
 *
 *   layer with a gated delta net:  past inputs of its convolution  [n_past][n_channel]
 *                                  one matrix per value head  [n_head][head_dim_v][head_dim_k]
 *   other parts of the model:      what they keep of the last positions, in one piece
 *
 * The state has a fixed size, whatever the context.  A pass reads the committed side and writes
 * the other one, and committing swaps the two.  A pass that fails or is cancelled therefore
 * changes nothing.  Earlier positions cannot be reconstructed: going back needs a copy, or, if it
 * is to a position within the last pass, the inputs of that pass (model/replay.c).
 */
#ifndef MEMWALL_ENGINE_KV_RECURRENT_H
#define MEMWALL_ENGINE_KV_RECURRENT_H

#include <stdint.h>

#include "engine/base/err.h"

/* The layers with a gated delta net, which all have the same shape, and other parts. */
struct recurrent_spec {
    uint32_t n_layer; /* 0: none */
    uint32_t n_past, n_channel;
    uint32_t n_head, head_dim_k, head_dim_v;
    uint64_t n_other; /* values of other parts; the model knows their places */
};

/* One side of one layer. */
struct recurrent_side {
    float *past;  /* [n_past][n_channel], oldest first */
    float *state; /* [n_head][head_dim_v][head_dim_k] */
};

/* Receives or fills n bytes.  Returns 0, or -1 with *e. */
typedef int recurrent_bytes_fn(void *ctx, void *bytes, size_t n, struct err *e);

struct recurrent;

uint64_t recurrent_bytes(const struct recurrent_spec *s);       /* of both sides; 0: no state */
uint64_t recurrent_copy_bytes(const struct recurrent_spec *s);  /* of one */
uint64_t recurrent_layer_bytes(const struct recurrent_spec *s); /* of one layer, both sides */

/* Take the memory, with the state before position 0: all zeros. */
int recurrent_new(struct recurrent **out, const struct recurrent_spec *s, struct err *e);
void recurrent_free(struct recurrent *r); /* NULL is fine */

const struct recurrent_spec *recurrent_spec(const struct recurrent *r);

/* Set *from to the committed side of a layer and *to to the side that a pass fills. */
void recurrent_sides(const struct recurrent *r, uint32_t layer, struct recurrent_side *from,
                     struct recurrent_side *to);
/* The same for other parts: [n_other] values of both sides. */
void recurrent_others(const struct recurrent *r, const float **from, float **to);
void recurrent_commit(struct recurrent *r);
/* Undo the last commit: the committed side is the one that the last pass read.  It is still
 * there, as long as no other pass has begun. */
void recurrent_take_back(struct recurrent *r);
void recurrent_clear(struct recurrent *r); /* back to position 0 */

/* Pass the committed side to fn, which stores it or fills it. */
int recurrent_each(const struct recurrent *r, recurrent_bytes_fn *fn, void *ctx, struct err *e);

#endif
