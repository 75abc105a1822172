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
 * Reads in flight: 8 MiB, in at most two thirds of the slots.  A virtual disk may take all
 * queued reads at once, and report them together when the last one is done.  The next reads
 * need slots then, and with reads in all slots, they wait until the engine has computed a
 * block.
 *
 * Answers that stream everything, from a disk of 5 to 7 GB/s, sessions in turn, blocks of 1
 * MiB, reads / slots of E2B and Llama 1B, relative to 4 / 8: 8 / 12 1.10 and 1.12, 8 / 16 1.08
 * and 1.12, 6 / 8 0.98 and 0.97, 8 / 8 0.81 and 0.76, 4 / 6 0.99 and 0.98, 6 / 6 0.81 and 0.79,
 * 3 / 4 0.88, 4 / 4 0.75 and 0.78, 3 / 3 0.69.  Blocks of 2 MiB: 6 or 8 / 12 are not faster
 * than 4 / 8.
 */
static inline uint32_t shape_flying(uint32_t n_slot)
{
    return (2 * n_slot + 2) / 3;
}

/* Bytes of blocks in flight, about. */
#define SHAPE_FLYING_BYTES ((size_t)8 << 20)

/* The disk probe measures with 8 reads of 2 MiB in flight if there is no model. */
#define SHAPE_PROBE_DEPTH 8
#define SHAPE_PROBE_BYTES ((size_t)2 << 20)

/* Upper bounds of what a caller may request. */
#define STREAM_DEPTH_MAX 32
#define STREAM_SLOTS_MAX 64

struct stream_shape {
    size_t target;     /* bytes of rows per block, at most; a single row may be larger */
    size_t slot_bytes; /* largest block, rounded out to the alignment of direct reads */
    uint32_t n_block;  /* of a full pass */
    uint32_t n_slot;   /* slots that add bandwidth; a larger ring does not */
    uint32_t depth;    /* blocks that are read at once */
};

/*
 * The block size for a budget: 2 MiB, less if the budget is small, so that the ring does not
 * take much of it.  Less two pages, to which a read may be rounded out: then 8 or 12 slots are whole
 * huge pages.  The kernel combines the pages of registered memory to huge ones only if all are,
 * and otherwise splits a read of 1 MiB: slots of 1 MiB and a page gave 0.93 of the rate.
 *
 * With 8 slots of 2, 1 and 1/2 MiB, five models were read at 0.96 to 1.02, 0.96 to 1.02 and
 * 0.87 to 0.96 of the rate of a plain loop of reads (bench_stream).  The workers start and wait
 * once per block.
 */
size_t shape_target(uint64_t budget_bytes);

/* The shape for these spans in blocks of `target` bytes.  Pure. */
void shape_make(struct stream_shape *out, const struct stream_span *spans, uint32_t n_span,
                size_t target);

#endif
