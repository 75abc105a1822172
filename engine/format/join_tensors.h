/*
 * join_tensors.h - tensors that become one, shared by the files that join them.
 */
#ifndef MEMWALL_ENGINE_FORMAT_JOIN_TENSORS_H
#define MEMWALL_ENGINE_FORMAT_JOIN_TENSORS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue_build.h"

struct joining {
    struct catalogue *c;
    struct tensor_piece *pieces; /* of all joined tensors */
    uint32_t n_piece;
    struct tensor_scales *scales; /* the same */
    uint32_t n_scales;
    bool *is_piece; /* [n_tensor] becomes part of another one */
    struct err *e;
};

/* Add the tensor's place to the error.  Returns -1. */
int join_fail(const struct joining *j, const struct tensor_info *t);

/* Whether a tensor has the scales of another one, and how many pieces they may become. */
bool join_is_scales(const struct catalogue *c, const struct tensor_info *t, uint32_t *n_piece);

/* Join weights with their scales. */
int join_scales(struct joining *j);

#endif
