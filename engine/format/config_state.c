/* Delta nets, residual streams, index keys and n-grams from config.json. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/config_layers.h"
#include "engine/format/config_lookup.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/ngram_numbers.h"

void config_delta(struct config_lookup *l, struct hparams *h)
{
    struct delta_hparams *d = &h->delta;
    const char *gate = config_string(l, "output_gate_type");

    d->is_sigmoid = arch_has(h->arch, TRAIT_SIGMOID_GATE);
    if (gate != NULL && (strcmp(gate, "sigmoid") == 0) != d->is_sigmoid) {
        err_set(l->e, ERR_UNSUPPORTED, "\"%.40s\" is not supported for %s", gate,
                h->arch->name);
        config_fail(l, "output_gate_type");
    }
    d->n_head_k = (uint32_t)config_int(l, "linear_num_key_heads", 1, MAX_N_HEAD, 16);
    d->n_head_v = (uint32_t)config_int(l, "linear_num_value_heads", 1, MAX_N_HEAD, 32);
    d->head_dim_k = (uint32_t)config_int(l, "linear_key_head_dim", 1, MAX_HEAD_DIM, 128);
    d->head_dim_v = (uint32_t)config_int(l, "linear_value_head_dim", 1, MAX_HEAD_DIM, 128);
    d->conv_width = (uint32_t)config_int(l, "linear_conv_kernel_dim", 2, MAX_CONV_WIDTH, 4);
    hparams_channels(h);
}

void config_streams(struct config_lookup *l, struct hparams *h)
{
    h->n_stream = (uint32_t)config_int(l, "hc_count", 1, MAX_STREAM, CONFIG_NEEDED);
    h->n_mix = (uint32_t)config_int(l, "hc_lowrank", 1, MAX_N_EMBD, CONFIG_NEEDED);
}

void config_index(struct config_lookup *l, struct hparams *h)
{
    struct index_hparams *x = &h->index;
    int64_t budget;

    x->n_head = (uint32_t)config_int(l, "indexer_n_heads", 1, MAX_INDEX_HEAD, CONFIG_NEEDED);
    x->head_dim = (uint32_t)config_int(l, "indexer_head_dim", 1, MAX_INDEX_DIM, CONFIG_NEEDED);
    x->block =
        (uint32_t)config_int(l, "indexer_compress_ratio", 2, MAX_INDEX_BLOCK, CONFIG_NEEDED);
    budget = config_int(l, "indexer_budget", 1, MAX_CHOSEN, CONFIG_NEEDED);
    config_int(l, "indexer_kv_heads", 1, 1, 1);
    if (!l->failed && hparams_index_budget(h, budget, l->e) != 0)
        config_fail(l, "indexer_budget");
}

/* The end of a text is the first id if there are several. */
static int64_t end_id(struct config_lookup *l)
{
    const struct json_node *n = json_get(l->node, "eos_token_id");
    int64_t id;

    if (n != NULL && n->kind == JSON_IS_ARRAY && json_as_int(n->first, &id) && id >= 0 &&
        id <= MAX_N_VOCAB)
        return id;
    return config_int(l, "eos_token_id", 0, MAX_N_VOCAB, CONFIG_NEEDED);
}

void config_ngrams(struct config_lookup *l, struct hparams *h)
{
    const struct json_node *layers = json_get(l->node, "ple_layer_ids");
    struct ngram_hparams *g = &h->ngram;
    int64_t width, vocab, base, multiple, seed, layer = 0;

    g->n_token = (uint32_t)config_int(l, "ngram_size", 2, MAX_NGRAM, CONFIG_NEEDED);
    g->n_hash = (uint32_t)config_int(l, "heads_per_ngram", 1, MAX_NGRAM_ROW / (MAX_NGRAM - 1),
                                     CONFIG_NEEDED);
    g->conv_width =
        (uint32_t)config_int(l, "ple_conv_kernel_size", 1, MAX_CONV_WIDTH, CONFIG_NEEDED);
    width = config_int(l, "ple_embed_dim", 1, MAX_N_EMBD, CONFIG_NEEDED);
    vocab = config_int(l, "vocab_size", 1, MAX_N_VOCAB, CONFIG_NEEDED);
    base = config_int(l, "ngram_vocab_size_base", 1, UINT32_MAX / MAX_NGRAM_ROW, CONFIG_NEEDED);
    multiple = config_int(l, "make_ngram_vocab_size_divisible_by", 1, 1 << 20, 128);
    seed = config_int(l, "seed", 0, INT32_MAX, 1234);
    g->end_id = (uint32_t)end_id(l);
    if (!l->failed &&
        (layers == NULL || layers->kind != JSON_IS_ARRAY || layers->n != 1 ||
         !json_as_int(layers->first, &layer) || layer < 1 || layer > h->n_layer)) {
        err_set(l->e, ERR_UNSUPPORTED, "is not a list of one layer of %u", h->n_layer);
        config_fail(l, "ple_layer_ids");
    }
    if (!l->failed && width % ngram_rows(g) != 0) {
        err_set(l->e, ERR_FORMAT, "is %lld, which is not a multiple of %u rows",
                (long long)width, ngram_rows(g));
        config_fail(l, "ple_embed_dim");
    }
    if (l->failed)
        return;
    g->layer = (uint32_t)layer - 1;
    g->width = (uint32_t)width / ngram_rows(g);
    ngram_numbers_derive(g, (uint64_t)seed, (uint64_t)vocab, (uint64_t)base,
                         (uint64_t)multiple);
}
