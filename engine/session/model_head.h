/*
 * model_head.h - the draft heads of an open model (engine/format/draft_head.h): each described like
 * a model, and with weights of its own.
 *
 * A head stays open until the model is closed: a session may use one while others are planned with.
 */
#ifndef MEMWALL_ENGINE_SESSION_MODEL_HEAD_H
#define MEMWALL_ENGINE_SESSION_MODEL_HEAD_H

#include "engine/base/arena.h"
#include "engine/base/cancel.h"
#include "engine/format/catalogue.h"
#include "engine/model/desc.h"

struct mw_model;
struct mw_options;

struct model_head {
    struct model_head *next;
    struct catalogue *catalogue;
    char *path; /* as it was given; NULL: the model's own */
    struct model_desc *desc;
    struct stream_span *spans; /* of a full pass */
    uint32_t n_span;
    uint64_t hot_bytes;    /* of all spans */
    struct arena resident; /* small weights, while n_user > 0 */
    uint32_t n_user;       /* sessions; under the lock of the model */
};

/* Open the head in a file or folder, or, path NULL, in the model's own files.  A second call
 * returns the same one.  -1 with *e.  Any thread. */
int model_head_open(struct model_head **out, struct mw_model *m, const char *path, struct err *e);
void model_heads_close(struct mw_model *m); /* all of them, when m is closed */

/* Bytes that the orders of tokens of all open heads take, also while none of them drafts. */
uint64_t model_heads_bytes(const struct mw_model *m);

/* The same for a path that may also be a model, or nothing: *out is NULL if it is not a head. */
int model_head_find(struct model_head **out, struct mw_model *m, const char *path, struct err *e);

/* The head that complete options name, or else that of the model; NULL: there is none.  Whether
 * they use it is options_head(). */
struct model_head *model_head_of(const struct mw_model *m, const struct mw_options *o);

/* Load norms and other small weights as floats, until cancel is set, unless another session has
 * them.  Any thread. */
int model_head_load(struct mw_model *m, struct model_head *h, const struct cancel *cancel,
                    struct err *e);
/* Give them back after model_head_load(), with the last session that uses them. */
void model_head_unload(struct mw_model *m, struct model_head *h);

#endif
