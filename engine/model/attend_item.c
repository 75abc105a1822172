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

/* --- rows that are gathered --- */

/* Floats need the most. */
static uint64_t row_bytes(const struct layer_desc *layer)
{
    return kv_row_bytes(KV_F32, layer->head_dim_k) + kv_row_bytes(KV_F32, layer->head_dim_v);
}

uint64_t attend_rows_bytes(const struct model_desc *d)
{
    uint64_t most = 0;

    for (uint32_t l = 0; l < d->n_layer; l++)
        if (d->layers[l].is_indexed && row_bytes(&d->layers[l]) > most)
            most = row_bytes(&d->layers[l]);
    return ATTN_BLOCK * most;
}

static void copy_rows(unsigned char *to, const unsigned char *from, size_t stride, size_t bytes,
                      uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        memcpy(to + i * bytes, from + i * stride, bytes);
}

void attend_item_flush(struct forward *f, const struct layer_desc *layer, struct attend_item *a)
{
    const struct kv *kv = f->p.kv;
    size_t k_bytes = kv_row_bytes(kv_type_k(kv), layer->head_dim_k);
    const unsigned char *v = a->values_are_keys ? a->rows : a->rows + ATTN_BLOCK * k_bytes;
    size_t v_bytes = a->values_are_keys
                         ? k_bytes
                         : kv_row_bytes(kv_type_v(kv, layer->kv_layer), layer->head_dim_v);

    if (a->n_row > 0)
        attend_item_run(f, layer, a, a->rows, k_bytes, v, v_bytes, a->n_row);
    a->n_row = 0;
}

void attend_item_gather(struct forward *f, const struct layer_desc *layer, struct attend_item *a,
                        const void *k, size_t k_stride, const void *v, size_t v_stride, uint32_t n)
{
    const struct kv *kv = f->p.kv;
    const unsigned char *k_at = k, *v_at = v;
    size_t k_bytes = kv_row_bytes(kv_type_k(kv), layer->head_dim_k);
    size_t v_bytes = kv_row_bytes(kv_type_v(kv, layer->kv_layer), layer->head_dim_v);

    for (uint32_t n_now; n > 0; n -= n_now) {
        a->values_are_keys = k == v;
        n_now = n < ATTN_BLOCK - a->n_row ? n : ATTN_BLOCK - a->n_row;
        copy_rows(a->rows + a->n_row * k_bytes, k_at, k_stride, k_bytes, n_now);
        if (!a->values_are_keys)
            copy_rows(a->rows + ATTN_BLOCK * k_bytes + a->n_row * v_bytes, v_at, v_stride,
                      v_bytes, n_now);
        k_at += n_now * k_stride;
        v_at += n_now * v_stride;
        a->n_row += n_now;
        if (a->n_row == ATTN_BLOCK)
            attend_item_flush(f, layer, a);
    }
}

/* --- items --- */

static void attend_item(const struct items *j, uint32_t col, uint32_t part, unsigned char *rows)
{
    struct forward *f = j->f;
    const struct layer_desc *layer = j->layer;
    const struct kernels *kern = f->p.kernels;
    uint32_t run_k = kv_run_k(f->p.kv, layer->kv_layer);
    uint32_t run_v = kv_run_v(f->p.kv, layer->kv_layer);
    struct attend_item a = { .col = col, .head = part * j->n_q, .n_q = j->n_q, .rows = rows };
    size_t at = (size_t)col * layer->n_head + a.head, dv = layer->head_dim_v;

    a.q = f->q + at * layer->head_dim_k;
    a.sum = f->att + at * dv;
    for (uint32_t i = 0; i < a.n_q; i++)
        a.m[i] = -INFINITY;
    memset(a.sum, 0, a.n_q * dv * sizeof *a.sum);
    if (run_k > 0)
        kern->rotate(a.q, (size_t)a.n_q * layer->head_dim_k, run_k);
    j->fn(f, layer, &a);
    attend_item_flush(f, layer, &a);
    for (uint32_t i = 0; i < a.n_q; i++)
        kern->scale(a.sum + i * dv, attend_factor(layer, a.head + i, a.m[i], a.l[i]), dv);
    if (run_v > 0)
        kern->rotate(a.sum, a.n_q * dv, run_v);
}

static void run_items(void *ctx, int part, int n_part)
{
    const struct items *j = ctx;
    uint32_t n_each = j->layer->n_head / j->n_q, n = (j->f->n_col - j->first) * n_each;
    unsigned char *rows = j->f->attend_rows + (size_t)part * attend_rows_bytes(j->f->p.desc);

    for (uint32_t i = (uint32_t)part; i < n; i += (uint32_t)n_part)
        attend_item(j, j->first + i / n_each, i % n_each, rows);
}

void attend_items(struct forward *f, const struct layer_desc *layer, uint32_t first,
                  attend_item_fn *fn)
{
    struct items j = { f, layer, first, layer->n_head / layer->n_head_kv, fn };
    uint32_t n = f->n_col - first, n_thread = (uint32_t)pool_threads(f->p.pool);

    while (j.n_q > ATTEND_ITEM_Q || (j.n_q % 2 == 0 && n * (layer->n_head / j.n_q) < n_thread))
        j.n_q = j.n_q % 2 == 0 ? j.n_q / 2 : 1;
    n *= layer->n_head / j.n_q;
    if (!layer->is_indexed)
        pool_run(f->p.pool, pool_parts(f->p.pool, n), run_items, &j);
    else /* each part has its own rows */
        pool_run(f->p.pool, (int)(n < n_thread ? n : n_thread), run_items, &j);
}
