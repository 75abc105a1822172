/*
 * A session allocates every item of the plan before the first token.  Then it takes ids and
 * gives logits.
 *
 *   options -> plan -> KV store, stream, workspace of the forward pass
 */
#include "config.h"

#include "engine/session/session_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "engine/plan/speed.h"
#include "engine/session/options.h"
#include "engine/stream/source.h"

/* --- life --- */

static int make_kv(struct mw_session *s, struct err *e)
{
    const struct model_desc *d = s->m->desc;
    struct recurrent *recurrent;

    if (session_kv(&s->kv, s, &s->settled.o, &s->plan, e) != 0)
        return -1;
    kv_touch(s->kv);
    if (recurrent_bytes(&d->recurrent) == 0)
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
static void build_early(struct mw_session *s, const struct cancel *quits)
{
    struct err ignored = ERR_INIT;

    if (s->settled.o.cache_folder != NULL)
        model_keep_tokenizer(s->m, s->settled.o.cache_folder);
    if (session_build_bytes(s->m) > session_left_over(&s->plan, 0) ||
        s->m->catalogue->kind != CATALOGUE_GGUF)
        (void)model_tokenizer(s->m, quits, &ignored);
}

/* Make the parts, in the order in which they need each other. */
static int make_parts(struct mw_session *s, const struct cancel *quits, struct err *e)
{
    const struct mw_options *o = &s->settled.o;
    struct forward_bytes bytes;
    struct room room;

    forward_bytes(s->m->desc, o->n_thread, false, &bytes);
    s->weights.expert_sizes = bytes.experts;
    if (pool_new(&s->pool, o->n_thread, e) != 0 || model_load_small(s->m, quits, e) != 0 ||
        make_kv(s, e) != 0 ||
        copies_new(&s->copies, s->kv, o->is_private ? NULL : o->cache_folder, e) != 0)
        return -1;
    copies_set_room(s->copies, s->plan.n_copy);
    room = session_room(s, &s->plan, 0);
    if (weights_open(s, o, &s->plan, &room, e) != 0 ||
        (s->plan.keeps_rows && kept_rows_open(&s->kept, s->m->desc, e) != 0) ||
        workspace_new(&s->work, s, o, &s->plan, s->kv, e) != 0 ||
        session_drafter(&s->drafter, s, o, &s->plan, e) != 0)
        return -1;
    s->tokens.drafter = s->drafter;
    workspace_touch(s->work);
    return s->plan.has_head ? head_open(&s->head, s, e) : 0;
}

int session_open(struct mw_session **out, struct mw_model *m, const struct mw_options *o,
                 const struct cancel *quits, struct cancel *cancel, struct err *e)
{
    struct mw_session *s = calloc(1, sizeof *s);

    *out = NULL;
    if (s == NULL)
        return err_memory(e, "the session");
    cancel_init(&s->own_cancel);
    s->cancel = cancel != NULL ? cancel : &s->own_cancel;
    s->m = m;
    depth_begin(&s->drafts.depth);
    if (model_needs_file(m, e) != 0 || settled_options(m, &s->settled, o, &s->settled, e) != 0)
        goto fail;
    s->telemetry = calloc(1, sizeof *s->telemetry);
    if (s->telemetry == NULL) {
        err_memory(e, "the counters");
        goto fail;
    }
    counter_set(&s->telemetry->state, MW_LOADING);
    s->kernels = kernels_of(&s->settled.o, e);
    if (s->kernels == NULL || settled_plan(m, &s->settled, NULL, &s->plan, e) != 0 ||
        tokens_resize(&s->tokens, s->settled.o.n_ctx, e) != 0)
        goto fail;
    build_early(s, quits);
    if (make_parts(s, quits, e) != 0)
        goto fail;
    publish_plan(s);
    session_follow_memory(s, true);
    counter_set(&s->telemetry->state, MW_IDLE);
    *out = s;
    return 0;

fail:
    mw_session_close(s);
    return -1;
}

int mw_session_open(struct mw_session **out, struct mw_model *m, const struct mw_options *o,
                    struct err *e)
{
    return session_open(out, m, o, NULL, NULL, e);
}

void mw_session_close(struct mw_session *s)
{
    if (s == NULL)
        return;
    session_stop_following(s);
    head_close(s->head);
    workspace_free(s->work);
    drafter_free(s->drafter); /* it may be a guest of the weights */
    weights_close(s);
    kept_rows_close(&s->kept);
    copies_free(s->copies);
    kv_free(s->kv);
    s->m->kv_file_bytes = 0;
    pool_free(s->pool);
    tokens_free(&s->tokens);
    free(s->telemetry);
    cancel_destroy(&s->own_cancel);
    free(s);
}

/* --- evaluation --- */

static int check_ids(const struct mw_session *s, const uint32_t *ids, size_t n, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);
    char more[32], all[24], used[24];

    if (n > s->settled.o.n_ctx - held)
        return err_set(e, ERR_CONTEXT,
                       "%s tokens do not fit the context of %s tokens, of which %s are used",
                       numbers_count(more, sizeof more, n),
                       numbers_count(all, sizeof all, s->settled.o.n_ctx),
                       numbers_count(used, sizeof used, held));
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
                                /* page faults do not show how fast the disk is */
                                .bytes = stream_is_mapped(s->weights.stream)
                                             ? 0
                                             : counter_get(&t->bytes_read),
                                .busy_ns = counter_get(&t->busy_ns),
                                .pinned_bytes = stream_pinned_now(s->weights.stream) };
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

    /* Neither the disk nor another program may be the reason. */
    if (s->plan.streamed_bytes > 0 || counter_get(&t->pass.stall_ns) > ns / 100 ||
        counter_get(&t->pass.wait_ns) > ns / 10)
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

static void begin_answer(struct mw_session *s)
{
    anchors_begin(&s->answer);
    tried_begin(&s->tried);
}

/* A pass ended at now->t_ns: let the model remember what the tokens of an answer measure. */
static void observe_answer(struct mw_session *s, uint32_t n, enum want want,
                           const struct observe_at *now)
{
    const struct telemetry_pass *pass = &s->telemetry->pass;
    const struct anchor_token token = {
        .token_ns = now->t_ns - s->pass_end_ns,
        .wall_ns = counter_get(&pass->wall_ns),
        .stall_ns = counter_get(&pass->stall_ns),
        .lookup_ns = counter_get(&pass->lookup_ns),
        .attention_ns = counter_get(&pass->attention_ns),
        .wait_ns = counter_get(&pass->wait_ns),
        .ran_ns = pool_ran_ns(s->pool),
        .bytes = session_is_mapped(s) ? 0 : counter_get(&pass->bytes_pass),
    };

    if (n > 1 && want == WANT_ALL)
        return; /* drafts: not one token, and the ones around it still are */
    /* Blocks that are being pinned are read once, and clearing their memory takes time. */
    if (n != 1 || want != WANT_LAST || s->pass_end_ns == 0 ||
        now->pinned_bytes > s->answer_pinned_bytes ||
        token.token_ns < token.wall_ns) {
        begin_answer(s);
    } else {
        struct mw_options o = session_options_now(s);

        s->answer.crowding = pool_crowding(s->pool);
        s->answer.n_seen = kv_tokens(s->kv);
        if (o.mirror == NULL) /* which is none of the settings that are remembered */
            tried_add(&s->tried, token.token_ns, token.stall_ns, s->m, &o);
        if (anchors_add(&s->answer, &token))
            anchors_take(&s->answer, ANCHORS_KEPT, s->m, &o, &s->input, &s->plan);
    }
    s->answer_pinned_bytes = now->pinned_bytes;
}

/* Correct the limits by the pass of n tokens that began at from_ns. */
static void observe_pass(struct mw_session *s, uint32_t n, enum want want, uint64_t from_ns)
{
    /* Two disks together are not the one whose rate is kept, nor is that of another folder. */
    bool is_throttled = s->settled.o.disk_rate > 0 || s->settled.o.mirror != NULL ||
                        s->plan.has_kv_disk || s->plan.n_slot < s->weights.shape.n_slot;
    struct observe_at now = observe_now(s);
    struct mw_limits l = limits_of(s->m);
    int64_t now_s = (int64_t)time(NULL);
    bool is_corrected = false;

    if (strncmp(stream_io_name(s->weights.stream), "direct/", 7) == 0)
        is_corrected = observe_disk(&s->observer, &now, is_throttled, now_s, &l);
    if (l.n_thread == 0 || l.n_thread == s->settled.o.n_thread) {
        if (n == 1 && want == WANT_LAST)
            is_corrected |=
                observe_memory(s->m->hot_bytes - counter_get(&s->telemetry->saved_bytes),
                               now.t_ns - from_ns, now_s, &l);
        is_corrected |= observe_pass_products(s, n, want, now_s, &l);
    }
    if (is_corrected) {
        limits_correct(s->m, &l);
        publish_limits(s);
    }
    observe_answer(s, n, want, &now);
    s->pass_end_ns = now.t_ns;
}

void session_forget_tokens(struct mw_session *s)
{
    struct err ignored = ERR_INIT;
    uint32_t kept;

    (void)mw_session_rewind(s, 0, &kept, &ignored);
}

int eval_chunk(struct mw_session *s, uint32_t n, enum want want, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);
    uint64_t from_ns = clock_ns();

    if (from_ns - s->pass_end_ns > PAUSE_NS) {
        struct observe_at now = observe_now(s);
        struct err ignored = ERR_INIT;

        observe_begin(&s->observer, &now);
        s->pass_end_ns = 0; /* the pause is not of a token */
        if (plan_input_formula(s->m, &s->settled.o, &s->input, &ignored) != 0)
            s->input = (struct plan_input){ 0 };
    }
    if (settle_memory(s, n, e) != 0 || head_before_pass(s, e) != 0)
        return -1;
    if (forward_run(s->work->forward, s->tokens.id + held, n, want, s->tokens.in_tiles[held],
                    e) != 0) {
        if (e->code == ERR_IO && strcmp(e->file, SOURCE_KV_NAME) == 0)
            session_forget_tokens(s);
        return -1;
    }
    head_after_pass(s, held, n, want);
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
        if (row(ctx, pos + i, forward_logits(s->work->forward) + (size_t)i * s->m->desc->n_vocab,
                e) != 0)
            return -1;
    return 0;
}

static int check_parts(const struct mw_session *s, struct err *e)
{
    if (s->work != NULL)
        return 0;
    return err_set(e, ERR_MEMORY,
                   "changing options failed, and the previous options could not be restored");
}

/* Maximum tokens of a chunk, by the plan in force. */
static uint32_t chunk_max(const struct mw_session *s, bool has_rows)
{
    uint32_t most = s->plan.chunk;

    return has_rows && most > s->settled.o.n_logit_row ? s->settled.o.n_logit_row : most;
}

/* The end of a chunk of n tokens, where a copy is due before it. */
static uint32_t chunk_to_mark(const struct mw_session *s, uint32_t n)
{
    const uint32_t marks[] = { s->mark_at, s->beginning_at };
    uint32_t held = kv_tokens(s->kv);

    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (marks[i] > held && marks[i] - held < n)
            n = marks[i] - held;
    return n;
}

/* Make the copies that are due at this position. */
static void mark_here(struct mw_session *s)
{
    uint32_t held = kv_tokens(s->kv);

    if (s->beginning_at == held) {
        s->beginning_at = 0;
        copies_mark(s->copies);
        publish_memory(s);
    }
    if (s->mark_at == held)
        session_mark(s);
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

        chunk = chunk_to_mark(s, chunk);
        is_last = done + chunk == n;
        s->step_from = done;
        s->step_n = chunk;
        s->step_total = n;
        rc = row != NULL ? eval_rows(s, chunk, row, ctx, e)
                         : eval_chunk(s, chunk, is_last ? WANT_LAST : WANT_NONE, e);
        if (rc != 0) {
            cancel_clear(&s->own_cancel);
            return -1;
        }
        done += chunk;
        if (follow_prompt(s, kv_tokens(s->kv) - chunk, chunk, e) != 0) {
            cancel_clear(&s->own_cancel);
            return -1;
        }
        mark_here(s);
        if (s->progress != NULL)
            s->progress(s->progress_ctx, done, n, false);
        if (check_parts(s, e) != 0)
            return -1;
    }
    s->has_logits = row == NULL && n > 0;
    return 0;
}

int mw_session_eval(struct mw_session *s, const uint32_t *ids, size_t n, mw_row_fn *row,
                    void *ctx, struct err *e)
{
    const struct products *products = NULL;

    s->has_logits = false;
    session_drop_drafts(s);
    s->drafts.n = 0;
    if (check_parts(s, e) != 0 || check_ids(s, ids, n, e) != 0 || follow_drafts(s, e) != 0)
        return -1;
    if (s->work->choice.has_blas)
        products = &s->work->choice.products;
    tokens_add_prompt(&s->tokens, products, kv_tokens(s->kv), ids, (uint32_t)n);
    return eval_tokens(s, (uint32_t)n, row, ctx, e);
}

int mw_session_eval_sampled(struct mw_session *s, uint32_t id, struct err *e)
{
    if (take_draft(s, id))
        return 0;
    reject_drafts(s);
    s->has_logits = false;
    leave_losing_drafter(s);
    if (check_parts(s, e) != 0 || check_ids(s, &id, 1, e) != 0 || follow_drafts(s, e) != 0 ||
        eval_with_drafts(s, id, e) != 0)
        return -1;
    s->has_logits = true;
    return 0;
}

void session_set_sampler(struct mw_session *s, struct mw_sampler *p)
{
    s->sampler = p;
}

/* The row of the last token that was sampled or evaluated. */
static float *last_row(const struct mw_session *s)
{
    size_t row = s->drafts.n - s->drafts.n_left;

    return forward_logits(s->work->forward) + row * s->m->desc->n_vocab;
}

const float *mw_session_logits(const struct mw_session *s)
{
    return s->has_logits ? last_row(s) : NULL;
}

float *session_logits(struct mw_session *s)
{
    return last_row(s);
}

uint32_t mw_session_tokens(const struct mw_session *s)
{
    return kv_tokens(s->kv) - s->drafts.n_left;
}

/* --- going back --- */

int mw_session_rewind(struct mw_session *s, uint32_t n, uint32_t *kept, struct err *e)
{
    session_drop_drafts(s);
    if (n > kv_tokens(s->kv))
        return err_set(e, ERR_ARGUMENT, "cannot go back to token %u: the session holds %u", n,
                       kv_tokens(s->kv));
    s->has_logits = n == kv_tokens(s->kv) && s->has_logits;
    if (n < kv_tokens(s->kv))
        begin_answer(s); /* a prompt of one token looks like one more token of the answer before */
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

/* --- looking in --- */

void mw_session_plan(const struct mw_session *s, struct plan *out)
{
    *out = s->plan;
}

void mw_session_sample(const struct mw_session *s, struct mw_sample *out)
{
    telemetry_sample(s->telemetry, out);
}

void mw_session_cancel(struct mw_session *s)
{
    cancel_set(s->cancel);
}

struct telemetry *session_telemetry(struct mw_session *s)
{
    return s->telemetry;
}

bool session_lost_mirror(struct mw_session *s, struct err *why)
{
    struct weights *w = &s->weights;

    if (w->stream == NULL || w->said_lost || !stream_lost_mirror(w->stream, why))
        return false;
    w->said_lost = true;
    return true;
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
    if (s->work != NULL)
        forward_set_progress(s->work->forward, fn == NULL ? NULL : report_progress, s);
}

const struct settled *session_settled(const struct mw_session *s)
{
    return &s->settled;
}

const struct mw_options *session_options(const struct mw_session *s)
{
    return &s->settled.o;
}
