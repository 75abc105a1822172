/*
 * expert_cache.h - brings the weights of experts into memory when the router has chosen them.
 *
 *     begin(layer, experts chosen by any column)
 *     next()  -> expert 17, its weights     the caller multiplies with them
 *     give()
 *     next()  -> expert 5 …                 in the order in which they are available
 *
 * Experts come in any order, so a caller that adds them up keeps an order of its own.
 */
#ifndef MEMWALL_ENGINE_STREAM_EXPERT_CACHE_H
#define MEMWALL_ENGINE_STREAM_EXPERT_CACHE_H

#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/stream/stream.h"

/* Tensors with weights of one expert: gate, up, down. */
enum { EXPERT_PARTS = 4 };

/* Expert i has `bytes` bytes at offset + i * bytes. */
struct expert_part {
    uint32_t file;
    uint64_t offset, bytes;
};

/* The experts of one layer; n_expert 0: a dense layer. */
struct expert_layer {
    uint32_t n_expert, n_part;
    struct expert_part part[EXPERT_PARTS];
};

/* Weights in memory, until expert_cache_give(). */
struct expert_weights {
    uint32_t expert;
    const unsigned char *part[EXPERT_PARTS]; /* in the order of expert_layer.part */
};

struct expert_cache;

/* Memory that a cache needs at least for the experts of this layer; 0: a dense layer.  Pure. */
uint64_t expert_cache_min_bytes(const struct expert_layer *l);

/* layers is copied; the stream must outlive the cache. */
int expert_cache_new(struct expert_cache **out, struct stream *s,
                     const struct expert_layer *layers, uint32_t n_layer, struct arena *memory,
                     struct err *e);
void expert_cache_free(struct expert_cache *c); /* NULL is fine */

/* Request n experts of a layer, in ascending order.  `experts` is copied. */
void expert_cache_begin(struct expert_cache *c, uint32_t layer, const uint32_t *experts,
                        uint32_t n);

/*
 * Get one of the first `end` requested experts that was not returned yet, and wait for it if it
 * has to be read; the wait is added to *stall_ns.  Returns 0, or -1 with *e if a read failed;
 * then the request is over.
 */
int expert_cache_next(struct expert_cache *c, uint32_t end, struct expert_weights *out,
                      uint64_t *stall_ns, struct err *e);

/* Give the weights of the last expert_cache_next() back. */
void expert_cache_give(struct expert_cache *c);

#endif
