#include "config.h"

#include "engine/stream/shape.h"

#include "engine/base/units.h"
#include "engine/stream/schedule.h"

#define LEAST_DEPTH  4
#define MOST_DEPTH   8
#define MORE_SLOTS   4          /* than reads */
#define RING_BYTES   (32 * MIB) /* at most, unless two slots take more */

size_t shape_target(uint64_t budget_bytes)
{
    uint64_t slot = 2 * MIB;

    if (budget_bytes < 384 * MIB)
        slot = budget_bytes < 96 * MIB ? 512 * KIB : 1 * MIB;
    return slot - 2 * SCHEDULE_ALIGN;
}

static uint64_t at_most(uint64_t n, uint64_t most)
{
    return n < most ? n : most;
}

static uint64_t at_least(uint64_t n, uint64_t least)
{
    return n > least ? n : least;
}

/* How many slots of this size come nearest to so many bytes. */
static uint64_t slots_in(uint64_t bytes, size_t slot_bytes)
{
    return (bytes + slot_bytes / 2) / slot_bytes;
}

void shape_make(struct stream_shape *out, const struct stream_span *spans, uint32_t n_span,
                size_t target)
{
    uint64_t largest = schedule_measure(spans, n_span, target, &out->n_block), depth, n_slot;

    out->target = target;
    out->slot_bytes = largest > 0 ? (size_t)largest : SCHEDULE_ALIGN;
    depth = at_most(slots_in(SHAPE_FLYING_BYTES, out->slot_bytes), MOST_DEPTH);
    depth = at_least(depth, LEAST_DEPTH);
    n_slot = at_most(depth + MORE_SLOTS, slots_in(RING_BYTES, out->slot_bytes));
    n_slot = at_most(n_slot, out->n_block); /* more slots would hold the same block twice */
    out->n_slot = (uint32_t)at_least(n_slot, 2);
    out->depth = (uint32_t)at_most(depth, shape_flying(out->n_slot));
}
