/*
 * ngram_numbers.h - the numbers by which n-grams are hashed.
 *
 * GGUF files have them as keys and snapshots as tensors.  They follow from the configuration by
 * the rule with which the model was made, so a model can be planned without its files.
 */
#ifndef MEMWALL_ENGINE_FORMAT_NGRAM_NUMBERS_H
#define MEMWALL_ENGINE_FORMAT_NGRAM_NUMBERS_H

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

/* Fill factor, n_row, first and n_table by the rule: row counts are the primes from `base` on,
 * and the table has a multiple of `multiple` rows. */
void ngram_numbers_derive(struct ngram_hparams *g, uint64_t seed, uint64_t n_vocab,
                          uint64_t base, uint64_t multiple);

/* Whether a tensor of a snapshot has such numbers. */
bool ngram_numbers_are(const char *name);

/* Replace factor, n_row and first by those of a snapshot's tensors.  Returns 0, or -1 with
 * *e. */
int ngram_numbers_read(struct catalogue *c, struct err *e);

#endif
