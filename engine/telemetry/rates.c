#include "config.h"

#include "engine/telemetry/rates.h"

#include <string.h>

#define LOOK_BACK 16u /* maximum number of passes */
#define FEW_PASSES 8   /* fewer have a mean that may be noise */

static const struct mw_token *token_at(const struct mw_sample *s, uint64_t i)
{
    return &s->recent[i % MW_RECENT];
}

/* Returns how many of the newest tokens are of the current answer and plan, and still known. */
static uint64_t known_tokens(const struct mw_sample *s)
{
    uint64_t n = s->n_token > s->n_token_before ? s->n_token - s->n_token_before : 0;

    n = n < s->n_decoded ? n : s->n_decoded;

    return n < MW_RECENT ? n : MW_RECENT;
}

static double per_second(double n, uint64_t ns)
{
    return ns > 0 && n > 0 ? n * 1e9 / (double)ns : MW_RATE_UNKNOWN;
}

/* The engine reports the time of the prompt when it is finished.  Until then the time since
 * the question counts. */
static uint64_t prefill_ns(const struct mw_sample *s)
{
    if (s->state == MW_PREFILL && s->prefill_ns == 0 && s->t_start_ns != 0 &&
        s->t_ns > s->t_start_ns)
        return s->t_ns - s->t_start_ns;
    return s->prefill_ns;
}

bool mw_token_is_draft(const struct mw_token *k)
{
    return k->n_col == 0 && k->wall_ns == 0;
}

struct sums {
    double wall, sample, stall, compute, attention, wait, bytes, expert_hits, expert_misses,
        expert_bytes;
    uint32_t n_token, n_pass;
};

static void add(struct sums *to, uint64_t wall, uint64_t stall, uint64_t compute,
                uint64_t attention, uint64_t bytes)
{
    to->wall += (double)wall;
    to->stall += (double)stall;
    to->compute += (double)compute;
    to->attention += (double)attention;
    to->bytes += (double)bytes;
}

static void add_experts(struct sums *to, uint64_t hits, uint64_t misses, uint64_t bytes)
{
    to->expert_hits += (double)hits;
    to->expert_misses += (double)misses;
    to->expert_bytes += (double)bytes;
}

/* Add up the passes of the newest tokens. */
static void sum_passes(const struct mw_sample *s, struct sums *out)
{
    uint64_t known = known_tokens(s);

    for (uint64_t back = 1; back <= known && out->n_pass < LOOK_BACK; back++) {
        const struct mw_token *k = token_at(s, s->n_token - back);

        if (k->n == 1)
            break; /* from the prompt's last pass, which differs from the others */
        out->wait += (double)k->wait_ns;
        out->sample += (double)k->sample_ns;
        add(out, k->wall_ns, k->stall_ns, k->compute_ns, k->attention_ns, k->bytes_pass);
        add_experts(out, k->expert_hits, k->expert_misses, k->expert_bytes);
        out->n_token++;
        out->n_pass += !mw_token_is_draft(k);
    }
}

/* Reading took bytes / limit.  The part without a stall went on during computing. */
static double overlap_of(const struct sums *sum, uint64_t limit)
{
    double read, shorter, beside;

    if (limit == 0 || sum->bytes <= 0)
        return MW_RATE_UNKNOWN;
    read = sum->bytes * 1e9 / (double)limit;
    shorter = read < sum->compute ? read : sum->compute;
    beside = read > sum->stall ? read - sum->stall : 0;
    if (shorter <= 0)
        return MW_RATE_UNKNOWN;
    return beside < shorter ? beside / shorter : 1;
}

/* While tokens are evaluated, their passes read what is missing. */
static double loading(const struct mw_sample *s)
{
    uint64_t bytes = s->mem.ahead_bytes, done = s->mem.ahead_done_bytes;

    return s->state == MW_IDLE && done < bytes ? (double)done / (double)bytes : MW_RATE_UNKNOWN;
}

void mw_rates(const struct mw_sample *s, struct mw_rates *out)
{
    struct sums sum = { 0 };

    out->decode_mean = s->n_decoded > 1 ? per_second((double)(s->n_decoded - 1), s->decode_ns)
                                        : MW_RATE_UNKNOWN;
    out->prefill = per_second((double)s->n_prompt_done, prefill_ns(s));
    out->first_s = s->t_first_ns > s->t_start_ns ? (double)(s->t_first_ns - s->t_start_ns) / 1e9
                                                 : MW_RATE_UNKNOWN;
    out->loading = loading(s);
    sum_passes(s, &sum);
    out->n_token = sum.n_token;
    out->passes_per_token = sum.n_token > 0 ? (double)sum.n_pass / sum.n_token : 1;
    if (out->n_token == 0) {
        add(&sum, s->pass.wall_ns, s->pass.stall_ns, s->pass.compute_ns, s->pass.attention_ns,
            s->pass.bytes_pass);
        sum.wait = (double)s->pass.wait_ns;
        add_experts(&sum, s->pass.expert_hits, s->pass.expert_misses, s->pass.expert_bytes);
    }
    out->expert_hits = sum.expert_hits + sum.expert_misses > 0
                           ? sum.expert_hits / (sum.expert_hits + sum.expert_misses)
                           : MW_RATE_UNKNOWN;
    out->expert_bytes = out->n_token > 0 && out->expert_hits >= 0
                            ? sum.expert_bytes / out->n_token
                            : MW_RATE_UNKNOWN;
    if (sum.wall <= 0) {
        out->read_bytes_s = out->wall_s = MW_RATE_UNKNOWN;
        out->token_s = out->decode_last = MW_RATE_UNKNOWN;
        out->stall_share = out->attention_share = out->wait_share = MW_RATE_UNKNOWN;
        out->overlap = out->read_per_token = MW_RATE_UNKNOWN;
        return;
    }
    out->read_bytes_s = sum.bytes * 1e9 / sum.wall;
    out->stall_share = mw_run_is_mapped(&s->run) ? MW_RATE_UNKNOWN : sum.stall / sum.wall;
    out->attention_share = sum.attention / sum.wall;
    out->wait_share = sum.wait / sum.wall;
    out->overlap =
        mw_run_is_mapped(&s->run) ? MW_RATE_UNKNOWN : overlap_of(&sum, s->disk_limit);
    out->wall_s = out->n_token > 0 ? sum.wall / 1e9 / out->n_token : MW_RATE_UNKNOWN;
    out->token_s =
        out->n_token > 0 ? (sum.wall + sum.sample) / 1e9 / out->n_token : MW_RATE_UNKNOWN;
    out->decode_last = out->n_token > 0 ? 1 / out->token_s : MW_RATE_UNKNOWN;
    out->read_per_token = out->n_token > 0 ? sum.bytes / out->n_token : MW_RATE_UNKNOWN;
}

struct mw_os_value mw_memory(const struct mw_sample *s, bool *is_charge)
{
    const struct mw_os *os = &s->os;
    bool is_mapped = mw_run_is_mapped(&s->run);
    struct mw_os_value v = os->charged.why_not == NULL ? os->charged : os->own;
    uint64_t pages = os->model_charged.value;

    if (is_charge != NULL)
        *is_charge = os->charged.why_not == NULL && !is_mapped;
    if (os->t_ns == 0)
        return (struct mw_os_value){ .why_not = "not read yet" };
    if (!is_mapped || v.why_not != NULL)
        return v;
    if (os->model_charged.why_not != NULL)
        return os->model_charged;
    v.value -= pages < v.value ? pages : v.value;
    return v;
}

/* Mean time of a pass over n drafts; 0: there was none. */
static double pass_ns(const struct mw_drafts *d, uint32_t n)
{
    return d->passes_over[n] > 0 ? (double)d->pass_ns[n] / (double)d->passes_over[n] : 0;
}

void mw_draft_rates(const struct mw_drafts *d, uint64_t decode_ns, struct mw_draft_rates *out)
{
    uint64_t drafted = 0; /* at a place: passes with at least as many drafts */
    double alone = pass_ns(d, 0);

    *out = (struct mw_draft_rates){ .drafter_share = MW_RATE_UNKNOWN };
    out->tokens_per_pass = d->passes > 0
                               ? (double)(d->passes + d->accepted) / (double)d->passes
                               : MW_RATE_UNKNOWN;
    for (uint32_t n = MW_DRAFT_MOST; n > 0; n--) {
        drafted += d->passes_over[n];
        out->accepted_at[n - 1] = drafted > 0
                                      ? (double)d->accepted_at[n - 1] / (double)drafted
                                      : MW_RATE_UNKNOWN;
        if (out->depth == 0 && drafted > 0)
            out->depth = out->usual = n;
        if (d->passes_over[n] > d->passes_over[out->usual])
            out->usual = n;
    }
    for (uint32_t n = 0; n <= MW_DRAFT_MOST; n++)
        out->cost[n] = alone > 0 && d->passes_over[n] > 0 ? pass_ns(d, n) / alone : MW_RATE_UNKNOWN;
    out->usual_cost = d->passes_over[0] >= FEW_PASSES && d->passes_over[out->usual] >= FEW_PASSES
                          ? out->cost[out->usual]
                          : MW_RATE_UNKNOWN;
    if (decode_ns > 0)
        out->drafter_share = (double)d->draft_ns / (double)decode_ns;
}
