/*
 * tokens.h - the ids that a session evaluated, and which of them went through OpenBLAS.
 *
 * OpenBLAS and our kernels round differently.  Which of them multiplies a token must therefore
 * not depend on the budget.  It would: after going back, a session with copies of the sliding
 * rings evaluates the new tokens only, and one without evaluates earlier ones again, together
 * with the new ones.  So each position keeps its entry when it is cut off.  A token that is
 * evaluated again goes the way it went first, and only the new tokens of a prompt are counted
 * to find out whether they are enough for OpenBLAS.
 */
#ifndef MEMWALL_ENGINE_SESSION_TOKENS_H
#define MEMWALL_ENGINE_SESSION_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/draft/drafter.h"
#include "engine/model/products.h"

struct tokens {
    uint32_t *id; /* [n_ctx] */
    bool *in_tiles;
    uint32_t n; /* entries: those held and those cut off */
    struct drafter *drafter; /* not owned: learns of ids that are about to change; or NULL */
};

/* Room for n_ctx ids, of which those in use stay. */
int tokens_resize(struct tokens *t, uint32_t n_ctx, struct err *e);
void tokens_free(struct tokens *t);
/* All entries are forgotten. */
void tokens_clear(struct tokens *t);

/* n ids of a prompt will be evaluated from position pos on.  products NULL: no OpenBLAS. */
void tokens_add_prompt(struct tokens *t, const struct products *products, uint32_t pos,
                       const uint32_t *ids, uint32_t n);

/* An id that was sampled will be evaluated at pos, by the kernels: it comes alone. */
void tokens_add_sampled(struct tokens *t, uint32_t pos, uint32_t id);

/* The n_draft ids from pos on were drafted; they go the way of sampled ids. */
void tokens_add_drafts(struct tokens *t, uint32_t pos, uint32_t n_draft);
/* Forget entries from pos on: they were drafted, and are not part of the text. */
void tokens_drop(struct tokens *t, uint32_t pos);

/* How many of the n positions from pos on make the next chunk of at most `most`: all of them
 * go the same way, and a chunk ends where a tile does if it can. */
uint32_t tokens_chunk(const struct tokens *t, uint32_t pos, uint32_t n, uint32_t most);

#endif
