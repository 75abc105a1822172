#include "config.h"

#include "engine/stream/shape.h"

#include "engine/base/units.h"
#include "engine/stream/schedule.h"

/* The ring: RING_SLOTS slots, or as many as RING_BYTES hold. */
#define RING_BYTES (32 * MIB)
#define RING_SLOTS 8

size_t shape_target(uint64_t budget_bytes)
{
    uint64_t slot = 2 * MIB;

    if (budget_bytes < 384 * MIB)
        slot = budget_bytes < 96 * MIB ? 512 * KIB : 1 * MIB;
    return slot - 2 * SCHEDULE_ALIGN;
}

static uint32_t slots_of(size_t slot_bytes, uint32_t n_block)
{
    uint64_t n = (RING_BYTES + slot_bytes / 2) / slot_bytes;

    if (n > RING_SLOTS)
        n = RING_SLOTS;
    if (n > n_block) /* more slots would hold the same block twice */
        n = n_block;
    return n > 2 ? (uint32_t)n : 2;
}

void shape_make(struct stream_shape *out, const struct stream_span *spans, uint32_t n_span,
                size_t target)
{
    uint64_t largest = schedule_measure(spans, n_span, target, &out->n_block);

    out->target = target;
    out->slot_bytes = largest > 0 ? (size_t)largest : SCHEDULE_ALIGN;
    out->n_slot = slots_of(out->slot_bytes, out->n_block);
    out->depth = out->n_slot / 2;
}
