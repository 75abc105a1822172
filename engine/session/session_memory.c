/*
 * The memory of weights.
 *
 *     budget:  | fixed | keys and values: used | unused  | pinned weights, experts |
 *                                               borrowed by pinned weights <---
 *
 * Pinned weights borrow the part of the KV item that is not used yet, and return it block by
 * block before pages are written.
 */
#include "config.h"

#include "engine/session/session_internal.h"

/* Keys and values, and index keys, take memory as positions are written. */
static uint64_t kv_row_of(const struct plan *p)
{
    return p->row[MW_ROW_KV_GLOBAL] + p->row[MW_ROW_KV_INDEX];
}

uint64_t session_left_over(const struct plan *p, uint64_t kv_used)
{
    uint64_t kv_row = kv_row_of(p);

    return (kv_row > kv_used ? kv_row - kv_used : 0) + (p->budget_bytes - p->sum_bytes);
}

uint64_t session_build_bytes(const struct mw_model *m)
{
    return m->has_vocab && m->tokenizer == NULL ? tokenizer_build_bytes(&m->vocab) : 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void room_less(struct room *r, uint64_t bytes, size_t slot_bytes)
{
    if (bytes == 0)
        return;
    if (r->n_slot == 0) { /* blocks that are not pinned need a ring */
        r->n_slot = 2;
        bytes += whole_huge_pages(2 * (uint64_t)slot_bytes);
    }
    r->expert_bytes = less(r->expert_bytes, less(bytes, r->pinned_bytes));
    r->pinned_bytes = less(r->pinned_bytes, bytes);
}

struct room session_room(const struct mw_session *s, const struct plan *p, uint64_t kv_used)
{
    uint64_t more = less(session_left_over(p, kv_used), session_build_bytes(s->m));
    struct room r = { .n_slot = p->n_slot,
                      .pinned_bytes = p->pinned_bytes,
                      .expert_bytes = p->n_expert * s->weights.expert_sizes.slot_bytes };

    /* If all weights are pinned already, experts get this part. */
    if (p->n_expert > 0 && p->streamed_share == 0)
        r.expert_bytes += more;
    else
        r.pinned_bytes += more;
    room_less(&r, less(kv_used, kv_row_of(p) + (p->budget_bytes - p->sum_bytes)),
              s->weights.shape.slot_bytes);
    return r;
}

static int set_experts(struct mw_session *s, uint64_t bytes, struct err *e)
{
    struct room *now = &s->weights.room;

    if (s->weights.cache == NULL || bytes == now->expert_bytes)
        return 0;
    now->expert_bytes = 0; /* after an error the next pass tries again */
    if (expert_cache_set_memory(s->weights.cache, bytes, e) != 0)
        return -1;
    now->expert_bytes = bytes;
    return 0;
}

static int set_stream(struct mw_session *s, const struct room *to, struct err *e)
{
    struct weights *w = &s->weights;

    if (to->pinned_bytes == w->room.pinned_bytes && to->n_slot == w->room.n_slot &&
        !w->has_failed)
        return 0;
    w->has_failed = true;
    if (stream_set_memory(w->stream, to->n_slot, to->pinned_bytes, e) != 0)
        return -1;
    w->has_failed = false;
    w->room.pinned_bytes = to->pinned_bytes;
    w->room.n_slot = to->n_slot;
    return 0;
}

int session_set_room(struct mw_session *s, const struct room *to, struct err *e)
{
    if (to->expert_bytes < s->weights.room.expert_bytes &&
        set_experts(s, to->expert_bytes, e) != 0)
        return -1;
    return set_stream(s, to, e) != 0 ? -1 : set_experts(s, to->expert_bytes, e);
}

int settle_memory(struct mw_session *s, uint32_t n, struct err *e)
{
    bool has_breathed = session_breathe(s);
    struct room to;

    /* Pages that leave memory go first, those that come back come last. */
    if (session_kv_disk(s, s->kv, &s->settled.o, &s->plan, e) != 0 ||
        kv_disk_out(s->kv, e) != 0)
        return -1;
    s->breath.kv_bytes = kv_page_bytes(s->kv) + kv_grow_bytes(s->kv, n);
    to = session_room(s, &s->plan, s->breath.kv_bytes);
    if (has_breathed && !s->breath.is_less) /* the weights grow under the larger budget */
        publish_budget(s, &s->plan, s->work != NULL);
    if (session_set_room(s, &to, e) != 0)
        return -1;
    if (kv_disk_in(s->kv, e) != 0) {
        session_forget_tokens(s);
        return -1;
    }
    if (!s->plan.has_kv_disk)
        kv_disk_close(s->kv);
    stream_set_kv_file(s->weights.stream, kv_disk_fd(s->kv));
    s->m->kv_file_bytes = kv_disk_file_bytes(s->kv);
    s->breath.has_experts = false;
    if (has_breathed)
        session_breathed(s);
    return 0;
}
