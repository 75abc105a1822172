/*
 * config_rope.h - the rope tables of a snapshot, from either layout of its config.json.
 */
#ifndef MEMWALL_ENGINE_FORMAT_CONFIG_ROPE_H
#define MEMWALL_ENGINE_FORMAT_CONFIG_ROPE_H

#include "engine/format/config_lookup.h"
#include "engine/format/hparams.h"

/* Fill h->rope and h->rope_swa; layers and n_ctx_train are known.  On a field that
 * cannot be, l->failed and its error are set. */
void config_rope(struct config_lookup *l, struct hparams *h);

#endif
