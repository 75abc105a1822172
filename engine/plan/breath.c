/* See breath.h. */
#include "config.h"

#include "engine/plan/breath.h"

#include "engine/base/units.h"
#include "engine/plan/plan.h"

#define SECOND_NS     1000000000u
#define CALM_NS       (5 * (uint64_t)SECOND_NS)  /* before memory is taken again */
#define CALM_MOST_NS  (60 * (uint64_t)SECOND_NS) /* after steps that had to be taken back */
#define SOON_NS       (60 * (uint64_t)SECOND_NS) /* a step up that was wrong */
#define FORGET_NS     (600 * (uint64_t)SECOND_NS) /* after so long nobody remembers it */
#define STEPS         32                         /* from the least to the most, one a second */
#define STEP_LEAST    (32 * MIB)
#define WINDOW_NS     500000000u /* of pressure */
#define SOME_SHARE    10         /* percent of a window in which some tasks waited */
#define FULL_SHARE    3          /* the same for all tasks */
#define PRESSED_PARTS 8          /* pressure gives back such a part of what there is to give */
#define TIGHT         4          /* reserves: with more to spare, pressure is not ours to end */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void breath_begin(struct breath *b, uint64_t least, uint64_t most, uint64_t budget,
                  uint64_t free_bytes, uint64_t now_ns)
{
    *b = (struct breath){
        .least = smaller(least, budget),
        .most = most > budget ? most : budget,
        .reserve = smaller(free_bytes / BREATH_RESERVE_SHARE, BREATH_RESERVE_MOST),
        .budget = budget,
        .wait_ns = CALM_NS,
        .calm_ns = now_ns,
    };
    b->spare = less(free_bytes, budget);
}

/* Returns the memory that stays free once the process has its budget; less than 0 if memory is
 * short. */
static int64_t spare_of(const struct breath *b, const struct breath_sample *s)
{
    return (int64_t)s->available + (int64_t)s->own - (int64_t)b->budget;
}

/* Returns what other programs take in the next BREATH_AHEAD_NS if they go on as they did since
 * the last sample. */
static uint64_t taken_soon(const struct breath *b, const struct breath_sample *s)
{
    uint64_t before = b->last.available + b->last.own, now = s->available + s->own;
    uint64_t ns = s->t_ns - b->last.t_ns;

    /* After a change of the limit, the difference is not a rate. */
    if (b->last.t_ns == 0 || ns == 0 || before <= now || b->last.is_of_group != s->is_of_group)
        return 0;
    return smaller((uint64_t)((double)(before - now) * BREATH_AHEAD_NS / (double)ns),
                   b->reserve);
}

/* Whether tasks waited for memory in the window that ends now, which then begins again. */
static bool is_pressed(struct breath *b, const struct breath_sample *s)
{
    uint64_t us, some, full;

    if (!s->has_pressure || !b->from.has_pressure || b->from.t_ns == 0) {
        b->from = *s;
        return false;
    }
    us = (s->t_ns - b->from.t_ns) / 1000;
    some = less(s->some_us, b->from.some_us);
    full = less(s->full_us, b->from.full_us);
    if (s->t_ns - b->from.t_ns < WINDOW_NS && some * 100 <= us * SOME_SHARE &&
        full * 100 <= us * FULL_SHARE)
        return false;
    b->from = *s;
    return some * 100 > us * SOME_SHARE || full * 100 > us * FULL_SHARE;
}

static bool give(struct breath *b, const struct breath_sample *s, uint64_t bytes,
                 enum mw_signal signal)
{
    bytes = smaller(bytes, b->budget - b->least);
    b->calm_ns = s->t_ns;
    if (bytes == 0)
        return false;
    if (b->took_ns != 0 && s->t_ns - b->took_ns < SOON_NS)
        b->wait_ns = smaller(2 * b->wait_ns, CALM_MOST_NS);
    else if (s->t_ns - b->gave_ns > FORGET_NS)
        b->wait_ns = CALM_NS;
    b->took_ns = 0;
    b->gave_ns = s->t_ns;
    b->budget -= bytes;
    b->signal = signal;
    b->step = bytes;
    b->changed_ns = s->t_ns;
    return true;
}

static bool take(struct breath *b, const struct breath_sample *s, uint64_t room)
{
    uint64_t most = smaller(b->most, plan_auto_limit(s->available + s->own)), step;

    if (most <= b->budget)
        return false;
    step = (most - b->least) / STEPS;
    step = smaller(step > STEP_LEAST ? step : STEP_LEAST, most - b->budget);
    if (room < step || s->t_ns - b->calm_ns < b->wait_ns ||
        (b->took_ns != 0 && s->t_ns - b->took_ns < SECOND_NS))
        return false;
    b->budget += step;
    b->took_ns = s->t_ns;
    b->signal = MW_SIGNAL_FREE;
    b->step = step;
    b->changed_ns = s->t_ns;
    return true;
}

bool breath_step(struct breath *b, const struct breath_sample *s)
{
    int64_t spare = spare_of(b, s), soon = spare - (int64_t)taken_soon(b, s);
    bool pressed = is_pressed(b, s);
    bool swaps = b->last.t_ns != 0 && s->swapped > b->last.swapped;
    int64_t reserve = (int64_t)b->reserve;
    bool is_changed = false;

    b->last = *s;
    if (soon < reserve)
        is_changed = give(b, s, (uint64_t)(reserve + reserve / 2 - soon),
                          s->is_of_group ? MW_SIGNAL_GROUP : MW_SIGNAL_AVAILABLE);
    else if (swaps || (pressed && spare < TIGHT * reserve))
        is_changed = give(b, s, (b->budget - b->least) / PRESSED_PARTS + b->reserve / 2,
                          swaps ? MW_SIGNAL_SWAP : MW_SIGNAL_PRESSURE);
    else if (spare < 2 * reserve)
        b->calm_ns = s->t_ns;
    else
        is_changed = take(b, s, (uint64_t)(spare - 2 * reserve));
    spare = spare_of(b, s);
    b->spare = spare > 0 ? (uint64_t)spare : 0;
    return is_changed;
}

uint64_t breath_next_ns(const struct breath *b)
{
    if (b->spare >= TIGHT * b->reserve)
        return BREATH_EVERY_NS * 5 / 2;
    return b->spare >= 2 * b->reserve ? BREATH_EVERY_NS : BREATH_EVERY_NS / 2;
}
