/*
 * kv_walk.h - pages of keys and values that are on the disk, brought back for a pass.
 *
 *     walk:   layer 0: p0 p1 p2 | layer 1: p0 p1 p2 | ...     started ahead of attention
 *     slots:  [ p1 ][ p2 ][ p0 ][ p1 ] ...                    taken in turn, given back in order
 *
 * Attention takes the positions of a layer in rounds.  A round has whole steps, and all of its
 * pages are in memory.  Meanwhile the reader of the stream fetches the next ones, of the next
 * layers, too.
 */
#ifndef MEMWALL_ENGINE_MODEL_KV_WALK_H
#define MEMWALL_ENGINE_MODEL_KV_WALK_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/kv/kv.h"
#include "engine/model/desc.h"
#include "engine/stream/stream.h"

#define KV_WALK_SLOTS 64 /* at most */

struct forward;

/* Pages are counted from the beginning of the pass; page i is in slot i modulo n_slot. */
struct kv_walk {
    uint32_t layer, page, n_layer; /* the next to start, and the end of the layers */
    uint32_t n_slot;               /* 0: nothing is on the disk */
    uint64_t started, given;
    uint64_t first;    /* page of the layer that attends, */
    uint32_t from, to; /* whose positions from .. to - 1 are on the disk */
    uint64_t stall_ns;
    struct stream_fetch fetch[KV_WALK_SLOTS];
};

/* In a pass through the first n_layer layers.  kv_walk_end() may be called in its middle. */
void kv_walk_begin(struct forward *f, uint32_t n_layer);
void kv_walk_end(struct forward *f);

/* The next layer attends. */
void kv_walk_layer(struct forward *f, const struct layer_desc *layer);

/*
 * A round of its positions begins at pos, a multiple of step; step is a multiple of KV_PAGE, and a
 * step of pages fits the slots.  Waits for the pages of at least one step; *end is where the round
 * ends, at most n.  Returns 0, or -1 with *e.
 */
int kv_walk_round(struct forward *f, uint32_t pos, uint32_t step, uint32_t n, uint32_t *end,
                  struct err *e);
/* Positions before `end` are done. */
void kv_walk_give(struct forward *f, uint32_t end);

#endif
