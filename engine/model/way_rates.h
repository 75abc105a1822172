/*
 * way_rates.h - choose among the ways of products (compute/ways.h) by measuring each.
 *
 * The rule:
 *
 *   1. Every way is measured in each of WAY_ROUNDS rounds, and compared with the way of the make
 *      in the same round.  Another way is taken if it is faster by WAY_MARGIN in all rounds but
 *      one: of several, the one that gains most in the median.
 *   2. If other programs used the processors meanwhile, nothing is chosen: the ways of before stay,
 *      or else those of the make, and the comparison is repeated two hours later at the earliest.
 *   3. A way that is neither that of the make nor the one of before is compared again two hours
 *      later, too.  Only if it is found again, it stays for a day.  Otherwise a minute in which
 *      memory was slow, which no load shows, would decide about the day.
 */
#ifndef MEMWALL_ENGINE_MODEL_WAY_RATES_H
#define MEMWALL_ENGINE_MODEL_WAY_RATES_H

#include "engine/compute/ways.h"
#include "engine/limits/limits.h"
#include "engine/model/rates.h"

#define WAY_ROUNDS 8
#define WAY_MARGIN 1.05

struct way_rates {
    double bytes_s[WAY_CHOICES][WAYS_MOST]; /* of weights, the median; 0: not compared */
    int best[WAY_CHOICES]; /* by the first part of the rule */
    bool is_doubtful;      /* other programs used the processors */
};

/* Measure a way now: bytes of weights per second. */
typedef double way_rate_fn(void *ctx, enum way_choice c, int way);

/* Compare all ways of the choices that matter to these kernels, by calling fn. */
void way_rates_compare(const struct kernels *k, way_rate_fn *fn, void *ctx, struct way_rates *out);

/*
 * The same with products of made-up weights, at most o->seconds for each way in all: Q4_0, Q6_K and
 * Q8_0 stand for the types of as many bits.  The ways in use stay.  Returns 0, or -1 with *e.
 */
int way_rates_measure(const struct rates_options *o, struct way_rates *out, struct err *e);

/* Choose by the second and the third part of the rule, at Unix time now_s; *w has the ways of
 * before. */
void way_rates_settle(const struct way_rates *r, int64_t now_s, struct mw_ways *w);

#endif
