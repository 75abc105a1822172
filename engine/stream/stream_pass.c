/* A pass, on the engine's side: blocks are taken in order, waited for, and given back. */
#include "config.h"

#include <assert.h>

#include "engine/base/clock.h"
#include "engine/stream/stream_internal.h"

static struct slot *slot_at(struct stream *s, uint64_t count)
{
    return &s->slots[count % s->n_slot];
}

void stream_discard(struct stream *s, uint64_t last)
{
    for (uint64_t i = s->given; i < s->filled; i++) {
        struct slot *slot = slot_at(s, i);

        if (slot->pass > last)
            break;
        if (slot->state == SLOT_READING)
            slot->state = SLOT_STALE;
        else if (slot->state != SLOT_STALE)
            slot->state = SLOT_FREE;
        s->taken = i + 1;
    }
    s->given = s->taken;
}

/* A block that could not be read ahead is read again, since the cause may be gone. */
static void forget_failure(struct stream *s)
{
    if (s->state == READER_FAILED) {
        if (s->n_slot > 0)
            stream_discard(s, UINT64_MAX);
        reader_restart(s);
    }
    reader_change(s, EVENT_PASS);
    /* Tries that a read ahead has used up before its pass do not count in it. */
    for (uint32_t i = 0; i < s->depth; i++)
        s->ops[i].tries = 0;
}

static void begin_walk(struct stream *s, bool is_prompt)
{
    s->in_pass = true;
    s->pass_blocks = is_prompt ? s->schedule.n_prompt_block : s->schedule.n_block;
    s->next = schedule_begin(&s->schedule);
}

void stream_pass_begin(struct stream *s, bool is_prompt)
{
    assert(!s->in_pass);
    if (s->host != NULL) {
        begin_walk(s, is_prompt);
        return;
    }
    pthread_mutex_lock(&s->lock);
    begin_walk(s, is_prompt);
    if (!s->is_mapped) {
        forget_failure(s);
        reader_wake(s);
    }
    pthread_mutex_unlock(&s->lock);
}

/* Whether the next slot is for the next block. */
static bool has_slot(struct stream *s)
{
    const struct slot *slot;

    if (s->taken == s->filled)
        return false;
    slot = slot_at(s, s->taken);
    return slot->block == s->next.block && slot->pass == s->pass;
}

static bool is_ready(struct stream *s)
{
    if (pinned_state(&s->pinned, s->next.block) != BLOCK_STREAMED)
        return pinned_state(&s->pinned, s->next.block) == BLOCK_HELD;
    return has_slot(s) && slot_at(s, s->taken)->state == SLOT_READY;
}

static bool is_being_read(struct stream *s)
{
    if (pinned_state(&s->pinned, s->next.block) != BLOCK_STREAMED)
        return pinned_state(&s->pinned, s->next.block) == BLOCK_READING;
    return has_slot(s) && slot_at(s, s->taken)->state == SLOT_READING;
}

/* Whether the walk has gone past the next block without a slot for it: the block was to be
 * pinned, and was found too large for its place. */
static bool was_missed(struct stream *s)
{
    return pinned_state(&s->pinned, s->next.block) == BLOCK_STREAMED && !has_slot(s) &&
           (s->walk_pass > s->pass || s->walk.block > s->next.block);
}

/* Walk again from the next block on.  Slots of later blocks are discarded. */
static void walk_back(struct stream *s)
{
    for (uint64_t i = s->taken; i < s->filled; i++) {
        struct slot *slot = slot_at(s, i);

        slot->state =
            slot->state == SLOT_READING || slot->state == SLOT_STALE ? SLOT_STALE : SLOT_FREE;
    }
    s->filled = s->taken;
    s->walk = s->next;
    s->walk_pass = s->pass;
    reader_wake(s);
}

static int await_block(struct stream *s, uint64_t *stall_ns, struct err *e)
{
    uint64_t start = 0;
    int result = 0;

    pthread_mutex_lock(&s->lock);
    while (!is_ready(s)) {
        result = cancel_check(s->cancel, e);
        if (result != 0)
            break;
        if (reader_has_failed(s) && !is_being_read(s)) {
            *e = s->failure;
            result = -1;
            break;
        }
        if (was_missed(s))
            walk_back(s);
        if (start == 0)
            start = clock_ns();
        pthread_cond_wait(&s->news, &s->lock);
    }
    if (result == 0 && pinned_state(&s->pinned, s->next.block) == BLOCK_STREAMED)
        slot_at(s, s->taken++)->state = SLOT_TAKEN;
    pthread_mutex_unlock(&s->lock);
    if (start != 0)
        *stall_ns += clock_ns() - start;
    return result;
}

static int find_block(struct stream *s, const struct schedule_block *b,
                      struct stream_block *block, uint64_t *stall_ns, struct err *e)
{
    const unsigned char *place;

    if (s->is_mapped) {
        block->data = mapping_at(&s->mapping, b->file, b->offset, b->bytes, e);
        return block->data != NULL ? 0 : -1;
    }
    if (s->in_low_pass && pinned_state(&s->pinned, s->next.block) != BLOCK_HELD)
        return stream_find_low(s, block, e);
    /* A pinned block in memory takes no lock. */
    if (pinned_state(&s->pinned, s->next.block) != BLOCK_HELD &&
        await_block(s, stall_ns, e) != 0)
        return -1;
    block->is_pinned = pinned_state(&s->pinned, s->next.block) == BLOCK_HELD;
    place = block->is_pinned ? pinned_place(&s->pinned, s->next.block)
                             : s->ring.base + ((s->taken - 1) % s->n_slot) * s->slot_bytes;
    if (block->is_pinned)
        block->form = s->schedule.spans[b->span].span.form;
    block->data = block->form != 0 ? place : place + (b->offset - b->read_offset);
    return 0;
}

int stream_next(struct stream *s, struct stream_block *block, uint64_t *stall_ns, struct err *e)
{
    struct schedule_block b;

    assert(s->in_low_pass ? s->next.block < s->schedule.n_block
                          : s->in_pass && s->next.block < s->pass_blocks);
    if (cancel_check(s->cancel, e) != 0)
        return -1;
    schedule_get(&s->schedule, &s->next, &b);
    *block = (struct stream_block){
        .index = s->next.block, .span = b.span, .row = b.row, .n_row = b.n_row
    };
    if (find_block(s, &b, block, stall_ns, e) != 0)
        return -1;
    schedule_next(&s->schedule, &s->next);
    return 0;
}

bool stream_next_pinned(struct stream *s, uint32_t span, struct stream_block *block)
{
    struct schedule_block b;
    struct err never = ERR_INIT;
    uint64_t no_stall = 0;

    if (s->is_mapped ||
        s->next.block == (s->in_low_pass ? s->schedule.n_block : s->pass_blocks) ||
        pinned_state(&s->pinned, s->next.block) != BLOCK_HELD)
        return false;
    schedule_get(&s->schedule, &s->next, &b);
    return b.span == span && stream_next(s, block, &no_stall, &never) == 0;
}

static void give_mapped(struct stream *s, const struct stream_block *block)
{
    const struct stream_span *p = &s->schedule.spans[block->span].span;

    if (s->drops)
        mapping_drop(&s->mapping, p->file, p->offset + block->row * p->row_bytes,
                     block->n_row * p->row_bytes);
}

void stream_give(struct stream *s, const struct stream_block *block)
{
    if (s->is_mapped) {
        give_mapped(s, block);
        return;
    }
    if (block->is_pinned || block->is_low)
        return;
    pthread_mutex_lock(&s->lock);
    assert(s->given < s->taken && slot_at(s, s->given)->block == block->index);
    slot_at(s, s->given)->state = SLOT_FREE;
    s->given++;
    if (s->wants_slot)
        reader_wake(s);
    pthread_mutex_unlock(&s->lock);
}

/* The reader keeps what it has read of the next pass, unless it has not got there or has
 * stopped at a block that could not be read. */
static void end_pass(struct stream *s)
{
    bool has_failed = reader_has_failed(s);
    bool restart = s->walk_pass <= s->pass || has_failed;

    if (s->n_slot > 0)
        stream_discard(s, has_failed ? UINT64_MAX : s->pass);
    s->pass++;
    reader_change(s, EVENT_PASS);
    if (restart)
        reader_restart(s);
    reader_wake(s);
}

int stream_pass_end(struct stream *s, struct err *e)
{
    assert(s->in_pass);
    if (s->host != NULL) { /* its reader knows nothing of this pass */
        s->in_pass = false;
        return catalogue_check_files(s->catalogue, e);
    }
    pthread_mutex_lock(&s->lock);
    s->in_pass = false;
    if (!s->is_mapped)
        end_pass(s);
    pthread_mutex_unlock(&s->lock);
    if (s->is_mapped)
        counter_add(&s->telemetry->bytes_read, mapping_count(&s->mapping));
    if (s->is_mapped && mapping_check(&s->mapping, e) != 0)
        return -1;
    return catalogue_check_files(s->catalogue, e);
}
