/*
 * model_head.h - the draft head of an open model (engine/format/draft_head.h): described like a
 * model, and with weights of its own.
 */
#ifndef MEMWALL_ENGINE_SESSION_MODEL_HEAD_H
#define MEMWALL_ENGINE_SESSION_MODEL_HEAD_H

#include "engine/base/arena.h"
#include "engine/base/cancel.h"
#include "engine/format/catalogue.h"
#include "engine/model/desc.h"

struct mw_model;

struct model_head {
    struct catalogue *catalogue; /* NULL: the model has no head */
    char *path; /* as it was given; NULL: the model's own */
    struct model_desc *desc;
    struct stream_span *spans; /* of a full pass */
    uint32_t n_span;
    uint64_t hot_bytes;    /* of all spans */
    struct arena resident; /* small weights */
    struct err why_not;    /* the model's own head cannot be used; ERR_NONE: it has none */
};

/* Open the head in a file or folder, or, path NULL, in the model's own files, instead of the one
 * that the model has.  -1 with *e: it keeps that. */
int model_head_open(struct mw_model *m, const char *path, struct err *e);
void model_head_close(struct mw_model *m);

/* Load norms and other small weights as floats, until cancel is set.  They stay, so later calls
 * do nothing.  Any thread. */
int model_head_load(struct mw_model *m, const struct cancel *cancel, struct err *e);

#endif
