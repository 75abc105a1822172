/*
 * stream_internal.h - what the engine's side (stream.c) and the reader (reader.c) share.
 *
 *                      walk (reader)
 *                        v
 *     pass p:  b0 b1 b2 b3 b4 … b_prompt | … b_n      pass p+1:  b0 b1 …
 *              ^
 *              next (engine)
 *
 * The reader walks the schedule ahead of the engine: over blocks that are held, into
 * pinned places, into slots as long as one is free and the depth allows.  It goes over
 * the end of the pass being computed into the next one, whose kind is not known yet: a
 * prompt pass is the beginning of a full one, so it may go as far as the prompt's end.
 *
 * Slots are filled, taken and given back in the order of the schedule, so that three
 * counters describe them: given <= taken <= filled, each modulo n_slot a slot.
 */
#ifndef MEMWALL_ENGINE_STREAM_STREAM_INTERNAL_H
#define MEMWALL_ENGINE_STREAM_STREAM_INTERNAL_H

#include <pthread.h>

#include "engine/stream/area.h"
#include "engine/stream/backend.h"
#include "engine/stream/lookup.h"
#include "engine/stream/mapping.h"
#include "engine/stream/pinned.h"
#include "engine/stream/schedule.h"
#include "engine/stream/source.h"
#include "engine/stream/stream.h"

enum slot_state {
    SLOT_FREE,
    SLOT_READING,
    SLOT_READY,
    SLOT_TAKEN, /* the engine computes with it */
    SLOT_STALE, /* still being read for a pass that was ended */
};

struct slot {
    enum slot_state state;
    uint32_t block;
    uint64_t pass;
};

struct stream {
    /* Set by stream_open. */
    const struct catalogue *catalogue;
    struct telemetry *telemetry;
    struct schedule schedule;
    struct source source;
    struct mapping mapping;
    bool is_mapped, drops; /* mmap; mmap:drop */
    struct area ring, lookup_area;
    void *spans, *pinned_table;
    uint32_t depth;
    size_t slot_bytes;
    pthread_t thread;
    bool has_thread;
    const struct backend_kind *first_kind; /* that the reader tries */
    char reason[192];

    /* Engine thread. */
    bool in_pass;
    uint64_t pass; /* of the pass begun, or that will begin next */
    struct schedule_at next;
    uint64_t taken, given;               /* slots, counted */
    const struct stream_lookup *lookups; /* that wait for their batch */
    size_t n_lookup;
    bool in_lookup;

    _Atomic bool cancelled;
    const char *_Atomic io_name, *_Atomic io_reason;

    /* Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t news;   /* to the engine: a block, a lookup, a failure, standing still */
    pthread_cond_t wakeup; /* to a reader that has no backend any more */
    struct pinned pinned;  /* states are atomic; the set changes when the reader stands */
    uint32_t n_slot;
    struct slot slots[STREAM_SLOTS_MAX]; /* the first n_slot are used */
    struct lookup lookup;
    uint64_t filled;
    bool pass_is_known; /* begun, and to be walked as far as pass_blocks */
    uint32_t pass_blocks;
    bool reader_sleeps, quit, started;
    bool hold;     /* no block is to be begun */
    bool rebuffer; /* slots lie elsewhere */

    /* A failed read: the reader stands still until the pass is ended. */
    bool failed, lookup_failed;
    struct err failure, lookup_failure;
    bool ring_lost; /* it could not be made anew: failure stays */
    bool is_dead;   /* no read is possible any more: failure stays */

    /* Reader, under the lock. */
    struct schedule_at walk;
    uint64_t walk_pass;
    struct read_op ops[STREAM_DEPTH_MAX]; /* of blocks; the first depth are used */
    uint32_t n_flying;                    /* of ops */
    bool wants_slot;                      /* the walk waits for one */
    const struct backend_kind *kind;
    struct backend *backend;
};

/* The reader's thread; arg is the stream. */
void *reader_main(void *arg);

/* Tell it to look again.  Under the lock. */
void reader_wake(struct stream *s);

/* Let it walk from the first block of pass s->pass; slots that hold other blocks are
 * free or stale.  Under the lock. */
void reader_restart(struct stream *s);

#endif
