/* The engine's side of the stream; reader.c is the other one. */
#include "config.h"

#include "engine/stream/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/base/units.h"
#include "engine/stream/stream_internal.h"

#define STACK_BYTES ((size_t)256 << 10)

/* Direct reads that bring less than this share of what buffered ones do are not chosen. */
#define SLOW_SHARE 0.7

/* Stacks as far as they are used, rings shared with the kernel, registered files. */
#define FIXED_BYTES (256 * KIB)
#define FILE_BYTES  256

/* --- opening --- */

static int check_spans(const struct stream *s, struct err *e)
{
    for (uint32_t i = 0; i < s->schedule.n_span; i++) {
        const struct stream_span *p = &s->schedule.spans[i].span;

        if (p->layer > MW_MAX_LAYER || p->file >= s->catalogue->n_file)
            return err_set(e, ERR_ARGUMENT, "span %u is of layer %u and file %u", i, p->layer,
                           p->file);
        /* Neither overflows: schedule_make looked. */
        if (p->offset + p->row_bytes * p->n_row > s->catalogue->files[p->file].size) {
            err_set(e, ERR_FORMAT, "%llu rows of %llu bytes end past the end of the file",
                    (unsigned long long)p->n_row, (unsigned long long)p->row_bytes);
            return err_at(e, s->catalogue->files[p->file].path, p->offset, NULL);
        }
    }
    return 0;
}

static int open_tables(struct stream *s, const struct stream_span *spans, uint32_t n_span,
                       size_t block_target, struct err *e)
{
    s->spans = calloc(n_span > 0 ? n_span : 1, (size_t)(schedule_bytes(1)));
    if (s->spans == NULL)
        return err_memory(e, "the schedule of %u spans", n_span);
    if (schedule_make(&s->schedule, s->spans, spans, n_span, block_target, e) != 0)
        return -1;
    if (check_spans(s, e) != 0)
        return -1;
    s->pinned_table = calloc(1, (size_t)pinned_table_bytes(s->schedule.n_block) + 1);
    if (s->pinned_table == NULL)
        return err_memory(e, "a schedule of %u blocks", s->schedule.n_block);
    return 0;
}

/* Some virtual disks and some of the cheapest are slow without the page cache. */
static bool direct_is_slow(struct stream *s, const struct stream_options *o)
{
    if (!(o->direct_bytes_s > 0) || o->direct_bytes_s > SLOW_SHARE * o->buffered_bytes_s)
        return false;
    snprintf(s->reason, sizeof s->reason,
             "direct reads are slow here: %.0f MB/s, %.0f through the page cache",
             o->direct_bytes_s / 1e6, o->buffered_bytes_s / 1e6);
    return true;
}

static int open_files(struct stream *s, const struct stream_options *o, struct err *e)
{
    enum stream_io io = o->io;

    if (io == STREAM_DIRECT || (io == STREAM_AUTO && !direct_is_slow(s, o))) {
        if (source_open(&s->source, s->catalogue, true, e) == 0)
            return 0;
        if (io == STREAM_DIRECT || e->code != ERR_UNSUPPORTED)
            return -1;
        snprintf(s->reason, sizeof s->reason, "%.180s", e->what);
    }
    return source_open(&s->source, s->catalogue, false, e);
}

/* Every block needs a place. */
static int check_memory(const struct stream *s, uint32_t n_slot, uint64_t pinned_bytes,
                        struct err *e)
{
    if (n_slot == 1 || n_slot > STREAM_SLOTS_MAX)
        return err_set(e, ERR_ARGUMENT, "a ring of %u slots is not possible", n_slot);
    if (n_slot == 0 && pinned_bytes < s->pinned.area.reserved)
        return err_set(
            e, ERR_BUDGET, "without a ring everything has to be pinned: %llu bytes, not %llu",
            (unsigned long long)s->pinned.area.reserved, (unsigned long long)pinned_bytes);
    return 0;
}

static int open_memory(struct stream *s, const struct stream_options *o, struct err *e)
{
    assert(s->depth > 0 && s->depth <= STREAM_DEPTH_MAX);
    assert(s->slot_bytes > 0 && s->slot_bytes % SCHEDULE_ALIGN == 0);
    assert(s->slot_bytes <= SIZE_MAX / 4 / STREAM_SLOTS_MAX);
    uint64_t cells = o->lookup_bytes / LOOKUP_CELL_BYTES;

    if (check_memory(s, o->n_slot, UINT64_MAX, e) != 0)
        return -1;
    cells = cells < 4 ? 4 : cells > LOOKUP_CELLS ? LOOKUP_CELLS : cells;
    if (area_reserve(&s->ring, "ring", (uint64_t)STREAM_SLOTS_MAX * s->slot_bytes, e) != 0 ||
        area_hold(&s->ring, (uint64_t)o->n_slot * s->slot_bytes, true, e) != 0)
        return -1;
    if (area_reserve(&s->lookup_area, "rows", lookup_bytes((uint32_t)cells), e) != 0 ||
        area_hold(&s->lookup_area, s->lookup_area.reserved, true, e) != 0)
        return -1;
    lookup_init(&s->lookup, s->lookup_area.base, (uint32_t)cells);
    if (pinned_open(&s->pinned, s->pinned_table, &s->schedule, e) != 0 ||
        pinned_set(&s->pinned, o->pinned_bytes, e) != 0)
        return -1;
    return check_memory(s, s->n_slot, o->pinned_bytes, e);
}

static int start_reader(struct stream *s, struct err *e)
{
    int failed = thread_start(&s->thread, STACK_BYTES, reader_main, s);

    if (failed != 0) {
        errno = failed;
        return err_sys(e, "cannot start the reading thread");
    }
    s->has_thread = true;
    pthread_mutex_lock(&s->lock);
    while (!s->started)
        pthread_cond_wait(&s->news, &s->lock);
    failed = s->is_dead;
    if (failed)
        *e = s->failure;
    pthread_mutex_unlock(&s->lock);
    return failed ? -1 : 0;
}

static void count_layers(struct stream *s)
{
    struct telemetry *t = s->telemetry;

    for (uint32_t i = 0; i <= MW_MAX_LAYER; i++) {
        counter_set(&t->layer[i].bytes, 0);
        counter_set(&t->layer[i].pinned_bytes, 0);
        counter_set(&t->layer[i].read_ns, 0);
    }
    for (uint32_t i = 0; i < s->schedule.n_span; i++) {
        const struct stream_span *p = &s->schedule.spans[i].span;

        counter_add(&t->layer[p->layer].bytes, p->row_bytes * p->n_row);
    }
}

static int open_parts(struct stream *s, const struct stream_span *spans, uint32_t n_span,
                      const struct stream_shape *shape, const struct stream_options *o,
                      struct err *e)
{
    if (open_tables(s, spans, n_span, shape->target, e) != 0 || open_files(s, o, e) != 0)
        return -1;
    s->io_name = "mmap";
    s->io_reason = s->reason;
    if (s->is_mapped)
        return mapping_open(&s->mapping, &s->source, e);
    return open_memory(s, o, e);
}

int stream_open(struct stream **out, const struct catalogue *c, const struct stream_span *spans,
                uint32_t n_span, const struct stream_shape *shape,
                const struct stream_options *options, struct telemetry *t, struct err *e)
{
    struct stream *s = calloc(1, sizeof *s);

    *out = NULL;
    if (s == NULL)
        return err_memory(e, "the stream");
    s->catalogue = c;
    s->telemetry = t;
    s->is_mapped = options->io == STREAM_MMAP;
    s->drops = options->mmap_drop;
    s->n_slot = options->n_slot;
    s->slot_bytes = shape->slot_bytes;
    s->depth = shape->depth;
    s->first_kind = options->no_uring || backend_uring == NULL ? &backend_pread : backend_uring;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
    pthread_cond_init(&s->wakeup, NULL);
    if (open_parts(s, spans, n_span, shape, options, e) != 0)
        goto fail;
    count_layers(s);
    reader_restart(s);
    if (!s->is_mapped && start_reader(s, e) != 0)
        goto fail;
    *out = s;
    return 0;

fail:
    stream_close(s);
    return -1;
}

void stream_close(struct stream *s)
{
    if (s == NULL)
        return;
    if (s->has_thread) {
        pthread_mutex_lock(&s->lock);
        s->quit = true;
        reader_wake(s);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    mapping_close(&s->mapping);
    if (!s->source.is_direct && (!s->is_mapped || s->drops))
        for (uint32_t i = 0; i < s->source.n_file; i++)
            source_drop(&s->source.files[i], 0, 0);
    source_close(&s->source);
    pinned_close(&s->pinned);
    area_unmap(&s->ring);
    area_unmap(&s->lookup_area);
    pthread_cond_destroy(&s->wakeup);
    pthread_cond_destroy(&s->news);
    pthread_mutex_destroy(&s->lock);
    free(s->pinned_table);
    free(s->spans);
    free(s);
}

const char *stream_io_name(const struct stream *s)
{
    return s->io_name;
}

const char *stream_io_reason(const struct stream *s)
{
    return s->io_reason;
}

uint64_t stream_overhead_bytes(uint32_t n_span, uint32_t n_block, uint32_t n_file)
{
    return sizeof(struct stream) + schedule_bytes(n_span) + pinned_table_bytes(n_block) +
           (uint64_t)n_file * FILE_BYTES + FIXED_BYTES;
}

/* --- a pass --- */

static struct slot *slot_at(struct stream *s, uint64_t count)
{
    return &s->slots[count % s->n_slot];
}

/* Let go of all slots that hold blocks of passes up to `last`, and of those taken. */
static void discard(struct stream *s, uint64_t last)
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

/* What failed while it was read ahead is read again: its cause may be gone by now. */
static void forget_failure(struct stream *s)
{
    if (!s->failed || s->is_dead || s->ring_lost)
        return;
    if (s->n_slot > 0)
        discard(s, UINT64_MAX);
    s->failed = false;
    reader_restart(s);
}

int stream_pass_begin(struct stream *s, bool is_prompt, struct err *e)
{
    if (s->in_pass)
        return err_set(e, ERR_ARGUMENT, "a pass is begun before the last one was ended");
    s->in_pass = true;
    s->pass_blocks = is_prompt ? s->schedule.n_prompt_block : s->schedule.n_block;
    s->next = schedule_begin(&s->schedule);
    atomic_store(&s->cancelled, false);
    if (s->is_mapped)
        return 0;
    pthread_mutex_lock(&s->lock);
    forget_failure(s);
    s->pass_is_known = true;
    reader_wake(s);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static bool is_ready(struct stream *s)
{
    const struct slot *slot;

    if (pinned_state(&s->pinned, s->next.block) != BLOCK_STREAMED)
        return pinned_state(&s->pinned, s->next.block) == BLOCK_HELD;
    slot = slot_at(s, s->taken);
    if (s->taken == s->filled || slot->state != SLOT_READY)
        return false;
    assert(slot->block == s->next.block && slot->pass == s->pass);
    return true;
}

/* Is it on its way? */
static bool will_come(struct stream *s)
{
    if (pinned_state(&s->pinned, s->next.block) != BLOCK_STREAMED)
        return pinned_state(&s->pinned, s->next.block) == BLOCK_READING;
    return s->taken < s->filled && slot_at(s, s->taken)->state == SLOT_READING;
}

static int await_block(struct stream *s, uint64_t *stall_ns, struct err *e)
{
    uint64_t start = 0;
    int result = 0;

    pthread_mutex_lock(&s->lock);
    while (!is_ready(s)) {
        if (atomic_load(&s->cancelled)) {
            result = err_set(e, ERR_CANCELLED, "cancelled");
            break;
        }
        if (s->failed && !will_come(s)) {
            *e = s->failure;
            result = -1;
            break;
        }
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

static int find_block(struct stream *s, const struct schedule_block *b, const void **data,
                      bool *is_pinned, uint64_t *stall_ns, struct err *e)
{
    const unsigned char *place;

    *is_pinned = false;
    if (s->is_mapped) {
        *data = mapping_at(&s->mapping, b->file, b->offset, b->bytes, e);
        return *data != NULL ? 0 : -1;
    }
    /* What is held is found without the lock. */
    if (pinned_state(&s->pinned, s->next.block) != BLOCK_HELD &&
        await_block(s, stall_ns, e) != 0)
        return -1;
    *is_pinned = pinned_state(&s->pinned, s->next.block) == BLOCK_HELD;
    place = *is_pinned ? pinned_place(&s->pinned, s->next.block)
                       : s->ring.base + ((s->taken - 1) % s->n_slot) * s->slot_bytes;
    *data = place + (b->offset - b->read_offset);
    return 0;
}

int stream_next(struct stream *s, struct stream_block *block, uint64_t *stall_ns, struct err *e)
{
    struct schedule_block b;

    if (!s->in_pass || s->next.block >= s->pass_blocks)
        return err_set(e, ERR_ARGUMENT, "the pass has no more blocks");
    if (atomic_load(&s->cancelled))
        return err_set(e, ERR_CANCELLED, "cancelled");
    schedule_get(&s->schedule, &s->next, &b);
    *block = (struct stream_block){
        .index = s->next.block, .span = b.span, .row = b.row, .n_row = b.n_row
    };
    if (find_block(s, &b, &block->data, &block->is_pinned, stall_ns, e) != 0)
        return -1;
    schedule_step(&s->schedule, &s->next);
    return 0;
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
    if (block->is_pinned)
        return;
    pthread_mutex_lock(&s->lock);
    assert(s->given < s->taken && slot_at(s, s->given)->block == block->index);
    slot_at(s, s->given)->state = SLOT_FREE;
    s->given++;
    if (s->wants_slot)
        reader_wake(s);
    pthread_mutex_unlock(&s->lock);
}

int stream_pass_end(struct stream *s, struct err *e)
{
    if (!s->in_pass)
        return err_set(e, ERR_ARGUMENT, "a pass is ended that was not begun");
    s->in_pass = false;
    if (s->is_mapped && mapping_check(&s->mapping, e) != 0)
        return -1;
    if (!s->is_mapped) {
        bool restart;

        pthread_mutex_lock(&s->lock);
        restart = s->walk_pass <= s->pass || s->failed;
        if (s->n_slot > 0)
            discard(s, s->failed ? UINT64_MAX : s->pass);
        s->pass++;
        s->pass_is_known = false;
        s->failed = s->is_dead || s->ring_lost;
        if (restart)
            reader_restart(s);
        reader_wake(s);
        pthread_mutex_unlock(&s->lock);
    }
    return catalogue_check_files(s->catalogue, e);
}

void stream_cancel(struct stream *s)
{
    atomic_store(&s->cancelled, true);
    pthread_mutex_lock(&s->lock);
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
}

/* --- lookups --- */

uint64_t stream_lookup_bytes(const uint64_t *row_bytes, size_t n_table, size_t n_token)
{
    return align_up(lookup_bytes(lookup_cells(row_bytes, n_table, n_token)), SCHEDULE_ALIGN);
}

static int check_lookups(const struct stream *s, const struct stream_lookup *l, size_t n,
                         struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t end;

        if (l[i].file >= s->source.n_file || l[i].bytes == 0 ||
            __builtin_add_overflow(l[i].offset, l[i].bytes, &end) ||
            end > s->source.files[l[i].file].size)
            return err_set(
                e, ERR_ARGUMENT, "a row of %llu bytes at byte %llu is not in file %u",
                (unsigned long long)l[i].bytes, (unsigned long long)l[i].offset, l[i].file);
    }
    return 0;
}

/* The next of the rows that wait; under the lock. */
static void begin_batch(struct stream *s)
{
    size_t n = s->n_lookup < LOOKUP_BATCH ? s->n_lookup : LOOKUP_BATCH;

    lookup_begin(&s->lookup, s->lookups, n);
    s->lookups += n;
    s->n_lookup -= n;
    reader_wake(s);
}

int stream_lookup_start(struct stream *s, const struct stream_lookup *lookups, size_t n,
                        struct err *e)
{
    if (s->in_lookup)
        return err_set(e, ERR_ARGUMENT, "a lookup is begun before the last one was waited for");
    if (check_lookups(s, lookups, n, e) != 0)
        return -1;
    s->in_lookup = true;
    s->lookups = lookups;
    s->n_lookup = n;
    if (s->is_mapped)
        return 0;
    pthread_mutex_lock(&s->lock);
    s->lookup_failed = false;
    begin_batch(s);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int wait_mapped(struct stream *s, struct err *e)
{
    for (size_t i = 0; i < s->n_lookup; i++) {
        const struct stream_lookup *l = &s->lookups[i];
        const void *p = mapping_at(&s->mapping, l->file, l->offset, l->bytes, e);

        if (p == NULL)
            return -1;
        memcpy(l->dst, p, l->bytes);
        if (s->drops)
            mapping_drop(&s->mapping, l->file, l->offset, l->bytes);
    }
    return mapping_check(&s->mapping, e);
}

int stream_lookup_wait(struct stream *s, struct err *e)
{
    int result = 0;

    if (!s->in_lookup)
        return err_set(e, ERR_ARGUMENT, "a lookup is waited for that was not begun");
    s->in_lookup = false;
    if (s->is_mapped)
        return wait_mapped(s, e);
    pthread_mutex_lock(&s->lock);
    for (;;) {
        if (s->is_dead && s->lookup.n_flying == 0 && !lookup_is_done(&s->lookup)) {
            s->lookup_failure = s->failure;
            s->lookup_failed = s->lookup.stopped = true;
        }
        if (!lookup_is_done(&s->lookup))
            pthread_cond_wait(&s->news, &s->lock);
        else if (s->lookup_failed || s->n_lookup == 0)
            break;
        else
            begin_batch(s);
    }
    if (s->lookup_failed) {
        *e = s->lookup_failure;
        result = -1;
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

/* --- memory --- */

static void count_pinned(struct stream *s)
{
    struct schedule_at at = schedule_begin(&s->schedule);

    counter_set(&s->telemetry->pinned_held, area_resident(&s->pinned.area));
    for (uint32_t i = 0; i <= MW_MAX_LAYER; i++)
        counter_set(&s->telemetry->layer[i].pinned_bytes, 0);
    for (; at.block < s->schedule.n_block; schedule_step(&s->schedule, &at)) {
        struct schedule_block b;

        schedule_get(&s->schedule, &at, &b);
        if (pinned_state(&s->pinned, at.block) == BLOCK_HELD)
            counter_add(&s->telemetry->layer[b.layer].pinned_bytes, b.bytes);
    }
}

/* Nothing flies and no slot is used: the ring may become another.  A smaller one is made
 * anew, since a huge page at its end would be kept whole. */
static int resize_ring(struct stream *s, uint32_t n_slot, struct err *e)
{
    uint64_t bytes = (uint64_t)n_slot * s->slot_bytes;

    if (n_slot == s->n_slot)
        return 0;
    if (n_slot < s->n_slot && area_hold(&s->ring, 0, false, e) != 0)
        return -1;
    if (area_hold(&s->ring, bytes, true, e) != 0) {
        /* Less than was just given back is refused: there is no ring any more. */
        if (n_slot < s->n_slot) {
            s->failure = *e;
            s->failed = s->ring_lost = true;
        }
        return -1;
    }
    memset(s->slots, 0, sizeof s->slots);
    s->n_slot = n_slot;
    s->filled = s->taken = s->given = 0;
    s->rebuffer = true;
    return 0;
}

/* What shrinks goes first, so that the sum never exceeds the larger of before and after. */
static int resize(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes, struct err *e)
{
    uint64_t before = s->pinned.area.held;
    struct err ignored = ERR_INIT;

    if (pinned_bytes < before && pinned_set(&s->pinned, pinned_bytes, e) != 0)
        return -1;
    if (resize_ring(s, n_slot, e) != 0) {
        (void)pinned_set(&s->pinned, before, &ignored);
        return -1;
    }
    return pinned_bytes > before ? pinned_set(&s->pinned, pinned_bytes, e) : 0;
}

int stream_set_memory(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes, struct err *e)
{
    int result;

    if (s->in_pass)
        return err_set(e, ERR_ARGUMENT, "memory cannot change during a pass");
    if (s->is_mapped)
        return 0;
    if (check_memory(s, n_slot, pinned_bytes, e) != 0)
        return -1;
    pthread_mutex_lock(&s->lock);
    /* Slots hold only blocks that are streamed: what is read ahead goes, and the reader
     * comes to a stand. */
    s->hold = true;
    if (s->n_slot > 0)
        discard(s, UINT64_MAX);
    while (s->n_flying > 0)
        pthread_cond_wait(&s->news, &s->lock);
    result = resize(s, n_slot, pinned_bytes, e);
    count_pinned(s);
    s->hold = false;
    s->failed = s->is_dead || s->ring_lost;
    reader_restart(s);
    reader_wake(s);
    while (s->rebuffer)
        pthread_cond_wait(&s->news, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return result;
}

int stream_set_pinned(struct stream *s, uint64_t pinned_bytes, struct err *e)
{
    return stream_set_memory(s, s->n_slot, pinned_bytes, e);
}

uint64_t stream_pinned_now(const struct stream *s)
{
    return atomic_load_explicit(&s->pinned.held_bytes, memory_order_relaxed);
}

uint64_t stream_streamed_bytes(const struct stream *s)
{
    uint64_t bytes = 0;

    if (!s->is_mapped)
        return s->pinned.streamed_bytes;
    for (uint32_t i = 0; i < s->schedule.n_span; i++)
        bytes += s->schedule.spans[i].span.n_row * s->schedule.spans[i].span.row_bytes;
    return bytes;
}
