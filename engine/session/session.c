/*
 * A session allocates every item of the plan before the first token.  Then it takes ids and
 * gives logits.
 *
 *   options -> plan -> arenas, KV store, stream, forward pass
 *
 * Pinned weights borrow the part of the KV item that is not used yet, and return it block by
 * block before pages are written.
 */
#include "config.h"

#include "engine/session/session.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/arena.h"
#include "engine/base/clock.h"
#include "engine/kv/kv.h"
#include "engine/model/forward.h"
#include "engine/session/copies.h"
#include "engine/session/model.h"
#include "engine/session/observe.h"
#include "engine/session/options.h"
#include "engine/session/packing.h"
#include "engine/session/plan_input.h"
#include "engine/session/product_choice.h"
#include "engine/session/tokens.h"

/* The objects that depend on the plan.  They are created again when it changes. */
struct machinery {
    struct plan plan;
    struct stream_shape shape;
    struct expert_sizes expert_sizes;
    struct arena activations, rows, tables, logits;
    struct stream *stream;
    struct expert_cache *cache; /* of experts; NULL: a dense model */
    struct forward *forward;
};

/* Memory that changes between passes. */
struct room {
    uint32_t n_slot; /* of the ring */
    uint64_t pinned_bytes, expert_bytes;
};

struct mw_session {
    struct mw_model *m;
    struct mw_options o; /* resolved */
    const struct kernels *kernels;
    struct product_choice choice;
    struct pool *pool;
    struct kv *kv;
    struct copies *copies; /* turns to go back to */
    struct machinery mach;
    struct telemetry *telemetry;
    struct tokens tokens; /* the first kv_tokens() are held */
    struct room target;   /* of the stream and the cache of experts */
    struct observer observer;
    struct product_observer column_observer, chunk_observer;
    struct plan_input input; /* when the window began */
    uint64_t pass_end_ns;    /* of the last pass */
    bool has_logits;
    atomic_bool cancel;       /* set by any thread, cleared by the thread that evaluates */
    pthread_mutex_t lock;     /* of `cancelled`, which any thread may use */
    struct stream *cancelled; /* the stream to wake; NULL while there is none */
    uint32_t mark_at;         /* position of the next copy; 0: none */
    uint32_t step_from, step_n, step_total; /* of the chunk that is evaluated now */
    session_progress_fn *progress;
    void *progress_ctx;
};

/* --- machinery --- */

/* Under the lock, so that no thread cancels a stream that is being closed. */
static void set_cancelled(struct mw_session *s, struct stream *stream)
{
    pthread_mutex_lock(&s->lock);
    s->cancelled = stream;
    pthread_mutex_unlock(&s->lock);
}

static void machinery_free(struct machinery *a)
{
    forward_free(a->forward);
    expert_cache_close(a->cache);
    stream_close(a->stream);
    arena_unmap(&a->activations);
    arena_unmap(&a->rows);
    arena_unmap(&a->tables);
    arena_unmap(&a->logits);
    memset(a, 0, sizeof *a);
}

/* Returns the bytes that the plan leaves over: unused parts of the KV item and the budget. */
static uint64_t left_over(const struct plan *p, uint64_t kv_used)
{
    uint64_t kv_row = p->row[MW_ROW_KV_GLOBAL];

    return (kv_row > kv_used ? kv_row - kv_used : 0) + (p->budget_bytes - p->sum_bytes);
}

/* Returns the bytes that building the tokenizer takes for a short time, perhaps while the
 * stream reads the first blocks. */
static uint64_t build_bytes(const struct mw_model *m)
{
    return m->has_vocab && m->tokenizer == NULL ? tokenizer_build_bytes(&m->vocab) : 0;
}

/*
 * The plan's memory for pinned weights and experts, with what it leaves over, less `spare`
 * bytes.  If all weights are pinned already, experts get this part.
 */
static struct room room_of(const struct plan *p, uint64_t expert_slot_bytes, uint64_t kv_used,
                           uint64_t spare)
{
    uint64_t more = left_over(p, kv_used);
    struct room r = { .n_slot = p->n_slot,
                      .pinned_bytes = p->pinned_bytes,
                      .expert_bytes = p->n_expert * expert_slot_bytes };

    more -= spare < more ? spare : more;
    if (p->n_expert > 0 && p->streamed_share == 0)
        r.expert_bytes += more;
    else
        r.pinned_bytes += more;
    return r;
}

/* Lookup rows in flight take their part of the item from the start, kept ones as they come. */
static uint64_t rows_used(const struct mw_session *s)
{
    const struct machinery *a = &s->mach;

    return a->plan.row[MW_ROW_ROWS] - (a->rows.size - a->rows.used) - a->tables.size +
           forward_table_bytes(a->forward);
}

static void publish_memory(struct mw_session *s)
{
    struct telemetry *t = s->telemetry;
    const struct plan *p = &s->mach.plan;
    const struct machinery *a = &s->mach;
    uint64_t experts = a->cache != NULL ? expert_cache_charged(a->cache) : 0;
    uint64_t experts_plan = p->n_expert * a->expert_sizes.slot_bytes;
    uint64_t recurrent = kv_recurrent_bytes(s->kv);

    counter_set(&t->used[MW_ROW_TOKENIZER],
                s->m->tokenizer != NULL ? tokenizer_bytes(s->m->tokenizer) : 0);
    counter_set(&t->kv_tokens, kv_tokens(s->kv));
    counter_set(&t->kv_global_used, kv_global_bytes(s->kv));
    counter_set(&t->kv_sliding_used, kv_sliding_bytes(s->kv));
    counter_set(&t->used[MW_ROW_KV_GLOBAL], kv_global_bytes(s->kv));
    counter_set(&t->used[MW_ROW_KV_SLIDING],
                kv_sliding_bytes(s->kv) + (recurrent == 0 ? copies_bytes(s->copies) : 0));
    counter_set(&t->used[MW_ROW_KV_RECURRENT],
                recurrent + (recurrent > 0 ? copies_bytes(s->copies) : 0));
    counter_set(&t->used[MW_ROW_ROWS], rows_used(s));
    counter_set(&t->used[MW_ROW_PINNED], s->m->resident.used); /* the stream adds its blocks */
    counter_set(&t->used[MW_ROW_EXPERTS], a->expert_sizes.fixed_bytes + experts);
    counter_set(&t->lent_experts, experts > experts_plan ? experts - experts_plan : 0);
    for (uint32_t l = 0; l < s->m->desc->n_layer; l++) {
        const struct layer_desc *layer = &s->m->desc->layers[l];

        counter_set(&t->layer[l].kv_bytes,
                    layer->owns_kv        ? kv_layer_bytes(s->kv, layer->kv_layer)
                    : layer->is_recurrent ? recurrent_layer_bytes(&s->m->desc->recurrent)
                                          : 0);
    }
}

static void publish_limits(struct mw_session *s)
{
    counter_set(&s->telemetry->disk_limit, (uint64_t)limits_disk(s->m, &s->o));
    counter_set(&s->telemetry->memory_limit, (uint64_t)limits_of(s->m).memory_bytes_s);
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
    snprintf(run.io_reason, sizeof run.io_reason, "%s", stream_io_reason(a->stream));
    snprintf(run.kv_k, sizeof run.kv_k, "%s", mw_kv_name(s->o.kv_k));
    snprintf(run.kv_v, sizeof run.kv_v, "%s", mw_kv_name(s->o.kv_v));
    run.threads = (uint32_t)s->o.n_thread;
    snprintf(run.isa, sizeof run.isa, "%s", s->kernels->name);
    mw_products_text(s->m, &s->o, run.products, sizeof run.products);
    run.hot_bytes = info.hot_bytes;
    run.file_bytes = info.file_bytes;
    run.predicted_decode = a->plan.decode_tps;
    run.predicted_prefill = a->plan.prefill_tps;
    run.predicted_read = a->plan.streamed_bytes;
    run.predicted_binds = a->plan.binds;
    telemetry_set_run(t, &run);
    for (int i = 0; i < MW_PLAN_ROWS; i++)
        counter_set(&t->plan[i], a->plan.row[i]);
    counter_set(&t->used[MW_ROW_PROGRAM], s->m->program_bytes);
    counter_set(&t->used[MW_ROW_ACTIVATIONS], a->activations.used);
    counter_set(&t->used[MW_ROW_LOGITS], a->logits.used);
    counter_set(&t->used[MW_ROW_RING], a->plan.row[MW_ROW_RING]);
    counter_set(&t->kv_capacity, s->o.n_ctx);
    counter_set(&t->kv_reserved, kv_reserved_bytes(s->kv));
    publish_limits(s);
    for (uint32_t l = 0; l <= s->m->desc->n_layer; l++)
        counter_set(&t->layer[l].kind,
                    l < s->m->desc->n_layer ? s->m->desc->layers[l].kind : MW_LAYER_HEAD);
    publish_memory(s);
}

/* Open the stream with the forms that the options give to pinned weights. */
static int open_stream(struct mw_session *s, const struct mw_options *o,
                       const struct stream_shape *shape, const struct stream_options *so,
                       struct stream **out, struct err *e)
{
    struct stream_span *spans = calloc(s->m->n_span, sizeof *spans);
    struct packing packing;
    int rc;

    if (spans == NULL)
        return err_memory(e, "the schedule of %u spans", s->m->n_span);
    packing_choose(s->m, o, &packing);
    packing_spans(s->m, &packing, spans);
    rc = stream_open(out, s->m->catalogue, spans, s->m->n_span, shape, so, s->telemetry, e);
    free(spans);
    return rc;
}

static int machinery_new(struct mw_session *s, const struct mw_options *o,
                         const struct plan *plan, struct machinery *out, struct err *e)
{
    struct mw_limits limits = limits_of(s->m);
    struct machinery a = { .plan = *plan };
    struct stream_options so = {
        .io = options_stream_io(o->io),
        .mmap_drop = o->mmap_drop,
        .no_uring = o->no_uring,
        .bytes_s = o->disk_rate,
        .lay = packing_lay,
        .n_slot = plan->n_slot,
        .direct_bytes_s = limits.direct_bytes_s,
        .buffered_bytes_s = limits.buffered_bytes_s,
    };
    struct forward_parts parts = {
        .desc = s->m->desc,
        .kernels = s->kernels,
        .pool = s->pool,
        .kv = s->kv,
        .telemetry = s->telemetry,
        .activations = &out->activations,
        .rows = &out->rows,
        .tables = &out->tables,
        .logits = &out->logits,
        .chunk = plan->chunk,
        .n_logit_row = o->n_logit_row,
        .n_ctx = o->n_ctx,
        .exact = o->exact,
        .cancel = &s->cancel,
    };
    struct forward_bytes bytes;
    struct room room;

    if (product_choice_of(s->m, o, &s->choice, e) != 0)
        return -1;
    if (s->choice.has_blas)
        parts.products = &s->choice.products;
    forward_bytes(s->m->desc, s->choice.has_blas ? o->n_thread : 0, &bytes);
    so.lookup_bytes = bytes.lookup;
    a.expert_sizes = bytes.experts;
    room = room_of(plan, bytes.experts.slot_bytes, kv_global_bytes(s->kv), build_bytes(s->m));
    so.pinned_bytes = room.pinned_bytes;
    shape_make(&a.shape, s->m->spans, s->m->n_span, options_block(o));
    if (arena_map(&a.activations, "activations", plan->row[MW_ROW_ACTIVATIONS], true, e) != 0 ||
        arena_map(&a.rows, "rows", plan->chunk * bytes.rows_col + bytes.rows_fixed, true, e) !=
            0 ||
        arena_map(&a.tables, "tables", plan->keeps_rows ? bytes.tables : 0, false, e) != 0 ||
        arena_map(&a.logits, "logits", plan->row[MW_ROW_LOGITS], true, e) != 0)
        goto fail;
    if (open_stream(s, o, &a.shape, &so, &a.stream, e) != 0 ||
        experts_open(&a.cache, s->m->desc, a.stream, room.expert_bytes, s->telemetry, e) != 0)
        goto fail;
    *out = a;
    parts.stream = a.stream;
    parts.experts = a.cache;
    if (forward_new(&out->forward, &parts, e) != 0) {
        machinery_free(out);
        return -1;
    }
    s->target = room;
    copies_set_room(s->copies, plan->n_copy);
    set_cancelled(s, out->stream);
    return 0;

fail:
    machinery_free(&a);
    return -1;
}

/* --- life --- */

static int make_kv(struct mw_session *s, const struct plan *plan, struct err *e)
{
    const struct model_desc *d = s->m->desc;
    struct recurrent *recurrent;

    if (kv_new(&s->kv, d->kv_specs, d->n_kv, options_kv_type(s->o.kv_k),
               options_kv_type(s->o.kv_v), s->o.n_ctx,
               plan_sliding_slots(d->hp->n_swa, plan->chunk, s->o.n_ctx), d->hp->n_swa, e) != 0)
        return -1;
    if (d->recurrent.n_layer == 0)
        return 0;
    if (recurrent_new(&recurrent, &d->recurrent, e) != 0)
        return -1;
    kv_own_recurrent(s->kv, recurrent);
    return 0;
}

/*
 * Read the tokenizer if it is kept.  Otherwise, build it now if its temporary memory would not
 * fit later, beside the first blocks.  A failure is reported by the chat, which needs the
 * tokenizer; ids can be evaluated without.
 */
static void build_early(struct mw_session *s, const struct plan *plan)
{
    struct err ignored = ERR_INIT;

    if (s->o.cache_folder != NULL)
        model_keep_tokenizer(s->m, s->o.cache_folder);
    if (build_bytes(s->m) > left_over(plan, 0) || s->m->catalogue->kind != CATALOGUE_GGUF)
        (void)model_tokenizer(s->m, &ignored);
}

/* Add what the routers of this session chose so far to the limits.  Returns whether they tell
 * enough. */
static bool observe_routers(const struct mw_session *s, struct mw_limits *l)
{
    struct mw_choice choice;

    *l = limits_of(s->m);
    if (s->mach.cache == NULL)
        return false;
    expert_cache_choice(s->mach.cache, &choice);
    return observe_choice(&choice, (int64_t)time(NULL), l);
}

static int plan_for(struct mw_session *s, const struct mw_options *o, struct plan *plan,
                    struct err *e)
{
    struct mw_limits l;
    struct plan_input in;

    if (plan_input_of(s->m, o, &in, e) != 0)
        return -1;
    if (observe_routers(s, &l))
        in.choice = l.choice;
    return plan_of(s->m, o, &in, plan, e);
}

int mw_session_open(struct mw_session **out, struct mw_model *m, const struct mw_options *o,
                    struct err *e)
{
    struct mw_session *s = calloc(1, sizeof *s);
    struct plan plan;

    *out = NULL;
    if (s == NULL)
        return err_memory(e, "the session");
    pthread_mutex_init(&s->lock, NULL);
    s->m = m;
    s->o = *o;
    if (model_needs_file(m, e) != 0 || options_resolve(m, &s->o, e) != 0)
        goto fail;
    s->telemetry = calloc(1, sizeof *s->telemetry);
    if (s->telemetry == NULL) {
        err_memory(e, "the counters");
        goto fail;
    }
    counter_set(&s->telemetry->state, MW_LOADING);
    if (tokens_resize(&s->tokens, s->o.n_ctx, e) != 0)
        goto fail;
    s->kernels = kernels_of(&s->o, e);
    if (s->kernels == NULL || plan_for(s, &s->o, &plan, e) != 0)
        goto fail;
    build_early(s, &plan);
    if (pool_new(&s->pool, s->o.n_thread, e) != 0 || model_load_small(m, e) != 0 ||
        make_kv(s, &plan, e) != 0 || copies_new(&s->copies, s->kv, s->o.cache_folder, e) != 0 ||
        machinery_new(s, &s->o, &plan, &s->mach, e) != 0)
        goto fail;
    publish_plan(s);
    counter_set(&s->telemetry->state, MW_IDLE);
    *out = s;
    return 0;

fail:
    mw_session_close(s);
    return -1;
}

/* Let the model remember the routers of a session whose cache is closed. */
static void keep_choice(const struct mw_session *s)
{
    struct mw_limits l;

    if (observe_routers(s, &l))
        limits_correct(s->m, &l);
}

void mw_session_close(struct mw_session *s)
{
    if (s == NULL)
        return;
    keep_choice(s);
    machinery_free(&s->mach);
    copies_free(s->copies);
    kv_free(s->kv);
    pool_free(s->pool);
    tokens_free(&s->tokens);
    free(s->telemetry);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* --- evaluation --- */

static int set_experts(struct mw_session *s, uint64_t bytes, struct err *e)
{
    if (s->mach.cache == NULL || bytes == s->target.expert_bytes)
        return 0;
    s->target.expert_bytes = 0; /* after an error the next pass tries again */
    if (expert_cache_set_memory(s->mach.cache, bytes, e) != 0)
        return -1;
    s->target.expert_bytes = bytes;
    return 0;
}

static int set_stream(struct mw_session *s, const struct room *to, struct err *e)
{
    if (to->pinned_bytes == s->target.pinned_bytes && to->n_slot == s->target.n_slot)
        return 0;
    if (stream_set_memory(s->mach.stream, to->n_slot, to->pinned_bytes, e) != 0)
        return -1;
    s->target.pinned_bytes = to->pinned_bytes;
    s->target.n_slot = to->n_slot;
    return 0;
}

/* Before n more positions are written, take back borrowed KV space.  After a rewind, let
 * weights borrow the freed space.  Areas that shrink go first, so the sum never exceeds the
 * budget. */
static int settle_memory(struct mw_session *s, uint32_t n, struct err *e)
{
    uint64_t used = kv_global_bytes(s->kv) + kv_grow_bytes(s->kv, n);
    struct room to =
        room_of(&s->mach.plan, s->mach.expert_sizes.slot_bytes, used, build_bytes(s->m));

    if (to.expert_bytes < s->target.expert_bytes && set_experts(s, to.expert_bytes, e) != 0)
        return -1;
    return set_stream(s, &to, e) != 0 ? -1 : set_experts(s, to.expert_bytes, e);
}

static int check_ids(const struct mw_session *s, const uint32_t *ids, size_t n, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);

    if (n > s->o.n_ctx - held)
        return err_set(e, ERR_CONTEXT,
                       "%zu tokens do not fit the context of %u tokens, of which %u are used",
                       n, s->o.n_ctx, held);
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= s->m->desc->n_vocab)
            return err_set(
                e, ERR_ARGUMENT,
                "token id %u at position %zu is outside of the vocabulary of %u tokens", ids[i],
                held + i, s->m->desc->n_vocab);
    return 0;
}

/* A longer pause between two passes ends a window of observe.h: the ring is full meanwhile. */
#define PAUSE_NS 100000000u

static struct observe_at observe_now(const struct mw_session *s)
{
    const struct telemetry *t = s->telemetry;

    return (struct observe_at){ .t_ns = clock_ns(),
                                .bytes = counter_get(&t->bytes_read),
                                .busy_ns = counter_get(&t->busy_ns),
                                .pinned_bytes = stream_pinned_now(s->mach.stream) };
}

/* A pass with all weights in memory: correct the rates of products by its time. */
static bool observe_pass_products(struct mw_session *s, uint32_t n, enum want want,
                                  int64_t now_s, struct mw_limits *l)
{
    static const struct plan_pass in_memory = { .keeps_rows = true };
    const struct telemetry *t = s->telemetry;
    uint64_t ns = counter_get(&t->pass.compute_ns);
    uint32_t n_seen = kv_tokens(s->kv); /* this pass included */
    struct plan_input in = s->input;
    struct plan_time time;

    if (s->mach.plan.streamed_bytes > 0 || counter_get(&t->pass.stall_ns) > ns / 100)
        return false;
    plan_input_limits(&in, l);
    if (n == 1 && want == WANT_LAST)
        return observe_products(&s->column_observer, OBSERVE_COLUMN,
                                speed_token(&in, &in_memory, n_seen, &time), ns, now_s, l);
    if (n < PLAN_CHUNK_EVEN || want != WANT_NONE)
        return false;
    return observe_products(&s->chunk_observer, OBSERVE_CHUNK,
                            speed_chunk(&in, &in_memory, n_seen - n, n, false, &time), ns,
                            now_s, l);
}

/* Correct the limits by the pass of n tokens that began at from_ns. */
static void observe_pass(struct mw_session *s, uint32_t n, enum want want, uint64_t from_ns)
{
    bool is_throttled = s->o.disk_rate > 0 || s->mach.plan.n_slot < s->mach.shape.n_slot;
    struct observe_at now = observe_now(s);
    struct mw_limits l = limits_of(s->m);
    int64_t now_s = (int64_t)time(NULL);
    bool is_corrected = false;

    if (strncmp(stream_io_name(s->mach.stream), "direct/", 7) == 0)
        is_corrected = observe_disk(&s->observer, &now, is_throttled, now_s, &l);
    if (n == 1 && want == WANT_LAST)
        is_corrected |=
            observe_memory(s->m->hot_bytes - counter_get(&s->telemetry->saved_bytes),
                           now.t_ns - from_ns, now_s, &l);
    is_corrected |= observe_pass_products(s, n, want, now_s, &l);
    if (is_corrected) {
        limits_correct(s->m, &l);
        publish_limits(s);
    }
    s->pass_end_ns = now.t_ns;
}

static int eval_chunk(struct mw_session *s, uint32_t n, enum want want, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);
    uint64_t from_ns = clock_ns();

    if (from_ns - s->pass_end_ns > PAUSE_NS) {
        struct observe_at now = observe_now(s);
        struct err ignored = ERR_INIT;

        observe_begin(&s->observer, &now);
        if (plan_input_of(s->m, &s->o, &s->input, &ignored) != 0)
            s->input = (struct plan_input){ 0 };
    }
    if (settle_memory(s, n, e) != 0 || forward_run(s->mach.forward, s->tokens.id + held, n,
                                                   want, s->tokens.in_tiles[held], e) != 0)
        return -1;
    observe_pass(s, n, want, from_ns);
    publish_memory(s);
    return 0;
}

/* Evaluate one chunk and pass all its rows of logits to row, one by one. */
static int eval_rows(struct mw_session *s, uint32_t n, mw_row_fn *row, void *ctx, struct err *e)
{
    uint32_t pos = kv_tokens(s->kv);

    if (eval_chunk(s, n, WANT_ALL, e) != 0)
        return -1;
    for (uint32_t i = 0; i < n; i++)
        if (row(ctx, pos + i, forward_logits(s->mach.forward) + (size_t)i * s->m->desc->n_vocab,
                e) != 0)
            return -1;
    return 0;
}

static int check_machinery(const struct mw_session *s, struct err *e)
{
    if (s->mach.forward != NULL)
        return 0;
    return err_set(e, ERR_MEMORY,
                   "changing options failed, and the previous options could not be restored");
}

/* Maximum tokens of a chunk, by the plan in force. */
static uint32_t chunk_max(const struct mw_session *s, bool has_rows)
{
    uint32_t most = s->mach.plan.chunk;

    return has_rows && most > s->o.n_logit_row ? s->o.n_logit_row : most;
}

/* The n tokens that follow the held ones in the list.  The options may change after each chunk
 * but the last, whose logits are still used. */
static int eval_tokens(struct mw_session *s, uint32_t n, mw_row_fn *row, void *ctx,
                       struct err *e)
{
    for (uint32_t done = 0; done < n;) {
        uint32_t chunk =
            tokens_chunk(&s->tokens, kv_tokens(s->kv), n - done, chunk_max(s, row != NULL));
        bool is_last;
        int rc;

        if (s->mark_at > kv_tokens(s->kv) && s->mark_at - kv_tokens(s->kv) < chunk)
            chunk = s->mark_at - kv_tokens(s->kv);
        is_last = done + chunk == n;
        s->step_from = done;
        s->step_n = chunk;
        s->step_total = n;
        rc = row != NULL ? eval_rows(s, chunk, row, ctx, e)
                         : eval_chunk(s, chunk, is_last ? WANT_LAST : WANT_NONE, e);
        if (rc != 0) {
            atomic_store(&s->cancel, false);
            return -1;
        }
        done += chunk;
        if (s->mark_at > 0 && kv_tokens(s->kv) == s->mark_at)
            session_mark(s);
        if (s->progress != NULL)
            s->progress(s->progress_ctx, done, n, false);
        if (check_machinery(s, e) != 0)
            return -1;
    }
    s->has_logits = row == NULL && n > 0;
    return 0;
}

int mw_session_eval(struct mw_session *s, const uint32_t *ids, size_t n, mw_row_fn *row,
                    void *ctx, struct err *e)
{
    const struct products *products = s->choice.has_blas ? &s->choice.products : NULL;

    s->has_logits = false;
    if (check_machinery(s, e) != 0 || check_ids(s, ids, n, e) != 0)
        return -1;
    tokens_add_prompt(&s->tokens, products, kv_tokens(s->kv), ids, (uint32_t)n);
    return eval_tokens(s, (uint32_t)n, row, ctx, e);
}

int session_eval_sampled(struct mw_session *s, uint32_t id, struct err *e)
{
    s->has_logits = false;
    if (check_machinery(s, e) != 0 || check_ids(s, &id, 1, e) != 0)
        return -1;
    tokens_add_sampled(&s->tokens, kv_tokens(s->kv), id);
    return eval_tokens(s, 1, NULL, NULL, e);
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

int mw_session_rewind(struct mw_session *s, uint32_t n, uint32_t *kept, struct err *e)
{
    if (n > kv_tokens(s->kv))
        return err_set(e, ERR_ARGUMENT, "cannot go back to token %u: the session holds %u", n,
                       kv_tokens(s->kv));
    s->has_logits = n == kv_tokens(s->kv) && s->has_logits;
    copies_cut(s->copies, n);
    if (!kv_rewind(s->kv, n))
        copies_restore(s->copies);
    *kept = kv_tokens(s->kv);
    publish_memory(s);
    return 0;
}

void session_mark(struct mw_session *s)
{
    s->mark_at = 0;
    copies_mark(s->copies);
    publish_memory(s);
}

void session_mark_at(struct mw_session *s, uint32_t n)
{
    s->mark_at = kv_recurrent(s->kv) != NULL ? n : 0;
}

/* --- changes while it lives --- */

static bool same_shape(const struct plan *a, const struct plan *b)
{
    return a->chunk == b->chunk && a->n_ctx == b->n_ctx &&
           a->row[MW_ROW_LOGITS] == b->row[MW_ROW_LOGITS];
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

/* Create the objects that depend on the plan again; on failure, those of the old plan. */
static int rebuild(struct mw_session *s, const struct mw_options *wanted,
                   const struct plan *plan, struct err *e)
{
    struct mw_options before = s->o;
    struct plan plan_before = s->mach.plan;
    uint32_t n_swa = s->m->desc->hp->n_swa;
    struct err ignored = ERR_INIT;

    /* Free first: old and new together would not fit the budget. */
    set_cancelled(s, NULL);
    keep_choice(s);
    machinery_free(&s->mach);
    copies_set_room(s->copies, plan->n_copy);
    s->has_logits = false;
    if (kv_resize(s->kv, wanted->n_ctx, plan_sliding_slots(n_swa, plan->chunk, wanted->n_ctx),
                  e) == 0 &&
        tokens_resize(&s->tokens, wanted->n_ctx, e) == 0 &&
        set_threads(s, wanted->n_thread, e) == 0 &&
        machinery_new(s, wanted, plan, &s->mach, e) == 0) {
        s->o = *wanted;
        return 0;
    }
    if (kv_resize(s->kv, before.n_ctx,
                  plan_sliding_slots(n_swa, plan_before.chunk, before.n_ctx), &ignored) == 0 &&
        tokens_resize(&s->tokens, before.n_ctx, &ignored) == 0 &&
        set_threads(s, before.n_thread, &ignored) == 0)
        machinery_new(s, &before, &plan_before, &s->mach, &ignored);
    return -1;
}

static bool same_speed(const struct plan *a, const struct plan *b)
{
    return a->budget_bytes == b->budget_bytes && a->n_ctx == b->n_ctx &&
           a->pinned_bytes == b->pinned_bytes && a->n_expert == b->n_expert;
}

int session_set(struct mw_session *s, const struct mw_options *o, struct err *e)
{
    struct mw_options wanted = *o;
    struct plan before = s->mach.plan, plan;
    int rc = 0;

    if (options_resolve(s->m, &wanted, e) != 0)
        return -1;
    if (wanted.kv_k != s->o.kv_k || wanted.kv_v != s->o.kv_v)
        return err_set(e, ERR_ARGUMENT,
                       "the types of keys and values cannot change while a session is open");
    if (wanted.n_ctx < kv_tokens(s->kv))
        return err_set(e, ERR_CONTEXT,
                       "the session holds %u tokens, which do not fit a context of %u",
                       kv_tokens(s->kv), wanted.n_ctx);
    if (plan_for(s, &wanted, &plan, e) != 0)
        return -1;
    if (same_shape(&before, &plan) && wanted.io == s->o.io &&
        wanted.mmap_drop == s->o.mmap_drop && wanted.no_uring == s->o.no_uring &&
        wanted.disk_rate == s->o.disk_rate && wanted.exact == s->o.exact &&
        wanted.blas == s->o.blas && wanted.pack == s->o.pack &&
        wanted.n_thread == s->o.n_thread && options_block(&wanted) == s->mach.shape.target) {
        copies_set_room(s->copies, plan.n_copy);
        s->mach.plan = plan;
        if (!same_speed(&before, &plan))
            telemetry_new_plan(s->telemetry);
        rc = settle_memory(s, 0, e);
        if (rc == 0)
            s->o = wanted;
        else
            s->mach.plan = before;
    } else {
        rc = rebuild(s, &wanted, &plan, e);
        telemetry_new_plan(s->telemetry);
    }
    if (s->mach.forward != NULL)
        publish_plan(s);
    session_set_progress(s, s->progress, s->progress_ctx); /* of a new forward pass, too */
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
    /* The flag ends a pass at its next block; the stream wakes one that waits for a block. */
    atomic_store(&s->cancel, true);
    pthread_mutex_lock(&s->lock);
    if (s->cancelled != NULL)
        stream_cancel(s->cancelled);
    pthread_mutex_unlock(&s->lock);
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
    return s->tokens.id;
}

static void report_progress(void *ctx, double share)
{
    struct mw_session *s = ctx;
    uint32_t within = (uint32_t)(share * s->step_n);

    s->progress(s->progress_ctx, s->step_from + (within < s->step_n ? within : s->step_n - 1),
                s->step_total, true);
}

void session_set_progress(struct mw_session *s, session_progress_fn *fn, void *ctx)
{
    s->progress = fn;
    s->progress_ctx = ctx;
    if (s->mach.forward != NULL)
        forward_set_progress(s->mach.forward, fn == NULL ? NULL : report_progress, s);
}

const struct mw_options *session_options(const struct mw_session *s)
{
    return &s->o;
}
