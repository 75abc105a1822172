/*
 * Gated delta nets: layers that remember a matrix per head instead of keys and values.
 *
 *   qkv, z, b, a = projections of h
 *   qkv = silu(convolution of qkv over the last positions, one filter per channel)
 *   q, k = normed to length 1, per key head;  q is also divided by sqrt(head_dim_k)
 *   decay = exp(A * softplus(a + bias)), beta = sigmoid(b)       per value head
 *   state = decay * state + (beta * (v - decay * state.k)) k^T;  out = state.q
 *   x += O.(norm(out) * silu(z))                                  or sigmoid(z)
 *
 * Several value heads share a key head.  A head takes its tokens one by one, from the first
 * position on, so its state does not depend on how the positions were cut into chunks.  Heads
 * are independent: the workers share them.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

struct delta_job {
    struct forward *f;
    const struct layer_desc *layer;
    const struct delta_hparams *d;
    uint32_t n_k, n_v, n_channel; /* keys and values of all heads; 2 * n_k + n_v */
    struct recurrent_side from, to;
    struct conv conv;
};

/* Take the row of a joined projection apart: it has q, k, v and z of a key head, then of the
 * next one. */
static void part_joined_col(void *ctx, uint32_t c)
{
    const struct delta_job *j = ctx;
    const struct delta_hparams *d = j->d;
    uint32_t n_group_v = j->n_v / d->n_head_k;
    const float *row = j->f->wide + (size_t)c * (j->n_channel + j->n_v);
    float *mix = j->f->mix + (size_t)c * j->n_channel, *z = j->f->z + (size_t)c * j->n_v;

    for (uint32_t g = 0; g < d->n_head_k; g++) {
        memcpy(mix + g * d->head_dim_k, row, d->head_dim_k * sizeof *row);
        row += d->head_dim_k;
        memcpy(mix + j->n_k + g * d->head_dim_k, row, d->head_dim_k * sizeof *row);
        row += d->head_dim_k;
        memcpy(mix + 2 * j->n_k + g * n_group_v, row, n_group_v * sizeof *row);
        row += n_group_v;
        memcpy(z + g * n_group_v, row, n_group_v * sizeof *row);
        row += n_group_v;
    }
}

/* The same for the two numbers of each value head. */
static void part_gates_col(void *ctx, uint32_t c)
{
    const struct delta_job *j = ctx;
    const struct delta_hparams *d = j->d;
    uint32_t n_group = d->n_head_v / d->n_head_k;
    const float *row = j->f->wide + (size_t)c * 2 * d->n_head_v;
    float *beta = j->f->beta + (size_t)c * d->n_head_v;
    float *decay = j->f->decay + (size_t)c * d->n_head_v;

    for (uint32_t g = 0; g < d->n_head_k; g++, row += 2 * n_group) {
        memcpy(beta + g * n_group, row, n_group * sizeof *row);
        memcpy(decay + g * n_group, row + n_group, n_group * sizeof *row);
    }
}

/* All projections of h: mix, z, beta and decay. */
static int project(struct delta_job *j, struct err *e)
{
    struct forward *f = j->f;
    const struct layer_desc *layer = j->layer;
    uint32_t n = f->p.desc->n_embd, n_head = j->d->n_head_v;

    if (layer->delta_qkvz.tensor != NULL) {
        if (forward_mul(f, &layer->delta_qkvz, f->h, n, f->wide, j->n_channel + j->n_v, e) != 0)
            return -1;
        forward_each_col(f, part_joined_col, j);
    } else if (forward_mul(f, &layer->delta_qkv, f->h, n, f->mix, j->n_channel, e) != 0 ||
               forward_mul(f, &layer->delta_z, f->h, n, f->z, j->n_v, e) != 0) {
        return -1;
    }
    if (layer->delta_ba.tensor == NULL)
        return forward_mul(f, &layer->delta_beta, f->h, n, f->beta, n_head, e) != 0
                   ? -1
                   : forward_mul(f, &layer->delta_alpha, f->h, n, f->decay, n_head, e);
    if (forward_mul(f, &layer->delta_ba, f->h, n, f->wide, 2 * (size_t)n_head, e) != 0)
        return -1;
    forward_each_col(f, part_gates_col, j);
    return 0;
}

static void mix_col(void *ctx, uint32_t c)
{
    const struct delta_job *j = ctx;
    struct forward *f = j->f;
    uint32_t n_head = j->d->n_head_v;
    float *conv = f->conv + (size_t)c * j->n_channel;
    float *beta = f->beta + (size_t)c * n_head, *decay = f->decay + (size_t)c * n_head;
    float unit = 1 / sqrtf((float)j->d->head_dim_k);

    conv_apply(&j->conv, c, 0, j->n_channel, j->layer->delta_conv.w, conv);
    f->p.kernels->sigmoid_mul(conv, conv, j->n_channel);
    heads_unit(f->p.kernels, conv, j->d->n_head_k, j->d->head_dim_k, unit * unit);
    heads_unit(f->p.kernels, conv + j->n_k, j->d->n_head_k, j->d->head_dim_k, unit);
    for (uint32_t h = 0; h < n_head; h++) {
        beta[h] = 1 / (1 + expf(-beta[h]));
        decay[h] =
            expf(j->layer->delta_decay.w[h] * softplus(decay[h] + j->layer->delta_bias.w[h]));
    }
}

static void run_head(void *ctx, uint32_t h)
{
    const struct delta_job *j = ctx;
    const struct delta_hparams *d = j->d;
    const struct forward *f = j->f;
    uint32_t g = d->is_tiled ? h % d->n_head_k : h / (d->n_head_v / d->n_head_k);
    size_t at = (size_t)h * d->head_dim_v * d->head_dim_k;

    for (uint32_t c = 0; c < f->n_col; c++) {
        const float *conv = f->conv + (size_t)c * j->n_channel;

        f->p.kernels->delta(&(struct delta_step){
            .from = (c == 0 ? j->from.state : j->to.state) + at,
            .to = j->to.state + at,
            .q = conv + (size_t)g * d->head_dim_k,
            .k = conv + j->n_k + (size_t)g * d->head_dim_k,
            .v = conv + 2 * (size_t)j->n_k + (size_t)h * d->head_dim_v,
            .dk = d->head_dim_k,
            .dv = d->head_dim_v,
            .decay = f->decay[(size_t)c * d->n_head_v + h],
            .beta = f->beta[(size_t)c * d->n_head_v + h],
            .out = f->att + (size_t)c * j->n_v + (size_t)h * d->head_dim_v,
        });
    }
}

/* The result is in z. */
static void gate_col(void *ctx, uint32_t c)
{
    const struct delta_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    float *out = j->f->att + (size_t)c * j->n_v, *z = j->f->z + (size_t)c * j->n_v;

    heads_norm(kern, out, j->d->n_head_v, j->d->head_dim_v, j->layer->delta_norm.w,
               j->f->p.desc->rms_eps);
    if (j->d->is_sigmoid) {
        kern->sigmoid_mul(out, z, j->n_v);
        memcpy(z, out, j->n_v * sizeof *z);
    } else {
        kern->silu_mul(z, out, j->n_v);
    }
}

static const struct recur_steps steps = { NULL, mix_col, run_head, gate_col };

static struct delta_job job_of(struct forward *f, const struct layer_desc *layer)
{
    const struct delta_hparams *d = &f->p.desc->hp->delta;
    struct delta_job j = { .f = f, .layer = layer, .d = d };

    j.n_k = d->n_head_k * d->head_dim_k;
    j.n_v = d->n_head_v * d->head_dim_v;
    j.n_channel = 2 * j.n_k + j.n_v;
    recurrent_sides(kv_recurrent(f->p.kv), layer->recurrent_layer, &j.from, &j.to);
    j.conv = conv_of(f, f->mix, &j.from, &j.to);
    return j;
}

void forward_delta_again(struct forward *f, const struct layer_desc *layer)
{
    struct delta_job j = job_of(f, layer);

    forward_recur_again(f, &steps, &j.conv, &j);
}

int forward_delta(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct delta_job j = job_of(f, layer);

    if (project(&j, e) != 0)
        return -1;
    forward_recur(f, layer, &steps, &j.conv, &j);
    return forward_mul(f, &layer->delta_out, f->z, j.n_v, f->y, f->p.desc->n_embd, e);
}
