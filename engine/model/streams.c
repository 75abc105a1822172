/*
 * Several residual streams.  A mixer makes the input of a branch from all of them, and the
 * branch's output is added to each stream with a factor of its own:
 *
 *   n_s = norm(x_s)                       for each stream s of S; n has all of them in a row
 *   g = sigmoid(U.silu(D.n / S))
 *   h = sum of n_s * g_s / S
 *   inject_s = 2 * sigmoid(I_s.n / S)     not for the output
 *   x_s += inject_s * branch(h)
 *
 * f->conv has n and f->wide has the gates: the other users of both begin after the mixer.
 * Where matrices mix the streams, hyper.c does this.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

struct mix_job {
    struct forward *f;
    const struct mixer *m;
    uint32_t n_stream, n_embd;
    size_t n_all; /* values of all streams */
};

static void norm_streams_col(void *ctx, uint32_t c)
{
    const struct mix_job *j = ctx;
    struct forward *f = j->f;
    const struct kernels *kern = f->p.kernels;
    const float *x = f->x + c * j->n_all;
    float *n = f->conv + c * j->n_all, *inject = f->inject + (size_t)c * j->n_stream;

    for (uint32_t s = 0; s < j->n_stream; s++)
        kern->rms_norm(x + (size_t)s * j->n_embd, j->m->norm->w + (size_t)s * j->n_embd,
                       j->n_embd, f->p.desc->rms_eps, n + (size_t)s * j->n_embd);
    if (j->m->inject == NULL)
        return;
    forward_mul_resident(kern, j->m->inject->w, j->n_stream, n, j->n_all, inject);
    for (uint32_t s = 0; s < j->n_stream; s++)
        inject[s] = 2 / (1 + expf(-inject[s] / (float)j->n_stream));
}

static void activate_col(void *ctx, uint32_t c)
{
    const struct mix_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    size_t n_mix = j->m->down->n_row;
    float *middle = j->f->middle + c * n_mix;

    kern->scale(middle, 1 / (float)j->n_stream, n_mix);
    kern->sigmoid_mul(middle, middle, n_mix);
}

static void gather_streams_col(void *ctx, uint32_t c)
{
    const struct mix_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    float *n = j->f->conv + c * j->n_all, *h = j->f->h + (size_t)c * j->n_embd;

    kern->sigmoid_mul(n, j->f->wide + c * j->n_all, j->n_all);
    memcpy(h, n, j->n_embd * sizeof *h);
    for (uint32_t s = 1; s < j->n_stream; s++)
        kern->add(h, n + (size_t)s * j->n_embd, j->n_embd);
    kern->scale(h, 1 / (float)j->n_stream, j->n_embd);
}

int forward_mix(struct forward *f, const struct mixer *m, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    struct mix_job j = { .f = f, .m = m, .n_stream = d->n_stream, .n_embd = d->n_embd };
    uint32_t n_mix;

    if (d->has_hyper)
        return forward_mix_hyper(f, m, e);
    n_mix = m->down->n_row;
    j.n_all = desc_n_residual(d);
    forward_each_col(f, norm_streams_col, &j);
    if (forward_mul(f, m->down, f->conv, j.n_all, f->middle, n_mix, e) != 0)
        return -1;
    forward_each_col(f, activate_col, &j);
    if (forward_mul(f, m->up, f->middle, n_mix, f->wide, j.n_all, e) != 0)
        return -1;
    forward_each_col(f, gather_streams_col, &j);
    return 0;
}

void forward_inject_col(struct forward *f, uint32_t c)
{
    const struct model_desc *d = f->p.desc;
    const float *y = f->y + (size_t)c * d->n_embd;

    if (d->has_hyper) {
        forward_inject_hyper_col(f, c);
        return;
    }
    for (uint32_t s = 0; s < d->n_stream; s++) {
        float by = f->inject[(size_t)c * d->n_stream + s];
        float *x = f->x + ((size_t)c * d->n_stream + s) * d->n_embd;

        for (uint32_t i = 0; i < d->n_embd; i++)
            x[i] += by * y[i];
    }
}
