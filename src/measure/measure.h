/*
 * measure.h - plan or measure one point, in a process of its own.
 *
 * bench and sweep start `memwall bench --one plan` and `memwall bench --one run` for each
 * point, so that its peak memory is its own and a crash is one row.  Such a process prints
 * lines of JSON: {"stage":"decode","done":3,"total":64} while it works, and one result at the
 * end.
 *
 *     load      open the model, allocate the plan, evaluate one token: pinned weights are read
 *     depth     evaluate tokens that are not measured
 *     prompt    evaluate the prompt
 *     decode    evaluate one token after the other, and take the most likely one of each row
 *
 * Token ids are pseudo-random and always the same, because a model with random weights would
 * repeat one token and read one row of its lookup tables.
 */
#ifndef MEMWALL_SRC_MEASURE_MEASURE_H
#define MEMWALL_SRC_MEASURE_MEASURE_H

#include "ui/options/options.h"

/* Plan or measure the point of o, whose lists have one item each.  Returns an exit code. */
int measure_one(const struct options *o);

#endif
