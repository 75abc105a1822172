/*
 * disturb.h - notice that a measurement was slowed down from outside.
 */
#ifndef MEMWALL_ENGINE_MACHINE_DISTURB_H
#define MEMWALL_ENGINE_MACHINE_DISTURB_H

#include "engine/machine/load.h"

struct mw_disturb {
    /* Since the start; -1: unknown. */
    double stolen_share; /* of the processors' time, that the host of a virtual machine took */
    double others_share; /* of the processors' time, that other programs used */
    double throttled;    /* how often processors were too hot, or a quota stopped processes */

    struct load from;
    double from_throttled;
};

void mw_disturb_start(struct mw_disturb *d);
void mw_disturb_end(struct mw_disturb *d);

/* The same for the system below root, for tests. */
void disturb_start(struct mw_disturb *d, const char *root);
void disturb_end(struct mw_disturb *d, const char *root);

#endif
