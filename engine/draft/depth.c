#include "config.h"

#include "engine/draft/depth.h"

#include <math.h>
#include <string.h>

/* Weights of a new measurement: of a cost, of a verified draft, and of the return to the first
 * estimate with each match that was not used. */
#define COST_WEIGHT   0.25
#define WIDE_WEIGHT   0.75 /* of a pass for one token, if none was measured for a while */
#define DRAFT_WEIGHT  0.1
#define RETURN_WEIGHT (1.0 / 256)

/* A draft has to promise this much: measurements are noisy, and a loss is worse than a gain
 * that was missed. */
#define GAIN_LEAST 1.03

/* The most that a first measurement is believed to have lost, in passes for each draft.  From the
 * second one on, a single slow pass does not make the cost. */
#define LOSS_FIRST 1.0

/* If drafts promise less than GAIN_SURE, there is a pass for one token after so many passes over
 * drafts, at first and at most, to measure it again.  The number doubles each time. */
#define GAIN_SURE  1.5
#define WIDE_FIRST 4
#define WIDE_MOST  256

/* Choices of 0, for each measurement so far, after which a cost that is hardly known is measured
 * again. */
#define RETRY_IDLE 8

/* By the quality of drafts. */
static const double first_accept[DEPTH_CLASSES] = { 0.5, 0.65, 0.8, 0.9, 0.7 };

void depth_begin(struct depth *d)
{
    depth_forget_costs(d);
    memcpy(d->accept, first_accept, sizeof d->accept);
    d->share = 1;
    d->trial = 1; /* in memory, many could take as long as a short answer */
    d->stake = DEPTH_STAKE;
    d->has_gained = false;
}

void depth_forget_costs(struct depth *d)
{
    d->narrow_s = 0;
    d->is_warm = false;
    d->n_idle = d->n_wide = 0;
    d->wide_most = WIDE_FIRST;
    memset(&d->column, 0, sizeof d->column);
    memset(d->draft, 0, sizeof d->draft);
}

static void move(double *to, double by, double weight)
{
    *to += (by - *to) * weight;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double median(const double v[COST_MEASURED])
{
    return larger(smaller(v[0], v[1]), smaller(larger(v[0], v[1]), v[2]));
}

static void measure(struct depth_cost *c, double s)
{
    c->measured[c->n++ % COST_MEASURED] = s;
    if (c->n > COST_MEASURED)
        move(&c->s, median(c->measured), COST_WEIGHT);
    else if (c->n == COST_MEASURED)
        c->s = median(c->measured);
    else
        c->s = c->n == 1 ? s : smaller(c->s, s);
}

void depth_try_again(struct depth *d)
{
    d->stake = larger(d->stake, DEPTH_STAKE);
}

void depth_scale(struct depth *d, double times)
{
    d->narrow_s *= times;
}

/* Add tokens to the stake, or take them. */
static void add_stake(struct depth *d, double tokens)
{
    d->stake = smaller(DEPTH_BANK, d->stake + tokens);
    d->has_gained |= d->stake >= DEPTH_BANK;
}

/* Take the cost of n drafts: of columns, or of drafting them. */
static void pay(struct depth *d, uint32_t n, const struct depth_cost *c)
{
    double most_s = c->n > 1 ? INFINITY : LOSS_FIRST * d->narrow_s;

    if (d->narrow_s > 0)
        add_stake(d, -(n * smaller(c->s, most_s) / d->narrow_s / d->share));
}

static void measure_narrow(struct depth *d, double seconds)
{
    if (!d->is_warm)
        d->is_warm = true;
    else if (d->narrow_s > 0)
        move(&d->narrow_s, seconds, d->n_wide > 0 ? WIDE_WEIGHT : COST_WEIGHT);
    else
        d->narrow_s = seconds;
    d->n_wide = 0;
}

void depth_pass(struct depth *d, uint32_t n_draft, double seconds)
{
    double more_s = seconds - d->narrow_s;

    if (n_draft == 0) {
        measure_narrow(d, seconds);
    } else if (d->narrow_s > 0) {
        d->n_wide++;
        measure(&d->column, more_s > 0 ? more_s / n_draft : 0);
        if (more_s < 0) /* a pass for one token cannot take longer */
            move(&d->narrow_s, seconds, COST_WEIGHT);
        pay(d, n_draft, &d->column);
    }
    if (d->narrow_s > 0) /* the first pass reads the same without the drafter */
        add_stake(d, 1 - 1 / d->share + DEPTH_SHARE);
}

void depth_drafted(struct depth *d, uint32_t quality, uint32_t n, double seconds)
{
    if (n == 0)
        return;
    measure(&d->draft[quality], seconds / n);
    pay(d, n, &d->draft[quality]);
}

void depth_followed(struct depth *d, double seconds)
{
    if (d->narrow_s > 0)
        add_stake(d, -seconds / d->narrow_s / d->share);
}

void depth_result(struct depth *d, uint32_t quality, uint32_t n_accepted, bool is_rejected)
{
    double *accept = &d->accept[quality];

    for (uint32_t i = 0; i < n_accepted; i++)
        move(accept, 1, DRAFT_WEIGHT);
    add_stake(d, n_accepted);
    if (is_rejected)
        move(accept, 0, DRAFT_WEIGHT);
}

double depth_moving(double share)
{
    return share < 1 ? 1 / share - 1 : 0;
}

/* Returns what drafts may lose before the drafter is to be closed. */
static double left_of(const struct depth *d)
{
    return d->stake - depth_moving(d->share);
}

bool depth_is_lost(const struct depth *d)
{
    return d->share < 1 && left_of(d) <= 0;
}

void depth_gap_begin(struct depth_gap *g, const struct depth *d)
{
    g->n_lost = d->has_gained ? 1 : g->n_lost + 1;
    g->n_token = 0;
}

bool depth_gap_is_over(const struct depth_gap *g, double price)
{
    return (double)g->n_token >= ldexp(DEPTH_GAP * (DEPTH_STAKE + price), (int)g->n_lost - 1);
}

/* Nothing is drafted now: let it be tried again, while there is a stake. */
static uint32_t choose_none(struct depth *d, uint32_t quality)
{
    struct depth_cost *draft = &d->draft[quality];
    uint32_t n = d->column.n < draft->n ? d->column.n : draft->n;

    if (n > 0 && n < COST_MEASURED && left_of(d) > 0 && d->n_idle >= n * RETRY_IDLE) {
        d->n_idle = 0;
        return 1;
    }
    d->n_idle++;
    move(&d->accept[quality], first_accept[quality], RETURN_WEIGHT);
    move(&d->column.s, 0, RETURN_WEIGHT);
    move(&draft->s, 0, RETURN_WEIGHT);
    return 0;
}

uint32_t depth_choose(struct depth *d, uint32_t quality, uint32_t most)
{
    double cost_s = d->column.s + d->draft[quality].s;
    double tokens = 1, next = 1, best = GAIN_LEAST;
    uint32_t depth = 0;

    if (!(d->narrow_s > 0) || most == 0)
        return 0;
    if ((d->column.n == 0 || d->draft[quality].n == 0) && most > d->trial)
        most = d->trial;
    for (uint32_t n = 1; n <= most && n * cost_s <= left_of(d) * d->share * d->narrow_s; n++) {
        double gain;

        next *= d->accept[quality];
        tokens += next;
        gain = tokens / (1 + n * cost_s / d->narrow_s);
        if (gain > best) {
            best = gain;
            depth = n;
        }
    }
    if (depth == 0)
        return choose_none(d, quality);
    if (best < GAIN_SURE && d->n_wide >= d->wide_most) {
        d->wide_most = d->wide_most < WIDE_MOST ? 2 * d->wide_most : WIDE_MOST;
        return 0;
    }
    d->n_idle = 0;
    return depth;
}
