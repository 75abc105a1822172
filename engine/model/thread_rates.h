/*
 * thread_rates.h - compare numbers of threads by products.
 */
#ifndef MEMWALL_ENGINE_MODEL_THREAD_RATES_H
#define MEMWALL_ENGINE_MODEL_THREAD_RATES_H

#include "engine/limits/limits.h"
#include "engine/model/rates.h"

/*
 * Set the times of *t for its cores and processors: o->seconds of one column and of many for each
 * number of threads, in turn, with Q4_0.  o->n_thread does not matter.  Returns 0, or -1 with *e.
 *
 * A number that is not faster than one thread per core in every turn is said to be as fast at
 * most: a burst of another program must not change the choice, which is made once.
 */
int thread_rates_measure(const struct rates_options *o, struct mw_threads *t, struct err *e);

#endif
