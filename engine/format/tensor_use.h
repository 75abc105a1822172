/*
 * tensor_use.h - which tensors of a file belong to the model, and whether all of them are
 * read.
 */
#ifndef MEMWALL_ENGINE_FORMAT_TENSOR_USE_H
#define MEMWALL_ENGINE_FORMAT_TENSOR_USE_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

enum tensor_kind {
    TENSOR_TEXT,    /* of the text model */
    TENSOR_IDLE,    /* a known leftover: no model reads it */
    TENSOR_OUTSIDE, /* not of the text model: a tower, a drafting head */
    TENSOR_UNKNOWN, /* a model that reads it is not known */
};

/* The kind of a tensor by its name and layer. */
enum tensor_kind catalogue_tensor_kind(const struct catalogue *c, const struct tensor_info *t);

/*
 * Check that a description reads all values of every tensor that matters: n_read[n_tensor]
 * values of each.  Returns 0, or -1 with *e naming the first tensor that would be left out.
 */
int catalogue_check_use(const struct catalogue *c, const uint64_t *n_read, struct err *e);

#endif
