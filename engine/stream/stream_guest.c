/*
 * A guest: the weights of a second model, all in memory, read by the reader of the first.
 *
 * The host has opened the files of both, those of the guest after its own.  Blocks come through
 * the queue of fetches, once; lookups through that of lookups.  A guest has no thread and no
 * ring, and its passes wait for nothing but lookups.
 */
#include "config.h"

#include <assert.h>
#include <stdlib.h>

#include "engine/stream/stream_internal.h"

/* A fetch of the blocks from *at on, as many as it has ranges for. */
static void next_blocks(struct stream *s, struct schedule_at *at, struct stream_fetch *f)
{
    *f = (struct stream_fetch){ .is_guest = true };
    for (; at->block < s->schedule.n_block && f->n_range < FETCH_RANGES;
         schedule_next(&s->schedule, at)) {
        struct schedule_block b;

        schedule_get(&s->schedule, at, &b);
        f->range[f->n_range++] =
            (struct stream_range){ .file = s->first_file + b.file,
                                   .offset = b.read_offset,
                                   .bytes = (size_t)b.read_bytes,
                                   .need = (size_t)(b.offset + b.bytes - b.read_offset),
                                   .dst = pinned_place(&s->pinned, at->block) };
    }
}

static int load(struct stream *s, struct err *e)
{
    struct schedule_at at = schedule_begin(&s->schedule);
    struct stream_fetch fetch, *all = &fetch;
    uint64_t stall_ns = 0;

    while (at.block < s->schedule.n_block) {
        next_blocks(s, &at, &fetch);
        stream_fetch_start(s->host, &fetch);
        if (stream_fetch_wait(s->host, &all, 1, &stall_ns, e) < 0) {
            stream_fetch_drain(s->host, false);
            return -1;
        }
    }
    for (uint32_t i = 0; i < s->schedule.n_block; i++)
        pinned_mark(&s->pinned, i, BLOCK_HELD);
    return 0;
}

int stream_open_guest(struct stream **out, struct stream *host, const struct catalogue *c,
                      const struct stream_span *spans, uint32_t n_span,
                      const struct stream_shape *shape, struct telemetry *t, struct err *e)
{
    struct stream *s = calloc(1, sizeof *s);

    *out = NULL;
    if (s == NULL)
        return err_memory(e, "the stream");
    assert(!host->is_mapped && host->source.n_file == host->catalogue->n_file + c->n_file);
    s->host = host;
    s->first_file = host->catalogue->n_file;
    s->cancel = host->cancel;
    s->catalogue = c;
    s->telemetry = t;
    s->slot_bytes = shape->slot_bytes;
    if (stream_open_tables(s, spans, n_span, shape->target, e) != 0 ||
        pinned_open(&s->pinned, s->pinned_table, &s->schedule, &host->populator, e) != 0 ||
        pinned_set(&s->pinned, s->pinned.area.reserved, e) != 0 || load(s, e) != 0) {
        stream_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

void stream_close_guest(struct stream *s)
{
    pinned_close(&s->pinned);
    free(s->pinned_table);
    free(s->spans);
    free(s);
}

uint64_t stream_guest_bytes(const struct stream_span *spans, uint32_t n_span,
                            const struct stream_shape *shape)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < n_span; i++)
        bytes += spans[i].row_bytes * spans[i].n_row;
    /* Each block is rounded out at both ends. */
    return bytes + 2 * SCHEDULE_ALIGN * shape->n_block + sizeof(struct stream) +
           schedule_bytes(n_span) + pinned_table_bytes(shape->n_block);
}
