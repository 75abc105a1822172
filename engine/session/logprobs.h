/*
 * logprobs.h - how likely the model finds a token: the logarithms of probabilities, before
 * temperature, penalties and grammars change anything.
 */
#ifndef MEMWALL_ENGINE_SESSION_LOGPROBS_H
#define MEMWALL_ENGINE_SESSION_LOGPROBS_H

#include "engine/memwall.h"

struct logprobs;

/* For a vocabulary of n_vocab tokens, and n entries: of the token itself and the n - 1 most likely
 * ones, at most MW_LOGPROBS. */
int logprobs_new(struct logprobs **out, uint32_t n_vocab, uint32_t n, struct err *e);
void logprobs_free(struct logprobs *l);

/* Keep a copy of a row, which the sampler will change. */
void logprobs_take(struct logprobs *l, const float *logits);

/* Write the entries for a token.  Returns their number. */
uint32_t logprobs_of(const struct logprobs *l, uint32_t id, struct mw_logprob out[MW_LOGPROBS]);

#endif
