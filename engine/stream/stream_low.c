/*
 * Copies of streamed blocks in few bits, with which a pass can be made that reads nothing.
 *
 *     blocks:   b0      b1      b2      b3        pinned blocks are used as they are,
 *     memory:   pinned  copy    copy    pinned    others by their copy
 *
 * The engine makes a copy when it has used a block that was read, once.  The reader knows nothing
 * of a pass over copies, and goes on reading ahead for the next real one.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/stream/stream_internal.h"

#define NO_PLACE UINT64_MAX

struct low {
    struct area area;
    uint64_t *place; /* [n_block] in the area; NO_PLACE: the block has none */
    bool *is_made;   /* [n_block] */
    uint64_t *row_bytes; /* [n_span] */
    uint64_t used;       /* by places; the area may grow to what is reserved */
    uint32_t type;
    uint64_t begun_ns, ns; /* when a copy was begun, and the time of all that were made */
};

static uint64_t copy_bytes(const struct low *low, uint32_t span, uint64_t n_row)
{
    return align_up(n_row * low->row_bytes[span], 64);
}

/* Give a place to each block that is not among the pinned ones of pinned_bytes. */
static void place_copies(const struct stream *s, uint64_t pinned_bytes, struct low *low)
{
    struct schedule_at at = schedule_begin(&s->schedule);

    pinned_bytes = pinned_bytes > s->landing.reserved ? pinned_bytes - s->landing.reserved : 0;
    for (; at.block < s->schedule.n_block; schedule_next(&s->schedule, &at)) {
        struct schedule_block b;

        schedule_get(&s->schedule, &at, &b);
        if (pinned_is_within(&s->pinned, at.block, b.place_bytes, pinned_bytes)) {
            low->place[at.block] = NO_PLACE;
            continue;
        }
        low->place[at.block] = low->used;
        low->used += copy_bytes(low, b.span, b.n_row);
    }
}

int stream_keep_low(struct stream *s, const struct stream_low *how, struct err *e)
{
    struct low *low = calloc(1, sizeof *low);
    const uint32_t n_span = s->schedule.n_span;

    stream_drop_low(s);
    if (low == NULL)
        return err_memory(e, "copies of blocks");
    s->low = low;
    low->type = how->type;
    low->place = calloc(s->schedule.n_block + 1, sizeof *low->place);
    low->is_made = calloc(s->schedule.n_block + 1, sizeof *low->is_made);
    low->row_bytes = calloc(n_span + 1, sizeof *low->row_bytes);
    if (low->place == NULL || low->is_made == NULL || low->row_bytes == NULL) {
        err_memory(e, "copies of blocks");
        stream_drop_low(s);
        return -1;
    }
    memcpy(low->row_bytes, how->row_bytes, n_span * sizeof *low->row_bytes);
    place_copies(s, how->pinned_bytes, low);
    if (low->used > how->bytes)
        err_set(e, ERR_BUDGET, "copies of blocks need %llu bytes, but the plan has %llu",
                (unsigned long long)low->used, (unsigned long long)how->bytes);
    else if (area_reserve(&low->area, "drafter", how->bytes, e) == 0 &&
             area_hold(&low->area, low->used, false, e) == 0)
        return 0;
    stream_drop_low(s);
    return -1;
}

void stream_drop_low(struct stream *s)
{
    if (s->low == NULL)
        return;
    area_unmap(&s->low->area);
    free(s->low->place);
    free(s->low->is_made);
    free(s->low->row_bytes);
    free(s->low);
    s->low = NULL;
}

/* A block that was too large for its pinned place is streamed, so it gets a copy from the memory
 * that is left. */
static bool add_place(struct stream *s, const struct stream_block *block)
{
    uint64_t bytes = copy_bytes(s->low, block->span, block->n_row);
    struct err ignored = ERR_INIT;
    struct low *low = s->low;

    if (!pinned_is_unfit(&s->pinned, block->index) || bytes > low->area.reserved - low->used ||
        area_hold(&low->area, low->used + bytes, false, &ignored) != 0)
        return false;
    low->place[block->index] = low->used;
    low->used += bytes;
    return true;
}

void *stream_low_place(struct stream *s, const struct stream_block *block)
{
    struct low *low = s->low;

    if (low == NULL || s->in_low_pass || block->is_pinned || low->is_made[block->index] ||
        (low->place[block->index] == NO_PLACE && !add_place(s, block)))
        return NULL;
    low->begun_ns = clock_ns();
    return low->area.base + low->place[block->index];
}

void stream_low_made(struct stream *s, const struct stream_block *block)
{
    s->low->is_made[block->index] = true;
    s->low->ns += clock_ns() - s->low->begun_ns;
}

bool stream_low_ready(const struct stream *s)
{
    if (s->low == NULL)
        return false;
    for (uint32_t i = 0; i < s->schedule.n_block; i++)
        if (pinned_state(&s->pinned, i) != BLOCK_HELD && !s->low->is_made[i])
            return false;
    return true;
}

uint64_t stream_low_bytes(const struct stream *s)
{
    return s->low != NULL ? s->low->area.held : 0;
}

uint64_t stream_low_ns(const struct stream *s)
{
    return s->low != NULL ? s->low->ns : 0;
}

uint32_t stream_low_type(const struct stream *s)
{
    return s->low->type;
}

void stream_low_pass_begin(struct stream *s)
{
    assert(!s->in_pass && !s->in_low_pass && !s->is_mapped);
    s->in_low_pass = true;
    s->next = schedule_begin(&s->schedule);
}

void stream_low_pass_end(struct stream *s)
{
    s->in_low_pass = false;
}

/* Use the copy of the next block. */
int stream_find_low(struct stream *s, struct stream_block *block, struct err *e)
{
    if (!s->low->is_made[block->index])
        return err_set(e, ERR_MEMORY, "block %u has no copy", block->index);
    block->is_low = true;
    block->data = s->low->area.base + s->low->place[block->index];
    return 0;
}
