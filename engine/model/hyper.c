/*
 * Several residual streams that matrices mix: hyper-connections.
 *
 *   m = F.(n / rms(n))                 n has all S streams in a row
 *   pre_s = sigmoid(m_s * scale_0 + base_s) + eps
 *   post_s = 2 * sigmoid(m_S+s * scale_1 + base_S+s)
 *   Z = softmax of each row of m_2S… * scale_2 + base_2S… as [source][destination], + eps
 *   Z: columns, then n_round - 1 times rows and columns, are divided by their sums + eps
 *   h = sum of pre_s * x_s
 *   x_t = post_t * branch(norm(h)) + sum of Z_st * x_s
 *
 * The input of the output is the same sum with a matrix of its own, or the mean of the streams
 * where there is none.  f->conv has n / rms(n), and f->middle has m; f->inject gets post and Z.
 */
#include "config.h"

#include <math.h>

#include "engine/model/forward_internal.h"

struct hyper_job {
    struct forward *f;
    const struct mixer *m;
    uint32_t n_stream;
    size_t n_all; /* values of all streams */
};

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

static void norm_all_col(void *ctx, uint32_t c)
{
    const struct hyper_job *j = ctx;
    struct forward *f = j->f;

    f->p.kernels->rms_norm(f->x + c * j->n_all, NULL, j->n_all, f->p.desc->rms_eps,
                           f->conv + c * j->n_all);
}

/* Turn a row of n products into parts of 1, plus eps. */
static void softmax_row(float *z, uint32_t n, float eps)
{
    float top = z[0], sum = 0;

    for (uint32_t i = 1; i < n; i++)
        top = fmaxf(top, z[i]);
    for (uint32_t i = 0; i < n; i++) {
        z[i] = expf(z[i] - top);
        sum += z[i];
    }
    for (uint32_t i = 0; i < n; i++)
        z[i] = z[i] / sum + eps;
}

/* Divide n values, which are so many apart, by their sum. */
static void divide_by_sum(float *z, uint32_t n, uint32_t apart, float eps)
{
    float sum = eps;

    for (uint32_t i = 0; i < n; i++)
        sum += z[i * apart];
    for (uint32_t i = 0; i < n; i++)
        z[i * apart] /= sum;
}

/* Make the sums of the rows and columns of a matrix almost 1. */
static void balance(float *z, uint32_t n, const struct hyper_hparams *h)
{
    for (uint32_t s = 0; s < n; s++)
        softmax_row(z + s * n, n, h->eps);
    for (uint32_t round = 0; round < h->n_round; round++) {
        for (uint32_t s = 0; round > 0 && s < n; s++)
            divide_by_sum(z + s * n, n, 1, h->eps);
        for (uint32_t t = 0; t < n; t++)
            divide_by_sum(z + t, n, n, h->eps);
    }
}

/* Set the factors of the branch's output and of the streams. */
static void inject_factors(const struct hyper_job *j, const float *m, float *inject)
{
    const uint32_t n = j->n_stream;
    const float *base = j->m->base->w, *scale = j->m->scale->w;

    for (uint32_t s = 0; s < n; s++)
        inject[s] = 2 * sigmoid(m[n + s] * scale[1] + base[n + s]);
    for (uint32_t i = 0; i < n * n; i++)
        inject[n + i] = m[2 * n + i] * scale[2] + base[2 * n + i];
    balance(inject + n, n, &j->f->p.desc->hp->hyper);
}

static void gather_col(void *ctx, uint32_t c)
{
    const struct hyper_job *j = ctx;
    struct forward *f = j->f;
    const struct model_desc *d = f->p.desc;
    const float *x = f->x + c * j->n_all;
    float *h = f->h + (size_t)c * d->n_embd;
    float by[MAX_HYPER_STREAM];

    for (uint32_t s = 0; s < j->n_stream; s++)
        by[s] = 1 / (float)j->n_stream;
    if (j->m->down->tensor != NULL) {
        const float *m = f->middle + (size_t)c * j->m->down->n_row;

        for (uint32_t s = 0; s < j->n_stream; s++)
            by[s] = sigmoid(m[s] * j->m->scale->w[0] + j->m->base->w[s]) + d->hp->hyper.eps;
        if (j->m->down->n_row > j->n_stream)
            inject_factors(j, m, f->inject + (size_t)c * d->n_inject);
    }
    for (uint32_t i = 0; i < d->n_embd; i++) {
        float sum = 0;

        for (uint32_t s = 0; s < j->n_stream; s++)
            sum += by[s] * x[(size_t)s * d->n_embd + i];
        h[i] = sum;
    }
}

int forward_mix_hyper(struct forward *f, const struct mixer *m, struct err *e)
{
    const struct model_desc *d = f->p.desc;
    struct hyper_job j = { .f = f, .m = m, .n_stream = d->n_stream };

    j.n_all = desc_n_residual(d);
    if (m->down->tensor != NULL) {
        forward_each_col(f, norm_all_col, &j);
        if (forward_mul(f, m->down, f->conv, j.n_all, f->middle, m->down->n_row, e) != 0)
            return -1;
    }
    forward_each_col(f, gather_col, &j);
    return 0;
}

void forward_inject_hyper_col(struct forward *f, uint32_t c)
{
    const struct model_desc *d = f->p.desc;
    const uint32_t n = d->n_stream;
    const float *y = f->y + (size_t)c * d->n_embd;
    const float *post = f->inject + (size_t)c * d->n_inject, *z = post + n;
    float *x = f->x + c * desc_n_residual(d);

    for (uint32_t i = 0; i < d->n_embd; i++) {
        float from[MAX_HYPER_STREAM];

        for (uint32_t s = 0; s < n; s++)
            from[s] = x[(size_t)s * d->n_embd + i];
        for (uint32_t t = 0; t < n; t++) {
            float sum = post[t] * y[i];

            for (uint32_t s = 0; s < n; s++)
                sum += z[s * n + t] * from[s];
            x[(size_t)t * d->n_embd + i] = sum;
        }
    }
}
