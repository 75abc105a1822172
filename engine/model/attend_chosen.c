/*
 * Attention of tokens to the blocks of positions that their index keys chose, and to the
 * positions after the last complete block.  Only the keys and values of these are read, so the
 * cost of a token does not grow with the context.
 *
 * An item of work is a column and query heads that share a key head.  Blocks that follow each
 * other are one call, up to a multiple of ATTN_BLOCK.  The calls of a column follow from its
 * position and its blocks alone, so its result does not depend on how the work is cut.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/model/forward_internal.h"

#define ITEM_Q 64 /* queries of an item */

struct chosen_job {
    struct forward *f;
    const struct layer_desc *layer;
    const struct index_hparams *x;
    uint32_t first; /* column */
    uint32_t n_q;   /* query heads of an item */
};

/* The queries of an item. */
struct item {
    uint32_t col, head; /* the first query head */
    float m[ITEM_Q], l[ITEM_Q];
    float *q, *sum;
};

static void attend_run(const struct chosen_job *j, struct item *a, uint32_t at, uint32_t end)
{
    const struct layer_desc *layer = j->layer;
    const struct model_desc *d = j->f->p.desc;
    const struct kv *kv = j->f->p.kv;
    uint32_t head_kv = a->head / (layer->n_head / layer->n_head_kv);
    struct attn_block b = { .k_type = kv_type_k(kv),
                            .v_type = kv_type_v(kv, layer->kv_layer),
                            .n_pos = end - at,
                            .n_q = j->n_q,
                            .dk = layer->head_dim_k,
                            .dv = layer->head_dim_v,
                            .q = a->q,
                            .scale = d->attn_scale,
                            .cap = d->softcap_attn,
                            .m = a->m,
                            .l = a->l,
                            .acc = a->sum };

    b.k = kv_keys(kv, layer->kv_layer, at, head_kv, &b.k_stride);
    b.v = kv_values(kv, layer->kv_layer, at, head_kv, &b.v_stride);
    j->f->p.kernels->attn(&b);
}

/* Block i of a column; the one after its chosen blocks is the open one. */
static uint32_t block_of(const struct chosen_job *j, uint32_t col, uint32_t i)
{
    return i < j->x->n_block ? j->f->chosen[(size_t)col * j->x->n_block + i]
                             : (j->f->pos[col] + 1) / j->x->block;
}

static void attend_blocks(const struct chosen_job *j, struct item *a)
{
    uint32_t n = j->f->pos[a->col] + 1, i = 0;

    while (i <= j->x->n_block) {
        uint32_t at = block_of(j, a->col, i) * j->x->block, end = at;

        while (i <= j->x->n_block && block_of(j, a->col, i) * j->x->block == end) {
            end = end + j->x->block < n ? end + j->x->block : n;
            i++;
        }
        for (uint32_t next; at < end; at = next) {
            next = (at / ATTN_BLOCK + 1) * ATTN_BLOCK;
            next = next < end ? next : end;
            attend_run(j, a, at, next);
        }
    }
}

static void attend_item(const struct chosen_job *j, uint32_t col, uint32_t part)
{
    const struct forward *f = j->f;
    const struct layer_desc *layer = j->layer;
    const struct kernels *kern = f->p.kernels;
    uint32_t run_k = kv_run_k(f->p.kv, layer->kv_layer);
    uint32_t run_v = kv_run_v(f->p.kv, layer->kv_layer);
    struct item a = { .col = col, .head = part * j->n_q };
    size_t at = (size_t)col * layer->n_head + a.head, dv = layer->head_dim_v;

    a.q = f->q + at * layer->head_dim_k;
    a.sum = f->att + at * dv;
    for (uint32_t i = 0; i < j->n_q; i++)
        a.m[i] = -INFINITY;
    memset(a.sum, 0, j->n_q * dv * sizeof *a.sum);
    if (run_k > 0)
        kern->rotate(a.q, (size_t)j->n_q * layer->head_dim_k, run_k);
    attend_blocks(j, &a);
    for (uint32_t i = 0; i < j->n_q; i++)
        kern->scale(a.sum + i * dv, attend_factor(layer, a.head + i, a.m[i], a.l[i]), dv);
    if (run_v > 0)
        kern->rotate(a.sum, j->n_q * dv, run_v);
}

static void attend_items(void *ctx, int part, int n_part)
{
    const struct chosen_job *j = ctx;
    uint32_t n_each = j->layer->n_head / j->n_q, n = (j->f->n_col - j->first) * n_each;

    for (uint32_t i = (uint32_t)part; i < n; i += (uint32_t)n_part)
        attend_item(j, j->first + i / n_each, i % n_each);
}

void forward_attend_chosen(struct forward *f, const struct layer_desc *layer, uint32_t first)
{
    struct chosen_job j = { .f = f,
                            .layer = layer,
                            .x = &f->p.desc->hp->index,
                            .first = first,
                            .n_q = layer->n_head / layer->n_head_kv };
    uint32_t n = f->n_col - first, n_thread = (uint32_t)pool_threads(f->p.pool);

    while (j.n_q > ITEM_Q || (j.n_q % 2 == 0 && n * (layer->n_head / j.n_q) < n_thread))
        j.n_q = j.n_q % 2 == 0 ? j.n_q / 2 : 1;
    pool_run(f->p.pool, pool_parts(f->p.pool, (size_t)n * (layer->n_head / j.n_q)),
             attend_items, &j);
}
