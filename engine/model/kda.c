/*
 * Kimi's delta attention: a gated delta net whose decay is a vector, one value per key channel,
 * and whose queries, keys and values have convolutions of their own.
 *
 *   q, k, v = silu(convolution of Q.h), silu(convolution of K.h), silu(convolution of V.h)
 *   q, k = normed to length 1, per head;  q is also divided by sqrt(head_dim)
 *   decay = exp(-rate * softplus(F.h + bias)), or exp(bound * sigmoid(rate * (F.h + bias)))
 *   beta = sigmoid(b.h)                                            per head
 *   state = state diag(decay);  state += beta * (v - state.k) k^T;  out = state.q
 *   y = O.(norm(out) * sigmoid(G.h))
 *
 * F and G are two matrices each, or one.
 */
#include "config.h"

#include <math.h>

#include "engine/model/forward_internal.h"

struct kda_job {
    struct forward *f;
    const struct layer_desc *layer;
    const struct delta_hparams *d;
    uint32_t n; /* values of all heads */
    struct recurrent_side from, to;
    struct conv conv;
};

/* out = B.(A.h), or A.h where there is no B. */
static int two_matrices(struct forward *f, const struct mat *a, const struct mat *b, float *out,
                        uint32_t n, struct err *e)
{
    uint32_t n_embd = f->p.desc->n_embd;

    if (b->tensor == NULL)
        return forward_mul(f, a, f->h, n_embd, out, n, e);
    if (forward_mul(f, a, f->h, n_embd, f->wide, a->n_row, e) != 0)
        return -1;
    return forward_mul(f, b, f->wide, a->n_row, out, n, e);
}

static int project(struct kda_job *j, struct err *e)
{
    struct forward *f = j->f;
    const struct layer_desc *layer = j->layer;
    uint32_t n_embd = f->p.desc->n_embd, ld = 3 * j->n;
    const struct product p[3] = { { &layer->kda_q, f->mix, ld },
                                  { &layer->kda_k, f->mix + j->n, ld },
                                  { &layer->kda_v, f->mix + 2 * (size_t)j->n, ld } };

    if (forward_mul_all(f, p, 3, f->h, n_embd, e) != 0 ||
        forward_mul(f, &layer->delta_beta, f->h, n_embd, f->beta, j->d->n_head_v, e) != 0)
        return -1;
    if (two_matrices(f, &layer->kda_decay_a, &layer->kda_decay_b, f->decay, j->n, e) != 0)
        return -1;
    return two_matrices(f, &layer->kda_gate_a, &layer->kda_gate_b, f->z, j->n, e);
}

static void mix_col(void *ctx, uint32_t c)
{
    const struct kda_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    const struct layer_desc *layer = j->layer;
    const struct vec *filters[] = { &layer->kda_q_conv, &layer->kda_k_conv,
                                    &layer->kda_v_conv };
    float *conv = j->f->conv + (size_t)c * 3 * j->n;
    float *decay = j->f->decay + (size_t)c * j->n;
    float *beta = j->f->beta + (size_t)c * j->d->n_head_v;
    float unit = 1 / sqrtf((float)j->d->head_dim_k), bound = j->d->gate_bound;

    for (uint32_t i = 0; i < 3; i++)
        conv_apply(&j->conv, c, i * j->n, j->n, filters[i]->w, conv + (size_t)i * j->n);
    kern->sigmoid_mul(conv, conv, 3 * (size_t)j->n);
    heads_unit(kern, conv, j->d->n_head_v, j->d->head_dim_k, unit * unit);
    heads_unit(kern, conv + j->n, j->d->n_head_v, j->d->head_dim_k, unit);
    for (uint32_t h = 0; h < j->d->n_head_v; h++)
        beta[h] = 1 / (1 + expf(-beta[h]));
    for (uint32_t i = 0; i < j->n; i++) {
        /* Converters write the rate with either sign. */
        float rate = fabsf(layer->delta_decay.w[i / j->d->head_dim_k]);
        float x = decay[i] + layer->delta_bias.w[i];

        decay[i] = expf(bound < 0 ? bound / (1 + expf(-rate * x)) : -rate * softplus(x));
    }
}

static void run_head(void *ctx, uint32_t h)
{
    const struct kda_job *j = ctx;
    const struct delta_hparams *d = j->d;
    const struct forward *f = j->f;
    uint32_t n = d->head_dim_k;
    size_t at = (size_t)h * d->head_dim_v * n, first = (size_t)h * n;

    for (uint32_t c = 0; c < f->n_col; c++) {
        const float *conv = f->conv + (size_t)c * 3 * j->n + first;
        const float *from = (c == 0 ? j->from.state : j->to.state) + at;
        const float *decay = f->decay + (size_t)c * j->n + first;
        float *to = j->to.state + at;

        for (uint32_t r = 0; r < d->head_dim_v; r++)
            for (uint32_t i = 0; i < n; i++)
                to[(size_t)r * n + i] = from[(size_t)r * n + i] * decay[i];
        f->p.kernels->delta(&(struct delta_step){
            .from = to,
            .to = to,
            .q = conv,
            .k = conv + j->n,
            .v = conv + 2 * (size_t)j->n,
            .dk = n,
            .dv = d->head_dim_v,
            .decay = 1,
            .beta = f->beta[(size_t)c * d->n_head_v + h],
            .out = f->att + (size_t)c * j->n + first,
        });
    }
}

static void gate_col(void *ctx, uint32_t c)
{
    const struct kda_job *j = ctx;
    const struct kernels *kern = j->f->p.kernels;
    float *out = j->f->att + (size_t)c * j->n;

    heads_norm(kern, out, j->d->n_head_v, j->d->head_dim_v, j->layer->delta_norm.w,
               j->f->p.desc->rms_eps);
    kern->sigmoid_mul(out, j->f->z + (size_t)c * j->n, j->n);
}

static const struct recur_steps steps = { NULL, mix_col, run_head, gate_col };

static struct kda_job job_of(struct forward *f, const struct layer_desc *layer)
{
    const struct delta_hparams *d = &f->p.desc->hp->delta;
    struct kda_job j = { .f = f, .layer = layer, .d = d, .n = d->n_head_v * d->head_dim_v };

    recurrent_sides(kv_recurrent(f->p.kv), layer->recurrent_layer, &j.from, &j.to);
    j.conv = conv_of(f, f->mix, &j.from, &j.to);
    return j;
}

void forward_kda_again(struct forward *f, const struct layer_desc *layer)
{
    struct kda_job j = job_of(f, layer);

    forward_recur_again(f, &steps, &j.conv, &j);
}

int forward_kda(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    struct kda_job j = job_of(f, layer);

    if (project(&j, e) != 0)
        return -1;
    forward_recur(f, layer, &steps, &j.conv, &j);
    return forward_mul(f, &layer->delta_out, f->att, j.n, f->y, f->p.desc->n_embd, e);
}
