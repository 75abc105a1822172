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
    uint64_t stolen;    /* part of busy: the host of a virtual machine ran something else */
    double own_s;       /* processor time of this process */
};

/* Note the start.  root is "" for the real system. */
void load_begin(struct load *l, const char *root);

/* The share of the processors that other programs used since load_begin(), 0 to 1; -1 if it is
 * unknown. */
double load_of_others(const struct load *l, const char *root);

/* The seconds of processor time that they used between two starts; -1 if it is unknown.  Sets
 * *all_s to the processors' time between them, used or not. */
double load_seconds_between(const struct load *from, const struct load *to, double *all_s);

/* The larger of the shares of the last ten seconds in which some task waited for a processor or
 * for a disk, 0 to 1; 0 if it is unknown.  Tasks of this process count, too. */
double load_pressure(const char *root);

/* Returns how often processors were slowed down because they were too hot, since the start of
 * the system; -1 if it does not report that. */
double load_heat_events(const char *root);

#endif
