/*
 * fetch.h - reads of complete ranges into place, in the order in which they were requested.
 *
 *     queue:  [ expert 5: gate_up | down ][ expert 9: gate_up | down ] …
 *     reads:    piece  piece  piece          FETCH_BYTES in flight
 *
 * A fetch has a few ranges, already rounded out to the alignment, which are read in pieces.
 * So the first fetch of the queue is done early while the others are still being read.
 * Fetches go ahead of blocks.
 *
 * Not locked: the caller holds the stream's lock.
 */
#ifndef MEMWALL_ENGINE_STREAM_FETCH_H
#define MEMWALL_ENGINE_STREAM_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/stream/backend.h"
#include "engine/stream/stream.h"

/* Eight pieces of about 1 MiB in flight gave the rate of a plain loop of reads (shape.h).  Ranges
 * that are shorter are read in more of them: 8 reads of 512 KiB had 8.6 GB/s, 16 had 11.2. */
#define FETCH_PIECE ((size_t)1 << 20)
#define FETCH_LEAST 8 /* in flight, whatever their bytes */
#define FETCH_DEPTH 16
#define FETCH_BYTES (8 * FETCH_PIECE)

struct fetch_queue {
    struct stream_fetch *first, *last; /* with pieces that have not begun */
    struct read_op ops[FETCH_DEPTH];
    struct stream_fetch *fetch_of[FETCH_DEPTH];
    uint32_t n_flying;
    size_t flying_bytes;
};

void fetch_add(struct fetch_queue *q, struct stream_fetch *f);
/* The next read; NULL: the depth is reached, or every read has begun. */
struct read_op *fetch_next(struct fetch_queue *q);
/* A read is finished.  After a failed read no more reads of its fetch begin. */
void fetch_finish(struct fetch_queue *q, const struct read_op *op, bool is_read);
/* Take all fetches of keys and values, or all others, out of the queue.  Those with reads in flight
 * become FETCH_FAILED later. */
void fetch_drop(struct fetch_queue *q, bool of_kv);

#endif
