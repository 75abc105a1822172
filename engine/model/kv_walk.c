/* See kv_walk.h. */
#include "config.h"

#include "engine/model/kv_walk.h"

#include <assert.h>

#include "engine/model/forward_internal.h"

/* The layer's pages on the disk. */
static void pages_of(const struct forward *f, uint32_t l, uint32_t *from, uint32_t *to)
{
    const struct layer_desc *layer = &f->p.desc->layers[l];

    *from = *to = 0;
    if (!layer->attends)
        return;
    kv_disk_positions(f->p.kv, layer->kv_layer, from, to);
    *from /= KV_PAGE;
    *to /= KV_PAGE;
}

/* Go on to the next page that is to be read; false: there is none in this pass. */
static bool next_page(const struct forward *f, struct kv_walk *w)
{
    uint32_t from, to;

    for (; w->layer < w->n_layer; w->layer++, w->page = 0) {
        pages_of(f, w->layer, &from, &to);
        if (w->page < from)
            w->page = from;
        if (w->page < to)
            return true;
    }
    return false;
}

static void start_pages(struct forward *f)
{
    struct kv_walk *w = &f->walk;

    while (w->started - w->given < w->n_slot && next_page(f, w)) {
        uint32_t slot = (uint32_t)(w->started % w->n_slot);
        struct kv_disk_range r =
            kv_disk_range(f->p.kv, f->p.desc->layers[w->layer].kv_layer, w->page, slot);

        w->fetch[slot] = (struct stream_fetch){
            .range = { { stream_kv_file(f->p.stream), r.offset, r.bytes, r.bytes, r.dst } },
            .n_range = 1,
            .layer = w->layer,
            .is_kv = true,
        };
        stream_fetch_start(f->p.stream, &w->fetch[slot]);
        w->started++;
        w->page++;
    }
}

void kv_walk_begin(struct forward *f, uint32_t n_layer)
{
    uint32_t n_slot = kv_disk_slots(f->p.kv);

    assert(n_slot <= KV_WALK_SLOTS);
    f->walk.layer = f->walk.page = 0;
    f->walk.n_layer = n_slot > 0 ? n_layer : 0;
    f->walk.n_slot = n_slot;
    f->walk.started = f->walk.given = 0;
    start_pages(f);
}

void kv_walk_end(struct forward *f)
{
    if (f->walk.started > f->walk.given)
        stream_fetch_drain(f->p.stream, true);
    f->walk.started = f->walk.given = 0;
}

void kv_walk_layer(struct forward *f, const struct layer_desc *layer)
{
    if (f->walk.n_slot == 0)
        return;
    kv_disk_positions(f->p.kv, layer->kv_layer, &f->walk.from, &f->walk.to);
    f->walk.first = f->walk.given;
    kv_disk_view(f->p.kv, (uint32_t)(f->walk.first % f->walk.n_slot));
}

/* Whether a page has arrived, of those that were started. */
static bool is_here(struct forward *f, uint64_t i)
{
    return i < f->walk.started &&
           stream_fetch_is_done(f->p.stream, &f->walk.fetch[i % f->walk.n_slot]);
}

static int wait_for(struct forward *f, uint64_t i, struct err *e)
{
    struct stream_fetch *fetch = &f->walk.fetch[i % f->walk.n_slot];

    assert(i >= f->walk.given && i < f->walk.started);
    return stream_fetch_wait(f->p.stream, &fetch, 1, &f->walk.stall_ns, e) < 0 ? -1 : 0;
}

/* The index of the page after those that positions before `end` need. */
static uint64_t pages_before(const struct kv_walk *w, uint32_t end)
{
    if (end > w->to)
        end = w->to;
    return end > w->from ? w->first + (end - w->from + KV_PAGE - 1) / KV_PAGE : w->first;
}

int kv_walk_round(struct forward *f, uint32_t pos, uint32_t step, uint32_t n, uint32_t *end,
                  struct err *e)
{
    struct kv_walk *w = &f->walk;
    uint64_t stall = w->stall_ns, have;

    *end = n;
    if (w->n_slot == 0 || w->from >= w->to || pos >= w->to)
        return 0;
    if (pos + step <= w->from) {
        *end = w->from / step * step < n ? w->from / step * step : n;
        return 0;
    }
    *end = pos + step;
    for (have = w->given; have < pages_before(w, *end); have++)
        if (wait_for(f, have, e) != 0)
            return -1;
    f->stall_ns += w->stall_ns - stall;
    while (*end < n && *end < w->to) { /* as many more as are there */
        while (have < pages_before(w, *end + step) && is_here(f, have))
            have++;
        if (have < pages_before(w, *end + step))
            break;
        *end += step;
    }
    if (*end > n || *end >= w->to)
        *end = n;
    return 0;
}

void kv_walk_give(struct forward *f, uint32_t end)
{
    struct kv_walk *w = &f->walk;
    uint64_t done;

    if (w->n_slot == 0 || w->from >= w->to)
        return;
    done = w->first + (end >= w->to ? (w->to - w->from) / KV_PAGE
                       : end > w->from ? (end - w->from) / KV_PAGE
                                       : 0);
    if (done <= w->given)
        return;
    w->given = done;
    start_pages(f);
}
