/*
 * Mamba-2 and short convolutions: recurrent layers without keys.
 *
 * Mamba-2, for each head of head_dim_v values, in one of n_head_k groups:
 *   z, xBC, dt = projection of h
 *   x, B, C = silu(convolution of xBC over the last positions + bias)     B, C: of a group
 *   dt = softplus(dt + bias)
 *   state = exp(A * dt) * state + (dt * x) B^T;  out = state.C + D * x    A < 0
 *   y = O.norm(out * silu(z))                     the norm of each group; Falcon-H1 has none
 *
 * A short convolution:  B, C, x = projection of h;  y = O.(C * convolution of (B * x))
 *
 * A head takes its tokens one by one, as in delta.c.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

struct mamba_job {
    struct forward *f;
    const struct layer_desc *layer;
    const struct delta_hparams *d;
    uint32_t n_bc, n_x, n_in; /* of B and C of all groups; of x; of the projection */
    struct recurrent_side from, to;
    struct conv conv;
};

/* --- Mamba-2 --- */

/* Take the projection apart, and give its parts their factors. */
static void part_col(void *ctx, uint32_t c)
{
    const struct mamba_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    const float *by = j->f->p.desc->hp->factors.mamba_parts;
    uint32_t n_mix = j->d->n_channel, n_head = j->d->n_head_v;
    const float *row = j->f->wide + (size_t)c * j->n_in;
    float *z = j->f->z + (size_t)c * j->n_x, *mix = j->f->mix + (size_t)c * n_mix;
    float *dt = j->f->decay + (size_t)c * n_head;

    memcpy(z, row, j->n_x * sizeof *z);
    memcpy(mix, row + j->n_x, n_mix * sizeof *mix);
    memcpy(dt, row + j->n_x + n_mix, n_head * sizeof *dt);
    if (by[0] == 1 && by[1] == 1 && by[2] == 1 && by[3] == 1 && by[4] == 1)
        return;
    kern->scale(z, by[0], j->n_x);
    kern->scale(mix, by[1], j->n_x);
    kern->scale(mix + j->n_x, by[2], j->n_bc);
    kern->scale(mix + j->n_x + j->n_bc, by[3], j->n_bc);
    kern->scale(dt, by[4], n_head);
}

static void mix_col(void *ctx, uint32_t c)
{
    const struct mamba_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    float *out = j->f->conv + (size_t)c * j->d->n_channel;
    float *dt = j->f->decay + (size_t)c * j->d->n_head_v;

    conv_apply(&j->conv, c, 0, j->d->n_channel, j->layer->delta_conv.w, out);
    kern->add(out, j->layer->conv_bias.w, j->d->n_channel);
    kern->sigmoid_mul(out, out, j->d->n_channel);
    for (uint32_t h = 0; h < j->d->n_head_v; h++)
        dt[h] = softplus(dt[h] + j->layer->delta_bias.w[h]);
}

static void run_head(void *ctx, uint32_t h)
{
    const struct mamba_job *j = ctx;
    const struct delta_hparams *d = j->d;
    uint32_t group = h / (d->n_head_v / d->n_head_k), n = d->head_dim_k;
    size_t at = (size_t)h * d->head_dim_v * n;

    for (uint32_t c = 0; c < j->f->n_col; c++) {
        const float *conv = j->f->conv + (size_t)c * d->n_channel;
        const float *x = conv + (size_t)h * d->head_dim_v;
        const float *b = conv + j->n_x + (size_t)group * n, *out_by = b + j->n_bc;
        const float *from = (c == 0 ? j->from.state : j->to.state) + at;
        float *to = j->to.state + at;
        float *out = j->f->att + (size_t)c * j->n_x + (size_t)h * d->head_dim_v;
        float dt = j->f->decay[(size_t)c * d->n_head_v + h];
        float decay = expf(j->layer->delta_decay.w[h] * dt);

        for (uint32_t r = 0; r < d->head_dim_v; r++)
            for (uint32_t i = 0; i < n; i++)
                to[(size_t)r * n + i] = decay * from[(size_t)r * n + i] + dt * x[r] * b[i];
        forward_mul_resident(j->f->p.kernels, to, d->head_dim_v, out_by, n, out);
        for (uint32_t r = 0; r < d->head_dim_v; r++)
            out[r] += j->layer->mamba_skip.w[h] * x[r];
    }
}

static void gate_col(void *ctx, uint32_t c)
{
    const struct mamba_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    uint32_t n = j->n_x / j->d->n_head_k;
    float *z = j->f->z + (size_t)c * j->n_x;

    kern->silu_mul(z, j->f->att + (size_t)c * j->n_x, j->n_x);
    for (uint32_t g = 0; j->layer->delta_norm.w != NULL && g < j->d->n_head_k; g++)
        kern->rms_norm(z + g * n, j->layer->delta_norm.w + g * n, n, j->f->p.desc->rms_eps,
                       z + g * n);
}

static const struct recur_steps steps = { part_col, mix_col, run_head, gate_col };

static struct mamba_job job_of(struct forward *f, const struct layer_desc *layer)
{
    const struct delta_hparams *d = &f->p.desc->hp->delta;
    struct mamba_job j = { .f = f, .layer = layer, .d = d };

    j.n_bc = d->n_head_k * d->head_dim_k;
    j.n_x = d->n_head_v * d->head_dim_v;
    j.n_in = j.n_x + d->n_channel + d->n_head_v;
    recurrent_sides(kv_recurrent(f->p.kv), layer->recurrent_layer, &j.from, &j.to);
    j.conv = conv_of(f, f->mix, &j.from, &j.to);
    return j;
}

void forward_mamba_again(struct forward *f, const struct layer_desc *layer)
{
    struct mamba_job j = job_of(f, layer);

    forward_recur_again(f, &steps, &j.conv, &j);
}

int forward_mamba(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    uint32_t n_embd = f->p.desc->n_embd;
    struct mamba_job j = job_of(f, layer);

    if (forward_mul(f, &layer->delta_qkvz, f->h, n_embd, f->wide, j.n_in, e) != 0)
        return -1;
    forward_recur(f, layer, &steps, &j.conv, &j);
    if (forward_mul(f, &layer->delta_out, f->z, j.n_x, f->y, n_embd, e) != 0)
        return -1;
    forward_scale_cols(f, f->y, n_embd, f->p.desc->hp->factors.mamba);
    return 0;
}

/* --- short convolutions --- */

static void short_in_col(void *ctx, uint32_t c)
{
    const struct mamba_job *j = ctx;
    uint32_t n = j->d->n_channel;
    const float *b = j->f->wide + (size_t)c * 3 * n, *x = b + 2 * (size_t)n;
    float *mix = j->f->mix + (size_t)c * n;

    for (uint32_t i = 0; i < n; i++)
        mix[i] = b[i] * x[i];
}

static void short_out_col(void *ctx, uint32_t c)
{
    const struct mamba_job *j = ctx;
    uint32_t n = j->d->n_channel;
    const float *by = j->f->wide + ((size_t)c * 3 + 1) * n;
    float *out = j->f->conv + (size_t)c * n;

    conv_apply(&j->conv, c, 0, n, j->layer->delta_conv.w, out);
    for (uint32_t i = 0; i < n; i++)
        out[i] *= by[i];
}

void forward_short_conv_again(struct forward *f, const struct layer_desc *layer)
{
    struct mamba_job j = job_of(f, layer);

    conv_keep(&j.conv);
}

int forward_short_conv(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct mamba_job j = job_of(f, layer);
    uint32_t n = f->p.desc->n_embd;

    if (forward_mul(f, &layer->delta_qkvz, f->h, n, f->wide, 3 * (size_t)n, e) != 0)
        return -1;
    forward_each_col(f, short_in_col, &j);
    forward_keep_recurrent(f, layer);
    forward_each_col(f, short_out_col, &j);
    conv_keep(&j.conv);
    return forward_mul(f, &layer->delta_out, f->conv, n, f->y, n, e);
}
