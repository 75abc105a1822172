/*
 * Going back within the last pass, for models with recurrent state.
 *
 *     state before the pass  --- inputs of column 0, 1, … n - 1 --->  state after n columns
 *
 * A pass that verifies drafts has brought the state past those that turn out wrong.  The state
 * before the pass is still there (recurrent.h), and so are the inputs of each column, which are
 * much smaller than a state: they are kept as they come from the products with weights.  The
 * code that advances the state then runs again over the columns that stay, with the same
 * operations in the same order, so the result has the same bits as a pass over these columns.
 *
 *     replay   layer 0: mix [n_replay][n_channel]  beta [n_replay][heads]  decay [n_replay][…]
 *              layer 1: …
 *              n-grams [n_replay][n_stream * n_embd]
 *              index keys of KV layer 0: [n_replay][head_dim]
 *              …
 *              pools of layer 0: x [n_replay][entry_pool rows]  g [n_replay][…]
 *                                x [n_replay][score_pool rows]  g [n_replay][…]
 *              …
 */
#include "config.h"

#include <assert.h>
#include <string.h>

#include "engine/model/forward_internal.h"

/* Values of the parts of a column. */
struct parts {
    uint32_t mix, beta, decay; /* of each recurrent layer */
    uint32_t ngrams;
    uint32_t index; /* of each KV layer whose index keys are means */
};

static struct parts parts_of(const struct model_desc *d)
{
    const struct delta_hparams *delta = &d->hp->delta;
    struct parts p = { .ngrams = d->ngram_embd != NULL ? (uint32_t)desc_n_residual(d) : 0,
                       .index = d->others.has_index ? d->hp->index.head_dim : 0 };

    if (d->recurrent.n_layer == 0)
        return p;
    p.mix = d->recurrent.n_channel;
    switch (d->recurrence) {
    case RECUR_DELTA: p.beta = p.decay = delta->n_head_v; break;
    case RECUR_KDA:
        p.beta = delta->n_head_v;
        p.decay = delta->n_head_v * delta->head_dim_v;
        break;
    case RECUR_MAMBA: p.decay = delta->n_head_v; break;
    case RECUR_CONV:
    case RECUR_NONE: break;
    }
    return p;
}

/* Values of the parts before the pools. */
static uint64_t values_before_pools(const struct model_desc *d)
{
    struct parts p = parts_of(d);

    return d->recurrent.n_layer * ((uint64_t)p.mix + p.beta + p.decay) + p.ngrams +
           (uint64_t)d->n_kv * p.index;
}

/* Values of what the pools of layers before l are made of. */
static uint64_t pool_values(const struct model_desc *d, uint32_t l)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < l; i++)
        n += 2 * ((uint64_t)d->layers[i].entry_pool.n_row + d->layers[i].score_pool.n_row);
    return n;
}

uint64_t replay_values(const struct model_desc *d)
{
    return values_before_pools(d) + pool_values(d, d->n_layer);
}

/* Copy n_col columns between a buffer of the pass and its place, or back. */
static void copy(float *buffer, float *place, uint32_t n, uint32_t n_col, bool is_back)
{
    size_t bytes = (size_t)n * n_col * sizeof *place;

    if (n > 0)
        memcpy(is_back ? buffer : place, is_back ? place : buffer, bytes);
}

static void copy_recurrent(struct forward *f, const struct layer_desc *layer, bool is_back)
{
    struct parts p = parts_of(f->p.desc);
    size_t n = f->p.n_replay;
    float *place = f->replay + layer->recurrent_layer * n * (p.mix + p.beta + p.decay);

    copy(f->mix, place, p.mix, f->n_col, is_back);
    copy(f->beta, place + n * p.mix, p.beta, f->n_col, is_back);
    copy(f->decay, place + n * (p.mix + p.beta), p.decay, f->n_col, is_back);
}

static void copy_ngrams(struct forward *f, bool is_back)
{
    const struct model_desc *d = f->p.desc;
    struct parts p = parts_of(d);
    size_t n = f->p.n_replay;

    copy(f->conv, f->replay + d->recurrent.n_layer * n * (p.mix + p.beta + p.decay), p.ngrams,
         f->n_col, is_back);
}

static void copy_index(struct forward *f, const struct layer_desc *layer, bool is_back)
{
    const struct model_desc *d = f->p.desc;
    struct parts p = parts_of(d);
    size_t n = f->p.n_replay;

    copy(f->index_k,
         f->replay + n * (d->recurrent.n_layer * (size_t)(p.mix + p.beta + p.decay) + p.ngrams +
                          (size_t)layer->kv_layer * p.index),
         p.index, f->n_col, is_back);
}

static void copy_pool(struct forward *f, const struct layer_desc *layer, const struct mat *pool,
                      bool is_back)
{
    const struct model_desc *d = f->p.desc;
    size_t n = f->p.n_replay, first = pool == &layer->entry_pool ? 0 : layer->entry_pool.n_row;
    float *place = f->replay + n * (values_before_pools(d) +
                                    pool_values(d, (uint32_t)(layer - d->layers)) + 2 * first);

    copy(f->pool_x, place, pool->n_row, f->n_col, is_back);
    copy(f->pool_g, place + n * pool->n_row, pool->n_row, f->n_col, is_back);
}

void forward_keep_pool(struct forward *f, const struct layer_desc *layer, const struct mat *pool)
{
    if (f->n_taken_back > 0)
        copy_pool(f, layer, pool, false);
}

void forward_keep_recurrent(struct forward *f, const struct layer_desc *layer)
{
    if (f->n_taken_back > 0)
        copy_recurrent(f, layer, false);
}

void forward_keep_ngrams(struct forward *f)
{
    if (f->n_taken_back > 0)
        copy_ngrams(f, false);
}

void forward_keep_index(struct forward *f, const struct layer_desc *layer)
{
    if (f->n_taken_back > 0)
        copy_index(f, layer, false);
}

static void recurrent_again(struct forward *f, const struct layer_desc *layer)
{
    copy_recurrent(f, layer, true);
    switch (f->p.desc->recurrence) {
    case RECUR_DELTA: forward_delta_again(f, layer); break;
    case RECUR_MAMBA: forward_mamba_again(f, layer); break;
    case RECUR_CONV: forward_short_conv_again(f, layer); break;
    case RECUR_KDA: forward_kda_again(f, layer); break;
    case RECUR_NONE: break;
    }
}

static void layer_again(struct forward *f, const struct layer_desc *layer)
{
    if (layer->ngram_key.tensor != NULL) {
        copy_ngrams(f, true);
        forward_ngrams_again(f, layer);
    }
    if (layer->index_k.tensor != NULL) {
        copy_index(f, layer, true);
        forward_index_again(f, layer);
    }
    if (layer->entry_pool.tensor != NULL) {
        copy_pool(f, layer, &layer->entry_pool, true);
        forward_entries_again(f, layer);
    }
    if (layer->score_pool.tensor != NULL) {
        copy_pool(f, layer, &layer->score_pool, true);
        forward_score_again(f, layer);
    }
    if (layer->is_recurrent)
        recurrent_again(f, layer);
}

void forward_take_back(struct forward *f, const uint32_t *ids, uint32_t n)
{
    const struct model_desc *d = f->p.desc;

    assert(n >= 1 && n <= f->n_taken_back);
    kv_take_back(f->p.kv, f->n_taken_back);
    f->n_taken_back = 0;
    if (kv_recurrent(f->p.kv) != NULL) {
        f->n_col = n;
        if (d->ngram_embd != NULL)
            forward_ngram_ids_again(f, ids, n);
        for (uint32_t l = 0; l < d->n_layer; l++)
            layer_again(f, &d->layers[l]);
    }
    kv_commit(f->p.kv, n);
}
