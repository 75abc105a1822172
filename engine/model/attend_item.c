/* See attend_item.h. */
#include "config.h"

#include "engine/model/attend_item.h"

#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

struct items {
    struct forward *f;
    const struct layer_desc *layer;
    uint32_t first, n_q;
    attend_item_fn *fn;
};

uint32_t attend_run_end(uint32_t at, uint32_t end)
{
    uint32_t next = (at / ATTN_BLOCK + 1) * ATTN_BLOCK;

    return next < end ? next : end;
}

void attend_item_run(struct forward *f, const struct layer_desc *layer, struct attend_item *a,
                     const void *k, size_t k_stride, const void *v, size_t v_stride, uint32_t n)
{
    const struct kv *kv = f->p.kv;

    f->p.kernels->attn(&(struct attn_block){ .k_type = kv_type_k(kv),
                                             .v_type = kv_type_v(kv, layer->kv_layer),
                                             .k = k,
                                             .v = v,
                                             .k_stride = k_stride,
                                             .v_stride = v_stride,
                                             .n_pos = n,
                                             .n_q = a->n_q,
                                             .dk = layer->head_dim_k,
                                             .dv = layer->head_dim_v,
                                             .q = a->q,
                                             .scale = f->p.desc->attn_scale,
                                             .cap = f->p.desc->softcap_attn,
                                             .m = a->m,
                                             .l = a->l,
                                             .acc = a->sum });
}

static void attend_item(const struct items *j, uint32_t col, uint32_t part)
{
    struct forward *f = j->f;
    const struct layer_desc *layer = j->layer;
    const struct kernels *kern = f->p.kernels;
    uint32_t run_k = kv_run_k(f->p.kv, layer->kv_layer);
    uint32_t run_v = kv_run_v(f->p.kv, layer->kv_layer);
    struct attend_item a = { .col = col, .head = part * j->n_q, .n_q = j->n_q };
    size_t at = (size_t)col * layer->n_head + a.head, dv = layer->head_dim_v;

    a.q = f->q + at * layer->head_dim_k;
    a.sum = f->att + at * dv;
    for (uint32_t i = 0; i < a.n_q; i++)
        a.m[i] = -INFINITY;
    memset(a.sum, 0, a.n_q * dv * sizeof *a.sum);
    if (run_k > 0)
        kern->rotate(a.q, (size_t)a.n_q * layer->head_dim_k, run_k);
    j->fn(f, layer, &a);
    for (uint32_t i = 0; i < a.n_q; i++)
        kern->scale(a.sum + i * dv, attend_factor(layer, a.head + i, a.m[i], a.l[i]), dv);
    if (run_v > 0)
        kern->rotate(a.sum, a.n_q * dv, run_v);
}

static void run_items(void *ctx, int part, int n_part)
{
    const struct items *j = ctx;
    uint32_t n_each = j->layer->n_head / j->n_q, n = (j->f->n_col - j->first) * n_each;

    for (uint32_t i = (uint32_t)part; i < n; i += (uint32_t)n_part)
        attend_item(j, j->first + i / n_each, i % n_each);
}

void attend_items(struct forward *f, const struct layer_desc *layer, uint32_t first,
                  attend_item_fn *fn)
{
    struct items j = { f, layer, first, layer->n_head / layer->n_head_kv, fn };
    uint32_t n = f->n_col - first, n_thread = (uint32_t)pool_threads(f->p.pool);

    while (j.n_q > ATTEND_ITEM_Q || (j.n_q % 2 == 0 && n * (layer->n_head / j.n_q) < n_thread))
        j.n_q = j.n_q % 2 == 0 ? j.n_q / 2 : 1;
    pool_run(f->p.pool, pool_parts(f->p.pool, (size_t)n * (layer->n_head / j.n_q)), run_items,
             &j);
}
