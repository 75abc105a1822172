/*
 * drafter.h - a source of drafts, as a session uses it.
 *
 *     ids    0 … n - 1 | n … n + k - 1
 *            the text  | drafts: propose() guesses what the sampler will choose
 *
 * After each sampled token the session calls look(), decides how many drafts pay (depth.h), and
 * calls propose().  One pass of the model then verifies the drafts.  Those that the sampler
 * chooses, too, become a part of the text, and the others are forgotten; follow() reports what
 * of the pass is text.  So a drafter cannot change a token of an answer: a wrong draft costs
 * time only.
 *
 * All calls come from the thread of the session, between two passes of the model.  An
 * implementation has struct drafter as its first member.  Its memory is the plan item `drafter`.
 */
#ifndef MEMWALL_ENGINE_DRAFT_DRAFTER_H
#define MEMWALL_ENGINE_DRAFT_DRAFTER_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

/* Chooses the next id from logits [n_vocab], which it may change, after the ids before: with the
 * random numbers of that position, so that a draft is drawn as the verifier will draw. */
struct draft_choose {
    uint32_t (*next)(void *ctx, float *logits, const uint32_t *before, size_t n_before);
    void *ctx;
};

/* The drafts that look() expects. */
struct draft_look {
    uint32_t most;    /* drafts that could be made; 0: none */
    uint32_t quality; /* class of their acceptance, 0 … DEPTH_CLASSES - 1 (depth.h) */
};

/* A pass of the model over a part of the text. */
struct draft_pass {
    const uint32_t *ids; /* of the text, from position 0 */
    uint32_t pos, n;     /* the pass evaluated pos … pos + n - 1 */
};

struct drafter;

struct drafter_calls {
    const char *name; /* "ngram" */
    /* Expect drafts after the n ids of the text, n >= 1.  Cheap: no weights are used. */
    struct draft_look (*look)(struct drafter *d, const uint32_t *ids, uint32_t n);
    /* After look() with the same n: store at most `most` (>= 1) drafts in ids[n …], where they
     * fit, and their number in *n_draft.  A drafter that cannot go on stores why in its `failure`,
     * and drafts nothing from then on.
     * -1 with *e, where the answer has to end: ERR_CANCELLED, or no memory for the next pass. */
    int (*propose)(struct drafter *d, uint32_t *ids, uint32_t n, uint32_t most,
                   const struct draft_choose *choose, uint32_t *n_draft, struct err *e);
    /* A part of the text was evaluated.  Passes come in the order of the text, but after an
     * error or another workspace some may be missing.  NULL: not called.  Errors as above. */
    int (*follow)(struct drafter *d, const struct draft_pass *pass, struct err *e);
    /* The ids from n on are about to change; ids are still the old ones.  Forget all that
     * follows from them. */
    void (*rewind)(struct drafter *d, const uint32_t *ids, uint32_t n);
    /* Bytes in use now, for the plan item. */
    uint64_t (*used)(const struct drafter *d);
    void (*free)(struct drafter *d);
};

struct drafter {
    const struct drafter_calls *calls;
    uint64_t n_followed; /* tokens that follow() has evaluated, which may leave some for later */
    struct err failure;  /* which the session takes; ERR_NONE: there is none */
};

void drafter_free(struct drafter *d); /* NULL is fine, and so are the next two */
void drafter_rewind(struct drafter *d, const uint32_t *ids, uint32_t n);
uint64_t drafter_used(const struct drafter *d);

#endif
