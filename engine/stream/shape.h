/*
 * shape.h - block size, ring slots and reads in flight: every number that shapes the stream.
 *
 *     ring:  [ slot ][ slot ][ slot ] … n_slot       a slot holds the largest block
 *               ^ at most `depth` slots and pinned blocks are being read at once
 *
 * The plan reserves memory for this shape, the stream reads with it, and the disk probe
 * measures with the same depth and the same bytes in flight.  Change a number here and all
 * three follow.
 */
#ifndef MEMWALL_ENGINE_STREAM_SHAPE_H
#define MEMWALL_ENGINE_STREAM_SHAPE_H

#include <stddef.h>
#include <stdint.h>

struct stream_span;

/*
 * Reads in flight: as many as keep SHAPE_FLIGHT_BYTES in flight, from SHAPE_DEPTH_MIN to
 * SHAPE_DEPTH_MAX, but only one more than half of the slots, and never all.  A virtual disk of
 * 2.3 GB/s gave 0.96 to 1.0 of the rate of a plain loop of reads with four reads of 1 to 4 MiB in
 * flight and no more with eight (tests/bench/bench_stream).  More only delays lookups.
 *
 * A virtual disk may report all reads of its queue at once, when the last one is done.  If they
 * had all slots, the next ones could begin only when the engine has computed a block: with 4
 * reads in 4 slots, the disk stood still for 13 to 17 % of the time.
 */
#define SHAPE_FLIGHT_BYTES ((size_t)16 << 20)
#define SHAPE_DEPTH_MIN    4
#define SHAPE_DEPTH_MAX    8

/* The disk probe keeps the same number of bytes in flight, in reads of a medium block. */
#define SHAPE_PROBE_DEPTH SHAPE_DEPTH_MAX
#define SHAPE_PROBE_BYTES (SHAPE_FLIGHT_BYTES / SHAPE_PROBE_DEPTH)

/* Upper bounds of what a caller may request. */
#define STREAM_DEPTH_MAX 32
#define STREAM_SLOTS_MAX 64

struct stream_shape {
    size_t target;     /* bytes of rows per block, at most; a single row may be larger */
    size_t slot_bytes; /* largest block, rounded out to the alignment of direct reads */
    uint32_t n_block;  /* of a full pass */
    uint32_t n_slot;   /* slots that add bandwidth; a larger ring does not */
    uint32_t depth;    /* reads in flight, lookups not counted */
};

/*
 * The block size for a budget: 4 MiB, less if the budget is small, so that 8 slots do not take
 * much of it.
 *
 * A disk of 3.9 GB/s with reads of 2 MiB gave 3.8 with 1 MiB and 3.6 with 512 KiB.  The workers
 * start and wait once per block.  But a ring of 8 slots of 1 MiB was up to 1.25 times as fast
 * as 4 slots of 2 MiB.
 */
size_t shape_target(uint64_t budget_bytes);

/* The shape for these spans in blocks of `target` bytes.  Pure. */
void shape_make(struct stream_shape *out, const struct stream_span *spans, uint32_t n_span,
                size_t target);

#endif
