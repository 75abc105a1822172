/* config_rope.h - the rope tables of a snapshot, from both layouts of its config.json. */
#ifndef MEMWALL_ENGINE_FORMAT_CONFIG_ROPE_H
#define MEMWALL_ENGINE_FORMAT_CONFIG_ROPE_H

#include "engine/format/config_lookup.h"
#include "engine/format/hparams.h"

/* Fill h->rope and h->rope_swa from l; layers and n_ctx_train must be known.  On an invalid
 * field, set l->failed and the error. */
void config_rope(struct config_lookup *l, struct hparams *h);

#endif
