/*
 * limits.h - what disk, memory and arithmetic of this machine give, measured once and kept.
 *
 * Kept in the cache folder, one line a file system, processor and weight type, for a day; the file may be
 * deleted at any time.  What was not measured leaves predictions out, never wrong.
 */
#ifndef MEMWALL_SRC_LIMITS_H
#define MEMWALL_SRC_LIMITS_H

#include "engine/memwall.h"

/* Give m the limits: kept ones, else, if there is time to measure, new ones in about a
 * second, which are kept.  A failure is silent: there are then no predictions. */
void limits_ensure(struct mw_model *m, const char *model_path, const struct mw_options *o,
                   bool may_measure);

#endif
