/* Changing the memory of a stream: slots of the ring and pinned blocks. */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/stream/stream_internal.h"

int stream_check_memory(const struct stream *s, uint32_t n_slot, uint64_t pinned_bytes,
                        struct err *e)
{
    uint64_t all = s->pinned.area.reserved + s->landing.reserved;

    if (n_slot == 1 || n_slot > STREAM_SLOTS_MAX)
        return err_set(e, ERR_ARGUMENT, "ring size must be 0 or 2 to %d slots, not %u",
                       STREAM_SLOTS_MAX, n_slot);
    if (n_slot > 0)
        return 0;
    if (pinned_bytes < all)
        return err_set(e, ERR_BUDGET,
                       "a ring of 0 slots needs all %llu bytes pinned, but only %llu may be",
                       (unsigned long long)all, (unsigned long long)pinned_bytes);
    for (uint32_t i = 0; i < s->schedule.n_span; i++) {
        const struct stream_span *p = &s->schedule.spans[i].span;

        if (stream_lands(p) && p->laid_row_bytes < p->row_bytes)
            return err_set(e, ERR_ARGUMENT,
                           "a ring of 0 slots, but blocks of span %u may not fit their place",
                           i);
    }
    return 0;
}

uint64_t stream_scratch_bytes(const struct stream_span *spans, uint32_t n_span)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < n_span; i++)
        if (spans[i].form != 0 && spans[i].scratch_bytes > most)
            most = spans[i].scratch_bytes;
    return align_up(most, SCHEDULE_ALIGN);
}

uint64_t stream_landing_bytes(const struct stream_span *spans, uint32_t n_span,
                              const struct stream_shape *shape)
{
    uint64_t scratch = stream_scratch_bytes(spans, n_span);

    for (uint32_t i = 0; i < n_span; i++)
        if (stream_lands(&spans[i]))
            return whole_huge_pages((uint64_t)shape->depth * shape->slot_bytes) + scratch;
    return scratch;
}

uint64_t stream_pinned_limit(const struct stream *s)
{
    return s->pinned.area.held + s->landing.held;
}

uint64_t stream_pinned_resident(const struct stream *s)
{
    return area_resident(&s->pinned.area) + s->landing.held;
}

/* Memory that is smaller than the landing pins nothing. */
int stream_set_pinned(struct stream *s, uint64_t bytes, struct err *e)
{
    uint64_t landing = bytes > s->landing.reserved ? s->landing.reserved : 0;
    uint64_t before = s->landing.held;
    struct err ignored = ERR_INIT;

    bytes = bytes > s->landing.reserved ? bytes - landing : 0;
    if (landing > before && area_hold(&s->landing, landing, true, e) != 0)
        return -1;
    if (pinned_set(&s->pinned, bytes, e) != 0) {
        (void)area_hold(&s->landing, before, false, &ignored);
        return -1;
    }
    return landing < before ? area_hold(&s->landing, landing, false, e) : 0;
}

static void count_pinned(struct stream *s)
{
    struct schedule_at at = schedule_begin(&s->schedule);

    counter_set(&s->telemetry->pinned_held, stream_pinned_resident(s));
    counter_set(&s->telemetry->saved_bytes, 0);
    for (uint32_t i = 0; i <= MW_MAX_LAYER; i++)
        counter_set(&s->telemetry->layer[i].pinned_bytes, 0);
    for (; at.block < s->schedule.n_block; schedule_next(&s->schedule, &at)) {
        struct schedule_block b;

        schedule_get(&s->schedule, &at, &b);
        if (pinned_state(&s->pinned, at.block) != BLOCK_HELD)
            continue;
        counter_add(&s->telemetry->layer[b.layer].pinned_bytes, b.bytes);
        if (b.place_bytes < b.read_bytes)
            counter_add(&s->telemetry->saved_bytes, b.read_bytes - b.place_bytes);
    }
}

uint64_t stream_ring_bytes(const struct stream *s, uint32_t n_slot)
{
    return whole_huge_pages((uint64_t)n_slot * s->slot_bytes);
}

static bool ring_is_lost(const struct stream *s)
{
    return s->n_slot > 0 && s->ring.held == 0;
}

/*
 * Give the ring n_slot slots.  No block is being read and no slot is in use.  A smaller ring
 * is mapped again from nothing, because a huge page at its end would stay charged in full.
 */
static int resize_ring(struct stream *s, uint32_t n_slot, struct err *e)
{
    uint64_t bytes = stream_ring_bytes(s, n_slot);

    if (n_slot == s->n_slot && !ring_is_lost(s))
        return 0;
    if (n_slot < s->n_slot && area_hold(&s->ring, 0, false, e) != 0)
        return -1;
    if (area_hold(&s->ring, bytes, true, e) != 0) {
        /* The system refuses less than it has just taken back. */
        if (s->ring.held == 0 && s->n_slot > 0) {
            s->failure = *e;
            reader_change(s, EVENT_RING_GONE);
        }
        return -1;
    }
    memset(s->slots, 0, sizeof s->slots);
    s->n_slot = n_slot;
    s->filled = s->taken = s->given = 0;
    s->ring_moved = true;
    return 0;
}

/* Shrink first, so that the sum never exceeds the larger of before and after. */
static int resize(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes, struct err *e)
{
    uint64_t before = stream_pinned_limit(s);
    struct err ignored = ERR_INIT;

    if (pinned_bytes < before && stream_set_pinned(s, pinned_bytes, e) != 0)
        return -1;
    if (resize_ring(s, n_slot, e) != 0) {
        (void)stream_set_pinned(s, before, &ignored);
        return -1;
    }
    return pinned_bytes > before ? stream_set_pinned(s, pinned_bytes, e) : 0;
}

static bool is_pinning(const struct stream *s)
{
    for (uint32_t i = 0; i < s->depth; i++)
        if (s->ops[i].is_flying && s->ops[i].kind == READ_PINNED)
            return true;
    return false;
}

/*
 * Discard everything that was read ahead, since slots hold only blocks that are not to be pinned,
 * and wait until nothing is being read that the change moves: reads into slots go on if the ring
 * stays, so that a slow disk does not keep memory from being given back.
 */
static void hold_reader(struct stream *s, uint32_t n_slot)
{
    reader_change(s, EVENT_HOLD);
    if (s->n_slot > 0)
        stream_discard(s, UINT64_MAX);
    while (n_slot == s->n_slot && !ring_is_lost(s) ? is_pinning(s) : s->n_flying > 0)
        pthread_cond_wait(&s->news, &s->lock);
}

static void release_reader(struct stream *s)
{
    reader_change(s, EVENT_RELEASE);
    reader_restart(s);
    if (s->in_pass) /* which goes on at the next block */
        s->walk = s->next;
    reader_wake(s);
    while (s->ring_moved)
        pthread_cond_wait(&s->news, &s->lock);
}

int stream_set_memory(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes, struct err *e)
{
    int result;

    assert(!s->in_low_pass && s->given == s->taken);
    if (s->is_mapped)
        return 0;
    if (stream_check_memory(s, n_slot, pinned_bytes, e) != 0)
        return -1;
    pthread_mutex_lock(&s->lock);
    hold_reader(s, n_slot);
    result = resize(s, n_slot, pinned_bytes, e);
    count_pinned(s);
    reader_load(s);
    release_reader(s);
    pthread_mutex_unlock(&s->lock);
    return result;
}

uint64_t stream_pinned_now(const struct stream *s)
{
    return atomic_load_explicit(&s->pinned.held_bytes, memory_order_relaxed);
}
