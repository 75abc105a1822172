/*
 * Causal convolutions of recurrent layers: each channel has a filter over the last positions,
 * whose last value belongs to the newest one.  The inputs of the last positions of a pass are a
 * part of the recurrent state.
 */
#include "config.h"

#include <string.h>

#include "engine/model/forward_internal.h"

struct conv conv_of(struct forward *f, const float *inputs, const struct recurrent_side *from,
                    const struct recurrent_side *to)
{
    const struct delta_hparams *d = &f->p.desc->hp->delta;

    return (struct conv){ .inputs = inputs,
                          .past = from->past,
                          .next = to->past,
                          .n_channel = d->n_channel,
                          .width = d->conv_width,
                          .n_col = f->n_col };
}

/* The inputs `back` positions before column c. */
static const float *input_at(const struct conv *v, uint32_t c, uint32_t back)
{
    return back <= c ? v->inputs + (size_t)(c - back) * v->n_channel
                     : v->past + (size_t)(v->width - 1 + c - back) * v->n_channel;
}

void conv_apply(const struct conv *v, uint32_t c, uint32_t first, uint32_t n, const float *w,
                float *out)
{
    const float *input[MAX_CONV_WIDTH];

    for (uint32_t t = 0; t < v->width; t++)
        input[t] = input_at(v, c, v->width - 1 - t) + first;
    for (uint32_t i = 0; i < n; i++, w += v->width) {
        float sum = 0;

        for (uint32_t t = 0; t < v->width; t++)
            sum += w[t] * input[t][i];
        out[i] = sum;
    }
}

void conv_keep(const struct conv *v)
{
    uint32_t n_past = v->width - 1;

    for (uint32_t t = 0; t < n_past; t++)
        memcpy(v->next + (size_t)t * v->n_channel, input_at(v, v->n_col - 1, n_past - 1 - t),
               v->n_channel * sizeof(float));
}
