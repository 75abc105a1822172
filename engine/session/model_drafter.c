/*
 * A model as a drafter.  It evaluates the text after the model has, with the threads and the reader
 * of the session, and keys and values of its own.
 *
 *     text       … x        the model sampled x
 *     propose    x -> d1, d1 -> d2, d2 -> d3
 *     rewind     d2 was wrong: its keys and values are forgotten
 *
 * A draft is chosen from its logits with the random numbers of that position, as the sampler
 * will choose.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/draft/depth.h"
#include "engine/model/forward.h"
#include "engine/plan/plan.h"
#include "engine/session/draft_model.h"
#include "engine/session/options.h"
#include "engine/session/product_choice.h"

#define CHUNK   32 /* tokens of a text that are evaluated together */
#define QUALITY 2  /* of its drafts, before any was verified */
#define SLACK   (64 * KIB) /* tables of arenas and keys */

struct model_drafter {
    struct drafter drafter;
    struct mw_model *m;
    struct telemetry *telemetry; /* of its passes, which nobody shows */
    struct stream *stream;
    struct kv *kv;
    struct arena activations, rows, logits, replay;
    struct kept_rows kept; /* empty */
    struct forward *forward;
    uint32_t n_vocab;    /* of the model that it drafts for */
    float *model_logits; /* [n_vocab], if that is more than its own; else NULL */
    uint64_t weights_bytes;
    bool has_small;  /* its small weights are loaded */
    bool has_failed; /* a pass of it: it drafts nothing from then on */
};

/* --- memory --- */

static void make_shape(const struct mw_model *m, const struct mw_options *o,
                       struct stream_shape *shape)
{
    shape_make(shape, m->spans, m->n_span, options_block(o));
}

static uint32_t ring_slots(const struct mw_model *m, uint32_t n_ctx)
{
    return plan_sliding_slots(m->desc->hp->n_swa, CHUNK, n_ctx);
}

/* Returns the size of model_logits. */
static uint64_t more_logit_bytes(const struct model_desc *d, uint32_t n_vocab)
{
    return n_vocab > d->n_vocab ? n_vocab * sizeof(float) : 0;
}

void draft_model_bytes(const struct mw_model *trunk, struct mw_model *m,
                       const struct mw_options *o, uint64_t *fixed, uint64_t *token)
{
    const struct model_desc *d = m->desc;
    struct forward_bytes bytes;
    struct stream_shape shape;
    uint64_t sliding = 0, global = 0;

    forward_bytes(d, o->n_thread, false, &bytes);
    make_shape(m, o, &shape);
    for (uint32_t i = 0; i < d->n_kv; i++)
        *(d->kv_specs[i].is_sliding ? &sliding : &global) +=
            kv_token_bytes(&d->kv_specs[i], KV_F16, KV_F16);
    *token = global;
    *fixed = sizeof(struct telemetry) + SLACK +
             stream_guest_bytes(m->spans, m->n_span, &shape) + desc_resident_bytes(m->desc) +
             bytes.act_fixed + CHUNK * bytes.act_col + bytes.rows_fixed +
             CHUNK * bytes.rows_col + forward_logit_bytes(d, 1) +
             more_logit_bytes(d, trunk->desc->n_vocab) + sliding * ring_slots(m, o->n_ctx) +
             global * KV_PAGE;
}

static uint64_t used(const struct drafter *d)
{
    const struct model_drafter *x = (const struct model_drafter *)(const void *)d;

    return sizeof *x->telemetry + x->m->resident.used + x->weights_bytes + x->activations.used +
           x->rows.used + x->logits.used + more_logit_bytes(x->m->desc, x->n_vocab) +
           kv_page_bytes(x->kv) + kv_sliding_bytes(x->kv);
}

/* --- drafting --- */

static struct model_drafter *of(struct drafter *d)
{
    return (struct model_drafter *)(void *)d;
}

/* Evaluate the ids up to n; has_logits: with those of the last one.  An id that the drafter does
 * not have is one that models do not use: any other one does as well. */
static int evaluate(struct model_drafter *x, const uint32_t *ids, uint32_t n, bool has_logits,
                    struct err *e)
{
    for (uint32_t held; (held = kv_tokens(x->kv)) < n;) {
        uint32_t chunk = n - held < CHUNK ? n - held : CHUNK, own[CHUNK];
        bool is_last = held + chunk == n;

        for (uint32_t i = 0; i < chunk; i++)
            own[i] = ids[held + i] < x->m->desc->n_vocab ? ids[held + i] : 0;
        if (forward_run(x->forward, own, chunk,
                        is_last && has_logits ? WANT_LAST : WANT_NONE, false, e) != 0)
            return -1;
    }
    return 0;
}

/* Returns the logits of all tokens of the model.  Those that the drafter does not have are never
 * chosen. */
static float *logits_of(struct model_drafter *x)
{
    float *own = forward_logits(x->forward);
    uint32_t n = x->m->desc->n_vocab;

    if (x->model_logits == NULL)
        return own;
    memcpy(x->model_logits, own, n * sizeof *own);
    for (uint32_t id = n; id < x->n_vocab; id++)
        x->model_logits[id] = -INFINITY;
    return x->model_logits;
}

static struct draft_look look(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    (void)ids;
    (void)n;
    return (struct draft_look){ .most = of(d)->has_failed ? 0 : DRAFT_MOST, .quality = QUALITY };
}

/* A file that cannot be read, or is damaged: the answer goes on without drafts. */
static int give_up(struct model_drafter *x, const struct err *failure, struct err *e)
{
    if (failure->code != ERR_CANCELLED) {
        x->has_failed = true;
        x->drafter.failure = *failure;
        return 0;
    }
    *e = *failure;
    return -1;
}

static int propose(struct drafter *d, uint32_t *ids, uint32_t n, uint32_t most,
                   const struct draft_choose *choose, uint32_t *n_draft, struct err *e)
{
    struct model_drafter *x = of(d);
    struct err failure = ERR_INIT;

    for (*n_draft = 0; *n_draft < most; ++*n_draft) {
        uint32_t at = n + *n_draft;

        if (evaluate(x, ids, at, true, &failure) != 0)
            return give_up(x, &failure, e);
        ids[at] = choose->next(choose->ctx, logits_of(x), ids, at);
    }
    return 0;
}

/* A text is evaluated as it comes, so that drafts need not wait for it.  A few tokens are left
 * to the next draft, which evaluates them with its first one. */
static int follow(struct drafter *d, const struct draft_pass *pass, struct err *e)
{
    struct model_drafter *x = of(d);
    uint32_t end = pass->pos + pass->n, held = kv_tokens(x->kv);
    struct err failure = ERR_INIT;
    int rc;

    if (x->has_failed || end < held + CHUNK / 2)
        return 0;
    rc = evaluate(x, pass->ids, end, false, &failure);
    d->n_followed += kv_tokens(x->kv) - held;
    return rc == 0 ? 0 : give_up(x, &failure, e);
}

static void rewind_to(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    struct model_drafter *x = of(d);

    (void)ids;
    if (n < kv_tokens(x->kv) && !kv_rewind(x->kv, n))
        (void)kv_rewind(x->kv, 0);
}

/* --- life --- */

static void free_all(struct drafter *d)
{
    struct model_drafter *x = of(d);

    forward_free(x->forward);
    arena_unmap(&x->activations);
    arena_unmap(&x->rows);
    arena_unmap(&x->logits);
    if (x->kv != NULL)
        kv_free(x->kv);
    stream_close(x->stream);
    if (x->has_small)
        model_unload_small(x->m);
    free(x->model_logits);
    free(x->telemetry);
    free(x);
}

static const struct drafter_calls calls = { .name = "model",
                                            .look = look,
                                            .propose = propose,
                                            .follow = follow,
                                            .rewind = rewind_to,
                                            .used = used,
                                            .free = free_all };

static int open_weights(struct model_drafter *x, const struct draft_model_parts *p,
                        struct err *e)
{
    struct stream_shape shape;

    make_shape(x->m, p->o, &shape);
    x->weights_bytes = stream_guest_bytes(x->m->spans, x->m->n_span, &shape);
    if (model_load_small(x->m, p->cancel, e) != 0)
        return -1;
    x->has_small = true;
    return stream_open_guest(&x->stream, p->stream, x->m->catalogue, x->m->spans, x->m->n_span,
                             &shape, x->telemetry, e);
}

static int open_pass(struct model_drafter *x, const struct draft_model_parts *p, struct err *e)
{
    const struct model_desc *d = x->m->desc;
    struct forward_bytes bytes;
    struct forward_parts parts = { .desc = x->m->desc,
                                   .kernels = kernels_of(p->o, e),
                                   .pool = p->pool,
                                   .stream = x->stream,
                                   .kv = x->kv,
                                   .telemetry = x->telemetry,
                                   .activations = &x->activations,
                                   .rows = &x->rows,
                                   .logits = &x->logits,
                                   .replay = &x->replay,
                                   .kept = &x->kept,
                                   .chunk = CHUNK,
                                   .n_logit_row = 1,
                                   .n_ctx = p->o->n_ctx,
                                   .cancel = p->cancel };

    forward_bytes(d, p->o->n_thread, false, &bytes);
    if (parts.kernels == NULL ||
        arena_map(&x->activations, "drafter", bytes.act_fixed + CHUNK * bytes.act_col, true,
                  e) != 0 ||
        arena_map(&x->rows, "drafter", bytes.rows_fixed + CHUNK * bytes.rows_col, true, e) !=
            0 ||
        arena_map(&x->logits, "drafter", forward_logit_bytes(d, 1), true, e) != 0)
        return -1;
    return forward_new(&x->forward, &parts, e);
}

int model_drafter_new(struct drafter **out, const struct draft_model_parts *p, struct err *e)
{
    struct model_drafter *x = calloc(1, sizeof *x);
    const struct model_desc *d = p->draft->desc;

    *out = NULL;
    if (x == NULL)
        return err_memory(e, "the drafter");
    x->drafter.calls = &calls;
    x->m = p->draft;
    x->n_vocab = p->n_vocab;
    x->telemetry = calloc(1, sizeof *x->telemetry);
    if (p->n_vocab > d->n_vocab)
        x->model_logits = calloc(p->n_vocab, sizeof *x->model_logits);
    if (x->telemetry == NULL || (p->n_vocab > d->n_vocab && x->model_logits == NULL)) {
        err_memory(e, "the drafter");
        goto fail;
    }
    if (kv_new(&x->kv, d->kv_specs, d->n_kv, KV_F16, KV_F16, p->o->n_ctx,
               ring_slots(x->m, p->o->n_ctx), d->hp->n_swa, e) != 0)
        goto fail;
    kv_touch(x->kv);
    if (open_weights(x, p, e) != 0 || open_pass(x, p, e) != 0)
        goto fail;
    *out = &x->drafter;
    return 0;

fail:
    free_all(&x->drafter);
    return -1;
}
