/*
 * gguf_hparams.h - parts of the hyper-parameters from GGUF keys, for hparams_gguf.c.
 *
 * Each sets members of *h.  An error is in *l, as gguf_lookup.h describes.
 */
#ifndef MEMWALL_ENGINE_FORMAT_GGUF_HPARAMS_H
#define MEMWALL_ENGINE_FORMAT_GGUF_HPARAMS_H

#include <stdint.h>

#include "engine/format/catalogue.h"
#include "engine/format/gguf_lookup.h"
#include "engine/format/hparams.h"

/* Find the layers that have a window. */
void gguf_windows(struct gguf_lookup *l, struct hparams *h);

/* Read the numbers and sizes of heads, and the widths of feed-forward networks. */
void gguf_heads(struct gguf_lookup *l, struct hparams *h);

/* Read the rope tables, after the heads. */
void gguf_rope(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h);

/* Returns the rows of a tensor of a layer, or 0. */
uint32_t gguf_rows_of(const struct catalogue *c, uint32_t layer, const char *suffix);

/* Read the experts and the rule of their router, if the model has some. */
void gguf_experts(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h);

/* Read which layers are recurrent, and their sizes. */
void gguf_recurrent(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h);

/* Read the sizes of delta nets, and which layers have one. */
void gguf_delta(struct gguf_lookup *l, struct hparams *h);

/* Read the residual streams and their mixers. */
void gguf_streams(struct gguf_lookup *l, struct hparams *h);

/* Read the residual streams that matrices mix. */
void gguf_hyper(struct gguf_lookup *l, struct hparams *h);

/* Read the index keys whose queries have weights: of entries, or of blocks of positions. */
void gguf_scored(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h);

/* Read the index keys.  Layers with attention have the same block, others none. */
void gguf_index(struct gguf_lookup *l, struct hparams *h);

/* Read the table of n-grams. */
void gguf_ngrams(struct gguf_lookup *l, struct hparams *h);

#endif
