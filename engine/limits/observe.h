/*
 * observe.h - correct measured rates by what the program sees while it works, by the rule of
 * limits.h.  Arithmetic only.
 *
 * The disk is watched in windows: runs of at least OBSERVE_BYTES of direct reads without a
 * pause.  A slow window counts if the disk was busy (at least half of the reads that the stream
 * keeps in flight) for OBSERVE_BUSY of its time, computing does not explain it
 * (mw_limits.contention), neither --disk-rate nor a small ring throttled it, and no weights were
 * pinned meanwhile, because clearing fresh memory takes time, too.
 *
 * Products are watched in windows of OBSERVE_PASSES passes that streamed nothing, tokens and
 * chunks of a prompt apart.  The plan expects a time for such a pass.  The median of (expected
 * / taken) in a window is a factor for the rates of all weight types and the costs of all
 * steps, because a pass does not tell which of them was slow.
 *
 * The bandwidth of memory has a lower bound: a token multiplies with all weights, so it reads
 * them from memory.  Slower says nothing, because arithmetic or the disk may have been the
 * reason.
 */
#ifndef MEMWALL_ENGINE_LIMITS_OBSERVE_H
#define MEMWALL_ENGINE_LIMITS_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/limits/limits.h"

#define OBSERVE_BYTES ((uint64_t)1 << 30)
#define OBSERVE_BUSY  0.9
#define OBSERVE_SLOW  3
/* Slow figures that are nearer to each other have the same reason. */
#define OBSERVE_APART_S 60
/* Weights of fewer bytes may come from a cache of the processor. */
#define OBSERVE_MEMORY_BYTES ((uint64_t)256 << 20)

/* Tokens of a session that tell how its routers choose, and the most that earlier ones count
 * for: texts differ. */
#define OBSERVE_USES      64
#define OBSERVE_USES_KEPT 1024.0

/* Counters of the stream at some moment. */
struct observe_at {
    uint64_t t_ns, bytes, busy_ns, pinned_bytes;
};

/* Slow figures in a row. */
struct slow {
    uint32_t n;
    double sum;
    int64_t last_s; /* Unix time of the newest one that counts */
};

/* Take a rate that work has shown at Unix time now_s, which counts as slow only if is_limit:
 * nothing else explains it.  Returns whether *rate changed. */
bool observe_rate(struct slow *slow, double seen, bool is_limit, int64_t now_s, double *rate);

struct observer {
    struct observe_at from; /* where the window begins */
    struct slow slow;
};

/* Begin a window: reading starts, or starts again after a pause. */
void observe_begin(struct observer *w, const struct observe_at *at);

/* Reading went on until `at`.  Returns whether that corrected *l, at Unix time now_s. */
bool observe_disk(struct observer *w, const struct observe_at *at, bool is_throttled,
                  int64_t now_s, struct mw_limits *l);

/* A token read `bytes` of weights and keys and values from memory in wall_ns.  Returns whether
 * that corrected *l. */
bool observe_memory(uint64_t bytes, uint64_t wall_ns, int64_t now_s, struct mw_limits *l);

/* A session chose experts like this.  The mean with earlier sessions is kept, by tokens.
 * Returns whether that changed *l. */
bool observe_use(const struct mw_expert_use *use, int64_t now_s, struct mw_limits *l);

enum observed_products { OBSERVE_COLUMN, OBSERVE_CHUNK };

#define OBSERVE_PASSES 9 /* of a window */

struct product_observer {
    double factor[OBSERVE_PASSES]; /* of the window so far, in ascending order */
    uint32_t n;
    struct slow slow;
};

/* A pass that read nothing from disk took wall_ns.  Returns whether that corrected *l. */
bool observe_products(struct product_observer *w, enum observed_products which,
                      double expected_s, uint64_t wall_ns, int64_t now_s, struct mw_limits *l);

#endif
