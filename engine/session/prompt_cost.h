/*
 * prompt_cost.h - what a prompt will cost, from the plan, the limits of the machine and what
 * was measured.  Arithmetic only.
 */
#ifndef MEMWALL_ENGINE_SESSION_PROMPT_COST_H
#define MEMWALL_ENGINE_SESSION_PROMPT_COST_H

#include "engine/memwall.h"

struct cost_basis {
    uint32_t chunk;        /* tokens evaluated together; 0: not known */
    uint64_t prompt_bytes; /* weights that a chunk of the prompt uses */
    uint64_t hot_bytes;    /* weights that the last chunk uses */
    uint64_t pinned_bytes; /* of them in memory */
    double disk_bytes_s;   /* 0: not measured */
    double compute_s;      /* arithmetic of one token of a prompt; 0: not measured */
};

/* out->bytes and out->seconds (0: nothing is known) of out->n_token and out->n_again. */
void cost_estimate(const struct cost_basis *b, struct mw_cost *out);

#endif
