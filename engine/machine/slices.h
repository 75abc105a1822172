/*
 * slices.h - the rates of short slices of a measurement, and how far they are apart.
 *
 * Other programs use the disk and memory in bursts.  A mean over one long measurement hides
 * them; slices show them.  The rate is the median of the slices, so a burst in one of them
 * changes little.
 */
#ifndef MEMWALL_ENGINE_MACHINE_SLICES_H
#define MEMWALL_ENGINE_MACHINE_SLICES_H

#include <stdint.h>

#define SLICES_MAX 16

struct slices {
    double rate[SLICES_MAX]; /* in ascending order */
    uint32_t n;
};

/* Add the rate of a slice; the slices beyond SLICES_MAX are ignored. */
void slices_add(struct slices *s, double rate);

/* The median; 0 without slices. */
double slices_rate(const struct slices *s);

/*
 * Half the distance between the slowest and the fastest slice, as a share of the median; 0 with
 * fewer than two slices.  From four slices on, the one that is farthest from the median does
 * not count: it is the outlier for which more slices were measured.
 */
double slices_spread(const struct slices *s);

#endif
