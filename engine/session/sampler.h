/*
 * sampler.h - the functions of a sampler that plan and chat need beyond memwall.h.
 */
#ifndef MEMWALL_ENGINE_SESSION_SAMPLER_H
#define MEMWALL_ENGINE_SESSION_SAMPLER_H

#include "engine/memwall.h"

/* Bytes that mw_sampler_new() allocates for a vocabulary; part of the plan item "logits". */
uint64_t sampler_bytes(uint32_t n_vocab);

/* Sample with other values from now on.  Only another seed begins a new sequence. */
void sampler_set(struct mw_sampler *p, const struct mw_sampling *s);

#endif
