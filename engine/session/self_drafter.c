/*
 * The model drafts for itself, with copies of the streamed weights in few bits: a pass over them
 * and the pinned weights reads nothing.  It uses the session's pass, and writes keys and values
 * at the positions of the drafts.  The pass that verifies them writes there again.
 */
#include "config.h"

#include <stdlib.h>

#include "engine/draft/depth.h"
#include "engine/session/draft_model.h"
#include "engine/session/session_internal.h"

#define QUALITY 3 /* of its drafts, before any was verified */

uint64_t self_row_bytes(const struct mw_model *m, uint32_t span)
{
    const struct tensor_type_info *t = tensor_type_info(m->span_types[span]);
    uint64_t bytes = m->spans[span].row_bytes;

    return forward_low_row_bytes(bytes / t->block_bytes * t->block_elems, bytes);
}

int self_bytes(const struct mw_model *m, uint32_t n_block, uint64_t *all, struct err *e)
{
    *all = 0;
    if (recurrent_bytes(&m->desc->recurrent) > 0)
        return err_set(e, ERR_UNSUPPORTED,
                       "a model with recurrent state cannot draft for itself");
    if (m->desc->hp->n_expert > 0)
        return err_set(e, ERR_UNSUPPORTED, "a mixture of experts cannot draft for itself");
    for (uint32_t i = 0; i < m->n_span; i++)
        if (m->spans[i].stays_as_in_file || m->span_types[i] == TYPE_F8_E4M3)
            return err_set(e, ERR_UNSUPPORTED,
                           "a model with latent attention, or with weights whose scales are "
                           "apart, cannot draft for itself");
    for (uint32_t i = 0; i < m->n_span; i++)
        *all += m->spans[i].n_row * self_row_bytes(m, i);
    *all += (uint64_t)n_block * 64; /* each copy is rounded up */
    return 0;
}

struct self_drafter {
    struct drafter drafter;
    struct mw_session *s;
    struct telemetry *telemetry; /* of its passes, which nobody shows */
};

static struct self_drafter *of(struct drafter *d)
{
    return (struct self_drafter *)(void *)d;
}

/* Copies are made as blocks are read: until the last one is there, nothing is drafted. */
static struct draft_look look(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    bool is_ready = stream_low_ready(of(d)->s->weights.stream);

    (void)ids;
    (void)n;
    return (struct draft_look){ .most = is_ready ? DRAFT_MOST : 0, .quality = QUALITY };
}

static int propose(struct drafter *d, uint32_t *ids, uint32_t n, uint32_t most,
                   const struct draft_choose *choose, uint32_t *n_draft, struct err *e)
{
    struct mw_session *s = of(d)->s;
    struct forward *f = s->work->forward;
    struct err failed = ERR_INIT;
    uint32_t n_run = 0;

    *n_draft = 0;
    if (settle_memory(s, most + 1, e) != 0)
        return -1;
    /* It may have unpinned a block that has no copy yet. */
    while (*n_draft < most && stream_low_ready(s->weights.stream) &&
           forward_run_low(f, ids[n - 1 + n_run], of(d)->telemetry, &failed) == 0) {
        uint32_t at = n + n_run++;

        ids[at] = choose->next(choose->ctx, forward_logits(f), ids, at);
        ++*n_draft;
    }
    if (n_run > 0)
        kv_take_back(s->kv, n_run);
    if (failed.code != ERR_CANCELLED) /* another one is met by the pass that verifies, or it is
                                         of the copies */
        return 0;
    *e = failed;
    return -1;
}

static void rewind_to(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    (void)d;
    (void)ids;
    (void)n;
}

static uint64_t used(const struct drafter *d)
{
    const struct self_drafter *x = (const struct self_drafter *)(const void *)d;

    return stream_low_bytes(x->s->weights.stream) + sizeof *x->telemetry;
}

static void free_all(struct drafter *d)
{
    stream_drop_low(of(d)->s->weights.stream);
    free(of(d)->telemetry);
    free(d);
}

static const struct drafter_calls calls = { .name = "self",
                                            .look = look,
                                            .propose = propose,
                                            .rewind = rewind_to,
                                            .used = used,
                                            .free = free_all };

int self_drafter_new(struct drafter **out, struct mw_session *s, const struct plan *plan,
                     struct err *e)
{
    struct self_drafter *x = calloc(1, sizeof *x);

    *out = NULL;
    if (x == NULL || (x->telemetry = calloc(1, sizeof *x->telemetry)) == NULL) {
        free(x);
        return err_memory(e, "the drafter");
    }
    x->drafter.calls = &calls;
    x->s = s;
    if (stream_keep_low(s->weights.stream, plan->pinned_bytes, plan->low_bytes, e) != 0) {
        free(x->telemetry);
        free(x);
        return -1;
    }
    *out = &x->drafter;
    return 0;
}
