#include "config.h"

#include "engine/session/session_head.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/greatest.h"
#include "engine/draft/depth.h"
#include "engine/kv/recurrent.h"
#include "engine/session/options.h"
#include "engine/session/session_internal.h"

#define HEAD_CHUNK 16 /* rows that are read together */

/* Hidden rows besides those of a chunk: the one before it, and of as many rows of logits. */
#define SPARE_ROWS (1 + DRAFT_MOST + 1)

struct head {
    struct mw_model *m;
    struct model_head *loaded; /* whose small weights are used; NULL: none */
    struct model_desc *desc;
    struct telemetry *telemetry;
    struct stream *stream;
    struct expert_cache *experts;
    struct arena activations, rows, logits, hidden_rows;
    struct kept_rows no_rows;
    struct forward *forward;
    struct kv *kv; /* NULL: it reads those of the trunk */
    /* The trunk's hidden rows: [0] of the token before `from`, then of n_row tokens. */
    float *hidden;
    size_t n_value; /* of such a row */
    uint32_t from, n_row;
    bool has_failed;
    struct err failure; /* then */
    uint32_t base;  /* position of the first row in kv */
    float *own;     /* the head's own hidden row */
    unsigned char *copy; /* of the state of index keys, during a draft */
    size_t copy_bytes;
    uint64_t counted_bytes, counted_reads; /* that were added to the session's */
    uint64_t fixed_bytes; /* buffers and tables, in use from the start */
};

static uint64_t floats(uint64_t n)
{
    return arena_size(n * sizeof(float));
}

uint64_t head_col_bytes(const struct mw_model *m)
{
    return desc_n_residual(m->desc) * sizeof(float);
}

uint64_t head_fixed_bytes(const struct mw_model *m, const struct mw_options *o,
                          const struct forward_bytes *bytes, const struct stream_shape *shape)
{
    const struct model_head *h = model_head_of(m, o);

    return bytes->act_fixed + HEAD_CHUNK * bytes->act_col + bytes->rows_fixed +
           HEAD_CHUNK * bytes->rows_col + bytes->lookup + forward_logit_bytes(h->desc, 1) +
           floats(h->desc->n_hidden) + (SPARE_ROWS + o->n_logit_row) * head_col_bytes(m) +
           arena_size(1) + stream_overhead_bytes(h->n_span, shape->n_block, h->catalogue->n_file) +
           desc_resident_bytes(h->desc) + bytes->experts.fixed_bytes + sizeof(struct telemetry) +
           recurrent_bytes(&h->desc->recurrent) * 2;
}

/* --- opening --- */

static int open_stream(struct head *h, struct mw_session *s, struct err *e)
{
    const struct mw_options *o = &s->settled.o;
    const struct model_head *m = model_head_of(s->m, o);
    const struct plan *p = &s->plan;
    struct mw_limits limits = limits_of(s->m);
    struct forward_bytes bytes;
    struct stream_shape shape;
    struct stream_options so = {
        .io = options_stream_io(o->io),
        .mmap_drop = o->mmap_drop,
        .no_uring = o->no_uring,
        .bytes_s = o->disk_rate,
        .cancel = s->cancel,
        .n_slot = p->n_head_slot,
        .pinned_bytes = p->head_pinned_bytes,
        .direct_bytes_s = limits.direct_bytes_s,
        .buffered_bytes_s = limits.buffered_bytes_s,
    };

    forward_bytes(h->desc, o->n_thread, false, &bytes);
    so.lookup_bytes = bytes.lookup;
    shape_make(&shape, m->spans, m->n_span, options_block(o));
    if (stream_open(&h->stream, m->catalogue, m->spans, m->n_span, &shape, &so, h->telemetry, e) !=
        0)
        return -1;
    h->fixed_bytes = head_fixed_bytes(s->m, o, &bytes, &shape);
    return experts_open(&h->experts, h->desc, h->stream,
                        p->n_head_expert * bytes.experts.slot_bytes, h->telemetry, e);
}

static int open_kv(struct head *h, struct mw_session *s, struct err *e)
{
    const struct mw_options *o = &s->settled.o;
    struct recurrent *state;

    if (h->desc->reads_trunk_kv)
        return 0;
    if (kv_new(&h->kv, h->desc->kv_specs, h->desc->n_kv, options_kv_type(o->kv_k),
               options_kv_type(o->kv_v), o->n_ctx, 0, 0, e) != 0)
        return -1;
    kv_touch(h->kv);
    if (recurrent_bytes(&h->desc->recurrent) == 0)
        return 0;
    if (recurrent_new(&state, &h->desc->recurrent, e) != 0)
        return -1;
    kv_own_recurrent(h->kv, state);
    h->copy_bytes = (size_t)kv_copy_bytes(h->kv);
    h->copy = malloc(h->copy_bytes);
    return h->copy != NULL ? 0 : err_memory(e, "a copy of index keys");
}

static int open_buffers(struct head *h, struct mw_session *s, struct err *e)
{
    const struct mw_options *o = &s->settled.o;
    uint64_t n_row = SPARE_ROWS + o->n_logit_row +
                     (h->desc->reads_trunk_kv ? 0 : (uint64_t)s->plan.chunk);
    struct forward_bytes bytes;
    struct forward_parts parts = {
        .desc = h->desc,
        .kernels = s->kernels,
        .pool = s->pool,
        .stream = h->stream,
        .experts = h->experts,
        .kv = h->kv != NULL ? h->kv : s->kv,
        .telemetry = h->telemetry,
        .activations = &h->activations,
        .rows = &h->rows,
        .logits = &h->logits,
        /* An assistant's table is the trunk's. */
        .kept = h->desc->reads_trunk_kv ? &s->kept : &h->no_rows,
        .chunk = HEAD_CHUNK,
        .n_logit_row = 1,
        .n_ctx = o->n_ctx,
        .exact = o->exact,
        .cancel = s->cancel,
    };

    forward_bytes(h->desc, o->n_thread, false, &bytes);
    if (arena_map(&h->activations, "drafter", bytes.act_fixed + HEAD_CHUNK * bytes.act_col, false,
                  e) != 0 ||
        arena_map(&h->rows, "drafter", bytes.rows_fixed + HEAD_CHUNK * bytes.rows_col, false, e) !=
            0 ||
        arena_map(&h->logits, "drafter", forward_logit_bytes(h->desc, 1), false, e) != 0 ||
        arena_map(&h->hidden_rows, "drafter",
                  floats(n_row * h->n_value) + floats(h->desc->n_hidden), false, e) != 0 ||
        forward_new(&h->forward, &parts, e) != 0)
        return -1;
    h->hidden = arena_take(&h->hidden_rows, n_row * h->n_value * sizeof(float), e);
    h->own = arena_take(&h->hidden_rows, h->desc->n_hidden * sizeof(float), e);
    if (h->hidden == NULL || h->own == NULL)
        return -1;
    forward_set_hidden(h->forward, h->own, false);
    return 0;
}

int head_open(struct head **out, struct mw_session *s, struct err *e)
{
    struct model_head *of = model_head_of(s->m, &s->settled.o);
    uint64_t start = clock_ns();
    struct head *h = calloc(1, sizeof *h);

    *out = NULL;
    if (h == NULL)
        return err_memory(e, "the draft head");
    h->m = s->m;
    h->desc = of->desc;
    h->n_value = desc_n_residual(s->m->desc);
    h->telemetry = calloc(1, sizeof *h->telemetry);
    if (h->telemetry == NULL)
        err_memory(e, "the counters");
    if (h->telemetry != NULL && model_head_load(s->m, of, NULL, e) == 0)
        h->loaded = of;
    if (h->loaded == NULL || open_stream(h, s, e) != 0 || open_kv(h, s, e) != 0 ||
        open_buffers(h, s, e) != 0) {
        head_close(h);
        return -1;
    }
    arena_touch(&h->activations);
    arena_touch(&h->rows);
    arena_touch(&h->logits);
    arena_touch(&h->hidden_rows);
    forward_set_hidden(s->work->forward, h->hidden + h->n_value, !h->desc->reads_trunk_kv);
    s->drafts.open_s = (double)(clock_ns() - start) / 1e9;
    *out = h;
    return 0;
}

void head_close(struct head *h)
{
    if (h == NULL)
        return;
    forward_free(h->forward);
    kv_free(h->kv);
    expert_cache_close(h->experts);
    stream_close(h->stream);
    arena_unmap(&h->activations);
    arena_unmap(&h->rows);
    arena_unmap(&h->logits);
    arena_unmap(&h->hidden_rows);
    if (h->loaded != NULL)
        model_head_unload(h->m, h->loaded);
    free(h->copy);
    free(h->telemetry);
    free(h);
}

uint64_t head_used_bytes(const struct head *h)
{
    return h->fixed_bytes + counter_get(&h->telemetry->pinned_held) +
           (h->kv != NULL ? kv_page_bytes(h->kv) : 0) +
           (h->experts != NULL ? expert_cache_charged(h->experts) : 0);
}

bool head_is_ready(const struct head *h)
{
    return h != NULL && !h->has_failed;
}

void head_give_up(struct mw_session *s, const struct err *failure)
{
    s->head->has_failed = true;
    s->head->failure = s->drafts.lost = *failure;
}

/* Run the head, and add its reads to those of the session. */
static int run_head(struct mw_session *s, const uint32_t *ids, uint32_t n, const float *hidden,
                    enum want want, struct err *e)
{
    struct head *h = s->head;
    const struct telemetry *t = h->telemetry;
    uint64_t bytes, reads;
    int rc;

    forward_read_hidden(h->forward, hidden);
    rc = forward_run(h->forward, ids, n, want, false, e);
    bytes = counter_get(&t->bytes_read);
    reads = counter_get(&t->reads);
    counter_add(&s->telemetry->head_bytes_read, bytes - h->counted_bytes);
    counter_add(&s->telemetry->head_reads, reads - h->counted_reads);
    h->counted_bytes = bytes;
    h->counted_reads = reads;
    return rc;
}

/* --- rows of the trunk's tokens --- */

/* Returns the trunk's hidden row of a position; NULL: it is not known. */
static float *hidden_of(struct head *h, uint32_t pos)
{
    if (pos + (h->kv != NULL) < h->from || pos >= h->from + h->n_row)
        return NULL;
    return h->hidden + (size_t)(pos + 1 - h->from) * h->n_value;
}

static void forget_rows(struct head *h, uint32_t base)
{
    (void)kv_rewind(h->kv, 0);
    h->base = base;
}

/* Make kv hold no more than the rows of the first n positions. */
static void cut_rows(struct head *h, uint32_t n)
{
    if (h->base + kv_tokens(h->kv) <= n)
        return;
    if (n < h->base || !kv_rewind(h->kv, n - h->base))
        forget_rows(h, n);
}

/* Read the rows of all positions that the trunk holds. */
static int catch_up(struct mw_session *s, struct err *e)
{
    struct head *h = s->head;
    uint32_t held = mw_session_tokens(s), next;

    cut_rows(h, held);
    next = h->base + kv_tokens(h->kv);
    if (next < held && (h->n_row == 0 || next < h->from)) {
        next = h->n_row > 0 && h->from < held ? h->from : held;
        forget_rows(h, next);
    }
    while (next < held) {
        uint32_t n = held - next < HEAD_CHUNK ? held - next : HEAD_CHUNK;

        if (run_head(s, s->tokens.id + next, n,
                     h->hidden + (size_t)(next - h->from) * h->n_value, WANT_NONE, e) != 0)
            return -1;
        next += n;
    }
    return 0;
}

static bool has_rows(const struct head *h)
{
    return h != NULL && h->kv != NULL && !h->has_failed;
}

int head_follow(struct mw_session *s, struct err *e)
{
    struct err failure = ERR_INIT;

    if (!has_rows(s->head) || catch_up(s, &failure) == 0)
        return 0;
    if (failure.code != ERR_CANCELLED) {
        head_give_up(s, &failure);
        return 0;
    }
    *e = failure;
    return -1;
}

int head_before_pass(struct mw_session *s, struct err *e)
{
    struct head *h = s->head;
    uint32_t held = kv_tokens(s->kv);
    const float *before;

    if (!has_rows(h))
        return 0;
    if (s->drafter == NULL && head_follow(s, e) != 0)
        return -1;
    before = held > 0 ? hidden_of(h, held - 1) : NULL;
    if (before != NULL)
        memmove(h->hidden, before, h->n_value * sizeof *h->hidden);
    else /* of the first token, and after a rewind */
        memset(h->hidden, 0, h->n_value * sizeof *h->hidden);
    h->from = held;
    h->n_row = 0;
    return 0;
}

void head_after_pass(struct mw_session *s, uint32_t held, uint32_t n, enum want want)
{
    struct head *h = s->head;

    if (h == NULL)
        return;
    h->from = held;
    h->n_row = n;
    if (h->kv == NULL && want != WANT_ALL) {
        h->from = held + n - 1;
        h->n_row = want == WANT_LAST;
    }
}

void head_forget(struct head *h)
{
    if (h == NULL)
        return;
    h->from = h->n_row = 0;
    if (h->kv != NULL)
        forget_rows(h, 0);
}

/* --- drafting --- */

struct cursor {
    unsigned char *at, *end;
};

/* Over the copy, or over nothing. */
static struct cursor cursor_of(const struct head *h)
{
    size_t n = h->copy != NULL ? h->copy_bytes : 0;

    return (struct cursor){ h->copy, n > 0 ? h->copy + n : h->copy };
}

static int save_bytes(void *ctx, void *bytes, size_t n, struct err *e)
{
    struct cursor *c = ctx;

    if (n > (size_t)(c->end - c->at))
        return err_memory(e, "a copy of index keys");
    memcpy(c->at, bytes, n);
    c->at += n;
    return 0;
}

static int load_bytes(void *ctx, void *bytes, size_t n, struct err *e)
{
    struct cursor *c = ctx;

    if (n > (size_t)(c->end - c->at))
        return err_memory(e, "a copy of index keys");
    memcpy(bytes, c->at, n);
    c->at += n;
    return 0;
}

/* Take back the rows of drafted tokens: n rows stay. */
static int take_back(struct head *h, uint32_t n, struct err *e)
{
    struct cursor c = cursor_of(h);

    if (h->copy != NULL)
        return kv_copy_restore(h->kv, n, load_bytes, &c, e);
    kv_take_back(h->kv, kv_tokens(h->kv) - n);
    return 0;
}

static int draft_rows(struct mw_session *s, uint32_t id, uint32_t n, const float *hidden,
                      uint32_t *out, const struct draft_choose *choose, mw_row_fn *row,
                      void *ctx, struct err *e)
{
    struct head *h = s->head;
    float *logits;
    uint32_t pos = mw_session_tokens(s), n_vocab = h->desc->n_vocab;

    for (uint32_t i = 0; i < n; i++) {
        if (run_head(s, &id, 1, hidden, WANT_LAST, e) != 0)
            return -1;
        logits = forward_logits(h->forward);
        if (row != NULL && row(ctx, pos + i, logits, e) != 0)
            return -1;
        id = choose != NULL ? choose->next(choose->ctx, logits, s->tokens.id, pos + 1 + i)
                            : greatest_of(logits, n_vocab);
        out[i] = id;
        hidden = h->own;
    }
    return 0;
}

int head_draft(struct mw_session *s, uint32_t id, uint32_t n, uint32_t *out,
               const struct draft_choose *choose, mw_row_fn *row, void *ctx, struct err *e)
{
    struct head *h = s->head;
    struct cursor c = cursor_of(h);
    uint32_t held = mw_session_tokens(s), n_row;
    const float *hidden;
    struct err ignored = ERR_INIT;
    int rc;

    if (h->has_failed) {
        *e = h->failure;
        return -1;
    }
    if (held == 0 || n == 0)
        return 0;
    hidden = hidden_of(h, held - 1);
    if (h->kv == NULL) {
        if (hidden == NULL)
            return 0;
        return draft_rows(s, id, n, hidden, out, choose, row, ctx, e) == 0 ? (int)n : -1;
    }
    if (catch_up(s, e) != 0)
        return -1;
    n_row = kv_tokens(h->kv);
    if (n_row == 0)
        h->base = held;
    if (hidden == NULL || h->base + n_row != held)
        return 0;
    if (n_row + n > s->settled.o.n_ctx)
        n = s->settled.o.n_ctx - n_row;
    if (h->copy != NULL && kv_copy_save(h->kv, save_bytes, &c, e) != 0)
        return -1;
    rc = draft_rows(s, id, n, hidden, out, choose, row, ctx, e);
    if (take_back(h, n_row, rc == 0 ? e : &ignored) != 0)
        rc = -1;
    return rc == 0 ? (int)n : -1;
}

int mw_session_draft(struct mw_session *s, uint32_t n, mw_row_fn *row, void *ctx, struct err *e)
{
    uint32_t drafts[DRAFT_MOST], id;
    int got;

    assert(n <= DRAFT_MOST);
    if (s->head == NULL)
        return err_set(e, ERR_ARGUMENT, "the session has no draft head");
    if (!s->has_logits)
        return err_set(e, ERR_ARGUMENT, "the session has no logits of its last token");
    id = greatest_of(mw_session_logits(s), s->m->desc->n_vocab);
    got = head_draft(s, id, n, drafts, NULL, row, ctx, e);
    if (got >= 0 && (uint32_t)got < n)
        return err_set(e, ERR_CONTEXT, "%u drafts do not fit the context of %u tokens", n,
                       s->settled.o.n_ctx);
    return got < 0 ? -1 : 0;
}
