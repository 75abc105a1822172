#include "config.h"

#include "engine/draft/depth.h"

#include <string.h>

/* Weights of a new measurement: of a pass, of a verified draft, and of the return to the first
 * estimate with each match that was not used. */
#define PASS_WEIGHT   0.25
#define DRAFT_WEIGHT  0.1
#define RETURN_WEIGHT (1.0 / 256)

/* A draft has to promise this much: measurements are noisy, and a loss is worse than a gain
 * that was missed. */
#define GAIN_LEAST 1.03

/* Drafts while their cost is unknown: in memory, many could take as long as a short answer. */
#define TRIAL_MOST 2

/* By the quality of drafts. */
static const double first_accept[DEPTH_CLASSES] = { 0.5, 0.65, 0.8, 0.9, 0.7 };

void depth_begin(struct depth *d)
{
    depth_forget_costs(d);
    memcpy(d->accept, first_accept, sizeof d->accept);
}

void depth_forget_costs(struct depth *d)
{
    d->narrow_s = d->column_s = 0;
    d->is_tried = false;
    memset(d->draft_s, 0, sizeof d->draft_s);
}

static void move(double *to, double by, double weight)
{
    *to += (by - *to) * weight;
}

void depth_pass(struct depth *d, uint32_t n_draft, double seconds)
{
    double column_s = (seconds - d->narrow_s) / (n_draft > 0 ? n_draft : 1);

    if (n_draft == 0 && d->narrow_s > 0)
        move(&d->narrow_s, seconds, PASS_WEIGHT);
    else if (n_draft == 0)
        d->narrow_s = seconds;
    else
        move(&d->column_s, column_s > 0 ? column_s : 0, d->is_tried ? PASS_WEIGHT : 1);
    d->is_tried |= n_draft > 0;
}

void depth_drafted(struct depth *d, uint32_t quality, uint32_t n, double seconds)
{
    double *draft_s = &d->draft_s[quality];

    if (n > 0 && *draft_s > 0)
        move(draft_s, seconds / n, PASS_WEIGHT);
    else if (n > 0)
        *draft_s = seconds / n;
}

void depth_result(struct depth *d, uint32_t quality, uint32_t n_accepted, bool is_rejected)
{
    double *accept = &d->accept[quality];

    for (uint32_t i = 0; i < n_accepted; i++)
        move(accept, 1, DRAFT_WEIGHT);
    if (is_rejected)
        move(accept, 0, DRAFT_WEIGHT);
}

uint32_t depth_choose(struct depth *d, uint32_t quality, uint32_t most)
{
    double *accept = &d->accept[quality];
    double tokens = 1, next = 1, best = GAIN_LEAST;
    uint32_t depth = 0;

    if (!(d->narrow_s > 0))
        return 0;
    if (!d->is_tried && most > TRIAL_MOST)
        most = TRIAL_MOST;
    for (uint32_t n = 1; n <= most; n++) {
        double gain;

        next *= *accept;
        tokens += next;
        gain = tokens / (1 + n * (d->column_s + d->draft_s[quality]) / d->narrow_s);
        if (gain > best) {
            best = gain;
            depth = n;
        }
    }
    if (depth == 0) { /* try again one day */
        move(accept, first_accept[quality], RETURN_WEIGHT);
        move(&d->column_s, 0, RETURN_WEIGHT);
        move(&d->draft_s[quality], 0, RETURN_WEIGHT);
    }
    return depth;
}
