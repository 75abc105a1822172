#include "config.h"

#include "engine/session/observe.h"

#include <math.h>

#define HOUR_S              3600
#define OBSERVE_MOST_SPREAD 0.5 /* a rate may have been wrong by any factor */
#define SLOW_SHARE          0.9 /* of the limit; less is slow */

void observe_begin(struct observer *w, const struct observe_at *at)
{
    w->from = *at;
}

/* How far a limit of measured_s moves to a slower rate. */
static double weight_of(const struct mw_sure *sure, int64_t measured_s, int64_t now_s)
{
    int64_t since_s = sure->observed_s > 0 ? sure->observed_s : measured_s;

    if (sure->doubt != 0 || now_s - since_s > 12 * HOUR_S)
        return 1;
    return now_s - since_s > HOUR_S ? 0.5 : 0.25;
}

/* The spread is half the distance to the rate before. */
static void correct(double *rate, struct mw_sure *sure, double observed, int64_t now_s)
{
    double spread = fabs(*rate - observed) / (2 * observed);

    spread = fmin(fmax(spread, OBSERVE_LEAST_SPREAD), OBSERVE_MOST_SPREAD);
    *sure = (struct mw_sure){ .spread = spread, .observed_s = now_s };
    *rate = observed;
}

bool observe_disk(struct observer *w, const struct observe_at *at, bool is_throttled,
                  int64_t now_s, struct mw_limits *l)
{
    uint64_t bytes = at->bytes - w->from.bytes, ns = at->t_ns - w->from.t_ns;
    double rate, busy;
    bool is_slow;

    if (bytes < OBSERVE_BYTES || ns == 0)
        return false;
    rate = (double)bytes * 1e9 / (double)ns;
    busy = (double)(at->busy_ns - w->from.busy_ns) / (double)ns;
    is_slow = rate < SLOW_SHARE * l->disk_bytes_s / (1 + l->contention) &&
              busy >= OBSERVE_BUSY && !is_throttled && at->pinned_bytes == w->from.pinned_bytes;
    w->from = *at;
    if (!(l->disk_bytes_s > 0))
        return false;
    if (rate >= SLOW_SHARE * l->disk_bytes_s) {
        w->n_slow = 0;
        w->fastest_slow = 0;
    }
    if (rate > l->disk_bytes_s) {
        correct(&l->disk_bytes_s, &l->disk, rate, now_s);
        if (l->direct_bytes_s > 0 && rate > l->direct_bytes_s)
            l->direct_bytes_s = rate;
        return true;
    }
    if (!is_slow)
        return false;
    w->fastest_slow = rate > w->fastest_slow ? rate : w->fastest_slow;
    if (++w->n_slow < OBSERVE_SLOW)
        return false;
    rate = l->disk_bytes_s +
           weight_of(&l->disk, l->measured_s, now_s) * (w->fastest_slow - l->disk_bytes_s);
    correct(&l->disk_bytes_s, &l->disk, rate, now_s);
    w->n_slow = 0;
    w->fastest_slow = 0;
    return true;
}

bool observe_memory(uint64_t bytes, uint64_t wall_ns, int64_t now_s, struct mw_limits *l)
{
    double rate = wall_ns > 0 ? (double)bytes * 1e9 / (double)wall_ns : 0;

    if (bytes < OBSERVE_MEMORY_BYTES || !(l->memory_bytes_s > 0) || rate <= l->memory_bytes_s)
        return false;
    correct(&l->memory_bytes_s, &l->memory, rate, now_s);
    return true;
}

bool observe_choice(const struct mw_choice *choice, int64_t now_s, struct mw_limits *l)
{
    struct mw_choice *to = &l->choice;
    double before = to->observed_s > 0 ? fmin(to->n_token, OBSERVE_CHOICES_KEPT) : 0;

    if (choice->n_token < OBSERVE_CHOICES)
        return false;
    for (int i = 0; i < MW_CHOICE_PARTS; i++)
        to->share[i] = (before * to->share[i] + choice->n_token * choice->share[i]) /
                       (before + choice->n_token);
    to->n_token = before + choice->n_token;
    to->observed_s = now_s;
    return true;
}

/* The rate of type i that is watched; *sure gets its doubts. */
static double *rate_of(struct mw_limits *l, enum observed_products which, uint32_t i,
                       struct mw_sure **sure)
{
    struct mw_rate *r = &l->rate[i];

    *sure = which == OBSERVE_COLUMN ? &r->column : &r->chunk;
    return which == OBSERVE_COLUMN ? &r->column_bytes_s : &r->chunk_flops_s;
}

/* Divide the costs of all steps by factor. */
static void scale_steps(struct mw_steps *s, double factor, int64_t now_s)
{
    double round_s = s->round_s / factor;

    s->wake_s /= factor;
    s->value_s /= factor;
    s->curve_s /= factor;
    for (int type = 0; type < MW_STEPS_KV; type++) {
        s->load_s[type] /= factor;
        s->mac_s[type] /= factor;
    }
    correct(&s->round_s, &s->sure, round_s, now_s);
}

/*
 * Move all rates by factor, or a part of the way: as far as the first type's age allows.  The
 * pass does not show which of its parts took longer or shorter than expected, so answers move
 * the costs of steps by the same factor: otherwise, a round that was measured while the machine
 * was busy would let products seem faster than memory.
 */
static bool scale_rates(struct mw_limits *l, enum observed_products which, double factor,
                        int64_t now_s)
{
    struct mw_sure *sure;
    double weight = 1;
    bool is_known = false;

    if (factor < 1 && l->n_rate > 0) {
        (void)rate_of(l, which, 0, &sure);
        weight = weight_of(sure, l->rate[0].measured_s, now_s);
    }
    factor = 1 + weight * (factor - 1);
    for (uint32_t i = 0; i < l->n_rate; i++) {
        double *rate = rate_of(l, which, i, &sure);

        if (!(*rate > 0))
            continue;
        is_known = true;
        correct(rate, sure, *rate * factor, now_s);
    }
    if (is_known && which == OBSERVE_COLUMN && l->steps.measured_s > 0)
        scale_steps(&l->steps, factor, now_s);
    return is_known;
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
    double factor;

    if (!(expected_s > 0) || wall_ns == 0)
        return false;
    add_factor(w, expected_s * 1e9 / (double)wall_ns);
    if (w->n < OBSERVE_PASSES)
        return false;
    factor = w->factor[OBSERVE_PASSES / 2];
    w->n = 0;
    if (factor < SLOW_SHARE) {
        w->best_slow = factor > w->best_slow ? factor : w->best_slow;
        if (++w->n_slow < OBSERVE_SLOW)
            return false;
        factor = w->best_slow;
    } else if (factor <= 1) {
        factor = 0;
    }
    w->n_slow = 0;
    w->best_slow = 0;
    return factor > 0 && scale_rates(l, which, factor, now_s);
}
