/*
 * steps.h - work of a pass that is not a product of weights: how much of it a model has, and
 * what it costs on this machine.
 *
 * A small model spends most of its time here: handing jobs to the threads, norms, packing of
 * columns.  In a long context, attention is the larger part of every model.
 */
#ifndef MEMWALL_ENGINE_MODEL_STEPS_H
#define MEMWALL_ENGINE_MODEL_STEPS_H

#include "engine/base/err.h"
#include "engine/compute/kernels.h"
#include "engine/limits/limits.h"
#include "engine/model/desc.h"
#include "engine/plan/input.h"

/* Count the steps of both parts of a pass.  n_block is the number of blocks of a full pass. */
void steps_count(const struct model_desc *d, bool exact, int n_thread, uint32_t n_block,
                 struct plan_steps out[PLAN_PARTS]);

struct steps_options {
    const struct kernels *kernels;
    int n_thread;
    double seconds; /* of each cost */
};

/* Measure what they cost, except for out->measured_s.  Takes less than 4 MiB and frees them
 * again.  Returns 0, or -1 with *e. */
int steps_measure(const struct steps_options *o, struct mw_steps *out, struct err *e);

#endif
