/* Layers with a recurrent state, residual streams, index keys and n-grams from GGUF keys. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/gguf_hparams.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/value_rules.h"

/* Ollama's converter gives each layer a number of KV heads, which is 0 for delta nets. */
static void recur_by_heads(struct gguf_lookup *l, struct hparams *h)
{
    const struct gguf_value *v = lookup_find(l, "attention.head_count_kv");
    bool is_none[MAX_LAYER], has_none = false, has_some = false;
    int64_t n;

    if (v == NULL || v->type != GGUF_ARRAY || v->count < h->n_layer)
        return;
    for (uint32_t i = 0; i < h->n_layer; i++) {
        if (!gguf_elem_int(v, i, &n))
            return; /* gguf_heads() reports it */
        is_none[i] = n == 0;
        has_none |= n == 0;
        has_some |= n != 0;
    }
    for (uint32_t i = 0; has_none && has_some && i < h->n_layer; i++)
        h->layers[i].is_recurrent = is_none[i];
    if (has_none && has_some && arch_has(h->arch, TRAIT_DELTA))
        defaults_drop(l->defaults, "full_attention_interval");
}

/* Reads the sizes of delta nets and Mamba-2. */
static void read_state_sizes(struct gguf_lookup *l, struct hparams *h)
{
    struct delta_hparams *d = &h->delta;
    int64_t inner;

    d->n_head_k = (uint32_t)lookup_int(l, "ssm.group_count", 1, MAX_N_HEAD, GGUF_NEEDED);
    d->n_head_v = (uint32_t)lookup_int(l, "ssm.time_step_rank", 1, MAX_N_HEAD, GGUF_NEEDED);
    d->head_dim_k = (uint32_t)lookup_int(l, "ssm.state_size", 1, MAX_HEAD_DIM, GGUF_NEEDED);
    d->conv_width = (uint32_t)lookup_int(l, "ssm.conv_kernel", 2, MAX_CONV_WIDTH, GGUF_NEEDED);
    inner = lookup_int(l, "ssm.inner_size", 1, (int64_t)MAX_HEAD_DIM * MAX_N_HEAD, GGUF_NEEDED);
    if (l->failed)
        return;
    d->head_dim_v = (uint32_t)(inner / d->n_head_v);
    if (inner % d->n_head_v != 0 || d->head_dim_v > MAX_HEAD_DIM) {
        err_set(l->e, ERR_FORMAT, "is %lld for %u heads", (long long)inner, d->n_head_v);
        lookup_fail(l);
    }
}

/* Layers with a feed-forward are neither recurrent nor have they attention. */
static void read_one_block(struct gguf_lookup *l, struct hparams *h)
{
    const struct gguf_value *v = lookup_find(l, "feed_forward_length");
    int64_t ff[MAX_LAYER];

    if (v != NULL && v->type != GGUF_ARRAY) {
        err_set(l->e, ERR_FORMAT, "is not a list, which shows the layers with a feed-forward");
        lookup_fail(l);
    }
    lookup_per_layer(l, "feed_forward_length", h->n_layer, h->n_layer + h->n_layer_draft, 0,
                     MAX_N_FF, GGUF_NEEDED, ff);
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        h->layers[i].attends = !h->layers[i].is_recurrent;
        if (ff[i] > 0)
            h->layers[i].is_recurrent = h->layers[i].attends = false;
    }
}

void gguf_recurrent(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
{
    struct delta_hparams *d = &h->delta;
    bool has_some = false;

    if (!arch_has(h->arch, TRAIT_SIDE_BY_SIDE) &&
        lookup_find(l, "attention.head_count_kv") == NULL) {
        lookup_missing(l); /* it shows the layers with attention */
        return;
    }
    recur_by_heads(l, h);
    for (uint32_t i = 0; i < h->n_layer; i++) {
        if (arch_has(h->arch, TRAIT_SIDE_BY_SIDE))
            h->layers[i].is_recurrent = true;
        has_some |= h->layers[i].is_recurrent;
    }
    if (arch_has(h->arch, TRAIT_ONE_BLOCK))
        read_one_block(l, h);
    if (l->failed || !has_some)
        return;
    if (arch_has(h->arch, TRAIT_SHORT_CONV)) {
        d->conv_width =
            (uint32_t)lookup_int(l, "shortconv.l_cache", 2, MAX_CONV_WIDTH, GGUF_NEEDED);
    } else if (arch_has(h->arch, TRAIT_KDA)) {
        d->head_dim_k = d->head_dim_v =
            (uint32_t)lookup_int(l, "kda.head_dim", 1, MAX_HEAD_DIM, GGUF_NEEDED);
        d->n_head_k = d->n_head_v =
            (uint32_t)lookup_int(l, "attention.head_count", 1, MAX_N_HEAD, GGUF_NEEDED);
        d->conv_width =
            (uint32_t)lookup_int(l, "ssm.conv_kernel", 2, MAX_CONV_WIDTH, GGUF_NEEDED);
        d->gate_bound = (float)lookup_float(l, "kda.gate_lower_bound", -1e6, 0, 0);
        if (!lookup_bool(l, "kda.safe_gate", true))
            d->gate_bound = 0;
        defaults_drop(l->defaults, "kda.safe_gate"); /* the bound says so, too */
    } else {
        read_state_sizes(l, h);
        for (uint32_t i = 0; i < h->n_layer; i++) /* one layer is like another */
            d->has_norm |= gguf_rows_of(c, i, "ssm_norm.weight") > 0;
    }
    hparams_channels(h);
}

void gguf_delta(struct gguf_lookup *l, struct hparams *h)
{
    int64_t recurrent[MAX_LAYER];

    h->delta.is_sigmoid = arch_has(h->arch, TRAIT_SIGMOID_GATE);
    h->delta.is_tiled = lookup_bool(l, "ssm.v_head_reordered", h->arch->delta == DELTA_APART);
    read_state_sizes(l, h);
    if (l->failed)
        return;
    hparams_channels(h);
    hparams_recur(h, lookup_int(l, "full_attention_interval", 1, MAX_LAYER, 4));
    if (l->failed)
        return;
    if (lookup_find(l, "attention.recurrent_layers") == NULL) {
        recur_by_heads(l, h);
        return;
    }
    lookup_per_layer(l, "attention.recurrent_layers", h->n_layer, h->n_layer + h->n_layer_draft,
                     0, 1, GGUF_NEEDED, recurrent);
    defaults_drop(l->defaults, "full_attention_interval");
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++)
        h->layers[i].is_recurrent = recurrent[i] != 0;
}

void gguf_streams(struct gguf_lookup *l, struct hparams *h)
{
    h->n_stream = (uint32_t)lookup_int(l, "hyper_connection.count", 1, MAX_STREAM, GGUF_NEEDED);
    h->n_mix = (uint32_t)lookup_int(l, "hyper_connection.low_rank", 1, MAX_N_EMBD, GGUF_NEEDED);
}

void gguf_hyper(struct gguf_lookup *l, struct hparams *h)
{
    h->n_stream =
        (uint32_t)lookup_int(l, "hyper_connection.count", 1, MAX_HYPER_STREAM, GGUF_NEEDED);
    h->hyper.n_round =
        (uint32_t)lookup_int(l, "hyper_connection.sinkhorn_iterations", 1, 1000, GGUF_NEEDED);
    h->hyper.eps =
        (float)lookup_float(l, "hyper_connection.epsilon", 1e-30, 1, (double)NAN);
    hparams_hyper(h);
}

/* Read the heads of index keys.  Returns how many positions they choose. */
static int64_t read_index_heads(struct gguf_lookup *l, struct index_hparams *x)
{
    x->n_head =
        (uint32_t)lookup_int(l, "attention.indexer.head_count", 1, MAX_INDEX_HEAD, GGUF_NEEDED);
    x->head_dim =
        (uint32_t)lookup_int(l, "attention.indexer.key_length", 1, MAX_INDEX_DIM, GGUF_NEEDED);
    return lookup_int(l, "attention.indexer.top_k", 1, MAX_CHOSEN, GGUF_NEEDED);
}

void gguf_scored(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
{
    struct index_hparams *x = &h->index;
    int64_t list[MAX_LAYER], top;

    top = read_index_heads(l, x);
    if (l->failed)
        return;
    if (arch_has(h->arch, TRAIT_ENTRIES)) {
        const struct gguf_value *v = lookup_find(l, "attention.compress_ratios");
        bool is_longer = v != NULL && v->type == GGUF_ARRAY && v->count > h->n_layer &&
                         v->count <= MAX_LAYER;

        /* The list of published files has layers that only draft, also if the file lacks them. */
        lookup_per_layer(l, "attention.compress_ratios", h->n_layer,
                         is_longer ? (uint32_t)v->count : h->n_layer, 0, MAX_INDEX_BLOCK,
                         GGUF_NEEDED, list);
        for (uint32_t i = 0; i < h->n_layer && !l->failed; i++)
            h->layers[i].ratio = (uint32_t)list[i];
        if (!l->failed && hparams_entries(h, top, l->e) != 0) {
            lookup_find(l, "attention.compress_ratios");
            lookup_fail(l);
        }
        h->out.n_group =
            (uint32_t)lookup_int(l, "attention.output_group_count", 1, MAX_N_HEAD, GGUF_NEEDED);
        h->out.rank =
            (uint32_t)lookup_int(l, "attention.output_lora_rank", 1, MAX_N_EMBD, GGUF_NEEDED);
        h->latent.n_query =
            (uint32_t)lookup_int(l, "attention.q_lora_rank", 1, MAX_N_EMBD, GGUF_NEEDED);
        return;
    }
    x->block =
        (uint32_t)lookup_int(l, "attention.indexer.kpool", 2, MAX_INDEX_BLOCK, GGUF_NEEDED);
    if (!lookup_bool(l, "attention.indexer.kpool_select_tail", true) && !l->failed) {
        err_set(l->e, ERR_UNSUPPORTED, "is false, which is not supported");
        lookup_fail(l);
    }
    /* Files of models in which no layer shares a choice may lack it; tensors say the same. */
    for (uint32_t i = 0; i < h->n_layer; i++)
        list[i] = gguf_rows_of(c, i, "indexer.attn_k.weight") > 0;
    if (lookup_find(l, "attention.indexer.types") != NULL)
        lookup_per_layer(l, "attention.indexer.types", h->n_layer,
                         h->n_layer + h->n_layer_draft, 0, 1, GGUF_NEEDED, list);
    if (!l->failed && hparams_index_budget(h, top, l->e) != 0) {
        lookup_find(l, "attention.indexer.top_k");
        lookup_fail(l);
    }
    if (!l->failed && hparams_choices(h, list, l->e) != 0) {
        lookup_find(l, "attention.indexer.types");
        lookup_fail(l);
    }
}

void gguf_index(struct gguf_lookup *l, struct hparams *h)
{
    struct index_hparams *x = &h->index;
    int64_t block[MAX_LAYER], budget;

    budget = read_index_heads(l, x);
    lookup_per_layer(l, "attention.compress_ratios", h->n_layer, h->n_layer + h->n_layer_draft,
                     0, MAX_INDEX_BLOCK, GGUF_NEEDED, block);
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        if (h->layers[i].is_recurrent)
            continue;
        if (x->block == 0)
            x->block = (uint32_t)block[i];
        if (x->block > 1 && block[i] == x->block)
            continue;
        err_set(l->e, ERR_UNSUPPORTED,
                "is %lld for layer %u; expected the same value above 1 "
                "for all layers with attention",
                (long long)block[i], i);
        lookup_fail(l);
    }
    if (!l->failed && hparams_index_budget(h, budget, l->e) != 0) {
        lookup_find(l, "attention.indexer.top_k");
        lookup_fail(l);
    }
}

/* Reads the n numbers of an array. */
static void read_numbers(struct gguf_lookup *l, const char *suffix, uint32_t n, uint64_t *out)
{
    const struct gguf_value *v = lookup_find(l, suffix);
    int64_t x;

    if (l->failed)
        return;
    if (v == NULL) {
        lookup_missing(l);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (v->type == GGUF_ARRAY && v->count == n && gguf_elem_int(v, i, &x) && x >= 0) {
            out[i] = (uint64_t)x;
            continue;
        }
        err_set(l->e, ERR_FORMAT, "is not an array of %u numbers", n);
        lookup_fail(l);
        return;
    }
}

void gguf_ngrams(struct gguf_lookup *l, struct hparams *h)
{
    struct ngram_hparams *g = &h->ngram;
    uint64_t layer = 0;

    g->n_token = (uint32_t)lookup_int(l, "ple.ngram_size", 2, MAX_NGRAM, GGUF_NEEDED);
    g->n_hash = (uint32_t)lookup_int(l, "ple.heads_per_ngram", 1,
                                     MAX_NGRAM_ROW / (MAX_NGRAM - 1), GGUF_NEEDED);
    g->conv_width = (uint32_t)lookup_int(l, "ple.conv_kernel", 1, MAX_CONV_WIDTH, GGUF_NEEDED);
    g->width =
        (uint32_t)lookup_int(l, "embedding_length_per_layer_input", 1, MAX_N_EMBD, GGUF_NEEDED);
    g->end_id = (uint32_t)lookup_int(l, "ple.eos_token_id", 0, MAX_N_VOCAB, GGUF_NEEDED);
    read_numbers(l, "ple.layer_multipliers", g->n_token, g->factor);
    read_numbers(l, "ple.head_vocab_sizes", ngram_rows(g), g->n_row);
    read_numbers(l, "ple.head_offsets", ngram_rows(g), g->first);
    read_numbers(l, "ple.layers", 1, &layer);
    if (!l->failed && layer >= h->n_layer) {
        err_set(l->e, ERR_FORMAT, "is %llu of %u layers", (unsigned long long)layer,
                h->n_layer);
        lookup_fail(l);
    }
    g->layer = (uint32_t)layer;
}
