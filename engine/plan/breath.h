/*
 * breath.h - when a budget of `auto` gives memory back, and when it takes memory again:
 * arithmetic only.
 *
 *     memory that is free:   |  budget: 3/4 at most  |      spare      |
 *                                                          ^reserve
 *     spare below the reserve, and other programs that wait for memory:   give back at once
 *     spare above twice the reserve for a while:                          take a little
 *
 * `spare` is what stays free once this process has exactly its budget.  So memory that is on its
 * way, in both directions, is counted already, and no step is made twice.  Between the reserve and
 * twice of it nothing happens, so noise moves nothing.  After a step that had to be taken back
 * soon, the next wait is twice as long.
 *
 * A fast program takes more than the reserve before the next sample.  So what others took since
 * the last sample counts once more, as if they went on for BREATH_AHEAD_NS.
 */
#ifndef MEMWALL_ENGINE_PLAN_BREATH_H
#define MEMWALL_ENGINE_PLAN_BREATH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/telemetry/sample.h"

/* The reserve: an eighth of the memory that was free when the budget was chosen, and at most
 * this much. */
#define BREATH_RESERVE_SHARE 8
#define BREATH_RESERVE_MOST  ((uint64_t)1 << 30)

/* Samples are this far apart, half as far while little is spare, and farther apart while much is:
 * a sample takes some 0.2 ms. */
#define BREATH_EVERY_NS 100000000u
#define BREATH_AHEAD_NS 300000000u

/* Figures of one moment. */
struct breath_sample {
    uint64_t t_ns;
    uint64_t available; /* bytes that can still be taken from the machine, or the group if less */
    bool is_of_group;
    uint64_t own;     /* anonymous memory of this process */
    uint64_t swapped; /* of this process */
    /* Microseconds since the start of the machine in which some, and all, tasks waited for memory.
     * Without has_pressure both are 0. */
    uint64_t some_us, full_us;
    bool has_pressure;
};

struct breath {
    uint64_t least, most; /* bytes: the budget stays between them */
    uint64_t reserve;
    uint64_t budget;

    /* of the last change */
    enum mw_signal signal; /* MW_SIGNAL_NONE: there was none */
    uint64_t step;             /* bytes */
    uint64_t changed_ns;

    uint64_t spare;   /* at the last sample; 0 also if memory is short */
    uint64_t wait_ns; /* of calm before memory is taken again */

    /* the state between two samples */
    struct breath_sample last; /* t_ns 0: none */
    struct breath_sample from; /* where the window of pressure begins */
    uint64_t calm_ns;          /* since when nothing was short */
    uint64_t took_ns;          /* the last step up since memory was given back; 0: none */
    uint64_t gave_ns;          /* the last step down */
};

/* Begin with this budget while free_bytes are free or in use by this process: the figure that the
 * budget was chosen from. */
void breath_begin(struct breath *b, uint64_t least, uint64_t most, uint64_t budget,
                  uint64_t free_bytes, uint64_t now_ns);

/* Take a sample, which is later than the one before.  Returns whether the budget changed. */
bool breath_step(struct breath *b, const struct breath_sample *s);

/* How long until the next sample should be read. */
uint64_t breath_next_ns(const struct breath *b);

#endif
