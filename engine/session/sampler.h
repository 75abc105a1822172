/*
 * sampler.h - the functions of a sampler that plan and chat need beyond memwall.h.
 */
#ifndef MEMWALL_ENGINE_SESSION_SAMPLER_H
#define MEMWALL_ENGINE_SESSION_SAMPLER_H

#include "engine/memwall.h"

/* Bytes that mw_sampler_new() allocates for a vocabulary; part of the plan item "logits". */
uint64_t sampler_bytes(uint32_t n_vocab);

/*
 * Begin an answer.  Its random numbers follow from the seed, the position of a token, and
 * `attempt`: how many answers to the same message came before, so that each of them differs.
 * Without a seed they are new ones for each answer.
 */
void sampler_begin(struct mw_sampler *p, uint32_t attempt);

/* The answer's first token is at this position: penalties for its tokens count from there. */
void sampler_set_from(struct mw_sampler *p, size_t from);

/*
 * Choose only tokens that a constraint allows from now on; NULL: any token.  Not owned.
 * sampler_failed() reports whether the last token could not be chosen, with *e: it is any one then.
 */
struct constraint;
void sampler_constrain(struct mw_sampler *p, struct constraint *c);
bool sampler_failed(const struct mw_sampler *p, struct err *e);

/* Add these to logits from now on; n: 0 for none.  Not owned. */
void sampler_bias(struct mw_sampler *p, const struct mw_logit_bias *bias, uint32_t n);

/* Sample with other values from now on.  Another seed applies at once. */
void sampler_set(struct mw_sampler *p, const struct mw_sampling *s);

#endif
