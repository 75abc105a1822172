/*
 * sampler.h - the size of a sampler, for the plan.  memwall.h has the rest.
 */
#ifndef MEMWALL_ENGINE_SESSION_SAMPLER_H
#define MEMWALL_ENGINE_SESSION_SAMPLER_H

#include "engine/memwall.h"

/* Bytes that mw_sampler_new() allocates for a vocabulary; part of the plan item "logits". */
uint64_t sampler_bytes(uint32_t n_vocab);

#endif
