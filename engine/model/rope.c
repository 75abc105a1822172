#include "config.h"

#include "engine/model/rope.h"

#include <math.h>

#define TWO_PI 6.283185307179586476925

/* yarn stretches low frequencies by the factor and keeps high ones, with a ramp between them.
 */
static void yarn(struct rope *r, const struct rope_hparams *hp)
{
    double n_rot = hp->n_rot, n_orig = hp->n_ctx_orig;
    double fast = n_rot * log(n_orig / (TWO_PI * hp->beta_fast)) / (2 * log(hp->base));
    double slow = n_rot * log(n_orig / (TWO_PI * hp->beta_slow)) / (2 * log(hp->base));
    double low = fmax(0, hp->is_untruncated ? fast : floor(fast));
    double high = fmin(n_rot - 1, hp->is_untruncated ? slow : ceil(slow));

    for (uint32_t i = 0; i < r->n_rot / 2; i++) {
        double ramp = fmin(1, fmax(0, (i - low) / fmax(0.001, high - low)));

        r->inv[i] = r->inv[i] * (1 - ramp) + r->inv[i] / hp->factor * ramp;
    }
    r->magnitude = hp->attn_factor > 0 ? hp->attn_factor : 1 + 0.1 * log(hp->factor);
}

static double longrope_magnitude(const struct rope_hparams *hp, uint32_t n_ctx_train)
{
    double s = hp->n_ctx_orig > 0 ? (double)n_ctx_train / hp->n_ctx_orig : 1;

    if (hp->attn_factor > 0)
        return hp->attn_factor;
    return s <= 1 ? 1 : sqrt(1 + log(s) / log(hp->n_ctx_orig));
}

bool rope_is_long(const struct rope_hparams *hp, uint32_t n_ctx)
{
    return hp->scaling == ROPE_LONGROPE && n_ctx > hp->n_ctx_orig;
}

void rope_init(struct rope *r, const struct rope_hparams *hp, bool interleaved, uint32_t n_ctx,
               uint32_t n_ctx_train)
{
    const float *factors = rope_is_long(hp, n_ctx) ? hp->factors_long : hp->factors;

    r->n_rot = hp->n_rot;
    r->interleaved = interleaved;
    r->magnitude = hp->attn_factor > 0 ? hp->attn_factor : 1;
    for (uint32_t i = 0; i < r->n_rot / 2; i++) {
        r->inv[i] = pow(hp->base, -2.0 * i / hp->n_rot);
        if (i < hp->n_factor)
            r->inv[i] = factors[i] >= 1e20f ? 0 : r->inv[i] / (double)factors[i];
        if (hp->scaling == ROPE_LINEAR)
            r->inv[i] /= hp->factor;
    }
    if (hp->scaling == ROPE_YARN)
        yarn(r, hp);
    if (hp->scaling == ROPE_LONGROPE)
        r->magnitude = longrope_magnitude(hp, n_ctx_train);
}

void rope_angles(const struct rope *r, uint32_t pos, float *cos_out, float *sin_out)
{
    for (uint32_t i = 0; i < r->n_rot / 2; i++) {
        double angle = pos * r->inv[i];

        cos_out[i] = (float)(cos(angle) * r->magnitude);
        sin_out[i] = (float)(sin(angle) * r->magnitude);
    }
}

void rope_apply(const struct rope *r, const float *cosine, const float *sine, float *x)
{
    uint32_t half = r->n_rot / 2;
    uint32_t step = r->interleaved ? 2 : 1, apart = r->interleaved ? 1 : half;

    for (uint32_t i = 0; i < half; i++) {
        float a = x[i * step], b = x[i * step + apart];

        x[i * step] = a * cosine[i] - b * sine[i];
        x[i * step + apart] = b * cosine[i] + a * sine[i];
    }
}
