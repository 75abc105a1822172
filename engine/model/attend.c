/*
 * Attention over the positions of the store, block by block with a running maximum and sum, so
 * that each position is read once, even in a long context.
 *
 * An item of work is a column and a group of query heads that share a key head.  The result of
 * a query does not depend on how the work is cut, because blocks always start at multiples of
 * ATTN_BLOCK.
 *
 * If the store has rotated rows, an item rotates its queries before and its sums afterwards. No
 * other item reads them.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

#define MAX_Q 32 /* query heads that one item takes */

struct attend_job {
    struct forward *f;
    const struct layer_desc *layer;
    uint32_t n_q;     /* query heads of an item */
    uint32_t n_group; /* items of a column */
};

float attend_factor(const struct layer_desc *layer, uint32_t head, float m, float l)
{
    float sink, top;

    if (layer->sinks.w == NULL)
        return 1 / l;
    sink = layer->sinks.w[head];
    top = fmaxf(m, sink);
    return expf(m - top) / (l * expf(m - top) + expf(sink - top));
}

static void attend_item(const struct attend_job *j, uint32_t col, uint32_t group)
{
    const struct layer_desc *layer = j->layer;
    const struct forward *f = j->f;
    const struct model_desc *d = f->p.desc;
    const struct kv *kv = f->p.kv;
    uint32_t head = group * j->n_q;
    uint32_t head_kv = head / (layer->n_head / layer->n_head_kv);
    uint32_t pos = f->pos[col];
    uint32_t first = layer->window > 0 && pos + 1 > layer->window ? pos + 1 - layer->window : 0;
    uint32_t k_run = kv_run_k(kv, layer->kv_layer), v_run = kv_run_v(kv, layer->kv_layer);
    float *q = f->q + ((size_t)col * layer->n_head + head) * layer->head_dim_k;
    float *out = f->att + ((size_t)col * layer->n_head + head) * layer->head_dim_v;
    float m[MAX_Q], l[MAX_Q];

    if (k_run > 0)
        f->p.kernels->rotate(q, (size_t)j->n_q * layer->head_dim_k, k_run);
    for (uint32_t i = 0; i < j->n_q; i++) {
        m[i] = -INFINITY;
        l[i] = 0;
    }
    memset(out, 0, (size_t)j->n_q * layer->head_dim_v * sizeof *out);
    for (uint32_t at = first; at <= pos;) {
        uint32_t end = (at / ATTN_BLOCK + 1) * ATTN_BLOCK;
        size_t k_stride, v_stride;
        const void *k = kv_keys(kv, layer->kv_layer, at, head_kv, &k_stride);
        const void *v = kv_values(kv, layer->kv_layer, at, head_kv, &v_stride);

        if (end > pos + 1)
            end = pos + 1;
        f->p.kernels->attn(kv_type_k(kv), kv_type_v(kv), q, j->n_q, k, k_stride, v, v_stride,
                           end - at, layer->head_dim_k, layer->head_dim_v, d->attn_scale,
                           d->softcap_attn, m, l, out);
        at = end;
    }
    for (uint32_t i = 0; i < j->n_q; i++)
        f->p.kernels->scale(out + (size_t)i * layer->head_dim_v,
                            attend_factor(layer, head + i, m[i], l[i]), layer->head_dim_v);
    if (v_run > 0)
        f->p.kernels->rotate(out, (size_t)j->n_q * layer->head_dim_v, v_run);
}

static void attend_part(void *ctx, int part, int n_part)
{
    const struct attend_job *j = ctx;
    uint32_t n_item = j->f->n_col * j->n_group;

    /* Later columns see more positions, so items are dealt out round robin. */
    for (uint32_t i = (uint32_t)part; i < n_item; i += (uint32_t)n_part)
        attend_item(j, i / j->n_group, i % j->n_group);
}

void forward_attend(struct forward *f, const struct layer_desc *layer)
{
    uint32_t share = layer->n_head / layer->n_head_kv; /* query heads of a key head */
    uint32_t n_q = share;
    uint32_t wanted = (uint32_t)pool_threads(f->p.pool);
    struct attend_job job = { .f = f, .layer = layer };

    while (n_q > MAX_Q ||
           (n_q > 1 && n_q % 2 == 0 && f->n_col * (layer->n_head / n_q) < wanted)) {
        uint32_t half = n_q / 2;

        n_q = n_q % 2 == 0 ? half : 1;
    }
    job.n_q = n_q;
    job.n_group = layer->n_head / n_q;
    pool_run(f->p.pool, pool_parts(f->p.pool, (size_t)f->n_col * job.n_group), attend_part, &job);
}
