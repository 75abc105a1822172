/* See anchor.h. */
#include "config.h"

#include "engine/plan/anchor.h"

#include <math.h>

#include "engine/plan/factors.h"
#include "engine/plan/speed.h"

/* A smaller share of the computing says nothing about attention: the rounds of its jobs take as
 * long. */
#define ATTENTION_KNOWN 0.10
/* Blocks that were just read are multiplied from the processor's cache, in at least this share of
 * the time that memory takes.  A smaller factor says that the limits are wrong. */
#define FROM_CACHE 0.8
/* A measurement is at most this many times faster or slower than the formula; beyond, one of
 * them is wrong. */
#define MOST_FACTOR 64.0
#define MOST_LOST   0.9 /* of the computing, to other programs */
#define MOST_CROWDING 1e4
#define MOST_RAN_S  1e9
#define BISECTIONS  60
#define MOST_BYTES  0x1p62

static double within(double x, double low, double high)
{
    return fmin(fmax(x, low), high);
}

/* False for a NaN, too. */
static bool is_up_to(double x, double most)
{
    return x >= 0 && x <= most;
}

/* Settings that become integers, or were read from a file. */
static bool has_settings(const struct plan_anchor *a)
{
    return is_up_to(a->memory_bytes, MOST_BYTES) && is_up_to(a->disk_rate, MOST_BYTES) &&
           is_up_to(a->n_ctx, UINT32_MAX) && is_up_to(a->chunk, UINT32_MAX) &&
           is_up_to(a->n_slot, UINT32_MAX) && is_up_to(a->n_thread, ANCHOR_THREADS) &&
           is_up_to(a->n_seen, a->n_ctx > 0 ? a->n_ctx : UINT32_MAX) &&
           is_up_to(a->kv_k, MW_STEPS_KV - 1) &&
           is_up_to(a->kv_v, MW_STEPS_KV - 1) && is_up_to(a->streamed_share, 1) &&
           is_up_to(a->missed_share, 1) &&
           is_up_to(a->crowding, MOST_CROWDING) && is_up_to(a->ran_s, MOST_RAN_S);
}

bool plan_anchor_is_plausible(const struct plan_anchor *a)
{
    return has_settings(a) && a->n_token >= ANCHOR_LEAST && a->token_s > a->fixed_s &&
           a->stall_s + a->lookup_s < a->token_s - a->fixed_s;
}

bool plan_anchor_is_doubtful(const struct plan_anchor *a)
{
    return a->n_token < ANCHOR_TOKENS;
}

static struct plan_pass pass_of(const struct plan_anchor *a)
{
    return (struct plan_pass){ .streamed_share = a->streamed_share,
                               .missed_share = a->missed_share,
                               .keeps_rows = a->keeps_rows > 0,
                               .starts_cold = a->starts_cold > 0,
                               .chunk = (uint32_t)a->chunk,
                               .n_slot = (uint32_t)a->n_slot };
}

static double token_with(struct plan_input *in, const struct plan_anchor *a,
                         const struct plan_factors *f, struct plan_time *t)
{
    const struct plan_pass pass = pass_of(a);

    in->factors = *f;
    return speed_token(in, &pass, (uint32_t)fmax(a->n_seen, 1), t);
}

static bool was_bound_by_disk(const struct plan_anchor *a)
{
    return a->disk_bytes >= 1 && a->stall_s >= ANCHOR_STALLS * a->token_s;
}

/* Seconds of a token without stalls, the text and lookups. */
static double computing_of(const struct plan_anchor *a)
{
    return a->token_s - a->fixed_s - a->stall_s - a->lookup_s;
}

/* The computing that other programs took.  A token that waits for the disk can begin a block on
 * one thread while they keep the others from waking: no thread that has work then waits for a
 * processor, and only the processor time of all threads shows how long the work takes.  Tokens
 * that never wait would lose no more than the crowding. */
static double lost_to_others(const struct plan_anchor *a, double computing)
{
    double hidden = 0;

    if (was_bound_by_disk(a) && a->crowding > 0 && a->ran_s > 0 && a->n_thread > 0)
        hidden = fmin(computing - a->ran_s / a->n_thread,
                      computing * a->crowding / (1 + a->crowding));
    return within(fmax(a->others_s, hidden), 0, MOST_LOST * computing);
}

struct plan_anchor plan_anchor_alone(const struct plan_anchor *a)
{
    struct plan_anchor alone = *a;
    double lost;

    if (!plan_anchor_is_plausible(a))
        return alone;
    lost = lost_to_others(a, computing_of(a));
    /* A token that waits for the disk waits longer if its threads are ready earlier. */
    alone.others_s = alone.crowding = 0;
    if (was_bound_by_disk(a))
        alone.stall_s += lost;
    else
        alone.token_s -= lost;
    return plan_anchor_is_plausible(&alone) ? alone : *a;
}

/* The factor of the disk with which a token takes the measured time.  More is slower. */
static double disk_factor(struct plan_input *in, const struct plan_anchor *a,
                          const struct plan_factors *f)
{
    double low = 1 / MOST_FACTOR, high = MOST_FACTOR;
    struct plan_factors now = *f;
    struct plan_time t;

    for (int i = 0; i < BISECTIONS; i++) {
        now.disk = sqrt(low * high);
        if (token_with(in, a, &now, &t) > a->token_s)
            high = now.disk;
        else
            low = now.disk;
    }
    return now.disk;
}

/* The factor of the processors once all weights are in memory.  The streamed share of the products
 * then takes as long as memory needs; at most half of the stalls is given up for it, since the
 * limits are known roughly. */
static double factor_in_memory(const struct plan_anchor *a, const struct plan_input *in,
                               const struct plan_time *t, double products, double factor)
{
    double from_memory = fmin(t->products_s, t->weight_bytes / in->memory_bytes_s);
    double more = a->streamed_share * (from_memory - factor * t->products_s);

    if (!was_bound_by_disk(a) || factor < FROM_CACHE || more <= 0)
        return factor;
    return factor + fmin(more, a->stall_s / 2) / products;
}

/* The processors' factor without the time that threads need to wake.  After a stall one thread
 * begins with the block, and the others wake meanwhile; at worst, it computes all of it alone.
 * A factor above 1 is explained by that first. */
static double factor_without_waking(const struct plan_input *in, const struct plan_time *t,
                                    double products, double factor)
{
    double most = in->n_thread > 1 ? (in->n_thread - 1) * t->held_s : 0;

    most += t->n_streamed * in->costs.wake_s;
    return factor <= 1 ? factor : fmax(factor - most / products, 1);
}

/* The processors' factors from the time without stalls. */
static void set_processors(const struct plan_anchor *a, const struct plan_input *in,
                           const struct plan_time *t, struct plan_factors *f)
{
    double computing = computing_of(a), own, attention, rest;
    double products = t->products_s + t->small_s + t->rounds_s + t->steps_s + t->reading_s +
                      t->experts_s;
    double lost = lost_to_others(a, computing), both, weight, disk;

    own = computing - lost;
    f->others = lost / own;
    f->processors = own / (products + t->attention_s);
    attention = fmin(a->attention_s / (1 + f->others), own);
    weight = fmin(attention / (ATTENTION_KNOWN * own), 1);
    f->attention = f->processors;
    if (t->attention_s > 0 && attention > 0)
        f->attention = pow(f->processors, 1 - weight) * pow(attention / t->attention_s, weight);
    rest = fmax(own - f->attention * t->attention_s, own / MOST_FACTOR);
    /* Reading slows computing: that much of the time is neither of products nor of the disk. */
    disk = was_bound_by_disk(a) ? a->token_s : fmin(t->disk_s, a->token_s);
    both = rest / (products + in->costs.contention * t->memory_s);
    if (both * t->memory_s > disk)
        both = fmax(rest - in->costs.contention * disk, rest / 2) / products;
    if (was_bound_by_disk(a))
        both = factor_without_waking(in, t, products, both);
    both = factor_in_memory(a, in, t, products, both);
    f->processors = within(both, 1 / MOST_FACTOR, MOST_FACTOR);
    f->crowded = f->others;
    if (was_bound_by_disk(a) && a->crowding > 0) /* threads were not later than the tokens */
        f->crowded = fmin(a->crowding, (computing + a->stall_s) / own - 1);
    f->attention = within(f->attention, 1 / MOST_FACTOR, MOST_FACTOR);
}

struct plan_factors plan_factors_of(const struct plan_input *in, const struct plan_anchor *a)
{
    const struct plan_factors none = { 0 };
    struct plan_factors f = { .is_set = true, .is_doubtful = plan_anchor_is_doubtful(a),
                              .disk = 1, .processors = 1, .attention = 1,
                              .lookups = 1, .whole = 1 };
    struct plan_input at = *in;
    struct plan_time t;
    double s;

    if (!plan_anchor_is_plausible(a) || !(token_with(&at, a, &none, &t) > 0))
        return none;
    f.fixed_s = a->fixed_s;
    if (t.lookups_s > 0)
        f.lookups = within(a->lookup_s / t.lookups_s, 1 / MOST_FACTOR, MOST_FACTOR);
    else
        f.fixed_s += a->lookup_s;
    set_processors(a, in, &t, &f);
    if (was_bound_by_disk(a)) {
        f.disk = disk_factor(&at, a, &f);
    } else {
        if (a->disk_bytes_s > 0 && in->disk_bytes_s > 0)
            f.disk = in->disk_bytes_s / a->disk_bytes_s;
        f.disk = within(f.disk, 1 / MOST_FACTOR, MOST_FACTOR);
        (void)token_with(&at, a, &f, &t);
        if (t.disk_s > t.processors_s)
            f.disk *= t.processors_s / t.disk_s;
    }
    s = token_with(&at, a, &f, &t);
    f.whole = (a->token_s - f.fixed_s) / (s - f.fixed_s);
    return isfinite(f.whole) && f.whole > 0 ? f : none;
}

void plan_anchor_finish(const struct plan_input *in, const struct plan_anchor *before,
                        struct plan_anchor *a)
{
    struct plan_factors f;

    a->disk_bytes_s = before->disk_bytes_s;
    if (!was_bound_by_disk(a))
        return;
    f = plan_factors_of(in, a);
    a->disk_bytes_s = f.is_set ? in->disk_bytes_s / (f.disk * f.whole) : 0;
}
