/* Steps that kinds of recurrent layers have in common; their heads are independent. */
#include "config.h"

#include "engine/base/clock.h"
#include "engine/model/forward_internal.h"

#define LENGTH_EPS 1e-6f /* added to a squared length before it divides */

void heads_unit(const struct kernels *kern, float *x, uint32_t n_head, uint32_t n, float by)
{
    /* x / sqrt(sum + eps) is the rms norm with eps / n, divided by sqrt(n). */
    for (uint32_t h = 0; h < n_head; h++, x += n) {
        kern->rms_norm(x, NULL, n, LENGTH_EPS / (float)n, x);
        kern->scale(x, by, n);
    }
}

void heads_norm(const struct kernels *kern, float *x, uint32_t n_head, uint32_t n,
                const float *w, float eps)
{
    for (uint32_t h = 0; h < n_head; h++, x += n)
        kern->rms_norm(x, w, n, eps, x);
}

void forward_recur_again(struct forward *f, const struct recur_steps *steps,
                         const struct conv *conv, void *ctx)
{
    forward_each_col(f, steps->mix_col, ctx);
    conv_keep(conv);
    forward_each(f, f->p.desc->hp->delta.n_head_v, steps->run_head, ctx);
}

void forward_recur(struct forward *f, const struct layer_desc *layer,
                   const struct recur_steps *steps, const struct conv *conv, void *ctx)
{
    uint64_t start = clock_ns();

    if (steps->part_col != NULL)
        forward_each_col(f, steps->part_col, ctx);
    forward_keep_recurrent(f, layer);
    forward_recur_again(f, steps, conv, ctx);
    forward_each_col(f, steps->gate_col, ctx);
    f->attention_ns += clock_ns() - start;
}
