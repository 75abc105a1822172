/*
 * Drafted tokens of a session.
 *
 *     ids      … x | d1 d2 d3        x was sampled, d1 to d3 are drafted: one pass
 *     logits      r0 r1 r2 r3        r0 is the row for what follows x
 *
 * The sampler looks at r0.  If it takes d1, no pass is needed for it: r1 is there already.
 * Otherwise d1 to d3 are forgotten.  A row has the same bits whatever else is in its pass, and
 * the sampler's random numbers belong to positions, so the tokens of an answer are those of a
 * session without drafts.
 */
#include "config.h"

#include "engine/session/session_internal.h"

#include <assert.h>
#include <math.h>

#include "engine/base/clock.h"
#include "engine/base/greatest.h"

#define TRIAL_MOST 3

static_assert(DRAFT_MOST == MW_DRAFT_MOST, "telemetry counts all drafts of a pass");

/* Drafts that the next pass may verify. */
static uint32_t drafts_most(const struct mw_session *s)
{
    uint32_t left = s->settled.o.n_ctx - kv_tokens(s->kv) - 1;

    return s->plan.n_draft < left ? s->plan.n_draft : left;
}

/* Returns the next random number from 0 to 1, the same ones in each session (splitmix64). */
static double draw(struct expected *x)
{
    uint64_t z = ++x->n_drawn * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

void mw_session_expect(struct mw_session *s, const uint32_t *ids, uint32_t n, double acceptance)
{
    s->expected = (struct expected){
        .ids = ids, .from = mw_session_tokens(s), .n = n, .acceptance = acceptance,
        .n_drawn = s->expected.n_drawn, /* answers are different samples */
    };
}

/* Choose a draft with the random numbers that the verifier will use, or as it is simulated. */
static uint32_t choose(void *ctx, float *logits, const uint32_t *before, size_t n_before)
{
    struct mw_session *s = ctx;
    struct expected *x = &s->expected;

    if (x->ids != NULL && n_before >= x->from && n_before - x->from < x->n) {
        uint32_t id = x->ids[n_before - x->from];

        return draw(x) < x->acceptance ? id : (id + 1) % s->m->desc->n_vocab;
    }
    return s->sampler != NULL ? mw_sampler_next(s->sampler, logits, before, n_before)
                              : greatest_of(logits, s->m->desc->n_vocab);
}

/* How many tokens to draft after n. */
static uint32_t choose_depth(struct mw_session *s, uint32_t n)
{
    struct drafts *d = &s->drafts;
    uint32_t most = drafts_most(s), wanted = s->settled.o.draft_depth;
    struct draft_look look;

    if (s->drafter == NULL || most == 0)
        return 0;
    look = s->drafter->calls->look(s->drafter, s->tokens.id, n);
    d->quality = look.quality;
    if (look.most < most)
        most = look.most;
    if (most == 0)
        return 0;
    if (wanted == 0)
        return depth_choose(&d->depth, d->quality, most);
    return wanted < most ? wanted : most;
}

/* The drafter may have failed. */
static void take_failure(struct mw_session *s)
{
    struct err *failure = &s->drafter->failure;

    if (failure->code != ERR_NONE)
        s->drafts.lost = *failure;
    failure->code = ERR_NONE;
}

bool session_lost_drafter(struct mw_session *s, struct err *why)
{
    struct err *lost = &s->drafts.lost;
    bool is_lost = lost->code != ERR_NONE;

    if (is_lost)
        *why = *lost;
    lost->code = ERR_NONE;
    return is_lost;
}

/* Draft after the id at the end of the list. */
static int draft(struct mw_session *s, struct err *e)
{
    struct drafts *d = &s->drafts;
    struct draft_choose by = { choose, s };
    uint64_t start = clock_ns(), ns;
    uint32_t n = kv_tokens(s->kv) + 1, most = choose_depth(s, n);

    d->n = 0;
    if (most == 0)
        return 0;
    if (s->drafter->calls->propose(s->drafter, s->tokens.id, n, most, &by, &d->n, e) != 0) {
        d->n = 0;
        return -1;
    }
    take_failure(s);
    tokens_add_drafts(&s->tokens, n, d->n);
    ns = clock_ns() - start;
    depth_drafted(&d->depth, d->quality, d->n, (double)ns / 1e9);
    telemetry_drafting(s->telemetry, ns);
    return 0;
}

/* Time of a token without the drafter and with more pinned weights instead, as it is predicted, for
 * each that a pass without drafts takes. */
static double share_without(const struct plan *p)
{
    return p->undrafted_tps > 0 && p->pass_tps > 0 ? p->pass_tps / p->undrafted_tps : 1;
}

/* How many to draft while their cost is unknown.  A plan that predicts a gain knows that it is
 * small, and one draft at a time may not pay for the memory of the drafter. */
static uint32_t trial_of(const struct plan *p)
{
    uint32_t n = p->assumed > 0 ? p->draft_depth : 1;

    return n > TRIAL_MOST ? TRIAL_MOST : n > 1 ? n : 1;
}

/* One pass over the id and its drafts. */
static int run(struct mw_session *s, struct err *e)
{
    struct drafts *d = &s->drafts;
    uint64_t start = clock_ns(), ns;

    s->step_from = 0;
    s->step_n = s->step_total = 1;
    if (eval_chunk(s, d->n + 1, d->n > 0 ? WANT_ALL : WANT_LAST, e) != 0)
        return -1;
    d->n_left = d->n;
    d->n_pass = d->n + 1;
    d->pos = kv_tokens(s->kv) - d->n_pass;
    ns = clock_ns() - start;
    d->gap.n_token += d->was_left;
    d->depth.share = share_without(&s->plan);
    d->depth.trial = trial_of(&s->plan);
    depth_pass(&d->depth, d->n, (double)ns / 1e9);
    telemetry_drafted(s->telemetry, d->n, d->n > 0 && d->quality == DEPTH_HEAD, ns);
    return 0;
}

static int draft_and_run(struct mw_session *s, uint32_t id, struct err *e)
{
    uint32_t held = kv_tokens(s->kv);
    struct err first = ERR_INIT;

    tokens_add_sampled(&s->tokens, held, id);
    if (draft(s, e) != 0)
        return -1;
    if (s->drafts.n == 0)
        return run(s, e);
    if (run(s, &first) == 0)
        return 0;
    if (kv_tokens(s->kv) != held) { /* the keys and values are lost */
        *e = first;
        return -1;
    }
    /* Perhaps only a token that nobody asked for is the reason. */
    tokens_drop(&s->tokens, held + 1);
    s->drafts.n = 0;
    if (first.code != ERR_CANCELLED)
        return run(s, e);
    *e = first;
    return -1;
}

int eval_with_drafts(struct mw_session *s, uint32_t id, struct err *e)
{
    int rc = draft_and_run(s, id, e);

    if (rc != 0)
        cancel_clear(&s->own_cancel);
    return rc;
}

bool take_draft(struct mw_session *s, uint32_t id)
{
    struct drafts *d = &s->drafts;

    if (d->n_left == 0 || s->tokens.id[mw_session_tokens(s)] != id)
        return false;
    telemetry_accepted(s->telemetry, d->n - d->n_left);
    d->n_left--;
    depth_result(&d->depth, d->quality, 1, false);
    return true;
}

/* The drafter was closed. */
static void note_left(struct mw_session *s, enum mw_draft left)
{
    struct drafts *d = &s->drafts;

    d->was_left = true;
    d->left = left;
    d->depth.stake = 0; /* earlier text may draft on, with what it gains */
    s->plan.no_drafter = MW_DRAFTER_CLOSED;
}

void leave_losing_drafter(struct mw_session *s)
{
    struct drafts *d = &s->drafts;
    struct mw_options without = s->settled.asked;
    const enum mw_draft left = without.draft;
    const double share = d->depth.share;
    const double made_s = d->open_s + (double)stream_low_ns(s->weights.stream) / 1e9;
    struct depth_gap gap = d->gap;
    struct err ignored = ERR_INIT;

    if (s->drafter == NULL || without.draft_depth > 0 || !depth_is_lost(&d->depth))
        return;
    depth_gap_begin(&gap, &d->depth);
    mw_options_without_drafter(&without);
    if (session_set(s, &without, &ignored) != 0)
        return; /* the session is as before, or cannot go on */
    d->left_share = share;
    d->left_s = made_s;
    d->gap = gap;
    note_left(s, left);
}

void leave_lost_head(struct mw_session *s, enum mw_draft draft)
{
    struct mw_options without = s->settled.asked;
    struct err ignored = ERR_INIT;

    if (!s->plan.has_head || s->head != NULL)
        return;
    without.draft = draft;
    mw_options_without_drafter(&without);
    if (session_set(s, &without, &ignored) == 0)
        note_left(s, draft);
}

/* Returns what opening the closed drafter takes, in tokens without it. */
static double opening_price(const struct mw_session *s)
{
    const struct drafts *d = &s->drafts;
    double again_s = d->left_s;

    if (!(d->depth.narrow_s > 0)) /* not measured */
        return INFINITY;
    if (d->n_text > 0)
        again_s += d->text_s / (double)d->n_text * mw_session_tokens(s);
    return depth_moving(d->left_share) + again_s / d->depth.narrow_s;
}

bool session_try_drafter(struct mw_session *s, session_opens_fn *opens, void *ctx, struct err *e)
{
    struct drafts *d = &s->drafts;
    struct mw_options with = s->settled.asked;
    struct depth_gap gap = d->gap;

    if (!d->was_left || !depth_gap_is_over(&gap, opening_price(s)))
        return false;
    with.draft = d->left;
    d->was_left = false; /* otherwise, they would be the options that leave it closed */
    d->was_left = session_set_drafter(s, &with, opens, ctx, e) != 0;
    leave_lost_head(s, with.draft);
    gap.n_token = 0;
    d->gap = gap;
    return !d->was_left && s->drafter != NULL;
}

void session_drop_drafts(struct mw_session *s)
{
    struct drafts *d = &s->drafts;
    uint32_t n = mw_session_tokens(s);

    if (d->n_left == 0)
        return;
    d->n -= d->n_left; /* the row of logits stays that of the last token */
    d->n_left = 0;
    tokens_drop(&s->tokens, n);
    forward_take_back(s->work->forward, s->tokens.id + d->pos, n - d->pos);
    publish_memory(s);
}

void reject_drafts(struct mw_session *s)
{
    struct drafts *d = &s->drafts;

    if (d->n_left > 0)
        depth_result(&d->depth, d->quality, 0, true);
    session_drop_drafts(s);
}

static bool follows(const struct mw_session *s)
{
    return s->drafter != NULL && s->drafter->calls->follow != NULL;
}

/* Report a pass over text, and measure how long the drafter takes to evaluate it. */
static int follow(struct mw_session *s, uint32_t pos, uint32_t n, uint64_t *ns, struct err *e)
{
    struct draft_pass pass = { .ids = s->tokens.id, .pos = pos, .n = n };
    uint64_t start = clock_ns(), before = s->drafter->n_followed;
    int rc = n > 0 ? s->drafter->calls->follow(s->drafter, &pass, e) : 0;

    *ns = clock_ns() - start;
    take_failure(s);
    s->drafts.text_s += (double)*ns / 1e9;
    s->drafts.n_text += s->drafter->n_followed - before;
    return rc;
}

int follow_prompt(struct mw_session *s, uint32_t pos, uint32_t n, struct err *e)
{
    uint64_t ns;

    return follows(s) ? follow(s, pos, n, &ns, e) : 0;
}

int follow_drafts(struct mw_session *s, struct err *e)
{
    struct drafts *d = &s->drafts;
    uint32_t held = mw_session_tokens(s), n = held > d->pos ? held - d->pos : 0;
    uint64_t ns;
    int rc;

    /* After going back, less of the pass is text. */
    if (n > d->n_pass)
        n = d->n_pass;
    d->n_pass = 0;
    /* Without a stake, nothing is drafted soon, and the next draft evaluates what is missing. */
    if (!follows(s) || !(d->depth.stake > 0 || s->settled.o.draft_depth > 0))
        return 0;
    rc = follow(s, d->pos, n, &ns, e);
    depth_followed(&d->depth, (double)ns / 1e9);
    telemetry_drafting(s->telemetry, ns);
    return rc;
}
