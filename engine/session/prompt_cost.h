/*
 * prompt_cost.h - estimate the cost of a prompt from the plan, the limits of the machine and
 * measured times.  Arithmetic only.
 */
#ifndef MEMWALL_ENGINE_SESSION_PROMPT_COST_H
#define MEMWALL_ENGINE_SESSION_PROMPT_COST_H

#include "engine/memwall.h"

struct cost_basis {
    uint32_t chunk;        /* tokens evaluated together; 0: unknown */
    uint64_t prompt_bytes; /* weights that a chunk of the prompt uses, except the last */
    uint64_t hot_bytes;    /* weights that the last chunk uses */
    uint64_t pinned_bytes; /* weights that are in memory */
    double disk_bytes_s;   /* 0: not measured */
    double compute_s;      /* arithmetic of one token of a prompt; 0: not measured */
};

/* Set bytes, seconds and is_at_least of *out from its n_token and n_again.  seconds is 0 if
 * nothing is known. */
void cost_estimate(const struct cost_basis *b, struct mw_cost *out);

#endif
