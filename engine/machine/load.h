/*
 * load.h - how busy other programs keep the processors during a measurement.
 *
 * Programs that run with a nice value above 0 do not count: the scheduler prefers us.
 */
#ifndef MEMWALL_ENGINE_MACHINE_LOAD_H
#define MEMWALL_ENGINE_MACHINE_LOAD_H

#include <stdint.h>

struct load {
    uint64_t busy, all; /* ticks of all processors; all 0: unknown */
    double own_s;       /* processor time of this process */
};

/* Note the start.  root is "" for the real system. */
void load_begin(struct load *l, const char *root);

/* The share of the processors that other programs used since load_begin(), 0 to 1; -1 if it is
 * unknown. */
double load_of_others(const struct load *l, const char *root);

#endif
