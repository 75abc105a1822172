/*
 * rope.h - rotary position embedding.
 *
 * Frequencies and angles are computed in double: at position 100000, float is off by a
 * hundredth of a radian.  A pair is two neighbours, or one value of each half of the rotated
 * part; that depends on the source of the tensors.
 */
#ifndef MEMWALL_ENGINE_MODEL_ROPE_H
#define MEMWALL_ENGINE_MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/format/hparams.h"

struct rope {
    uint32_t n_rot; /* rotated dimensions; the others of a head stay unchanged */
    bool interleaved;
    double magnitude;            /* multiplies cosine and sine */
    double inv[MAX_ROPE_FACTOR]; /* [n_rot / 2] radians a position */
};

/* Whether longrope rotates with its long factors in a session with this context. */
bool rope_is_long(const struct rope_hparams *hp, uint32_t n_ctx);

/* n_ctx is the context of the session: longrope chooses its factors by it. */
void rope_init(struct rope *r, const struct rope_hparams *hp, bool interleaved, uint32_t n_ctx,
               uint32_t n_ctx_train);

/* Compute the cosines and sines of one position, [n_rot / 2] each. */
void rope_angles(const struct rope *r, uint32_t pos, float *cos_out, float *sin_out);

/* Rotate one head in place. */
void rope_apply(const struct rope *r, const float *cosine, const float *sine, float *x);

#endif
