/*
 * observe.h - correct measured rates by what the program sees while it works.  Arithmetic only.
 *
 * The disk is watched in windows: runs of at least OBSERVE_BYTES of direct reads without a
 * pause.  A window gives a rate, and the share of its time in which the disk was busy (at least
 * half of the reads that the stream keeps in flight).
 *
 * A limit that was never measured stays unknown: work that does not wait for the disk would
 * pass for its rate.
 *
 *   1. Faster than the limit: the disk can do it, so the limit rises to that rate at once.
 *
 *   2. Slower than 9/10 of what computing leaves of the limit (mw_limits.contention): the
 *      window counts if the disk was busy for OBSERVE_BUSY of its time, neither --disk-rate nor
 *      a small ring throttled it, and no weights were pinned meanwhile (clearing fresh memory
 *      takes time, too).  After
 *      OBSERVE_SLOW windows that count, the limit moves to the fastest of them: all the way
 *      if it is doubtful or older than 12 hours, half the way if it is older than an hour,
 *      else a quarter, because the reason may be another program that will end.
 *
 *   3. In between: the disk is as fast as expected, and the count begins again.
 *
 * Products are watched in windows of OBSERVE_PASSES passes that streamed nothing, tokens and
 * chunks of a prompt apart.  The plan expects a time for such a pass.  The median of (expected
 * / taken) in a window is a factor for the rates of all weight types, because a pass does not
 * tell which type was slow.
 *
 *   1. Above 1, the processors can do it: the rates rise by the factor at once.
 *   2. Below 9/10 in OBSERVE_SLOW windows: the rates fall towards the largest of their factors,
 *      as far as those of the disk fall.
 *   3. In between, the rates are right, and the count begins again.
 *
 * The bandwidth of memory has a lower bound: a token multiplies with all weights, so it reads
 * them from memory.  If that is faster than the limit, the limit rises to it.  Slower says
 * nothing, because arithmetic or the disk may have been the reason.
 */
#ifndef MEMWALL_ENGINE_SESSION_OBSERVE_H
#define MEMWALL_ENGINE_SESSION_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/memwall.h"

#define OBSERVE_BYTES ((uint64_t)1 << 30)
#define OBSERVE_BUSY  0.9
#define OBSERVE_SLOW  3
/* The least spread of a rate.  Measured again on a quiet machine, the rates of a disk and of
 * products differed by 5 % in both directions, which one measurement does not show. */
#define OBSERVE_LEAST_SPREAD 0.05
/* Weights of fewer bytes may come from a cache of the processor. */
#define OBSERVE_MEMORY_BYTES ((uint64_t)256 << 20)

/* Tokens of a session that tell how its routers choose, and the most that earlier ones count
 * for: texts differ. */
#define OBSERVE_CHOICES      64
#define OBSERVE_CHOICES_KEPT 1024.0

/* Counters of the stream at some moment. */
struct observe_at {
    uint64_t t_ns, bytes, busy_ns, pinned_bytes;
};

struct observer {
    struct observe_at from; /* where the window begins */
    uint32_t n_slow;        /* windows that count */
    double fastest_slow;
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
bool observe_choice(const struct mw_choice *choice, int64_t now_s, struct mw_limits *l);

enum observed_products { OBSERVE_COLUMN, OBSERVE_CHUNK };

#define OBSERVE_PASSES 9 /* of a window */

struct product_observer {
    double factor[OBSERVE_PASSES]; /* of the window so far, in ascending order */
    uint32_t n;
    uint32_t n_slow; /* windows */
    double best_slow;
};

/* A pass that read nothing from disk took wall_ns.  Returns whether that corrected *l. */
bool observe_products(struct product_observer *w, enum observed_products which,
                      double expected_s, uint64_t wall_ns, int64_t now_s, struct mw_limits *l);

#endif
