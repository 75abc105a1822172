/*
 * Attention of tokens to the blocks of positions that their index keys chose, and to the
 * positions after the last complete block.  Only the keys and values of these are read, so the
 * cost of a token does not grow with the context.
 *
 * Blocks that follow each other are one run, which is cut as attend_item.h says.
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

static void attend_positions(struct forward *f, const struct layer_desc *layer,
                             struct attend_item *a, uint32_t at, uint32_t end)
{
    const struct kv *kv = f->p.kv;
    uint32_t head_kv = a->head / (layer->n_head / layer->n_head_kv);

    for (uint32_t next; at < end; at = next) {
        size_t k_stride, v_stride;
        const void *k = kv_keys(kv, layer->kv_layer, at, head_kv, &k_stride);
        const void *v = kv_values(kv, layer->kv_layer, at, head_kv, &v_stride);

        next = attend_run_end(at, end);
        attend_item_run(f, layer, a, k, k_stride, v, v_stride, next - at);
    }
}

static void attend_blocks(struct forward *f, const struct layer_desc *layer, struct attend_item *a)
{
    const struct index_hparams *x = &f->p.desc->hp->index;
    uint32_t n = f->pos[a->col] + 1, i = 0;

    while (i <= x->n_block) {
        uint32_t at = block_of(f, a->col, i) * x->block, end = at;

        while (i <= x->n_block && block_of(f, a->col, i) * x->block == end) {
            end = end + x->block < n ? end + x->block : n;
            i++;
        }
        attend_positions(f, layer, a, at, end);
    }
}

void forward_attend_chosen(struct forward *f, const struct layer_desc *layer, uint32_t first)
{
    attend_items(f, layer, first, attend_blocks);
}
