#include "config.h"

#include "engine/stream/fetch.h"

#include <assert.h>

#include "engine/base/units.h"
#include "engine/stream/schedule.h"

void fetch_add(struct fetch_queue *q, struct stream_fetch *f)
{
    assert(f->n_range > 0);
    f->state = FETCH_READING;
    f->range_now = 0;
    f->at = 0;
    f->n_flying = 0;
    f->has_failed = false;
    f->next = NULL;
    if (q->first == NULL)
        q->first = f;
    else
        q->last->next = f;
    q->last = f;
}

static bool has_begun(const struct stream_fetch *f)
{
    return f->range_now == f->n_range;
}

/* Take f out of the queue: all its pieces have begun, or no more shall begin. */
static void leave(struct fetch_queue *q, struct stream_fetch *f)
{
    struct stream_fetch *before = NULL;

    for (struct stream_fetch *i = q->first; i != NULL; before = i, i = i->next) {
        if (i != f)
            continue;
        if (before == NULL)
            q->first = f->next;
        else
            before->next = f->next;
        if (q->last == f)
            q->last = before;
        break;
    }
    f->range_now = f->n_range;
}

/* The next piece of a range: all are about as large, so none is a small rest. */
static size_t piece_of(const struct stream_range *r, size_t at)
{
    size_t n = (r->bytes + FETCH_PIECE / 2) / FETCH_PIECE;
    size_t piece = n > 1 ? align_up(r->bytes / n, SCHEDULE_ALIGN) : r->bytes;

    return r->bytes - at < piece ? r->bytes - at : piece;
}

static uint32_t free_op(const struct fetch_queue *q)
{
    uint32_t i = 0;

    while (q->ops[i].is_flying)
        i++;
    return i;
}

static bool is_deep(const struct fetch_queue *q)
{
    return q->n_flying == FETCH_DEPTH ||
           (q->n_flying >= FETCH_LEAST && q->flying_bytes >= FETCH_BYTES);
}

struct read_op *fetch_next(struct fetch_queue *q)
{
    struct stream_fetch *f = q->first;
    const struct stream_range *r;
    uint32_t i;
    size_t n;

    if (f == NULL || is_deep(q))
        return NULL;
    i = free_op(q);
    r = &f->range[f->range_now];
    n = piece_of(r, f->at);
    q->ops[i] = (struct read_op){
        .kind = READ_FETCH,
        .target = i,
        .layer = f->layer,
        .file = r->file,
        .is_urgent = true,
        .offset = r->offset + f->at,
        .bytes = n,
        .need = r->need - f->at < n ? r->need - f->at : n,
        .dst = r->dst + f->at,
    };
    q->fetch_of[i] = f;
    q->n_flying++;
    q->flying_bytes += n;
    f->n_flying++;
    f->at += n;
    if (f->at >= r->need) {
        f->at = 0;
        f->range_now++;
    }
    if (has_begun(f))
        leave(q, f);
    return &q->ops[i];
}

static void settle(struct stream_fetch *f)
{
    if (f->n_flying == 0 && has_begun(f))
        f->state = f->has_failed ? FETCH_FAILED : FETCH_DONE;
}

void fetch_finish(struct fetch_queue *q, const struct read_op *op, bool is_read)
{
    struct stream_fetch *f = q->fetch_of[op->target];

    assert(f->n_flying > 0 && q->n_flying > 0);
    f->n_flying--;
    q->n_flying--;
    q->flying_bytes -= op->bytes;
    if (!is_read) {
        f->has_failed = true;
        if (!has_begun(f))
            leave(q, f);
    }
    settle(f);
}

void fetch_drop(struct fetch_queue *q, bool of_kv)
{
    for (struct stream_fetch *f = q->first, *next; f != NULL; f = next) {
        next = f->next;
        if (f->is_kv != of_kv)
            continue;
        f->has_failed = true;
        leave(q, f);
        settle(f);
    }
}
