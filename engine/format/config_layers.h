/*
 * config_layers.h - kinds and sizes of layers, from config.json.
 *
 *     config_attention.c    windows, heads, widths
 *     config_state.c        delta nets, residual streams, index keys, n-grams
 *     config_layers.c       kinds, other recurrent layers, latent attention, factors
 *     config_routed.c       experts of EXPERTS_ROUTED
 */
#ifndef MEMWALL_ENGINE_FORMAT_CONFIG_LAYERS_H
#define MEMWALL_ENGINE_FORMAT_CONFIG_LAYERS_H

#include "engine/format/config_lookup.h"
#include "engine/format/hparams.h"

/* Returns the number of layers, which some configurations state only by the list of them. */
int64_t config_n_layer(struct config_lookup *l, const struct arch *a);

/* Read the kinds of layers from the field that this architecture has for them, if it is not
 * layer_types. */
void config_kinds(struct config_lookup *l, struct hparams *h);

/* Set what a word of layer_types says of a layer beside attention.  Returns false if the
 * architecture has no such layers. */
bool config_kind(struct hparams *h, uint32_t layer, const char *word);

/* Read the sizes of Mamba-2, short convolutions or KDA, if the model has such layers. */
void config_recurrent(struct config_lookup *l, struct hparams *h);

/* Read the sizes of latent attention, before the rope tables. */
void config_latent(struct config_lookup *l, struct hparams *h);

/* Read streams that matrices mix, and entries or index keys whose queries have weights. */
void config_hyper(struct config_lookup *l, struct hparams *h);

/* Read the clamps of each layer's products, of models without those streams. */
void config_clamps(struct config_lookup *l, struct hparams *h);

/* Read the experts of EXPERTS_ROUTED.  The layers have their dense width. */
void config_routed(struct config_lookup *l, struct hparams *h);

/* Read the factors of branches that Falcon-H1 states, as factors of scores and outputs. */
void config_factors(struct config_lookup *l, struct hparams *h);

/* Find the layers that have a window. */
void config_windows(struct config_lookup *l, struct hparams *h);

/* Read the heads of all layers, and the widths of their feed-forward networks. */
void config_attention(struct config_lookup *l, struct hparams *h);

/* Read the sizes of delta nets, which are apart from those of config_recurrent(). */
void config_delta(struct config_lookup *l, struct hparams *h);

/* Read the residual streams and their mixers, the index keys, and the table of n-grams. */
void config_streams(struct config_lookup *l, struct hparams *h);
void config_index(struct config_lookup *l, struct hparams *h);
void config_ngrams(struct config_lookup *l, struct hparams *h);

#endif
