/* tensor_use.h - sorts a file's tensors into kinds and checks that a model uses them. */
#ifndef MEMWALL_ENGINE_FORMAT_TENSOR_USE_H
#define MEMWALL_ENGINE_FORMAT_TENSOR_USE_H

#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

enum tensor_kind {
    TENSOR_TEXT,    /* of the text model */
    TENSOR_IDLE,    /* a known leftover that no model reads */
    TENSOR_OUTSIDE, /* a tower or a drafting head */
    TENSOR_UNKNOWN, /* not in the table of tensors */
};

/* Returns the kind of a tensor by its name and layer. */
enum tensor_kind catalogue_tensor_kind(const struct catalogue *c, const struct tensor_info *t);

/*
 * Check that a description reads every tensor that matters completely: n_read[n_tensor] values
 * of each.  Returns 0, or -1 with *e naming the first tensor that it does not.
 */
int catalogue_check_use(const struct catalogue *c, const uint64_t *n_read, struct err *e);

#endif
