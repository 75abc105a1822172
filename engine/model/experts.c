/*
 * Mixture of experts beside a dense branch (Gemma 4 26B-A4B).
 *
 * The router reads the residual stream, normed without weights, times a vector and
 * 1/sqrt(n_embd).  Only the weights of the experts that it chooses are read.  Experts are
 * computed in ascending order and each column adds those that it chose, so the sum of a column
 * does not depend on its neighbours.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/model/forward_internal.h"

static uint64_t slab_bytes(const struct tensor_info *t, uint32_t n_expert)
{
    return t != NULL ? t->bytes / n_expert : 0;
}

static uint64_t expert_bytes(const struct experts_desc *x)
{
    return slab_bytes(x->gate_up, x->n_expert) + slab_bytes(x->gate, x->n_expert) +
           slab_bytes(x->up, x->n_expert) + slab_bytes(x->down, x->n_expert);
}

uint64_t experts_buf_bytes(const struct model_desc *d)
{
    uint64_t most = 0;

    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct experts_desc *x = &d->layers[l].experts;
        uint64_t n = x->n_expert > 0 ? expert_bytes(x) : 0;

        most = n > most ? n : most;
    }
    return most;
}

uint64_t experts_token_bytes(const struct model_desc *d)
{
    uint64_t bytes = 0;

    for (uint32_t l = 0; l < d->n_layer; l++) {
        const struct experts_desc *x = &d->layers[l].experts;

        if (x->n_expert > 0)
            bytes += expert_bytes(x) * x->n_used;
    }
    return bytes;
}

struct route {
    struct forward *f;
    const struct layer_desc *layer;
};

/* Set the moe_weight of one column: of the experts that it chooses; 0 for the others. */
static void route_col(void *ctx, uint32_t c)
{
    const struct route *r = ctx;
    struct forward *f = r->f;
    const struct experts_desc *x = &r->layer->experts;
    const struct model_desc *d = f->p.desc;
    const struct kernels *kern = f->p.kernels;
    float *z = f->moe_h + (size_t)c * d->n_embd;
    float *p = f->moe_weight + (size_t)c * x->n_expert;
    float top = -INFINITY, sum = 0;
    uint32_t n_left = x->n_used;

    kern->rms_norm(f->x + (size_t)c * d->n_embd, NULL, d->n_embd, d->rms_eps, z);
    for (uint32_t i = 0; i < d->n_embd; i++)
        z[i] = z[i] * x->router_scale.w[i] * (1 / sqrtf((float)d->n_embd));
    kern->mul(TYPE_F32, ACT_F32, x->router.w, x->n_expert, d->n_embd, z,
              d->n_embd * sizeof(float), 1, p, x->n_expert);
    for (uint32_t i = 0; i < x->n_expert; i++)
        top = fmaxf(top, p[i]);
    /* The sum of the softmax cancels when the chosen weights are divided by their own sum. */
    for (uint32_t i = 0; i < x->n_expert; i++)
        p[i] = expf(p[i] - top);
    for (; n_left > 0; n_left--) {
        uint32_t best = 0;

        for (uint32_t i = 1; i < x->n_expert; i++)
            if (p[i] > p[best])
                best = i;
        sum += p[best];
        p[best] = -p[best]; /* the sign marks it as chosen */
    }
    for (uint32_t i = 0; i < x->n_expert; i++)
        p[i] = p[i] < 0 ? -p[i] / sum * x->expert_scale.w[i] : 0;
    kern->rms_norm(f->x + (size_t)c * d->n_embd, x->pre_norm.w, d->n_embd, d->rms_eps, z);
}

static int read_expert(struct forward *f, const struct experts_desc *x, uint32_t expert,
                       const unsigned char **gate_up, const unsigned char **down, struct err *e)
{
    const struct tensor_info *parts[] = { x->gate_up, x->gate, x->up, x->down };
    struct stream_lookup lookups[4];
    unsigned char *to = f->expert_buf;
    size_t n = 0;
    uint64_t start = clock_ns();

    *gate_up = to;
    for (size_t i = 0; i < 4; i++) {
        uint64_t bytes = slab_bytes(parts[i], x->n_expert);

        if (parts[i] == NULL)
            continue;
        if (parts[i] == x->down)
            *down = to;
        lookups[n++] = (struct stream_lookup){ .file = parts[i]->file,
                                               .offset = parts[i]->offset + expert * bytes,
                                               .bytes = bytes,
                                               .dst = to };
        to += bytes;
    }
    stream_lookup_start(f->p.stream, lookups, n);
    if (stream_lookup_wait(f->p.stream, e) != 0)
        return -1;
    f->stall_ns += clock_ns() - start;
    return 0;
}

/* Columns that choose this expert are computed one by one: few share an expert. */
static void run_expert(struct forward *f, const struct layer_desc *layer, uint32_t expert,
                       const unsigned char *gate_up, const unsigned char *down)
{
    const struct experts_desc *x = &layer->experts;
    const struct model_desc *d = f->p.desc;
    const struct kernels *kern = f->p.kernels;
    enum tensor_type type = x->gate_up != NULL ? x->gate_up->type : x->gate->type;
    uint64_t half = tensor_row_bytes(type, d->n_embd) * x->n_ff;

    for (uint32_t c = 0; c < f->n_col; c++) {
        float weight = f->moe_weight[(size_t)c * x->n_expert + expert];
        float *gate = f->gate, *up = f->gate + x->n_ff;
        const float *h = f->moe_h + (size_t)c * d->n_embd;
        float *sum = f->moe_sum + (size_t)c * d->n_embd;

        if (weight == 0)
            continue;
        forward_mul_mem(f, type, gate_up, x->n_ff, d->n_embd, h, d->n_embd, 1, gate, x->n_ff);
        forward_mul_mem(f, type, gate_up + half, x->n_ff, d->n_embd, h, d->n_embd, 1, up,
                        x->n_ff);
        kern->gelu_mul(gate, up, x->n_ff);
        forward_mul_mem(f, x->down->type, down, d->n_embd, x->n_ff, gate, x->n_ff, 1, f->up,
                        d->n_embd);
        kern->scale(f->up, weight, d->n_embd);
        kern->add(sum, f->up, d->n_embd);
    }
}

/* y = norm_1(dense branch) + norm_2(sum of experts) */
static void join_col(void *ctx, uint32_t c)
{
    const struct route *r = ctx;
    struct forward *f = r->f;
    const struct experts_desc *x = &r->layer->experts;
    const struct model_desc *d = f->p.desc;
    float *y = f->y + (size_t)c * d->n_embd, *sum = f->moe_sum + (size_t)c * d->n_embd;

    f->p.kernels->rms_norm(y, x->post_norm_dense.w, d->n_embd, d->rms_eps, y);
    f->p.kernels->rms_norm(sum, x->post_norm_experts.w, d->n_embd, d->rms_eps, sum);
    f->p.kernels->add(y, sum, d->n_embd);
}

int forward_experts(struct forward *f, const struct layer_desc *layer, struct err *e)
{
    const struct experts_desc *x = &layer->experts;
    struct route r = { f, layer };

    forward_each_col(f, route_col, &r);
    memset(f->moe_sum, 0, (size_t)f->n_col * f->p.desc->n_embd * sizeof *f->moe_sum);
    for (uint32_t i = 0; i < x->n_expert; i++) {
        const unsigned char *gate_up, *down = NULL;
        bool is_wanted = false;

        for (uint32_t c = 0; c < f->n_col; c++)
            is_wanted |= f->moe_weight[(size_t)c * x->n_expert + i] != 0;
        if (!is_wanted)
            continue;
        if (read_expert(f, x, i, &gate_up, &down, e) != 0)
            return -1;
        run_expert(f, layer, i, gate_up, down);
    }
    forward_each_col(f, join_col, &r);
    return 0;
}
