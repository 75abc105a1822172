/*
 * prompt_cost.h - estimate the cost of a prompt with the formulas of plan/speed.h.
 */
#ifndef MEMWALL_ENGINE_SESSION_PROMPT_COST_H
#define MEMWALL_ENGINE_SESSION_PROMPT_COST_H

#include "engine/memwall.h"
#include "engine/plan/speed.h"

struct cost_basis {
    struct plan_input in;  /* with the limits of the machine */
    struct plan_pass pass; /* where the weights are now */
    uint32_t n_before;     /* tokens in the context before the prompt */
    double pace_s;         /* measured arithmetic for a token of a long prompt; 0: none yet */
};

struct mw_model;

/* The basis with this plan for these options, if `held` bytes of the file's weights are in memory.
 * The caller frees it; NULL: there is no memory. */
struct cost_basis *cost_basis_new(struct mw_model *m, const struct mw_options *o,
                                  const struct plan *plan, uint64_t held, double pace_s);

/* Set bytes, seconds and is_at_least of *out from its n_token and n_again.  seconds is 0 if
 * nothing is known. */
void cost_estimate(const struct cost_basis *b, struct mw_cost *out);

#endif
