/*
 * pinned.h - which blocks stay in memory, and where.
 *
 *     schedule:  b0   b1   b2   b3   b4   b5   b6   b7 …
 *     rank:      0    5    2    7    4    1    6    3       (golden ratio order)
 *     area:     | b0 | b5 | b2 | b7 … up to the memory for pinned blocks |
 *
 * Reads repeat the same order in every pass, so every pinned byte saves the same time.  The
 * set only has to be spread evenly over the pass, so that disk and arithmetic always overlap.
 * Blocks are ranked by the fractional part of index times the golden ratio.  For every n, the
 * first n of that order are spread as evenly as error diffusion would do it, and a smaller
 * set is part of every larger one.  So a budget that changes by a few megabytes, as it does
 * while a conversation grows, moves only those megabytes.  Blocks are in memory in the order
 * of their rank, so shrinking gives back the end of one area.
 *
 * Each block takes complete pages, as it is read, or as many as its form was planned to take.
 */
#ifndef MEMWALL_ENGINE_STREAM_PINNED_H
#define MEMWALL_ENGINE_STREAM_PINNED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/stream/area.h"
#include "engine/stream/populate.h"
#include "engine/stream/schedule.h"

/* The state of one block.  The reader sets it, and stream_set_memory() while the reader holds.
 */
enum block_state {
    BLOCK_STREAMED, /* read into a slot in each pass */
    BLOCK_WANTED,   /* to be pinned when the walk reaches it */
    BLOCK_READING,  /* being read to its place */
    BLOCK_HELD,     /* in its place */
    BLOCK_UNFIT,    /* larger than its place, so streamed; pinned_state() says that */
};

struct pinned {
    struct area area;
    struct populator *populator;
    struct populate_range populate;
    const struct schedule *schedule;
    uint64_t kept; /* of the area: what is after it lost its content in the last change */
    uint32_t *page;               /* [n_block] first page of the block in the area */
    _Atomic unsigned char *state; /* [n_block] enum block_state */
    _Atomic uint64_t held_bytes;  /* place_bytes of the blocks in their place */
};

uint64_t pinned_table_bytes(uint32_t n_block);

/* Give every block a place, in an area without memory.  The tables need
 * pinned_table_bytes(n_block) bytes at `memory`.  The populator must outlive the set. */
int pinned_open(struct pinned *p, void *memory, const struct schedule *s,
                struct populator *populator, struct err *e);
void pinned_close(struct pinned *p); /* safe on a zeroed struct */

/*
 * Let blocks take at most `bytes` of memory.  No read into the area may be in flight.  Memory
 * of blocks that no longer fit is given back at once; new blocks become BLOCK_WANTED.  So do
 * those in the last huge page of a smaller area, which lose their content (area.h).
 */
int pinned_set(struct pinned *p, uint64_t bytes, struct err *e);

/* Whether a block of place_bytes is among those that fit the first `bytes` of the area. */
bool pinned_is_within(const struct pinned *p, uint32_t block, uint64_t place_bytes,
                      uint64_t bytes);

unsigned char *pinned_place(const struct pinned *p, uint32_t block);

static inline enum block_state pinned_state(const struct pinned *p, uint32_t block)
{
    enum block_state state =
        (enum block_state)atomic_load_explicit(&p->state[block], memory_order_acquire);

    return state == BLOCK_UNFIT ? BLOCK_STREAMED : state;
}

static inline bool pinned_is_unfit(struct pinned *p, uint32_t block)
{
    return atomic_load_explicit(&p->state[block], memory_order_acquire) == BLOCK_UNFIT;
}

static inline void pinned_mark(struct pinned *p, uint32_t block, enum block_state state)
{
    atomic_store_explicit(&p->state[block], (unsigned char)state, memory_order_release);
}

#endif
