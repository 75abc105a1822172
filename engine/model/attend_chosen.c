/*
 * Attention of tokens to the blocks of positions that their index keys chose, and to the
 * positions after the last complete block.  Only the keys and values of these are read, so the
 * cost of a token does not grow with the context.
 *
 * A block has a few positions, and the next one is elsewhere, so the rows of several blocks are
 * copied beside each other and computed together.
 */
#include "config.h"

#include "engine/model/attend_item.h"
#include "engine/model/forward_internal.h"

/* Block i of a column; the one after its chosen blocks is the open one. */
static uint32_t block_of(const struct forward *f, uint32_t col, uint32_t i)
{
    const struct index_hparams *x = &f->p.desc->hp->index;

    return i < x->n_block ? f->chosen[(size_t)col * x->n_block + i] : (f->pos[col] + 1) / x->block;
}

/* Where the keys and values of a block begin, and how many of its positions a column sees. */
struct span {
    const void *k, *v;
    size_t k_stride, v_stride;
    uint32_t n;
};

static struct span span_of(const struct forward *f, const struct layer_desc *layer,
                           const struct attend_item *a, uint32_t i)
{
    const uint32_t block = f->p.desc->hp->index.block, at = block_of(f, a->col, i) * block;
    const uint32_t end = f->pos[a->col] + 1, head_kv = a->head / (layer->n_head / layer->n_head_kv);
    struct span s = { .n = at + block < end ? block : end - at };

    if (s.n > 0) {
        s.k = kv_keys(f->p.kv, layer->kv_layer, at, head_kv, &s.k_stride);
        s.v = kv_values(f->p.kv, layer->kv_layer, at, head_kv, &s.v_stride);
    }
    return s;
}

static void fetch_rows(const void *rows, size_t stride, uint32_t n, size_t bytes)
{
    const char *row = rows;

    for (uint32_t i = 0; i < n; i++, row += stride)
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(row + at, 0, 2);
}

/* A later block: processors cannot know where it is. */
static void fetch_span(const struct forward *f, const struct layer_desc *layer,
                       const struct attend_item *a, uint32_t i)
{
    const struct kv *kv = f->p.kv;
    struct span s = span_of(f, layer, a, i);

    fetch_rows(s.k, s.k_stride, s.n, kv_row_bytes(kv_type_k(kv), layer->head_dim_k));
    if (s.v != s.k)
        fetch_rows(s.v, s.v_stride, s.n,
                   kv_row_bytes(kv_type_v(kv, layer->kv_layer), layer->head_dim_v));
}

static void attend_blocks(struct forward *f, const struct layer_desc *layer, struct attend_item *a)
{
    const struct index_hparams *x = &f->p.desc->hp->index;
    const uint32_t ahead = x->block < ATTN_BLOCK ? ATTN_BLOCK / x->block : 1;

    for (uint32_t i = 0; i <= x->n_block; i++) {
        struct span s = span_of(f, layer, a, i);

        if (i + ahead <= x->n_block)
            fetch_span(f, layer, a, i + ahead);
        attend_item_gather(f, layer, a, s.k, s.k_stride, s.v, s.v_stride, s.n);
    }
}

void forward_attend_chosen(struct forward *f, const struct layer_desc *layer, uint32_t first)
{
    attend_items(f, layer, first, attend_blocks);
}
