/*
 * The reader: one thread that keeps `depth` block reads in flight, in the order of the
 * schedule, and starts lookups ahead of them.
 *
 * It holds the lock except while it waits in the backend.  After a read that fails for good
 * it starts no more blocks (FAILED): reads in flight still arrive, and the engine gets the
 * error when it needs a block that will not.  stream_internal.h has all its states.
 */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/units.h"
#include "engine/stream/shape.h"
#include "engine/stream/stream_internal.h"

#define DONE_MAX   16
#define TRIES_MAX  3    /* of a read that failed */
#define AGAIN_MAX  1000 /* of a read that the kernel put off */
#define HELD_PARTS 64   /* pinned memory is counted again whenever it grew by this part */

static struct telemetry_layer *layer_of(struct stream *s, const struct read_op *op)
{
    return &s->telemetry->layer[op->layer];
}

void reader_wake(struct stream *s)
{
    if (s->backend == NULL)
        pthread_cond_signal(&s->wakeup);
    else if (s->is_waiting)
        s->kind->wake(s->backend);
}

void reader_restart(struct stream *s)
{
    s->walk = schedule_begin(&s->schedule);
    s->walk_pass = s->pass;
}

void reader_load(struct stream *s)
{
    struct schedule_at at = schedule_begin(&s->schedule);
    uint64_t bytes = 0, done = 0;

    s->load = at;
    s->load_ready = UINT64_MAX;
    s->is_loaded = false;
    for (; at.block < s->schedule.n_block; schedule_next(&s->schedule, &at)) {
        enum block_state state = pinned_state(&s->pinned, at.block);
        struct schedule_block b;

        schedule_get(&s->schedule, &at, &b);
        bytes += state == BLOCK_STREAMED ? 0 : b.read_bytes;
        done += state == BLOCK_HELD ? b.read_bytes : 0;
    }
    counter_set(&s->telemetry->ahead_bytes, bytes);
    counter_set(&s->telemetry->ahead_done_bytes, done);
}

static void submit_read(struct stream *s, struct read_op *op)
{
    if (op->disk == READ_MIRROR && !s->disks.has_mirror) { /* all of it comes from the model */
        op->disk = READ_MODEL;
        op->got = 0;
        op->tries = 0;
    }
    op->is_flying = true;
    if (!s->source.files[op->file].is_elsewhere)
        disks_begin(&s->disks, op, clock_ns());
    s->kind->submit(s->backend, op);
}

/* The same for a read that has not begun. */
static void submit_new(struct stream *s, struct read_op *op)
{
    op->start_ns = clock_ns();
    if (s->source.files[op->file].mirror_fd >= 0)
        op->disk = disks_choose(&s->disks, op, s->n_slot, op->start_ns);
    submit_read(s, op);
}

/* --- starting reads --- */

/* Whether the walk has a block to go to.  Crosses into the next pass if it has to. */
static bool may_walk(struct stream *s)
{
    const struct schedule *c = &s->schedule;

    if (s->in_pass && s->walk_pass == s->pass && s->walk.block >= s->pass_blocks) {
        s->walk = schedule_begin(c);
        s->walk_pass++;
    }
    if (s->in_pass && s->walk_pass == s->pass)
        return true;
    return s->walk.block < (c->n_prompt_block > 0 ? c->n_prompt_block : c->n_block);
}

static struct read_op *free_op(struct stream *s)
{
    for (uint32_t i = 0; i < s->depth; i++)
        if (!s->ops[i].is_flying)
            return &s->ops[i];
    return NULL;
}

/* Read block number `target`, or into slot `target`, to dst; NULL: to the landing of the read,
 * to be laid out in its place. */
static void start_read(struct stream *s, const struct schedule_block *b, enum read_kind kind,
                       uint32_t target, unsigned char *dst)
{
    const struct stream_span *span = &s->schedule.spans[b->span].span;
    struct read_op *op = free_op(s);

    assert(op != NULL);
    assert((kind != READ_SLOT && dst != NULL) || b->read_bytes <= s->slot_bytes);
    *op = (struct read_op){
        .kind = kind,
        .target = target,
        .layer = b->layer,
        .pass = s->walk_pass,
        .file = b->file,
        .offset = b->read_offset,
        .bytes = (size_t)b->read_bytes,
        .need = (size_t)(b->offset + b->bytes - b->read_offset),
        .lead = (size_t)(b->offset - b->read_offset),
        .dst = dst != NULL ? dst
                           : s->landing.base + (size_t)(op - s->ops) * s->slot_bytes,
        .laid = kind == READ_PINNED && span->form != 0 ? span : NULL,
        .n_row = b->n_row,
        .place = kind == READ_PINNED ? pinned_place(&s->pinned, target) : NULL,
        .place_bytes = b->place_bytes,
        .fits = true,
    };
    s->n_flying++;
    submit_new(s, op);
}

/* Returns how many blocks may be in flight if one of them is read into a slot.  The plan may
 * have given the ring fewer slots than its shape has. */
static uint32_t slot_depth(const struct stream *s)
{
    uint32_t most = shape_flying(s->n_slot);

    return most < s->depth ? most : s->depth;
}

/* Read the block into the next slot.  False: no slot is free, or the depth is reached. */
static bool start_slot(struct stream *s, const struct schedule_block *b)
{
    uint32_t i = s->n_slot > 0 ? (uint32_t)(s->filled % s->n_slot) : 0;

    s->wants_slot = s->n_slot == 0 || s->slots[i].state != SLOT_FREE;
    if (s->wants_slot || s->n_flying >= slot_depth(s))
        return false;
    s->slots[i] = (struct slot){ SLOT_READING, s->walk.block, s->walk_pass };
    s->filled++;
    start_read(s, b, READ_SLOT, i, s->ring.base + i * s->slot_bytes);
    return true;
}

static bool start_pinned(struct stream *s, uint32_t block, const struct schedule_block *b)
{
    uint64_t held;

    if (s->n_flying == s->depth)
        return false;
    pinned_mark(&s->pinned, block, BLOCK_READING);
    /* The kernel charges its pages as soon as the disk may write to them, if it has not yet. */
    held = counter_get(&s->telemetry->pinned_held) + b->place_bytes;
    counter_set(&s->telemetry->pinned_held,
                held < stream_pinned_limit(s) ? held : stream_pinned_limit(s));
    start_read(s, b, READ_PINNED, block,
               stream_lands(&s->schedule.spans[b->span].span) ? NULL
                                                              : pinned_place(&s->pinned, block));
    return true;
}

/* Whether the pages of a pinned block are populated.  A read into others waits until the kernel has
 * cleared them, and keeps the reader from all else. */
static bool is_populated(const struct stream *s, uint32_t block, uint64_t place_bytes)
{
    return pinned_is_within(&s->pinned, block, place_bytes,
                            populate_ready(&s->pinned.populate));
}

/* Move the walk over one block, starting its read if it is not in memory.  False: the walk
 * has to wait. */
static bool walk_block(struct stream *s)
{
    struct schedule_block b;

    if (s->state != READER_WALKING || !may_walk(s))
        return false;
    schedule_get(&s->schedule, &s->walk, &b);
    switch (pinned_state(&s->pinned, s->walk.block)) {
    case BLOCK_STREAMED:
        if (!start_slot(s, &b))
            return false;
        break;
    case BLOCK_WANTED:
        if (!s->in_pass && !is_populated(s, s->walk.block, b.place_bytes))
            return false; /* load_block() has others that are */
        if (!start_pinned(s, s->walk.block, &b))
            return false;
        break;
    case BLOCK_READING:
    case BLOCK_HELD:
    case BLOCK_UNFIT: break; /* pinned_state() calls the last one streamed */
    }
    /* read_ns is of the latest pass; count_read() adds to it when the read is done. */
    if (b.begins_layer)
        counter_set(&s->telemetry->layer[b.layer].read_ns, 0);
    schedule_next(&s->schedule, &s->walk);
    return true;
}

/* Move `at` to the next pinned block that is missing, in the first `ready` bytes of their area. */
static bool find_missing(const struct stream *s, struct schedule_at *at, uint32_t end,
                         uint64_t ready, struct schedule_block *b)
{
    for (; at->block < end; schedule_next(&s->schedule, at)) {
        if (pinned_state(&s->pinned, at->block) != BLOCK_WANTED)
            continue;
        schedule_get(&s->schedule, at, b);
        if (pinned_is_within(&s->pinned, at->block, b->place_bytes, ready))
            return true;
    }
    return false;
}

/*
 * Load a pinned block that is missing, in rounds in the order of the file: each takes the blocks
 * whose pages are populated by then.  So what was read follows the memory that was taken, and a
 * slow disk reads nearly all in one round.  If nothing else is being read, a block does not wait
 * for its pages.  False: there is none, or not yet, or the depth is reached.
 */
static bool load_block(struct stream *s)
{
    uint64_t ready = populate_ready(&s->pinned.populate);
    struct schedule_at at = s->load;
    struct schedule_block b;

    if (s->state != READER_WALKING || s->in_pass || s->is_loaded ||
        (s->n_flying > 0 && ready == s->load_ready))
        return false;
    if (!find_missing(s, &at, s->schedule.n_block, ready, &b)) {
        at = schedule_begin(&s->schedule);
        if (!find_missing(s, &at, s->load.block, ready, &b)) {
            s->load_ready = ready;
            if (s->n_flying > 0)
                return false;
            at = schedule_begin(&s->schedule);
            s->is_loaded = !find_missing(s, &at, s->schedule.n_block, UINT64_MAX, &b);
            if (s->is_loaded)
                return false;
        }
    }
    s->load = at;
    return start_pinned(s, at.block, &b);
}

static void start_lookups(struct stream *s)
{
    struct read_op *op;

    if (s->state == READER_DEAD || s->state == READER_QUITTING)
        return;
    lookup_next_batch(s);
    while ((op = lookup_next(&s->lookup)) != NULL || (op = fetch_next(&s->fetches)) != NULL) {
        submit_new(s, op);
    }
}

static void start_reads(struct stream *s)
{
    s->wants_slot = false;
    start_lookups(s);
    while (walk_block(s) || load_block(s))
        ;
    counter_set(&s->telemetry->depth_gauge,
                s->n_flying + s->lookup.n_flying + s->fetches.n_flying);
}

/* --- results of reads --- */

enum outcome { READ_DONE, READ_AGAIN, READ_FAILED };

static const char *path_of(const struct stream *s, const struct read_op *op)
{
    const struct source_file *f = &s->source.files[op->file];

    return op->disk == READ_MIRROR ? f->mirror->path : f->path;
}

static enum outcome outcome_of_error(struct stream *s, struct read_op *op, struct err *e)
{
    int error = (int)-op->result;
    bool is_late = error == EAGAIN || error == EINTR;

    if (is_late || error == EIO || error == ENOMEM) {
        if (++op->tries < (is_late ? AGAIN_MAX : TRIES_MAX)) {
            counter_add(&s->telemetry->retries, 1);
            return READ_AGAIN;
        }
    }
    errno = error;
    err_sys(e, "could not read %zu bytes", op->need - op->got);
    e->code = ERR_IO;
    err_at(e, path_of(s, op), op->offset + op->got, NULL);
    return READ_FAILED;
}

/* A system read may bring less than requested, and the rest is requested again.  If it brings
 * nothing before the known end, the file has changed. */
static enum outcome outcome_of(struct stream *s, struct read_op *op, struct err *e)
{
    size_t got;

    if (op->is_stale) {
        err_set(e, ERR_IO, "the file changed while it was in use");
        err_at(e, path_of(s, op), ERR_NO_OFFSET, NULL);
        return READ_FAILED;
    }
    if (op->result < 0)
        return outcome_of_error(s, op, e);
    got = read_op_at(op) + (size_t)op->result;
    if (got >= op->need) {
        op->got = got < op->bytes ? got : op->bytes;
        return READ_DONE;
    }
    if (got > op->got) {
        op->got = got;
        return READ_AGAIN;
    }
    err_set(e, ERR_IO, "the file changed while it was in use: it ends %zu bytes early",
            op->need - op->got);
    err_at(e, path_of(s, op), op->offset + op->got, NULL);
    return READ_FAILED;
}

static void count_read(struct stream *s, const struct read_op *op)
{
    struct telemetry *t = s->telemetry;
    uint64_t ns = clock_ns() - op->start_ns;

    counter_add(&t->bytes_read, op->got);
    counter_add(&t->reads, 1);
    counter_add(&t->read_ns, ns);
    if (op->kind == READ_LOOKUP) {
        counter_add(&t->lookup_bytes, op->got);
        return;
    }
    if (op->kind == READ_FETCH && s->fetches.fetch_of[op->target]->is_guest)
        return;
    if (op->kind == READ_FETCH && s->fetches.fetch_of[op->target]->is_kv)
        counter_add(&t->kv_read_bytes, op->got);
    else if (op->kind == READ_FETCH)
        counter_add(&t->expert_bytes, op->got);
    counter_add(&layer_of(s, op)->read_ns, ns);
    counter_add(&layer_of(s, op)->read_bytes, op->got);
}

static void finish_slot(struct stream *s, const struct read_op *op, bool is_read)
{
    struct slot *slot = &s->slots[op->target];

    slot->state = is_read && slot->state == SLOT_READING ? SLOT_READY : SLOT_FREE;
}

/*
 * Publish the memory that pinned blocks take.  Huge pages of which only a part was read count
 * in full, so the kernel is asked.  It looks at every page, so the larger the area, the less
 * often it is asked.  In between, start_pinned() counts the reads that began.
 */
static void count_held(struct stream *s, uint64_t before, uint64_t now)
{
    uint64_t part = before / HELD_PARTS + 1;

    if (now / part != before / part || now + part > s->pinned.area.held)
        counter_set(&s->telemetry->pinned_held, stream_pinned_resident(s));
}

static void finish_pinned(struct stream *s, const struct read_op *op, bool is_read)
{
    uint64_t before;

    if (!is_read) {
        pinned_mark(&s->pinned, op->target, BLOCK_WANTED);
        /* Only a pass reads it again, so nothing is being loaded. */
        counter_set(&s->telemetry->ahead_bytes, 0);
        s->is_loaded = true;
        return;
    }
    if (!op->fits) {
        pinned_mark(&s->pinned, op->target, BLOCK_UNFIT);
        if (counter_get(&s->telemetry->ahead_bytes) >= op->bytes)
            counter_add(&s->telemetry->ahead_bytes, -(uint64_t)op->bytes);
        return;
    }
    before =
        atomic_fetch_add_explicit(&s->pinned.held_bytes, op->place_bytes, memory_order_relaxed);
    count_held(s, before, before + op->place_bytes);
    if (op->place_bytes < op->bytes)
        counter_add(&s->telemetry->saved_bytes, op->bytes - op->place_bytes);
    counter_add(&s->telemetry->ahead_done_bytes, op->bytes);
    counter_add(&layer_of(s, op)->pinned_bytes, op->need - op->lead);
    pinned_mark(&s->pinned, op->target, BLOCK_HELD);
}

static bool is_of_block(const struct read_op *op)
{
    return op->kind == READ_SLOT || op->kind == READ_PINNED;
}

static void finish_read(struct stream *s, struct read_op *op, bool is_read)
{
    if (is_read)
        count_read(s, op);
    switch (op->kind) {
    case READ_SLOT: finish_slot(s, op, is_read); break;
    case READ_PINNED: finish_pinned(s, op, is_read); break;
    case READ_LOOKUP: lookup_finish(&s->lookup, op, is_read); break;
    case READ_FETCH: fetch_finish(&s->fetches, op, is_read); break;
    }
    if (is_of_block(op))
        s->n_flying--;
    op->is_flying = false;
}

static void fail_lookup(struct stream *s, const struct err *e)
{
    if (s->lookup_state != LOOKUP_FAILED)
        s->lookup_failure = *e;
    s->lookup_state = LOOKUP_FAILED;
}

/* The read of a block failed; a stale slot is no longer needed. */
static void fail_block(struct stream *s, const struct read_op *op, const struct err *e)
{
    if (op->kind == READ_SLOT && s->slots[op->target].state != SLOT_READING)
        return;
    if (s->state == READER_WALKING)
        s->failure = *e;
    reader_change(s, EVENT_READ_FAILED);
}

/* A pinned block that began in an earlier pass: the walk of this pass has gone past it, so
 * the read continues with the tries of this pass. */
static bool starts_over(struct stream *s, struct read_op *op)
{
    if (op->kind != READ_PINNED || op->pass >= s->pass || s->state == READER_HOLDING ||
        s->state == READER_QUITTING)
        return false;
    op->pass = s->pass;
    op->tries = 0;
    op->got = 0;
    return true;
}

static void handle_result(struct stream *s, struct read_op *op)
{
    struct err e = ERR_INIT;

    if (!s->source.files[op->file].is_elsewhere)
        disks_end(&s->disks, op, clock_ns());
    switch (outcome_of(s, op, &e)) {
    case READ_DONE: finish_read(s, op, true); break;
    case READ_AGAIN: submit_read(s, op); break;
    case READ_FAILED:
        if (op->disk == READ_MIRROR) { /* the model still has it */
            disks_drop(&s->disks, &e);
            op->is_stale = false;
            submit_read(s, op);
            break;
        }
        if (starts_over(s, op)) {
            submit_read(s, op);
            break;
        }
        switch (op->kind) {
        case READ_SLOT:
        case READ_PINNED: fail_block(s, op, &e); break;
        case READ_LOOKUP: fail_lookup(s, &e); break;
        case READ_FETCH: s->fetch_failure = e; break;
        }
        finish_read(s, op, false);
        break;
    }
}

/* --- a backend that breaks --- */

typedef void op_fn(struct stream *s, struct read_op *op);

static void each_flying(struct stream *s, op_fn *fn)
{
    for (uint32_t i = 0; i < s->depth; i++)
        if (s->ops[i].is_flying)
            fn(s, &s->ops[i]);
    for (uint32_t i = 0; i < s->lookup.n_cell; i++)
        if (s->lookup.cells[i].op.is_flying)
            fn(s, &s->lookup.cells[i].op);
    for (uint32_t i = 0; i < FETCH_DEPTH; i++)
        if (s->fetches.ops[i].is_flying)
            fn(s, &s->fetches.ops[i]);
}

static void abandon_read(struct stream *s, struct read_op *op)
{
    if (op->kind == READ_LOOKUP)
        fail_lookup(s, &s->failure);
    else if (op->kind == READ_FETCH)
        s->fetch_failure = s->failure;
    finish_read(s, op, false);
}

static struct backend_options backend_options(const struct stream *s)
{
    return (struct backend_options){
        .source = &s->source,
        .buffers = { { s->ring.base, s->ring.held },
                     { s->lookup_area.base, s->lookup_area.held } },
        .n_op = s->depth + LOOKUP_CELLS + FETCH_DEPTH,
        .depth = s->depth,
        .bytes_s = { s->bytes_s, s->mirror_bytes_s },
    };
}

static const char *io_name(const struct stream *s)
{
    return s->source.is_direct ? s->kind->name : "buffered";
}

/* io_uring stopped working: threads take over its unfinished reads. */
static void fall_back(struct stream *s)
{
    const struct backend_options options = backend_options(s);
    const struct backend_kind *broken = s->kind;
    struct backend *old = s->backend, *new = NULL;
    struct err e = ERR_INIT;
    bool is_quiet;

    s->backend = NULL; /* nobody may wake the old one now */
    pthread_mutex_unlock(&s->lock);
    is_quiet = broken->close(old);
    if (is_quiet && broken != &backend_pread)
        (void)backend_pread.open(&new, &options, &e);
    pthread_mutex_lock(&s->lock);
    if (new == NULL) {
        err_set(&s->failure, ERR_IO, "%s",
                is_quiet ? "cannot start reading threads after io_uring stopped working"
                         : "the disk does not answer, and its reads cannot be stopped");
        reader_change(s, EVENT_BROKEN);
        each_flying(s, abandon_read);
        return;
    }
    s->kind = &backend_pread;
    s->backend = new;
    disks_stop(&s->disks);
    s->io_name = io_name(s);
    s->io_reason = "io_uring stopped working";
    each_flying(s, submit_read);
}

/* --- the thread --- */

static int open_backend(struct stream *s, struct err *e)
{
    const struct backend_options options = backend_options(s);
    size_t len;

    s->kind = s->first_kind;
    if (s->kind->open(&s->backend, &options, e) == 0)
        return 0;
    if (s->kind == &backend_pread)
        return -1;
    len = strlen(s->reason);
    snprintf(s->reason + len, sizeof s->reason - len, "; %.80s", e->what);
    s->kind = &backend_pread;
    return s->kind->open(&s->backend, &options, e);
}

/* Drop the pages of finished reads from the page cache.  Called without the lock. */
static void drop_pages(struct stream *s, struct read_op *const *done, int n)
{
    for (int i = 0; i < n; i++)
        if (!(done[i]->disk == READ_MIRROR ? s->source.is_mirror_direct : s->source.is_direct))
            source_drop(read_op_fd(&s->source, done[i]), done[i]->offset, done[i]->bytes);
}

/* Find reads of a copy that somebody has changed: before it was read, perhaps.  Called without
 * the lock. */
static void check_mirror(const struct stream *s, struct read_op *const *done, int n)
{
    for (int i = 0; i < n; i++)
        if (done[i]->disk == READ_MIRROR)
            done[i]->is_stale = mirror_has_changed(s->source.files[done[i]->file].mirror);
}

/*
 * Lay out the blocks whose reads are complete.  Called without the lock: nothing else uses the
 * landing, its scratch or the place of a block that is being read.
 */
static void lay_blocks(struct stream *s, struct read_op *const *done, int n)
{
    for (int i = 0; i < n; i++) {
        struct read_op *op = done[i];

        if (op->kind == READ_PINNED && op->laid != NULL && op->result >= 0 && !op->is_stale &&
            read_op_at(op) + (size_t)op->result >= op->need)
            op->fits = s->lay(op->laid, op->n_row, op->dst + op->lead, op->place,
                              (size_t)op->place_bytes,
                              s->landing.base + s->landing.reserved - s->scratch_bytes);
    }
}

static void register_ring(struct stream *s)
{
    const struct backend_options options = backend_options(s);

    if (s->backend != NULL && s->kind->set_buffers != NULL)
        s->kind->set_buffers(s->backend, options.buffers);
    s->ring_moved = false;
    pthread_cond_signal(&s->news);
}

/* Are there enough reads in flight to keep the disk busy? */
static bool is_busy(const struct stream *s)
{
    uint32_t most = s->n_slot > 0 ? slot_depth(s) : s->depth;

    return 2 * (s->n_flying + s->fetches.n_flying) >= most;
}

/* Start every read that may start, then wait until one is done or somebody wakes the reader. */
static void reader_round(struct stream *s)
{
    struct read_op *done[DONE_MAX];
    uint64_t from_ns;
    bool was_busy;
    int n;

    if (s->ring_moved)
        register_ring(s);
    start_reads(s);
    if (s->backend == NULL) {
        pthread_cond_wait(&s->wakeup, &s->lock);
        return;
    }
    s->is_waiting = true;
    was_busy = is_busy(s);
    from_ns = clock_ns();
    pthread_mutex_unlock(&s->lock);
    n = s->kind->wait(s->backend, done, DONE_MAX, true);
    if (was_busy)
        counter_add(&s->telemetry->busy_ns, clock_ns() - from_ns);
    drop_pages(s, done, n);
    check_mirror(s, done, n);
    lay_blocks(s, done, n);
    pthread_mutex_lock(&s->lock);
    s->is_waiting = false;
    for (int i = 0; i < n; i++)
        handle_result(s, done[i]);
    if (n < 0)
        fall_back(s);
    pthread_cond_signal(&s->news);
}

void *reader_main(void *arg)
{
    struct stream *s = arg;
    struct err e = ERR_INIT;

    pthread_mutex_lock(&s->lock);
    if (open_backend(s, &e) == 0) {
        reader_change(s, EVENT_OPENED);
    } else {
        s->failure = e;
        reader_change(s, EVENT_BROKEN);
    }
    s->io_name = io_name(s);
    s->io_reason = s->reason;
    pthread_cond_signal(&s->news);
    while (s->state != READER_QUITTING || s->n_flying > 0 || s->lookup.n_flying > 0 ||
           s->fetches.n_flying > 0)
        reader_round(s);
    pthread_mutex_unlock(&s->lock);
    if (s->backend != NULL)
        (void)s->kind->close(s->backend);
    return NULL;
}
