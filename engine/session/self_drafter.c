/*
 * The model drafts for itself, with copies of the streamed weights in few bits: a pass over them
 * and the pinned weights reads nothing.  It uses the session's pass, and writes keys and values
 * at the positions of the drafts.  The pass that verifies them writes there again.
 */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/draft/depth.h"
#include "engine/session/draft_model.h"
#include "engine/session/session_internal.h"

#define QUALITY 3 /* of its drafts, before any was verified */

/* The types that copies can have, those with most bits first.  Plans assume that fewer bits are
 * right less often, as published figures say (tests/bench/README.md).  The guide's are right as
 * often with all of them, but its answers are learned by heart. */
static const struct {
    enum mw_copies copies;
    enum tensor_type type;
    double acceptance; /* that plans assume */
} types[] = {
    { MW_COPIES_Q4_0, TYPE_Q4_0, 0.8 },
    { MW_COPIES_Q3_K, TYPE_Q3_K, 0.7 },
    { MW_COPIES_Q2_K, TYPE_Q2_K, 0.5 },
};

#define N_TYPE (sizeof types / sizeof types[0])

static_assert(N_TYPE == PLAN_LOW_TYPES, "the plan chooses among all of them");

static uint64_t row_bytes(const struct mw_model *m, enum tensor_type low, uint32_t span)
{
    const struct tensor_type_info *t = tensor_type_info(m->span_types[span]);
    uint64_t n_k = m->spans[span].row_bytes / t->block_bytes * t->block_elems;

    return tensor_row_bytes(forward_low_type(low, m->span_types[span], n_k), n_k);
}

static uint64_t all_bytes(const struct mw_model *m, enum tensor_type low, uint32_t n_block)
{
    uint64_t bytes = (uint64_t)n_block * 64; /* each copy is rounded up */

    for (uint32_t i = 0; i < m->n_span; i++)
        bytes += m->spans[i].n_row * row_bytes(m, low, i);
    return bytes;
}

int self_types(const struct mw_model *m, enum mw_copies copies, uint32_t n_block,
               struct plan_input *in, struct err *e)
{
    in->n_low = 0;
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
    for (size_t i = 0; i < N_TYPE; i++) {
        struct plan_low *low = &in->low[in->n_low];

        if (copies != MW_COPIES_AUTO && copies != types[i].copies)
            continue;
        *low = (struct plan_low){ .type = types[i].type,
                                  .all_bytes = all_bytes(m, types[i].type, n_block),
                                  .acceptance = types[i].acceptance };
        snprintf(low->name, sizeof low->name, "%s", tensor_type_info(types[i].type)->name);
        in->n_low++;
    }
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

/* Let the stream keep the copies of this plan. */
static int keep_copies(struct mw_session *s, const struct plan *plan, struct err *e)
{
    const struct mw_model *m = s->m;
    uint64_t *rows = calloc(m->n_span, sizeof *rows);
    struct stream_low low = { .pinned_bytes = plan->low_beside_bytes,
                              .bytes = plan->low_bytes,
                              .row_bytes = rows,
                              .type = (uint32_t)plan->low.type };
    int rc;

    if (rows == NULL)
        return err_memory(e, "the drafter");
    for (uint32_t i = 0; i < m->n_span; i++)
        rows[i] = row_bytes(m, (enum tensor_type)plan->low.type, i);
    rc = stream_keep_low(s->weights.stream, &low, e);
    free(rows);
    return rc;
}

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
    if (keep_copies(s, plan, e) != 0) {
        free(x->telemetry);
        free(x);
        return -1;
    }
    *out = &x->drafter;
    return 0;
}
