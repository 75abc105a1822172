/*
 * options.h - the options of memwall.h as the rest of the engine takes them.
 */
#ifndef MEMWALL_ENGINE_SESSION_OPTIONS_H
#define MEMWALL_ENGINE_SESSION_OPTIONS_H

#include "engine/kv/kv.h"
#include "engine/memwall.h"
#include "engine/session/model.h"
#include "engine/stream/stream.h"
#include "engine/text/chat_format.h"

/*
 * Replace every 0 that asks for a default: threads, context, budget, rows of logits.
 * Returns -1 with *e if no budget is given and the machine does not report its memory.
 */
int options_resolve(struct mw_model *m, struct mw_options *o, struct err *e);

/* Whether a draft head is used with these options. */
enum head_use { HEAD_UNUSED, HEAD_IF_IT_FITS, HEAD_NEEDED };
enum head_use options_head(const struct mw_model *m, const struct mw_options *o);

/* Compare options: the bits of enum mw_reach of the fields that differ.  0: a session has nothing
 * to do.  m: the model, or NULL. */
unsigned options_reach(const struct mw_model *m, const struct mw_options *now,
                       const struct mw_options *then);

/*
 * Options *o follow options `asked`, which were completed to `got`.  Replace every field that
 * asks for the same as before by what it got then, so that a default is not chosen again when
 * something else changes.
 */
void options_keep(const struct mw_options *asked, const struct mw_options *got,
                  struct mw_options *o);

/* The context in tokens that these options ask for. */
uint32_t options_ctx(const struct mw_model *m, const struct mw_options *o);

/* The block size that these options ask for. */
size_t options_block(const struct mw_options *o);

/* The KV type and the I/O mode that a public name stands for. */
enum kv_type options_kv_type(enum mw_kv t);
enum stream_io options_stream_io(enum mw_io io);

/* Set whether a rendered conversation asks the model to think. */
void options_think(enum mw_think think, struct chat_options *o);

#endif
