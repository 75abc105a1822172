/*
 * stream_internal.h - what the engine's side (stream_*.c) and the reader (reader.c) share.
 *
 *                      walk (reader)
 *                        v
 *     pass p:  b0 b1 b2 b3 b4 … b_prompt | … b_n      pass p+1:  b0 b1 …
 *              ^
 *              next (engine)
 *
 * The reader walks the schedule ahead of the engine: over blocks that are in memory, into
 * pinned places, and into slots while one is free and the depth allows it.  It continues
 * past the end of the current pass into the next one.  The kind of the next pass is not
 * known yet; a prompt pass is the beginning of a full pass, so the reader goes up to the
 * end of the prompt.  While no pass runs and the walk has to wait, a second walk loads the
 * pinned blocks that are left, so that a model is in memory before it is needed.  While no pass
 * runs, both read only into memory that is populated, as long as there is such a block.
 *
 * Slots are filled, taken and given back in the order of the schedule, so three counters
 * describe them: given <= taken <= filled.  Counter i refers to slot i modulo n_slot.
 *
 *
 * The reader is always in one of these states:
 *
 *   state      meaning                           block reads  lookups¹  a missing block
 *   ---------  --------------------------------  -----------  --------  ---------------
 *   NONE       no thread: mmap, or not started   -            -         -
 *   STARTING   the thread opens a backend        no           no        -
 *   WALKING    it reads ahead                    start        start     is waited for
 *   HOLDING    the engine changes memory         no           start     -
 *   FAILED     a block could not be read         no           start     is an error
 *   RING_LOST  the ring could not be mapped      no           start     is an error
 *   DEAD       no backend works any longer       no           fail      is an error
 *   QUITTING   stream_close() waits for it       no           no        -
 *
 * ¹ and fetches
 *
 * and reader_change() moves it by this table.  "=" changes nothing, "." cannot happen:
 *
 *   event        STARTING  WALKING   HOLDING    FAILED    RING_LOST  DEAD      QUITTING
 *   -----------  --------  --------  ---------  --------  ---------  --------  --------
 *   OPENED       WALKING   .         .          .         .          .         .
 *   READ_FAILED  .         FAILED    =          =         .          .         =
 *   PASS         .         =         .          WALKING   =          =         .
 *   HOLD         .         HOLDING   .          HOLDING   HOLDING    =         .
 *   RELEASE      .         .         WALKING    .         =          =         .
 *   RING_GONE    .         .         RING_LOST  .         .          =         .
 *   BROKEN       DEAD      DEAD      DEAD       DEAD      DEAD       .         =
 *   CLOSE        .         QUITTING  .          QUITTING  QUITTING   QUITTING  .
 *
 * PASS is both the beginning and the end of a pass: blocks that failed are tried again.
 * HOLD and RELEASE enclose a change of memory.  It forgets a failed read, since everything
 * that was read ahead is discarded, and maps a lost ring again.
 */
#ifndef MEMWALL_ENGINE_STREAM_STREAM_INTERNAL_H
#define MEMWALL_ENGINE_STREAM_STREAM_INTERNAL_H

#include <pthread.h>

#include "engine/base/cancel.h"
#include "engine/stream/area.h"
#include "engine/stream/backend.h"
#include "engine/stream/fetch.h"
#include "engine/stream/lookup.h"
#include "engine/stream/mapping.h"
#include "engine/stream/mirror.h"
#include "engine/stream/pinned.h"
#include "engine/stream/populate.h"
#include "engine/stream/schedule.h"
#include "engine/stream/source.h"
#include "engine/stream/stream.h"

enum reader_state {
    READER_NONE,
    READER_STARTING,
    READER_WALKING,
    READER_HOLDING,
    READER_FAILED,
    READER_RING_LOST,
    READER_DEAD,
    READER_QUITTING,
    READER_STATES
};

enum reader_event {
    EVENT_OPENED,
    EVENT_READ_FAILED,
    EVENT_PASS,
    EVENT_HOLD,
    EVENT_RELEASE,
    EVENT_RING_GONE,
    EVENT_BROKEN,
    EVENT_CLOSE,
    READER_EVENTS
};

enum slot_state {
    SLOT_FREE,
    SLOT_READING,
    SLOT_READY,
    SLOT_TAKEN, /* the engine computes with it */
    SLOT_STALE, /* still being read for a pass that has ended */
};

struct slot {
    enum slot_state state;
    uint32_t block;
    uint64_t pass;
};

/* The lookup of stream_lookup_start() until stream_lookup_wait() returns. */
enum lookup_state { LOOKUP_NONE, LOOKUP_READING, LOOKUP_FAILED };

struct stream {
    /* Set by stream_open(), constant afterwards. */
    struct stream *host;   /* whose guest this is; NULL: none */
    uint32_t first_file;   /* of a guest, in the host's source */
    struct cancel *cancel; /* wakes the engine thread */
    const struct catalogue *catalogue;
    struct telemetry *telemetry;
    struct schedule schedule;
    struct source source;
    struct mapping mapping;
    struct populator populator; /* has a lock of its own */
    bool is_mapped, drops;      /* mmap; mmap:drop */
    struct area lookup_area;
    stream_lay_fn *lay;
    void *spans, *pinned_table;
    uint32_t depth;
    size_t slot_bytes, scratch_bytes;
    uint64_t bytes_s, mirror_bytes_s; /* limits of the read rate; 0: none */
    pthread_t thread;
    const struct backend_kind *first_kind; /* that the reader tries */
    char reason[MW_REASON_MAX];

    /* Engine thread. */
    uint64_t pass; /* number of the current pass, or of the next one */
    struct schedule_at next;
    uint64_t taken, given; /* slots, counted */
    struct low *low;       /* copies of blocks; NULL: none */
    bool in_low_pass;

    const char *_Atomic io_name, *_Atomic io_reason;

    /* Guarded by lock. */
    pthread_mutex_t lock;
    pthread_cond_t news;   /* to the engine: a block, a lookup, a failure, a change of state */
    pthread_cond_t wakeup; /* to a reader without a backend */
    enum reader_state state;
    struct err failure;   /* why blocks cannot be read: FAILED, RING_LOST, DEAD */
    struct area ring;     /* these three change while the reader holds */
    struct area landing;  /* [depth] slots for ops[] of blocks that land, then scratch */
    struct pinned pinned; /* the states of its blocks are atomic */
    uint32_t n_slot;
    struct slot slots[STREAM_SLOTS_MAX]; /* the first n_slot are used */
    uint64_t filled;
    struct lookup lookup;
    enum lookup_state lookup_state;
    const struct stream_lookup *lookups; /* waiting for their batch */
    size_t n_lookup;
    uint32_t lookup_file; /* the first file of those that ask for them */
    struct err lookup_failure;
    struct fetch_queue fetches;
    struct err fetch_failure; /* of the last fetch that failed */
    bool in_pass;             /* the current pass has begun; it has pass_blocks blocks */
    uint32_t pass_blocks;
    bool ring_moved; /* the reader has to give the backend the new ring */

    /* Reader, under the lock. */
    struct disks disks;
    struct schedule_at walk;
    uint64_t walk_pass;
    struct schedule_at load; /* the walk that loads pinned blocks between passes */
    uint64_t load_ready;     /* with these bytes populated, it found nothing to load */
    bool is_loaded;          /* it has nothing left to load */
    struct read_op ops[STREAM_DEPTH_MAX]; /* of blocks; the first depth are used */
    uint32_t n_flying;                    /* of ops */
    bool wants_slot;                      /* the walk waits until one is free */
    bool is_waiting;                      /* in the backend, without the lock */
    const struct backend_kind *kind;
    struct backend *backend; /* NULL: the reader is starting, replaces it, or is dead */
};

/* --- reader_state.c; under the lock --- */

void reader_change(struct stream *s, enum reader_event event);

/* Whether blocks that are not being read already can never arrive: `failure` is the reason. */
bool reader_has_failed(const struct stream *s);

/* --- reader.c --- */

/* The reader's thread; arg is the stream. */
void *reader_main(void *arg);

/* Make the reader look for work.  Under the lock. */
void reader_wake(struct stream *s);

/* Make the walk start at the first block of pass s->pass.  Slots that hold other blocks must
 * be free or stale.  Under the lock. */
void reader_restart(struct stream *s);

/* Make the reader load the pinned blocks from the first one on while no pass runs, and count
 * them.  Under the lock, or before the reader starts. */
void reader_load(struct stream *s);

/* --- stream_pass.c --- */

/* Let go of the slots with blocks of passes up to `last`, taken ones included.  Under the
 * lock. */
void stream_discard(struct stream *s, uint64_t last);

/* --- stream_open.c --- */

int stream_open_tables(struct stream *s, const struct stream_span *spans, uint32_t n_span,
                       size_t target, struct err *e);

/* --- stream_low.c --- */

int stream_find_low(struct stream *s, struct stream_block *block, struct err *e);

/* --- stream_guest.c --- */

void stream_close_guest(struct stream *s);

/* --- stream_lookup.c --- */

/* Begin the next batch of rows if the one before it is done.  Under the lock. */
void lookup_next_batch(struct stream *s);

/* --- stream_memory.c --- */

/* Whether blocks of the span are read to a landing, because their form has another size. */
static inline bool stream_lands(const struct stream_span *span)
{
    return span->form != 0 && span->scratch_bytes == 0;
}

/* The largest scratch_bytes, in whole pages: the last part of the landing. */
uint64_t stream_scratch_bytes(const struct stream_span *spans, uint32_t n_span);

/* Let pinned blocks and their landing take `bytes`, while nothing is read to them. */
int stream_set_pinned(struct stream *s, uint64_t bytes, struct err *e);

/* Their limit, and how much of it the kernel has in memory. */
uint64_t stream_pinned_limit(const struct stream *s);
uint64_t stream_pinned_resident(const struct stream *s);

/* Memory of a ring of n_slot slots. */
uint64_t stream_ring_bytes(const struct stream *s, uint32_t n_slot);

/* Whether the ring and the pinned area together have a place for every block. */
int stream_check_memory(const struct stream *s, uint32_t n_slot, uint64_t pinned_bytes,
                        struct err *e);

#endif
