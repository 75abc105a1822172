/*
 * draft_model.h - a smaller model that drafts for another one (--draft FILE).
 *
 * It has the same vocabulary, so that its ids are those of the model, and no recurrent state and
 * no experts: it goes back after each draft that was wrong, and all its weights stay in memory.
 * Only unused tokens at the end may be more or fewer.
 */
#ifndef MEMWALL_ENGINE_SESSION_DRAFT_MODEL_H
#define MEMWALL_ENGINE_SESSION_DRAFT_MODEL_H

#include "engine/draft/drafter.h"
#include "engine/plan/plan.h"
#include "engine/session/model.h"

struct pool;
struct stream;

/*
 * Open the model at path as a drafter of m, which owns it until m is closed; a second call
 * returns the same one.  Returns 0, or -1 with *e: it cannot be read, or cannot draft for m.
 */
int draft_model_open(struct mw_model **out, struct mw_model *m, const char *path, struct err *e);
/* Whether the model at path was opened as one.  Called with the lock of m. */
bool draft_model_is_open(const struct mw_model *m, const char *path);
/* Whether path is a file of m itself, of which every draft takes as long as a token. */
bool draft_model_is_same(const struct mw_model *m, const char *path);
void draft_models_close(struct mw_model *m); /* all of them, when m is closed */

/* Returns the bytes of the headers of all of them, also while they do not draft. */
uint64_t draft_models_bytes(struct mw_model *m);

/* Memory of its drafter for a model with these options of a session, without its header: besides
 * the context, and per token. */
void draft_model_bytes(const struct mw_model *m, struct mw_model *draft,
                       const struct mw_options *o, uint64_t *fixed, uint64_t *token);

/* Fill in in->low and in->n_low, with the copies that a model of n_block blocks can draft with for
 * itself: of this type, or of all.  -1 with *e: it cannot. */
int self_types(const struct mw_model *m, enum mw_copies copies, uint32_t n_block,
               struct plan_input *in, struct err *e);
int self_drafter_new(struct drafter **out, struct mw_session *s, const struct plan *plan,
                     struct err *e);

/* The parts of a session that a drafter uses.  They outlive it. */
struct draft_model_parts {
    struct mw_model *draft;
    uint32_t n_vocab; /* of the model that it drafts for */
    const struct mw_options *o;
    struct pool *pool;
    struct stream *stream; /* opened with draft's catalogue as its guest */
    const struct cancel *cancel;
};

/* Read its weights.  Returns 0; or -1 with *e, ERR_CANCELLED if the stream's token was set. */
int model_drafter_new(struct drafter **out, const struct draft_model_parts *parts,
                      struct err *e);

#endif
