/*
 * A session: the plan made real.  Every row of the plan is mapped here, before the first
 * token; then ids go in and logits come out.
 *
 *   options -> plan -> arenas, KV store, stream, pass
 *
 * Room of the plan that the KV store does not use yet is lent to pinned weights and taken
 * back, block by block, before pages are written.  Copies of the sliding rings live in the
 * same room.
 */
#include "config.h"

#include "engine/session/session.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/arena.h"
#include "engine/kv/kv.h"
#include "engine/model/forward.h"
#include "engine/session/model_open.h"

#define MAX_COPY 16 /* remembered turns */

struct ring_copy {
    uint32_t n_token;
    unsigned char *buf;
};

/* What depends on the plan and is made anew when it changes. */
struct machinery {
    struct plan plan;
    struct arena activations, rows, logits, experts;
    struct stream *stream;
    struct forward *forward;
};

struct mw_session {
    struct mw_model *m;
    struct mw_options o; /* resolved */
    const struct kernels *kernels;
    struct pool *pool;
    struct kv *kv;
    struct machinery mach;
    struct telemetry *telemetry;
    uint32_t *ids; /* [n_ctx] held */
    struct ring_copy copies[MAX_COPY];
    uint32_t n_copy;
    uint64_t pinned_target;
    bool has_logits;
    atomic_bool cancel; /* set by any thread, taken back by who asked for the work */
    session_progress_fn *progress;
    void *progress_ctx;
};

/* --- machinery --- */

static void machinery_free(struct machinery *a)
{
    forward_free(a->forward);
    stream_close(a->stream);
    arena_unmap(&a->activations);
    arena_unmap(&a->rows);
    arena_unmap(&a->logits);
    arena_unmap(&a->experts);
    memset(a, 0, sizeof *a);
}

static uint64_t copies_bytes(const struct mw_session *s)
{
    return s->n_copy * (s->n_copy > 0 ? kv_copy_bytes(s->kv) : 0);
}

/* Pinned weights may take their own row, the KV room that is not used yet, and what the
 * plan left over; copies of rings come off it. */
static uint64_t pinned_room(const struct mw_session *s, const struct plan *p, uint64_t kv_used)
{
    uint64_t kv_row = p->row[MW_ROW_KV_GLOBAL];
    uint64_t lent = kv_row > kv_used ? kv_row - kv_used : 0;
    uint64_t room = p->pinned_bytes + lent + (p->budget_bytes - p->sum_bytes);
    uint64_t taken = copies_bytes(s);

    return room > taken ? room - taken : 0;
}

static void publish_memory(struct mw_session *s)
{
    struct telemetry *t = s->telemetry;
    const struct plan *p = &s->mach.plan;
    uint64_t pinned = stream_pinned_now(s->mach.stream);

    counter_set(&t->kv_tokens, kv_tokens(s->kv));
    counter_set(&t->kv_global_used, kv_global_bytes(s->kv));
    counter_set(&t->kv_sliding_used, kv_sliding_bytes(s->kv));
    counter_set(&t->used[MW_ROW_KV_GLOBAL], kv_global_bytes(s->kv));
    counter_set(&t->used[MW_ROW_KV_SLIDING], kv_sliding_bytes(s->kv) + copies_bytes(s));
    counter_set(&t->used[MW_ROW_PINNED], s->m->resident.used); /* the stream adds its blocks */
    counter_set(&t->lent_bytes, pinned > p->pinned_bytes ? pinned - p->pinned_bytes : 0);
    for (uint32_t l = 0; l < s->m->desc->n_layer; l++) {
        const struct layer_desc *y = &s->m->desc->layers[l];

        counter_set(&t->layer[l].kv_bytes, y->owns_kv ? kv_layer_bytes(s->kv, y->kv_layer) : 0);
    }
}

static void publish_plan(struct mw_session *s)
{
    struct telemetry *t = s->telemetry;
    const struct machinery *a = &s->mach;
    struct mw_model_info info;
    struct mw_run run = { 0 };

    mw_model_info(s->m, &info);
    snprintf(run.model, sizeof run.model, "%s", info.name);
    snprintf(run.type, sizeof run.type, "%s", info.type);
    snprintf(run.arch, sizeof run.arch, "%s", info.arch);
    run.n_layer = info.n_layer;
    run.ctx = s->o.n_ctx;
    run.budget_bytes = s->o.memory_bytes;
    snprintf(run.io, sizeof run.io, "%s", stream_io_name(a->stream));
    snprintf(run.kv_k, sizeof run.kv_k, "%s", mw_kv_name(s->o.kv_k));
    snprintf(run.kv_v, sizeof run.kv_v, "%s", mw_kv_name(s->o.kv_v));
    run.threads = (uint32_t)s->o.n_thread;
    snprintf(run.isa, sizeof run.isa, "%s", s->kernels->name);
    run.hot_bytes = info.hot_bytes;
    run.file_bytes = info.file_bytes;
    telemetry_set_run(t, &run);
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        counter_set(&t->plan[i], a->plan.row[i]);
    counter_set(&t->used[MW_ROW_PROGRAM], s->m->program_bytes);
    counter_set(&t->used[MW_ROW_ACTIVATIONS], a->activations.used);
    counter_set(&t->used[MW_ROW_LOGITS], a->logits.used);
    counter_set(&t->used[MW_ROW_ROWS], a->plan.row[MW_ROW_ROWS] - (a->rows.size - a->rows.used));
    counter_set(&t->used[MW_ROW_EXPERTS], a->experts.used);
    counter_set(&t->used[MW_ROW_RING], a->plan.row[MW_ROW_RING]);
    counter_set(&t->used[MW_ROW_TOKENIZER],
                s->m->tokenizer != NULL ? tokenizer_bytes(s->m->tokenizer) : 0);
    counter_set(&t->kv_capacity, s->o.n_ctx);
    counter_set(&t->kv_reserved, kv_reserved_bytes(s->kv));
    counter_set(&t->disk_limit, (uint64_t)s->m->disk_bytes_s);
    counter_set(&t->memory_limit, (uint64_t)s->m->memory_bytes_s);
    for (uint32_t l = 0; l <= s->m->desc->n_layer; l++)
        counter_set(&t->layer[l].kind, l < s->m->desc->n_layer ? s->m->desc->layers[l].kind
                                                               : MW_LAYER_HEAD);
    publish_memory(s);
}

static int machinery_new(struct mw_session *s, const struct mw_options *o,
                         const struct plan *plan, struct machinery *out, struct err *e)
{
    struct machinery a = { .plan = *plan };
    struct stream_options so = {
        .io = (enum stream_io)o->io,
        .mmap_drop = o->mmap_drop,
        .no_uring = o->no_uring,
        .n_slot = plan->n_slot,
        .pinned_bytes = pinned_room(s, plan, kv_global_bytes(s->kv)),
    };
    struct forward_parts parts = {
        .desc = s->m->desc,
        .kernels = s->kernels,
        .pool = s->pool,
        .kv = s->kv,
        .telemetry = s->telemetry,
        .activations = &out->activations,
        .rows = &out->rows,
        .logits = &out->logits,
        .experts = &out->experts,
        .chunk = plan->chunk,
        .n_logit_row = o->n_logit_row,
        .n_ctx = o->n_ctx,
        .exact = o->exact,
        .cancel = &s->cancel,
    };
    size_t target = stream_block_target(o->memory_bytes);
    struct forward_bytes bytes;

    forward_bytes(s->m->desc, o->exact, o->n_thread, &bytes);
    so.lookup_bytes = bytes.rows_fixed - 2 * arena_size(1);
    if (arena_map(&a.activations, "activations", plan->row[MW_ROW_ACTIVATIONS], true, e) != 0 ||
        arena_map(&a.rows, "rows", plan->chunk * bytes.rows_col + 2 * arena_size(1), true, e) !=
            0 ||
        arena_map(&a.logits, "logits", plan->row[MW_ROW_LOGITS], true, e) != 0 ||
        arena_map(&a.experts, "experts", plan->row[MW_ROW_EXPERTS], true, e) != 0)
        goto fail;
    so.slot_bytes = stream_slot_bytes(s->m->spans, s->m->n_span, target, &(uint32_t){ 0 });
    if (stream_open(&a.stream, s->m->catalogue, s->m->spans, s->m->n_span, target, &so,
                    s->telemetry, e) != 0)
        goto fail;
    *out = a;
    parts.stream = a.stream;
    if (forward_new(&out->forward, &parts, e) != 0) {
        machinery_free(out);
        return -1;
    }
    s->pinned_target = so.pinned_bytes;
    return 0;

fail:
    machinery_free(&a);
    return -1;
}

/* --- life --- */

static int choose_kernels(struct mw_session *s, struct err *e)
{
    s->kernels = s->o.isa != NULL ? kernels_by_name(s->o.isa) : kernels_best();
    if (s->kernels == NULL)
        return err_set(e, ERR_ARGUMENT, "no kernels \"%s\" for this CPU", s->o.isa);
    return 0;
}

static int make_kv(struct mw_session *s, const struct plan *plan, struct err *e)
{
    const struct model_desc *d = s->m->desc;

    return kv_new(&s->kv, d->kv_specs, d->n_kv, (enum kv_type)s->o.kv_k,
                  (enum kv_type)s->o.kv_v, s->o.n_ctx,
                  plan_sliding_slots(d->hp->n_swa, plan->chunk, s->o.n_ctx), d->hp->n_swa, e);
}

static int plan_for(struct mw_session *s, const struct mw_options *o, struct plan *plan,
                    struct err *e)
{
    struct plan_input in;

    if (plan_input_of(s->m, o, &in, e) != 0)
        return -1;
    return plan_make(&in, plan, e);
}

int mw_session_open(struct mw_session **out, struct mw_model *m, const struct mw_options *o,
                    struct err *e)
{
    struct mw_session *s = calloc(1, sizeof *s);
    struct plan plan;

    *out = NULL;
    if (s == NULL)
        return err_sys(e, "cannot allocate the session");
    s->m = m;
    s->o = *o;
    options_resolve(m, &s->o);
    s->telemetry = calloc(1, sizeof *s->telemetry);
    if (s->telemetry == NULL) {
        err_sys(e, "cannot allocate the counters");
        goto fail;
    }
    counter_set(&s->telemetry->state, MW_LOADING);
    s->ids = calloc(s->o.n_ctx, sizeof *s->ids);
    if (s->ids == NULL) {
        err_sys(e, "cannot allocate the list of %u tokens", s->o.n_ctx);
        goto fail;
    }
    if (choose_kernels(s, e) != 0 || plan_for(s, &s->o, &plan, e) != 0 ||
        pool_new(&s->pool, s->o.n_thread, e) != 0 || model_load_small(m, e) != 0 ||
        make_kv(s, &plan, e) != 0 || machinery_new(s, &s->o, &plan, &s->mach, e) != 0)
        goto fail;
    publish_plan(s);
    counter_set(&s->telemetry->state, MW_IDLE);
    *out = s;
    return 0;

fail:
    mw_session_close(s);
    return -1;
}

void mw_session_close(struct mw_session *s)
{
    if (s == NULL)
        return;
    machinery_free(&s->mach);
    for (uint32_t i = 0; i < s->n_copy; i++)
        free(s->copies[i].buf);
    kv_free(s->kv);
    pool_free(s->pool);
    free(s->ids);
    free(s->telemetry);
    free(s);
}

/* --- evaluation --- */

/* Before n more positions are written: take back what was lent.  Afterwards lend again
 * what a rewind freed. */
static int settle_memory(struct mw_session *s, uint32_t n, struct err *e)
{
    uint64_t used = kv_global_bytes(s->kv) + kv_grow_bytes(s->kv, n);
    uint64_t target = pinned_room(s, &s->mach.plan, used);

    if (target == s->pinned_target)
        return 0;
    if (stream_set_pinned(s->mach.stream, target, e) != 0)
        return -1;
    s->pinned_target = target;
    return 0;
}

static int check_ids(const struct mw_session *s, const uint32_t *ids, size_t n, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);

    if (n > s->o.n_ctx - held)
        return err_set(e, ERR_CONTEXT,
                       "%zu tokens do not fit the context of %u, of which %u are used", n,
                       s->o.n_ctx, held);
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= s->m->desc->n_vocab)
            return err_set(e, ERR_ARGUMENT, "token id %u at position %zu: the vocabulary has %u",
                           ids[i], held + i, s->m->desc->n_vocab);
    return 0;
}

static int eval_chunk(struct mw_session *s, const uint32_t *ids, uint32_t n, enum want want,
                      struct err *e)
{
    uint32_t held = kv_tokens(s->kv);

    if (settle_memory(s, n, e) != 0 || forward_run(s->mach.forward, ids, n, want, e) != 0)
        return -1;
    memcpy(s->ids + held, ids, n * sizeof *ids);
    publish_memory(s);
    return 0;
}

/* One chunk with all its rows of logits, given to row one by one. */
static int eval_rows(struct mw_session *s, const uint32_t *ids, uint32_t n, mw_row_fn *row,
                     void *ctx, struct err *e)
{
    uint32_t pos = kv_tokens(s->kv);

    if (eval_chunk(s, ids, n, WANT_ALL, e) != 0)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (row(ctx, pos + i, forward_logits(s->mach.forward) + (size_t)i * s->m->desc->n_vocab,
                e) != 0)
            return -1;
    return 0;
}

int mw_session_eval(struct mw_session *s, const uint32_t *ids, size_t n, mw_row_fn *row,
                    void *ctx, struct err *e)
{
    uint32_t most = s->mach.plan.chunk;

    s->has_logits = false;
    if (s->mach.forward == NULL)
        return err_set(e, ERR_MEMORY, "a change of options failed and could not be taken back");
    if (check_ids(s, ids, n, e) != 0)
        return -1;
    if (row != NULL && most > s->o.n_logit_row)
        most = s->o.n_logit_row;
    for (size_t done = 0; done < n;) {
        uint32_t chunk = n - done < most ? (uint32_t)(n - done) : most;
        bool is_last = done + chunk == n;
        int rc = row != NULL ? eval_rows(s, ids + done, chunk, row, ctx, e)
                             : eval_chunk(s, ids + done, chunk, is_last ? WANT_LAST : WANT_NONE,
                                          e);

        if (rc != 0) {
            atomic_store(&s->cancel, false);
            return -1;
        }
        done += chunk;
        if (s->progress != NULL)
            s->progress(s->progress_ctx, (uint32_t)done, (uint32_t)n);
    }
    s->has_logits = row == NULL && n > 0;
    return 0;
}

const float *mw_session_logits(const struct mw_session *s)
{
    return s->has_logits ? forward_logits(s->mach.forward) : NULL;
}

float *session_logits(struct mw_session *s)
{
    return forward_logits(s->mach.forward);
}

uint32_t mw_session_tokens(const struct mw_session *s)
{
    return kv_tokens(s->kv);
}

/* --- going back --- */

static void drop_copies_behind(struct mw_session *s, uint32_t n)
{
    while (s->n_copy > 0 && s->copies[s->n_copy - 1].n_token > n)
        free(s->copies[--s->n_copy].buf);
}

int mw_session_rewind(struct mw_session *s, uint32_t n, uint32_t *kept, struct err *e)
{
    if (n > kv_tokens(s->kv))
        return err_set(e, ERR_ARGUMENT, "cannot go back to token %u of %u", n,
                       kv_tokens(s->kv));
    s->has_logits = n == kv_tokens(s->kv) && s->has_logits;
    drop_copies_behind(s, n);
    if (!kv_rewind(s->kv, n)) {
        if (s->n_copy > 0) {
            const struct ring_copy *copy = &s->copies[s->n_copy - 1];

            kv_copy_restore(s->kv, copy->buf, copy->n_token);
        } else {
            kv_rewind(s->kv, 0);
        }
    }
    *kept = kv_tokens(s->kv);
    publish_memory(s);
    return 0;
}

void session_mark(struct mw_session *s)
{
    uint64_t bytes = kv_copy_bytes(s->kv);
    const struct plan *p = &s->mach.plan;
    uint32_t n = kv_tokens(s->kv);
    unsigned char *buf;

    if (kv_sliding_bytes(s->kv) == 0 || n == 0 ||
        (s->n_copy > 0 && s->copies[s->n_copy - 1].n_token == n))
        return;
    /* A copy may take what pinned weights hold, never more; without a stream (all pinned)
     * only what is left over. */
    uint64_t room = (p->budget_bytes - p->sum_bytes) + (p->n_slot > 0 ? p->pinned_bytes : 0);

    while (s->n_copy > 0 && (s->n_copy == MAX_COPY || copies_bytes(s) + bytes > room)) {
        free(s->copies[0].buf);
        memmove(s->copies, s->copies + 1, --s->n_copy * sizeof s->copies[0]);
    }
    if (bytes > room)
        return;
    buf = malloc(bytes);
    if (buf == NULL)
        return;
    s->copies[s->n_copy++] = (struct ring_copy){ n, buf };
    /* Weights make room before the copy is touched. */
    if (settle_memory(s, 0, &(struct err)ERR_INIT) != 0) {
        free(s->copies[--s->n_copy].buf);
        return;
    }
    kv_copy_save(s->kv, buf);
    publish_memory(s);
}

/* --- changes while it lives --- */

static bool same_shape(const struct plan *a, const struct plan *b)
{
    return a->chunk == b->chunk && a->n_slot == b->n_slot && a->n_ctx == b->n_ctx &&
           a->row[MW_ROW_LOGITS] == b->row[MW_ROW_LOGITS];
}

static int set_ids(struct mw_session *s, uint32_t n_ctx, struct err *e)
{
    uint32_t *ids = realloc(s->ids, n_ctx * sizeof *ids);

    if (ids == NULL)
        return err_sys(e, "cannot allocate the list of %u tokens", n_ctx);
    s->ids = ids;
    return 0;
}

static int set_threads(struct mw_session *s, int n_thread, struct err *e)
{
    struct pool *pool;

    if (n_thread == pool_threads(s->pool))
        return 0;
    if (pool_new(&pool, n_thread, e) != 0)
        return -1;
    pool_free(s->pool);
    s->pool = pool;
    return 0;
}

/* Tear down what depends on the plan and make it anew; on failure as it was before. */
static int rebuild(struct mw_session *s, const struct mw_options *wanted,
                   const struct plan *plan, struct err *e)
{
    struct mw_options before = s->o;
    struct plan plan_before = s->mach.plan;
    uint32_t n_swa = s->m->desc->hp->n_swa;
    struct err ignored = ERR_INIT;

    /* Old and new together would not fit the budget, and copies have the old rings' form. */
    drop_copies_behind(s, 0);
    machinery_free(&s->mach);
    s->has_logits = false;
    if (kv_resize(s->kv, wanted->n_ctx, plan_sliding_slots(n_swa, plan->chunk, wanted->n_ctx),
                  e) == 0 &&
        set_ids(s, wanted->n_ctx, e) == 0 && set_threads(s, wanted->n_thread, e) == 0 &&
        machinery_new(s, wanted, plan, &s->mach, e) == 0) {
        s->o = *wanted;
        return 0;
    }
    if (kv_resize(s->kv, before.n_ctx, plan_sliding_slots(n_swa, plan_before.chunk, before.n_ctx),
                  &ignored) == 0 &&
        set_ids(s, before.n_ctx, &ignored) == 0 &&
        set_threads(s, before.n_thread, &ignored) == 0)
        machinery_new(s, &before, &plan_before, &s->mach, &ignored);
    return -1;
}

int session_set(struct mw_session *s, const struct mw_options *o, struct err *e)
{
    struct mw_options wanted = *o;
    struct plan before = s->mach.plan, plan;
    int rc = 0;

    options_resolve(s->m, &wanted);
    if (wanted.kv_k != s->o.kv_k || wanted.kv_v != s->o.kv_v)
        return err_set(e, ERR_ARGUMENT, "the KV type of a session cannot be changed");
    if (wanted.n_ctx < kv_tokens(s->kv))
        return err_set(e, ERR_CONTEXT, "%u tokens are held, a context of %u is too short",
                       kv_tokens(s->kv), wanted.n_ctx);
    if (plan_for(s, &wanted, &plan, e) != 0)
        return -1;
    if (same_shape(&before, &plan) && wanted.io == s->o.io &&
        wanted.mmap_drop == s->o.mmap_drop && wanted.no_uring == s->o.no_uring &&
        wanted.exact == s->o.exact && wanted.n_thread == s->o.n_thread &&
        stream_block_target(wanted.memory_bytes) == stream_block_target(s->o.memory_bytes)) {
        s->mach.plan = plan;
        rc = settle_memory(s, 0, e);
        if (rc == 0)
            s->o = wanted;
        else
            s->mach.plan = before;
    } else {
        rc = rebuild(s, &wanted, &plan, e);
    }
    if (s->mach.forward != NULL)
        publish_plan(s);
    return rc;
}

int mw_session_set_memory(struct mw_session *s, uint64_t memory_bytes, struct err *e)
{
    struct mw_options o = s->o;

    o.memory_bytes = memory_bytes;
    return session_set(s, &o, e);
}

/* --- looking in --- */

void mw_session_plan(const struct mw_session *s, struct plan *out)
{
    *out = s->mach.plan;
}

void mw_session_sample(const struct mw_session *s, struct mw_sample *out)
{
    telemetry_sample(s->telemetry, out);
}

void mw_session_cancel(struct mw_session *s)
{
    /* The flag ends a pass at its next block, the stream's wakes one that waits. */
    atomic_store(&s->cancel, true);
    stream_cancel(s->mach.stream);
}

void session_clear_cancel(struct mw_session *s)
{
    atomic_store(&s->cancel, false);
}

struct telemetry *session_telemetry(struct mw_session *s)
{
    return s->telemetry;
}

const uint32_t *session_ids(const struct mw_session *s)
{
    return s->ids;
}

void session_set_progress(struct mw_session *s, session_progress_fn *fn, void *ctx)
{
    s->progress = fn;
    s->progress_ctx = ctx;
}

const struct mw_options *session_options(const struct mw_session *s)
{
    return &s->o;
}
