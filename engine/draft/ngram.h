/*
 * ngram.h - a draft from the conversation itself: what followed the newest tokens at an
 * earlier place.
 *
 *     ids     … the cat sat on the mat and … the cat sat
 *     draft                                              on the mat and …
 *
 * An index finds the earlier places: a table from the hash of NGRAM_MIN ids to the newest
 * position where they end, and for each position the one before it with the same hash.  So a
 * question costs the same in a conversation of a hundred and of a hundred thousand tokens, and
 * positions are removed in the opposite order without looking at the others.
 *
 * Prompt lookup: Saxena 2023.  The ids belong to the caller, who calls ngram_cut() before one of
 * those in the index changes.
 */
#ifndef MEMWALL_ENGINE_DRAFT_NGRAM_H
#define MEMWALL_ENGINE_DRAFT_NGRAM_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/draft/drafter.h"

#define NGRAM_MIN    3  /* ids that must be the same */
#define NGRAM_MATCH  32 /* longer matches are not told apart */
#define NGRAM_PLACES 32 /* earlier places that are compared, the newest first */

struct ngram {
    uint32_t *head; /* [mask + 1] position + 1 of the newest run with this hash; 0: none */
    uint32_t *prev; /* [room] the same for the one before position i */
    uint32_t mask, room;
    uint32_t n; /* positions in the index, from 0 */
};

#define NGRAM_TOKEN_BYTES 12   /* of the index, for each id, at most, */
#define NGRAM_BYTES       4096 /* besides what it has for a few ids */

/* Make an empty index for n_ctx ids; an earlier one is lost.  -1 with *e: it is as before. */
int ngram_new(struct ngram *g, uint32_t n_ctx, struct err *e);
void ngram_free(struct ngram *g); /* leaves *g all zero */

/* Take out all positions from n on; ids are those that they were added with. */
void ngram_cut(struct ngram *g, const uint32_t *ids, uint32_t n);

/*
 * Add the positions up to ids[0 .. n), and find the earlier place with the longest match, at most
 * NGRAM_MATCH ids.  Returns the position after it, and the length of the match in *match; 0: there
 * is none.
 */
uint32_t ngram_find(struct ngram *g, const uint32_t *ids, uint32_t n, uint32_t *match);

/* Returns how many ids before positions a < b of ids are the same, at most NGRAM_MATCH. */
uint32_t ngram_match(const uint32_t *ids, uint32_t a, uint32_t b);

/* Store n_copy ids from position `next` on, which is below n, in out.  A repetition that has not
 * ended yet goes on. */
void ngram_copy(const uint32_t *ids, uint32_t n, uint32_t next, uint32_t n_copy, uint32_t *out);

/* The same as a drafter, which belongs to the caller, and follows an earlier text past changes. */
int ngram_drafter_new(struct drafter **out, uint32_t n_ctx, struct err *e);

#endif
