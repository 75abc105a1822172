/*
 * rope.h - rotary position embedding.
 *
 * Frequencies and angles are computed in double: at position 100000 a float chain is off
 * by a hundredth of a radian.  Pairs are neighbours or halves of the rotated part, by
 * where the tensors came from.
 */
#ifndef MEMWALL_ENGINE_MODEL_ROPE_H
#define MEMWALL_ENGINE_MODEL_ROPE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/format/hparams.h"

struct rope {
    uint32_t n_rot; /* dimensions that turn; the rest of a head passes through */
    bool interleaved;
    double magnitude;            /* multiplies cosine and sine */
    double inv[MAX_ROPE_FACTOR]; /* [n_rot / 2] radians a position */
};

/* n_ctx as the person asked for: longrope chooses its list by it. */
void rope_init(struct rope *r, const struct rope_hparams *hp, bool interleaved, uint32_t n_ctx,
               uint32_t n_ctx_train);

/* Cosines and sines of one position: [n_rot / 2] each. */
void rope_angles(const struct rope *r, uint32_t pos, float *cos_out, float *sin_out);

/* Turn one head in place. */
void rope_apply(const struct rope *r, const float *cosine, const float *sine, float *x);

#endif
