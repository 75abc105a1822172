/*
 * The diagnosis of answers: how fast, what limits them, and which change of the settings would
 * make them faster.
 *
 * Measured values come first.  A rate with other settings is the measured one, scaled by the
 * predicted times of a token with both settings at the same place of the conversation.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/machine/machine.h"
#include "engine/plan/advice.h"
#include "engine/session/anchors.h"
#include "engine/session/options.h"
#include "engine/session/plan_input.h"
#include "engine/telemetry/shares.h"

/* A proposed budget leaves this much memory to the rest of the machine, but at most this share. */
#define KEEP_FREE  (512 * MIB)
#define KEEP_SHARE 16
/* A proposed size stays while the new one is within a quarter of it and hardly faster. */
#define SAME_SIZE 1.25

/* Where the conversation is, and how fast it is there. */
struct base {
    uint32_t n_seen;  /* 0: at the end of the context */
    double tps;       /* with the settings in use; 0: not measured */
    double formula_s; /* predicted for the same */
    double plain_s;   /* the same from the limits alone */
    /* The settings of the newest tokens that were measured, and the least time of a pass that
     * another budget is promised to give (advice_least()); 0: none were. */
    struct mw_options measured;
    double least_s;
};

static bool has_kv(const struct mw_sample *s, const struct mw_options *o)
{
    return strcmp(s->run.kv_k, mw_kv_name(o->kv_k)) == 0 &&
           strcmp(s->run.kv_v, mw_kv_name(o->kv_v)) == 0 &&
           s->run.threads == (uint32_t)o->n_thread;
}

/* The drafter of the session: a diagnosis may be of another one, and one that lost was closed. */
static void use_drafter(const struct mw_model *m, struct mw_options *o)
{
    struct mw_options session;

    if (!anchors_in_use(m, &session))
        return;
    o->draft = session.draft;
    o->draft_file = session.draft_file;
    o->draft_copies = session.draft_copies;
}

static bool has_drafter(const struct mw_model *m, const struct mw_options *o)
{
    struct mw_options same = *o;

    use_drafter(m, &same);
    return options_reach(NULL, &same, o) == MW_REACH_NOTHING;
}

static bool has_settings(const struct mw_model *m, const struct mw_sample *s,
                         const struct mw_options *o)
{
    return s->run.budget_bytes == o->memory_bytes && s->run.ctx == o->n_ctx && has_kv(s, o) &&
           has_drafter(m, o);
}

/* The settings that the sample was taken with, as far as a diagnosis changes them. */
static struct mw_options settings_of(const struct mw_model *m, const struct mw_sample *s,
                                     const struct mw_options *o)
{
    struct mw_options in_use = *o;
    int k = mw_kv_parse(s->run.kv_k), v = mw_kv_parse(s->run.kv_v);

    use_drafter(m, &in_use);
    in_use.memory_bytes = s->run.budget_bytes;
    in_use.n_ctx = s->run.ctx;
    in_use.n_thread = (int)s->run.threads;
    if (k >= 0 && v >= 0) {
        in_use.kv_k = (enum mw_kv)k;
        in_use.kv_v = (enum mw_kv)v;
    }
    return in_use;
}

static uint32_t seen_of(const struct mw_sample *s, uint32_t n_ctx)
{
    uint64_t n = s->kv.tokens > s->kv.context ? s->kv.tokens : s->kv.context;

    n = n > 0 ? n : 1;
    return n < n_ctx ? (uint32_t)n : n_ctx;
}

/* Seconds of a token with the drafts that are assumed, and the pass for it.  0: not known. */
static double token_of(struct mw_model *m, const struct mw_options *o, uint32_t n_seen,
                       struct plan_input *in, struct plan_outlook *out)
{
    struct err ignored = ERR_INIT;

    *out = (struct plan_outlook){ 0 };
    if (plan_input_of(m, o, in, &ignored) != 0)
        return 0;
    return advice_token(in, n_seen > 0 && n_seen < o->n_ctx ? n_seen : o->n_ctx, out);
}

/* Seconds of a token whose pass is promised to take at least so long. */
static double at_least(double least_s, const struct plan_outlook *then)
{
    double tokens = then->token.wall_s * then->tps; /* by drafts, in the time of a pass for one */

    return tokens > 0 ? fmax(1 / then->tps, least_s / tokens) : 0;
}

static struct base base_of(struct mw_model *m, const struct mw_options *o,
                           const struct mw_sample *s)
{
    struct base b = { 0 };
    struct plan_input in;
    struct plan_outlook now;
    struct mw_rates rates;
    double token_s = 0; /* of tokens that ran with these settings, or with other kernels */
    bool holds = true;

    if (s == NULL || s->run.ctx == 0)
        return b;
    b.n_seen = seen_of(s, s->run.ctx);
    mw_rates(s, &rates);
    /* Tokens that came with accepted drafts say nothing about another drafter, or none. */
    if (rates.token_s > 0 && (rates.passes_per_token >= 1 || has_drafter(m, o))) {
        b.measured = settings_of(m, s, o);
        token_s = rates.token_s;
    } else {
        token_s = anchors_measured(m, o, &b.measured, &holds);
        if (!(token_s > 0))
            return b;
        if (holds) /* the formula begins there */
            token_s = 0;
        else /* these were passes without drafts */
            b.measured.draft = MW_DRAFT_OFF;
    }
    b.formula_s = token_of(m, &b.measured, b.n_seen, &in, &now);
    b.least_s = advice_least(&in, &now.token);
    in.factors = (struct plan_factors){ 0 };
    b.plain_s =
        advice_token(&in, b.n_seen < b.measured.n_ctx ? b.n_seen : b.measured.n_ctx, &now);
    b.tps = b.formula_s > 0 && token_s > 0 ? 1 / token_s : 0;
    return b;
}

/* The rate with settings for which the formula predicts these seconds. */
static double rate_at(const struct base *b, double formula_s)
{
    if (!(formula_s > 0))
        return 0;
    return b->tps > 0 ? b->tps * b->formula_s / formula_s : 1 / formula_s;
}

/* ---- advice ---- */

static void propose(struct mw_diagnosis *d, const char *key, double to_tps)
{
    snprintf(d->advice, sizeof d->advice, "%s", key);
    d->to_tps = to_tps;
}

static bool is_worth(const struct mw_diagnosis *d, double to_tps)
{
    return to_tps >= ADVICE_GAIN * d->tps;
}

static bool is_near(uint64_t a, uint64_t b)
{
    return (double)a < SAME_SIZE * (double)b && (double)b < SAME_SIZE * (double)a;
}

/* The most that a budget may be, and the limit that says so. */
static uint64_t most_budget(char *why, size_t n)
{
    struct mw_machine machine;
    uint64_t keep;

    mw_machine_read(&machine);
    keep = machine.budget_bytes / KEEP_SHARE;
    snprintf(why, n, "%.*s", (int)n - 1, machine.budget_short);
    if (machine.budget_bytes == machine.budget_of) /* alone in a group: nobody else needs it */
        return machine.budget_bytes;
    return machine.budget_bytes - (keep < KEEP_FREE ? keep : KEEP_FREE);
}

/* Propose a larger budget if it is worth that.  Blocks grow with it, so its own plan decides. */
static bool propose_budget(struct mw_model *m, const struct mw_options *o, const struct base *b,
                           uint64_t bytes, double least_s, struct mw_diagnosis *d)
{
    struct mw_options then = *o;
    struct plan_input larger;
    struct plan_outlook to;
    double rate;

    then.memory_bytes = bytes;
    (void)token_of(m, &then, b->n_seen, &larger, &to);
    rate = rate_at(b, at_least(least_s, &to));
    if (bytes <= o->memory_bytes || !(to.tps > 0) || !is_worth(d, rate))
        return false;
    propose(d, "more_budget", rate);
    d->budget_bytes = bytes;
    return true;
}

/* The smallest larger budget that is nearly as good as any. */
static void try_budget(struct mw_model *m, const struct mw_options *o, const struct base *b,
                       const struct mw_diagnosis *last, const struct plan_input *in,
                       double least_s, struct mw_diagnosis *d)
{
    uint32_t n_seen = b->n_seen > 0 ? b->n_seen : o->n_ctx;
    char why[sizeof d->held_back];
    uint64_t most = most_budget(why, sizeof why), bytes, nothing;
    struct mw_diagnosis same;
    bool is_proposed;

    nothing = plan_reads_nothing_budget(in);
    if (nothing > most && nothing != UINT64_MAX)
        snprintf(d->held_back, sizeof d->held_back, "%s", why);
    same = *d;
    bytes = advice_budget(in, n_seen, most);
    if (bytes == 0)
        return;
    bytes = advice_round_up(bytes);
    bytes = bytes < most ? bytes : advice_within(most);
    is_proposed = propose_budget(m, o, b, bytes, least_s, d);
    if (strcmp(last->advice, "more_budget") == 0 && last->budget_bytes <= most &&
        is_near(last->budget_bytes, bytes) &&
        propose_budget(m, o, b, last->budget_bytes, least_s, &same) &&
        (!is_proposed || same.to_tps >= ADVICE_ENOUGH * d->to_tps))
        *d = same;
}

/* Copies of the streamed weights that draft, where nobody chose how to draft and the model has no
 * head.  They need no more budget, but how many of their drafts will be right is an assumption. */
static void try_copies(struct mw_model *m, const struct mw_options *o, struct mw_diagnosis *d)
{
    struct mw_options then = *o;
    struct err ignored = ERR_INIT;
    struct plan_input in;
    double rate, acceptance;

    then.draft = MW_DRAFT_SELF;
    if (o->draft != MW_DRAFT_AUTO || options_head(m, o) != HEAD_UNUSED ||
        plan_input_of(m, &then, &in, &ignored) != 0)
        return;
    rate = d->tps * advice_copies(&in, &acceptance);
    if (!is_worth(d, rate) || rate <= d->to_tps)
        return;
    propose(d, "self_drafts", rate);
    d->budget_bytes = 0;
    d->acceptance = acceptance;
}

/* Half the bytes of a value: the types that have more than five bits. */
static bool has_smaller_type(const char *type)
{
    return strcmp(type, "F32") == 0 || strcmp(type, "F16") == 0 || strcmp(type, "BF16") == 0 ||
           strncmp(type, "Q8_", 3) == 0 || strncmp(type, "Q6_", 3) == 0;
}

static void try_type(const struct mw_model *m, struct mw_diagnosis *d)
{
    struct mw_model_info info;

    mw_model_info(m, &info);
    if (has_smaller_type(info.type))
        propose(d, "smaller_type", 0);
}

static void try_kv(struct mw_model *m, const struct mw_options *o, const struct base *b,
                   struct mw_diagnosis *d)
{
    struct mw_options then = *o;
    struct plan_input in;
    struct plan_outlook to;
    double rate;

    if (o->kv_k == MW_KV_F32 || o->kv_k == MW_KV_F16) {
        then.kv_k = then.kv_v = MW_KV_Q8_0;
        rate = rate_at(b, token_of(m, &then, b->n_seen, &in, &to));
        if (is_worth(d, rate)) {
            propose(d, "smaller_kv", rate);
            return;
        }
    }
    propose(d, "shorter_context", 0);
}

static void advise(struct mw_model *m, const struct mw_options *o, const struct base *b,
                   const struct mw_diagnosis *last, const struct plan_input *in,
                   const struct plan_outlook *now, struct mw_diagnosis *d)
{
    const struct plan_time *t = &now->token;
    double least_s = advice_least(in, t);

    if (d->binds == MW_BINDS_DISK) {
        try_budget(m, o, b, last, in, least_s, d);
        try_copies(m, o, d);
    } else if (d->binds == MW_BINDS_KV) {
        try_kv(m, o, b, d);
    }
    if (d->advice[0] == '\0' && d->binds == MW_BINDS_DISK && 
        t->paged_bytes > t->streamed_bytes + t->missed_bytes)
        try_kv(m, o, b, d);
    if (d->advice[0] == '\0' && (d->binds == MW_BINDS_DISK || d->binds == MW_BINDS_MEMORY))
        try_type(m, d);
}

/* ---- the diagnosis ---- */

/* Advice that follows from measured figures alone, not from a plan. */
static bool is_plain(const char *advice)
{
    return strcmp(advice, "less_budget") == 0 || strcmp(advice, "direct_io") == 0 ||
           strcmp(advice, "rows_only") == 0 || strcmp(advice, "other_programs") == 0;
}

/* By the verdict of measured tokens.  The prompt has a verdict, too, and no rate. */
static void take_measured(const struct mw_sample *s, const struct base *b,
                          struct mw_diagnosis *d)
{
    d->is_measured = true;
    d->tps = b->tps;
    d->binds = s->verdict.binds;
    d->share = s->verdict.share;
    d->part = s->verdict.part;
    if (is_plain(s->verdict.advice))
        snprintf(d->advice, sizeof d->advice, "%s", s->verdict.advice);
    if (strcmp(d->advice, "less_budget") == 0 &&
        s->run.budget_bytes > numbers_whole(s->verdict.advice_amount))
        d->budget_bytes = s->run.budget_bytes - numbers_whole(s->verdict.advice_amount);
}

int mw_diagnose(struct mw_model *m, const struct mw_options *o, const struct mw_sample *s,
                struct mw_diagnosis *out, struct err *e)
{
    struct mw_diagnosis last = *out, d = { 0 };
    struct mw_options resolved = *o;
    struct plan_input in, full;
    struct plan_outlook then, at_end;
    const struct plan_time *t = &then.token;
    struct base b;
    double formula_s;

    if (options_resolve(m, &resolved, e) != 0 || plan_input_of(m, &resolved, &in, e) != 0)
        return -1;
    b = base_of(m, &resolved, s);
    formula_s = token_of(m, &resolved, b.n_seen, &in, &then);
    /* Tokens say nothing about other kernels or I/O: then only the formula changes. */
    if (!in.factors.is_set)
        b.formula_s = b.plain_s;
    if (formula_s > 0 && in.factors.is_set && b.measured.kv_k == resolved.kv_k &&
        b.measured.kv_v == resolved.kv_v && b.measured.n_thread == resolved.n_thread)
        formula_s = at_least(b.least_s, &then);
    /* While a prompt is read there is a verdict, but no token yet. */
    if (s != NULL && s->verdict.binds != MW_BINDS_NONE && b.tps > 0 &&
        has_settings(m, s, &resolved)) {
        take_measured(s, &b, &d);
    } else {
        d.tps = rate_at(&b, formula_s);
        d.assumed = then.assumed;
        d.part = t->part;
        mw_shares_scale(&d.part);
        d.binds = formula_s > 0 ? mw_shares_bind(&d.part, &d.share) : MW_BINDS_NONE;
        d.read_bytes = (uint64_t)(t->streamed_bytes + t->missed_bytes + t->paged_bytes);
        d.reads_kv = t->paged_bytes >= 1;
    }
    d.full_tps = rate_at(&b, token_of(m, &resolved, resolved.n_ctx, &full, &at_end));
    /* d.tps and the anchor may be of different tokens, but no token gets faster with more
     * context. */
    if (d.tps > 0)
        d.full_tps = fmin(d.full_tps, d.tps);
    d.is_fast = d.tps >= ADVICE_READING_TPS;
    d.is_doubtful = plan_is_doubtful(&in);
    if (d.is_fast && d.binds != MW_BINDS_SWAP)
        d.advice[0] = '\0';
    else if (d.advice[0] == '\0' && d.tps > 0 && !d.is_doubtful)
        advise(m, &resolved, &b, &last, &in, &then, &d);
    *out = d;
    return 0;
}

bool anchors_diagnose(struct mw_model *m, const struct mw_sample *s, struct mw_diagnosis *d)
{
    struct err ignored = ERR_INIT;
    struct mw_options o;

    return anchors_in_use(m, &o) && has_settings(m, s, &o) &&
           mw_diagnose(m, &o, s, d, &ignored) == 0;
}
