/* Opening and closing a stream: tables, files, memory, and the reader's thread. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/thread.h"
#include "engine/base/units.h"
#include "engine/stream/io_choice.h"
#include "engine/stream/stream_internal.h"

#define STACK_BYTES ((size_t)256 << 10)

/* The touched part of the stacks, the rings shared with the kernel, registered files. */
#define FIXED_BYTES (256 * KIB)
#define FILE_BYTES  256

static int check_spans(const struct stream *s, struct err *e)
{
    for (uint32_t i = 0; i < s->schedule.n_span; i++) {
        const struct stream_span *p = &s->schedule.spans[i].span;

        assert(p->layer <= MW_MAX_LAYER && p->file < s->catalogue->n_file);
        /* The sum does not overflow: schedule_make() checked it. */
        if (p->offset + p->row_bytes * p->n_row > s->catalogue->files[p->file].size) {
            err_set(e, ERR_FORMAT, "%llu rows of %llu bytes end past the end of the file",
                    (unsigned long long)p->n_row, (unsigned long long)p->row_bytes);
            return err_at(e, s->catalogue->files[p->file].path, p->offset, NULL);
        }
    }
    return 0;
}

int stream_open_tables(struct stream *s, const struct stream_span *spans, uint32_t n_span,
                       size_t target, struct err *e)
{
    s->spans = calloc(n_span > 0 ? n_span : 1, (size_t)(schedule_bytes(1)));
    if (s->spans == NULL)
        return err_memory(e, "the schedule of %u spans", n_span);
    if (schedule_make(&s->schedule, s->spans, spans, n_span, target, e) != 0 ||
        check_spans(s, e) != 0)
        return -1;
    s->pinned_table = calloc(1, (size_t)pinned_table_bytes(s->schedule.n_block) + 1);
    if (s->pinned_table == NULL)
        return err_memory(e, "the schedule of %u blocks", s->schedule.n_block);
    return 0;
}

static int open_memory(struct stream *s, const struct stream_options *o, uint64_t landing,
                       struct err *e)
{
    uint64_t cells = o->lookup_bytes / LOOKUP_CELL_BYTES;

    assert(s->depth > 0 && s->depth <= STREAM_DEPTH_MAX);
    assert(s->slot_bytes > 0 && s->slot_bytes % SCHEDULE_ALIGN == 0);
    cells = cells < 4 ? 4 : cells > LOOKUP_CELLS ? LOOKUP_CELLS : cells;
    if (area_reserve(&s->lookup_area, "rows", lookup_bytes((uint32_t)cells), e) != 0 ||
        area_hold(&s->lookup_area, s->lookup_area.reserved, true, e) != 0)
        return -1;
    lookup_init(&s->lookup, s->lookup_area.base, (uint32_t)cells);
    if (pinned_open(&s->pinned, s->pinned_table, &s->schedule, &s->populator, e) != 0 ||
        area_reserve(&s->landing, "pinned", landing, e) != 0 ||
        stream_check_memory(s, o->n_slot, o->pinned_bytes, e) != 0 ||
        stream_set_pinned(s, o->pinned_bytes, e) != 0)
        return -1;
    if (area_reserve(&s->ring, "ring", stream_ring_bytes(s, STREAM_SLOTS_MAX), e) != 0)
        return -1;
    s->n_slot = o->n_slot;
    return area_hold(&s->ring, stream_ring_bytes(s, o->n_slot), true, e);
}

/* Returns once the reader has a backend, or has found none. */
static int start_reader(struct stream *s, struct err *e)
{
    int result = 0;

    pthread_mutex_lock(&s->lock);
    errno = thread_start(&s->thread, "reader", STACK_BYTES, reader_main, s);
    if (errno != 0) {
        result = err_sys(e, "cannot start the reading thread");
    } else {
        s->state = READER_STARTING;
        while (s->state == READER_STARTING)
            pthread_cond_wait(&s->news, &s->lock);
    }
    if (s->state == READER_DEAD) {
        *e = s->failure;
        result = -1;
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

static void count_layers(struct stream *s)
{
    struct telemetry *t = s->telemetry;

    for (uint32_t i = 0; i <= MW_MAX_LAYER; i++) {
        counter_set(&t->layer[i].bytes, 0);
        counter_set(&t->layer[i].pinned_bytes, 0);
        counter_set(&t->layer[i].read_ns, 0);
    }
    counter_set(&t->saved_bytes, 0);
    counter_set(&t->ahead_bytes, 0);
    counter_set(&t->ahead_done_bytes, 0);
    for (uint32_t i = 0; i < s->schedule.n_span; i++) {
        const struct stream_span *p = &s->schedule.spans[i].span;

        counter_add(&t->layer[p->layer].bytes, p->row_bytes * p->n_row);
    }
}

static int open_parts(struct stream *s, const struct stream_span *spans, uint32_t n_span,
                      const struct stream_shape *shape, const struct stream_options *o,
                      struct err *e)
{
    struct io_choice choice;

    if (stream_open_tables(s, spans, n_span, shape->target, e) != 0 ||
        io_choice_open(&choice, &s->source, s->catalogue, o, e) != 0)
        return -1;
    if (o->mirror != NULL && !s->is_mapped) {
        struct err why = ERR_INIT;

        disks_open(&s->disks, s->telemetry);
        if (source_open_mirror(&s->source, o->mirror, s->catalogue->n_file, &why) != 0)
            disks_drop(&s->disks, &why); /* it was there before: the model is enough */
    }
    count_layers(s);
    snprintf(s->reason, sizeof s->reason, "%s", choice.reason);
    s->io_name = choice.name;
    s->io_reason = s->reason;
    if (s->is_mapped)
        return mapping_open(&s->mapping, &s->source, e);
    if (open_memory(s, o, stream_landing_bytes(spans, n_span, shape), e) != 0)
        return -1;
    reader_load(s);
    reader_restart(s);
    return start_reader(s, e);
}

/* A pass that waits for a block looks at the token again. */
static void wake(void *ctx)
{
    struct stream *s = ctx;

    pthread_mutex_lock(&s->lock);
    pthread_cond_signal(&s->news);
    pthread_mutex_unlock(&s->lock);
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
    s->slot_bytes = shape->slot_bytes;
    s->depth = shape->depth;
    s->bytes_s = options->bytes_s;
    s->mirror_bytes_s = options->mirror_bytes_s > 0 ? options->mirror_bytes_s : s->bytes_s;
    s->cancel = options->cancel;
    s->lay = options->lay;
    s->scratch_bytes = (size_t)stream_scratch_bytes(spans, n_span);
    s->first_kind = options->no_uring || s->bytes_s > 0 || s->mirror_bytes_s > 0 ||
                                backend_uring == NULL
                        ? &backend_pread
                        : backend_uring;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->news, NULL);
    pthread_cond_init(&s->wakeup, NULL);
    populator_open(&s->populator);
    if (open_parts(s, spans, n_span, shape, options, e) != 0) {
        stream_close(s);
        return -1;
    }
    cancel_wakes(s->cancel, wake, s);
    *out = s;
    return 0;
}

static void stop_reader(struct stream *s)
{
    bool has_reader;

    pthread_mutex_lock(&s->lock);
    has_reader = s->state != READER_NONE;
    if (has_reader) {
        reader_change(s, EVENT_CLOSE);
        reader_wake(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (has_reader)
        pthread_join(s->thread, NULL);
}

void stream_close(struct stream *s)
{
    if (s == NULL)
        return;
    if (s->host != NULL) {
        stream_close_guest(s);
        return;
    }
    cancel_lets_sleep(s->cancel, s);
    stop_reader(s);
    stream_drop_low(s);
    mapping_close(&s->mapping);
    if (!s->source.is_direct && (!s->is_mapped || s->drops))
        for (uint32_t i = 0; i < s->source.n_file; i++)
            source_drop(s->source.files[i].fd, 0, 0);
    source_close(&s->source);
    pinned_close(&s->pinned);
    populator_close(&s->populator);
    area_unmap(&s->ring);
    area_unmap(&s->landing);
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

struct populator *stream_populator(struct stream *s)
{
    return &s->populator;
}

bool stream_lost_mirror(struct stream *s, struct err *why)
{
    bool is_lost;

    pthread_mutex_lock(&s->lock);
    is_lost = s->disks.telemetry != NULL && !s->disks.has_mirror;
    if (is_lost)
        *why = s->disks.failure;
    pthread_mutex_unlock(&s->lock);
    return is_lost;
}

const char *stream_io_reason(const struct stream *s)
{
    return s->io_reason;
}

uint64_t stream_overhead_bytes(uint32_t n_span, uint32_t n_block, uint32_t n_file)
{
    return sizeof(struct stream) + schedule_bytes(n_span) + pinned_table_bytes(n_block) +
           (uint64_t)n_file * FILE_BYTES + FIXED_BYTES + POPULATE_BYTES;
}
