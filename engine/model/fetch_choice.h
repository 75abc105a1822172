/*
 * fetch_choice.h - choose how weights are prefetched (compute/fetch.h) by measuring each way.
 */
#ifndef MEMWALL_ENGINE_MODEL_FETCH_CHOICE_H
#define MEMWALL_ENGINE_MODEL_FETCH_CHOICE_H

#include "engine/compute/fetch.h"
#include "engine/model/rates.h"

/* Bytes of weights per second of one column, by way; 0: the kernels have no such layout. */
struct fetch_rates {
    double bytes_s[FETCH_LAYOUTS][FETCH_WAYS];
    bool is_doubtful; /* other programs used the processors */
};

/*
 * Measure the ways in turn, o->seconds each, with Q4_0: on the processors seen, the types prefer
 * the same ones.  The chosen ways stay.  Returns 0, or -1 with *e.
 */
int fetch_measure(const struct rates_options *o, struct fetch_rates *out, struct err *e);

/* Returns the way to choose: that of the make, unless another is faster by more than noise. */
int fetch_best(const struct fetch_rates *r, enum fetch_layout layout);

#endif
