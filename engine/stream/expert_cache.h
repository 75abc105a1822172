/*
 * expert_cache.h - keeps weights of experts in memory, and reads those that are missing.
 *
 *     slots:    [ L0 e17 | L0 e90 | L1 e3 |  …  | free ]      slot: all weights of one expert
 *     request:  L1: experts 3, 40, 77
 *                   hit  miss miss    -> two fetches, both in flight at once
 *
 *     begin(layer, experts that any column chose)
 *     next() -> expert 3      the caller multiplies with it while the others are read
 *     give()
 *     next() -> expert 77 …   in the order in which they arrive
 *
 * Experts come in any order, so a caller that adds them up keeps an order of its own.  Which
 * expert leaves for another one is decided by expert_policy.h.
 *
 * Slots are in one area (area.h), so a smaller cache gives memory back to the kernel at once.
 * Reads go straight into the slots, in complete pages.  With mapped files there are no slots:
 * weights are used where they are mapped.
 *
 * Nothing is read on a guess.  The router of the next layer, applied to the output of this one,
 * found 60 % of the eight experts that the next layer then chose (the shape of Gemma 4 26B-A4B
 * with random weights; by rank 84, 79, 67, 62, 54, 47, 44 and 40 %), and 49 % when applied to
 * the state before the experts of this one, which leaves time for reads.  Of the experts that
 * are not in memory it finds fewer: with a sixth of all in memory, the first such guess was
 * right in 26 %.  Reading such guesses while the disk was idle changed the rate by -2 to +1 %
 * with a disk of 1 GB/s (tests/bench/README.md).
 *
 * The favourites of earlier chats are different: they are read once, while the first prompt is
 * typed, and hits rise by 0.4 to 8 % (tests/bench/README.md).
 *
 * All calls are of the engine thread.
 */
#ifndef MEMWALL_ENGINE_STREAM_EXPERT_CACHE_H
#define MEMWALL_ENGINE_STREAM_EXPERT_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/limits/limits.h"
#include "engine/stream/stream.h"

/* Tensors with weights of one expert: gate, up, down. */
enum { EXPERT_PARTS = FETCH_RANGES };

/* Expert i has `bytes` bytes at offset + i * bytes, or at each[i]. */
struct expert_part {
    uint32_t file;
    uint64_t offset, bytes;
    const struct tensor_piece *each; /* NULL: one after the other */
};

/* Returns where the part of an expert begins. */
static inline struct tensor_piece expert_part_at(const struct expert_part *p, uint32_t expert)
{
    return p->each != NULL ? p->each[expert]
                           : (struct tensor_piece){ p->file, p->offset + expert * p->bytes };
}

/* The experts of one layer; n_expert 0: a dense layer. */
struct expert_layer {
    uint32_t n_expert, n_used, n_part; /* n_used: chosen by a token */
    struct expert_part part[EXPERT_PARTS];
};

/* Weights in memory, until expert_cache_give(). */
struct expert_weights {
    uint32_t expert;
    const unsigned char *part[EXPERT_PARTS]; /* in the order of expert_layer.part */
};

/* The memory of a cache: n slots take fixed + n * slot bytes.  All zero: a dense model. */
struct expert_sizes {
    uint64_t slot_bytes;
    uint64_t fixed_bytes; /* tables */
    uint32_t n_min;       /* slots that a request needs */
    uint32_t n_read;      /* slots for all experts that a token uses of a layer */
    uint32_t n_all;       /* slots for all experts of the model */
};
void expert_sizes_of(const struct expert_layer *layers, uint32_t n_layer,
                     struct expert_sizes *out);

struct expert_cache;

/* Open a cache with `bytes` of memory for its slots.  layers is copied; the stream must outlive
 * the cache.  Counters go to t.  Returns 0, or -1 with *e. */
int expert_cache_open(struct expert_cache **out, struct stream *s,
                      const struct expert_layer *layers, uint32_t n_layer, uint64_t bytes,
                      struct telemetry *t, struct err *e);
void expert_cache_close(struct expert_cache *c); /* NULL is fine */

/*
 * Change the memory for slots, between passes.  The cache has as many slots as fit `bytes`, and
 * takes memory for complete slots only.  A smaller cache keeps the experts that are used
 * soonest, and gives the rest of its memory back at once.  Slots in a huge page that it gives
 * back lose their experts (area.h).  Returns 0, or -1 with *e: then there may be fewer slots,
 * even none, and a request fails until a later call succeeds.
 */
int expert_cache_set_memory(struct expert_cache *c, uint64_t bytes, struct err *e);

/* Before a pass: those after it have n_token tokens.  The cache keeps experts for them. */
void expert_cache_expect(struct expert_cache *c, uint32_t n_token);

/*
 * Request n experts of a layer, in ascending order, in a pass of n_token tokens, of which
 * n_choice[i] chose experts[i].  A request that is not finished is dropped.  Both arrays are
 * copied.
 */
void expert_cache_begin(struct expert_cache *c, uint32_t layer, uint32_t n_token,
                        const uint32_t *experts, const uint32_t *n_choice, uint32_t n);

/*
 * Get one of the first `end` requested experts that was not returned yet, and wait for it if it
 * has to be read; the wait is added to *stall_ns.  Returns 0, or -1 with *e if a read failed;
 * then the request is over.
 */
int expert_cache_next(struct expert_cache *c, uint32_t end, struct expert_weights *out,
                      uint64_t *stall_ns, struct err *e);

/* Give the weights of the last expert_cache_next() back. */
void expert_cache_give(struct expert_cache *c);

/* Memory of the slots that hold weights. */
uint64_t expert_cache_held(const struct expert_cache *c);
/* The same with memory that was fetched from the kernel for slots to come. */
uint64_t expert_cache_charged(const struct expert_cache *c);

/* The experts that earlier sessions used, and those that this one did: [expert_sizes.n_all] of all
 * layers, see expert_policy_seed().  Seeding is for a cache that was just opened. */
void expert_cache_seed(struct expert_cache *c, const uint8_t *use);
void expert_cache_uses(const struct expert_cache *c, uint8_t *use);

/*
 * Before the first request, read some of the experts that earlier sessions used most, those that
 * fit, in the order of the file.  Returns whether there are more; false also after an error, which
 * the request meets again, and without expert_cache_seed().
 */
bool expert_cache_warm(struct expert_cache *c);

/* The use so far: see expert_policy_observed(). */
void expert_cache_observed(const struct expert_cache *c, struct mw_expert_use *out);

#endif
