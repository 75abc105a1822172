/*
 * kernel_sets.h - which sets are compiled in, best first, and the question whether this
 * CPU runs them.  Included by kernels.c only.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_KERNEL_SETS_H
#define MEMWALL_ENGINE_COMPUTE_KERNEL_SETS_H

#include <stdbool.h>

#include "engine/compute/kernels.h"

extern const struct kernels kernels_generic;

static bool runs_anywhere(void)
{
    return true;
}

static const struct {
    const struct kernels *set;
    bool (*runs_here)(void);
} kernel_sets[] = {
    { &kernels_generic, runs_anywhere },
};

#endif
