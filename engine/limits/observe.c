#include "config.h"

#include "engine/limits/observe.h"

#include <math.h>
#include <string.h>

#define SAME_SHARE 0.9 /* of a rate; less is slow */

bool observe_rate(struct slow *slow, double seen, bool is_limit, int64_t now_s, double *rate)
{
    if (!(*rate > 0) || !(seen > 0))
        return false;
    if (seen >= SAME_SHARE * *rate) {
        *slow = (struct slow){ 0 };
        if (seen <= *rate)
            return false;
        *rate = seen;
        return true;
    }
    if (!is_limit || (slow->n > 0 && now_s < slow->last_s + OBSERVE_APART_S))
        return false;
    slow->last_s = now_s;
    slow->sum += seen;
    if (++slow->n < OBSERVE_SLOW)
        return false;
    *rate = slow->sum / slow->n;
    *slow = (struct slow){ 0 };
    return true;
}

void observe_begin(struct observer *w, const struct observe_at *at)
{
    w->from = *at;
}

bool observe_disk(struct observer *w, const struct observe_at *at, bool is_throttled,
                  int64_t now_s, struct mw_limits *l)
{
    uint64_t bytes = at->bytes - w->from.bytes, ns = at->t_ns - w->from.t_ns;
    double seen, busy;
    bool is_limit;

    if (bytes < OBSERVE_BYTES || ns == 0)
        return false;
    seen = (double)bytes * 1e9 / (double)ns;
    busy = (double)(at->busy_ns - w->from.busy_ns) / (double)ns;
    is_limit = seen < SAME_SHARE * l->disk_bytes_s / (1 + l->contention) &&
               busy >= OBSERVE_BUSY && !is_throttled &&
               at->pinned_bytes == w->from.pinned_bytes;
    w->from = *at;
    if (!observe_rate(&w->slow, seen, is_limit, now_s, &l->disk_bytes_s))
        return false;
    if (l->direct_bytes_s > 0)
        l->direct_bytes_s = fmax(l->direct_bytes_s, seen);
    l->is_doubtful = false;
    l->measured_s = now_s;
    return true;
}

bool observe_memory(uint64_t bytes, uint64_t wall_ns, int64_t now_s, struct mw_limits *l)
{
    double seen = wall_ns > 0 ? (double)bytes * 1e9 / (double)wall_ns : 0;
    struct slow never = { 0 };

    if (bytes < OBSERVE_MEMORY_BYTES ||
        !observe_rate(&never, seen, false, now_s, &l->memory_bytes_s))
        return false;
    l->measured_s = now_s;
    return true;
}

bool observe_use(const struct mw_expert_use *use, int64_t now_s, struct mw_limits *l)
{
    struct mw_expert_use *to = &l->expert_use;
    double before = to->observed_s > 0 ? fmin(to->n_token, OBSERVE_USES_KEPT) : 0;

    if (use->n_token < OBSERVE_USES)
        return false;
    for (int i = 0; i < MW_USE_PARTS; i++)
        to->share[i] =
            (before * to->share[i] + use->n_token * use->share[i]) / (before + use->n_token);
    to->n_token = before + use->n_token;
    to->observed_s = now_s;
    return true;
}

/* Divide the costs of all steps by factor. */
static void scale_steps(struct mw_steps *s, double factor)
{
    s->round_s /= factor;
    s->wake_s /= factor;
    s->value_s /= factor;
    s->curve_s /= factor;
    for (int type = 0; type < MW_STEPS_KV; type++) {
        s->load_s[type] /= factor;
        s->mac_s[type] /= factor;
    }
    s->is_doubtful = false;
}

/*
 * Multiply all rates by factor.  The pass does not show which of its parts took longer or
 * shorter than expected, so answers move the costs of steps by the same factor: otherwise, a
 * round that was measured while the machine was busy would let products seem faster than memory.
 * Rates of different hours stay as far apart: they are not those of one go.
 */
static void scale_rates(struct mw_limits *l, enum observed_products which, double factor,
                        int64_t now_s)
{
    int64_t newest_s = 0;

    for (uint32_t i = 0; i < l->n_rate; i++)
        newest_s = l->rate[i].measured_s > newest_s ? l->rate[i].measured_s : newest_s;
    for (uint32_t i = 0; i < l->n_rate; i++) {
        struct mw_rate *r = &l->rate[i];

        *(which == OBSERVE_COLUMN ? &r->column_bytes_s : &r->chunk_flops_s) *= factor;
        if (r->is_doubtful)
            r->few_bytes_s = 0; /* no pass shows it, so it decides nothing (limits_forms()) */
        else if (which == OBSERVE_COLUMN)
            r->few_bytes_s *= factor;
        r->is_doubtful = false;
        r->measured_s += r->measured_s > 0 ? now_s - newest_s : 0;
    }
    if (which == OBSERVE_COLUMN && l->steps.measured_s > 0)
        scale_steps(&l->steps, factor);
}

static void add_factor(struct product_observer *w, double factor)
{
    uint32_t i = w->n++;

    for (; i > 0 && w->factor[i - 1] > factor; i--)
        w->factor[i] = w->factor[i - 1];
    w->factor[i] = factor;
}

bool observe_products(struct product_observer *w, enum observed_products which,
                      double expected_s, uint64_t wall_ns, int64_t now_s, struct mw_limits *l)
{
    double factor = 1; /* of what is expected */

    if (!(expected_s > 0) || wall_ns == 0)
        return false;
    add_factor(w, expected_s * 1e9 / (double)wall_ns);
    if (w->n < OBSERVE_PASSES)
        return false;
    w->n = 0;
    if (!observe_rate(&w->slow, w->factor[OBSERVE_PASSES / 2], true, now_s, &factor))
        return false;
    scale_rates(l, which, factor, now_s);
    return true;
}
