/*
 * Drafted tokens of a session.
 *
 *     ids      … x | d1 d2 d3        x was sampled, d1 to d3 are drafted: one pass
 *     logits      r0 r1 r2 r3        r0 is the row for what follows x
 *
 * The sampler looks at r0.  If it takes d1, no pass is needed for it: r1 is there already.
 * Otherwise d1 to d3 are forgotten.  A row has the same bits whatever else is in its pass, so the
 * tokens of an answer are those of a session without drafts.
 */
#include "config.h"

#include "engine/session/session_internal.h"

#include "engine/base/clock.h"

/* Drafts that the next pass may verify. */
static uint32_t drafts_most(const struct mw_session *s)
{
    uint32_t left = s->settled.o.n_ctx - kv_tokens(s->kv) - 1;

    return s->plan.n_draft < left ? s->plan.n_draft : left;
}

/* Draft after the id at the end of the list. */
static void draft(struct mw_session *s)
{
    struct drafts *d = &s->drafts;
    uint32_t n = kv_tokens(s->kv) + 1, most;

    d->n = tokens_draft(&s->tokens, n, drafts_most(s), &d->match);
    if (d->n == 0)
        return;
    most = s->settled.o.draft_depth;
    if (most == 0)
        most = depth_choose(&d->depth, d->match, d->n);
    if (most > d->n)
        most = d->n;
    tokens_drop(&s->tokens, n + most);
    d->n = most;
}

/* One pass over the id and its drafts. */
static int run(struct mw_session *s, struct err *e)
{
    struct drafts *d = &s->drafts;
    uint64_t start = clock_ns();

    s->step_from = 0;
    s->step_n = s->step_total = 1;
    if (eval_chunk(s, d->n + 1, d->n > 0 ? WANT_ALL : WANT_LAST, e) != 0) {
        cancel_clear(&s->own_cancel);
        return -1;
    }
    d->n_left = d->n;
    depth_pass(&d->depth, d->n, (double)(clock_ns() - start) / 1e9);
    telemetry_drafted(s->telemetry, d->n);
    return 0;
}

int eval_with_drafts(struct mw_session *s, uint32_t id, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);
    struct err first = ERR_INIT;

    tokens_add_sampled(&s->tokens, held, id);
    draft(s);
    if (s->drafts.n == 0)
        return run(s, e);
    if (run(s, &first) == 0)
        return 0;
    /* Perhaps only a token that nobody asked for is the reason. */
    tokens_drop(&s->tokens, held + 1);
    s->drafts.n = 0;
    if (first.code != ERR_CANCELLED)
        return run(s, e);
    *e = first;
    return -1;
}

bool take_draft(struct mw_session *s, uint32_t id)
{
    struct drafts *d = &s->drafts;

    if (d->n_left == 0 || s->tokens.id[mw_session_tokens(s)] != id)
        return false;
    d->n_left--;
    depth_result(&d->depth, d->match, 1, false);
    telemetry_accepted(s->telemetry);
    return true;
}

void session_drop_drafts(struct mw_session *s)
{
    struct drafts *d = &s->drafts;
    uint32_t n = mw_session_tokens(s);

    if (d->n_left == 0)
        return;
    depth_result(&d->depth, d->match, 0, true);
    d->n -= d->n_left; /* the row of logits stays that of the last token */
    d->n_left = 0;
    tokens_drop(&s->tokens, n);
    kv_take_back(s->kv, n);
    publish_memory(s);
}
