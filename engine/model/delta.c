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

#include "engine/base/clock.h"
#include "engine/model/forward_internal.h"

#define LENGTH_EPS 1e-6f /* added to a squared length before it divides */

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

static void unit_heads(const struct delta_job *j, float *x, float by)
{
    const struct kernels *kern = j->f->p.kernels;
    uint32_t n = j->d->head_dim_k;

    /* x / sqrt(sum + eps) is the rms norm with eps / n, divided by sqrt(n). */
    for (uint32_t g = 0; g < j->d->n_head_k; g++)
        kern->rms_norm(x + (size_t)g * n, NULL, n, LENGTH_EPS / (float)n, x + (size_t)g * n);
    kern->scale(x, by, j->n_k);
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
    unit_heads(j, conv, unit * unit);
    unit_heads(j, conv + j->n_k, unit);
    for (uint32_t h = 0; h < n_head; h++) {
        beta[h] = 1 / (1 + expf(-beta[h]));
        decay[h] =
            expf(j->layer->delta_decay.w[h] * softplus(decay[h] + j->layer->delta_bias.w[h]));
    }
}

static void run_head(const struct delta_job *j, uint32_t h)
{
    const struct delta_hparams *d = j->d;
    const struct forward *f = j->f;
    uint32_t g = d->is_tiled ? h % d->n_head_k : h / (d->n_head_v / d->n_head_k);
    size_t at = (size_t)h * d->head_dim_v * d->head_dim_k;

    for (uint32_t c = 0; c < f->n_col; c++) {
        const float *conv = f->conv + (size_t)c * j->n_channel;

        f->p.kernels->delta(
            (c == 0 ? j->from.state : j->to.state) + at, j->to.state + at,
            conv + (size_t)g * d->head_dim_k, conv + j->n_k + (size_t)g * d->head_dim_k,
            conv + 2 * (size_t)j->n_k + (size_t)h * d->head_dim_v, d->head_dim_k, d->head_dim_v,
            f->decay[(size_t)c * d->n_head_v + h], f->beta[(size_t)c * d->n_head_v + h],
            f->att + (size_t)c * j->n_v + (size_t)h * d->head_dim_v);
    }
}

static void run_heads(void *ctx, int part, int n_part)
{
    const struct delta_job *j = ctx;

    for (uint32_t h = (uint32_t)part; h < j->d->n_head_v; h += (uint32_t)n_part)
        run_head(j, h);
}

/* The result is in z. */
static void gate_col(void *ctx, uint32_t c)
{
    const struct delta_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    uint32_t n = j->d->head_dim_v;
    float *out = j->f->att + (size_t)c * j->n_v, *z = j->f->z + (size_t)c * j->n_v;

    for (uint32_t h = 0; h < j->d->n_head_v; h++)
        kern->rms_norm(out + (size_t)h * n, j->layer->delta_norm.w, n, j->f->p.desc->rms_eps,
                       out + (size_t)h * n);
    if (j->d->is_sigmoid) {
        kern->sigmoid_mul(out, z, j->n_v);
        memcpy(z, out, j->n_v * sizeof *z);
    } else {
        kern->silu_mul(z, out, j->n_v);
    }
}

int forward_delta(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    const struct delta_hparams *d = &f->p.desc->hp->delta;
    struct delta_job j = { .f = f, .layer = layer, .d = d };
    uint64_t start;

    j.n_k = d->n_head_k * d->head_dim_k;
    j.n_v = d->n_head_v * d->head_dim_v;
    j.n_channel = 2 * j.n_k + j.n_v;
    recurrent_sides(kv_recurrent(f->p.kv), layer->recurrent_layer, &j.from, &j.to);
    j.conv = conv_of(f, f->mix, &j.from, &j.to);
    if (project(&j, e) != 0)
        return -1;
    start = clock_ns();
    forward_each_col(f, mix_col, &j);
    conv_keep(&j.conv);
    pool_run(f->p.pool, pool_parts(f->p.pool, d->n_head_v), run_heads, &j);
    forward_each_col(f, gate_col, &j);
    f->attention_ns += clock_ns() - start;
    return forward_mul(f, &layer->delta_out, f->z, j.n_v, f->y, f->p.desc->n_embd, e);
}
