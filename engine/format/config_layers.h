/* config_layers.h - kinds and sizes of layers other than attention, from config.json. */
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

/* Read the experts of EXPERTS_ROUTED.  The layers have their dense width. */
void config_routed(struct config_lookup *l, struct hparams *h);

/* Read the factors of branches that Falcon-H1 states, as factors of scores and outputs. */
void config_factors(struct config_lookup *l, struct hparams *h);

#endif
