/*
 * expert_policy.h - estimates when an expert is used next, to choose what the cache keeps.
 *
 * The experts of a layer are used at most once per pass, and layers follow each other.  So the
 * expected time to the next use, in passes, is
 *
 *     distance to the layer (0 to 1)  +  (1 - q) / q      q: probability of a use in a pass
 *
 * and the expert with the longest expected time goes first.  q follows from the share of recent
 * tokens that chose the expert, in which a token counts half after a few hundred others.  An
 * expert that is seldom used goes again soon after it was read: that is the admission.  In a
 * prompt, whose passes use nearly all experts, q is close to 1 and the distance decides, which
 * is the best order for a loop over everything.
 *
 * tests/bench/expert_sim compares this with other policies, on generated and on recorded
 * routers.
 */
#ifndef MEMWALL_ENGINE_STREAM_EXPERT_POLICY_H
#define MEMWALL_ENGINE_STREAM_EXPERT_POLICY_H

#include <stdint.h>

#include "engine/base/err.h"

struct expert_policy {
    uint32_t n_layer;
    uint32_t *first;         /* [n_layer + 1] index of a layer's first expert */
    float *uses;             /* [first[n_layer]] weighted tokens that chose the expert */
    float *tokens;           /* [n_layer] weighted tokens */
    float *prior;            /* [n_layer] share of the experts that a token uses */
    float weight;            /* of a token now; grows, so that earlier ones count less */
    uint32_t layer, n_token; /* of the pass that is computed */
};

/* n_expert and n_used of each layer; n_expert 0: a dense layer.  Returns 0, or -1 with *e. */
int expert_policy_open(struct expert_policy *p, const uint32_t *n_expert,
                       const uint32_t *n_used, uint32_t n_layer, struct err *e);
void expert_policy_close(struct expert_policy *p); /* safe on a zeroed struct */
uint64_t expert_policy_bytes(uint32_t n_expert_all, uint32_t n_layer);

/* A pass of n_token tokens gets to this layer. */
void expert_policy_layer(struct expert_policy *p, uint32_t layer, uint32_t n_token);

/* n of those tokens chose this expert of the layer. */
void expert_policy_use(struct expert_policy *p, uint32_t expert, uint32_t n);

/* Expected passes until the expert is used, seen from the current layer. */
float expert_policy_wait(const struct expert_policy *p, uint32_t layer, uint32_t expert);

/* Share of recent tokens of the layer that chose the expert, relative to an even choice. */
float expert_policy_heat(const struct expert_policy *p, uint32_t layer, uint32_t expert);

#endif
