#include "config.h"

#include "engine/format/hparams_fill.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/format/arch.h"
#include "engine/format/gguf_lookup.h"
#include "engine/format/reader.h"

static const struct {
    const char *gguf, *config;
} words[WORD_COUNT] = {
    [WORD_N_LAYER] = { "block_count", "num_hidden_layers" },
    [WORD_N_EMBD] = { "embedding_length", "hidden_size" },
    [WORD_N_HEAD] = { "attention.head_count", "num_attention_heads" },
    [WORD_N_HEAD_KV] = { "attention.head_count_kv", "num_key_value_heads" },
    [WORD_HEAD_DIM_K] = { "attention.key_length", "head_dim" },
    [WORD_HEAD_DIM_V] = { "attention.value_length", "head_dim" },
    [WORD_N_FF] = { "feed_forward_length", "intermediate_size" },
    [WORD_N_VOCAB] = { "vocab_size", "vocab_size" },
    [WORD_N_SWA] = { "attention.sliding_window", "sliding_window" },
    [WORD_N_ROT] = { "rope.dimension_count", "partial_rotary_factor" },
    [WORD_ROPE_MAGNITUDE] = { "rope.scaling.original_context_length",
                              "original_max_position_embeddings" },
    [WORD_N_LAYER_KV_SHARED] = { "attention.shared_kv_layers", "num_kv_shared_layers" },
    [WORD_N_EMBD_PER_LAYER] = { "embedding_length_per_layer_input",
                                "hidden_size_per_layer_input" },
    [WORD_N_EXPERT] = { "expert_count", "num_experts" },
    [WORD_N_FF_EXPERT] = { "expert_feed_forward_length", "moe_intermediate_size" },
    [WORD_N_EXPERT_IN] = { "moe_latent_size", "moe_latent_size" },
    [WORD_DELTA_N_HEAD_K] = { "ssm.group_count", "linear_num_key_heads" },
    [WORD_DELTA_N_HEAD_V] = { "ssm.time_step_rank", "linear_num_value_heads" },
    [WORD_DELTA_HEAD_DIM_K] = { "ssm.state_size", "linear_key_head_dim" },
    [WORD_DELTA_HEAD_DIM_V] = { "ssm.inner_size", "linear_value_head_dim" },
    [WORD_DELTA_CONV] = { "ssm.conv_kernel", "linear_conv_kernel_dim" },
    [WORD_N_STREAM] = { "hyper_connection.count", "hc_count" },
    [WORD_N_MIX] = { "hyper_connection.low_rank", "hc_lowrank" },
    [WORD_INDEX_N_HEAD] = { "attention.indexer.head_count", "indexer_n_heads" },
    [WORD_INDEX_HEAD_DIM] = { "attention.indexer.key_length", "indexer_head_dim" },
    [WORD_NGRAM_TOKENS] = { "ple.ngram_size", "ngram_size" },
    [WORD_NGRAM_HASHES] = { "ple.heads_per_ngram", "heads_per_ngram" },
    [WORD_NGRAM_WIDTH] = { "embedding_length_per_layer_input", "ple_embed_dim" },
    [WORD_NGRAM_CONV] = { "ple.conv_kernel", "ple_conv_kernel_size" },
    [WORD_NGRAM_ROWS] = { "ple.head_vocab_sizes", "ngram_vocab_size_base" },
    [WORD_Q_LATENT] = { "attention.q_lora_rank", "q_lora_rank" },
    [WORD_KV_LATENT] = { "attention.kv_lora_rank", "kv_lora_rank" },
    [WORD_HEAD_LATENT_K] = { "attention.key_length_mla", "qk_nope_head_dim" },
    [WORD_HEAD_LATENT_V] = { "attention.value_length_mla", "v_head_dim" },
    [WORD_RATIO] = { "attention.compress_ratios", "compress_ratios" },
    [WORD_OUT_GROUP] = { "attention.output_group_count", "o_groups" },
    [WORD_OUT_RANK] = { "attention.output_lora_rank", "o_lora_rank" },
    [WORD_N_EXPERT_USED] = { "expert_used_count", "num_experts_per_tok" },
    [WORD_N_HIDDEN] = { "embedding_length_out", "backbone_hidden_size" },
    [WORD_N_CLUSTER] = { "centroid_count", "num_centroids" },
};

void hparam_spell(const struct catalogue *c, enum hparam_word w, char *buf, size_t n)
{
    if (c->kind == CATALOGUE_SNAPSHOT)
        snprintf(buf, n, "%s", words[w].config);
    else
        gguf_find_suffix(c->gguf, gguf_prefix(c->gguf), words[w].gguf, buf, n);
}

bool hparam_is_default(const struct catalogue *c, enum hparam_word w)
{
    const char *name = c->kind == CATALOGUE_SNAPSHOT ? words[w].config : words[w].gguf;

    for (uint32_t i = 0; i < c->defaults.n; i++)
        if (strcmp(c->defaults.v[i].name, name) == 0)
            return true;
    return false;
}

static int at_word(const struct catalogue *c, enum hparam_word w, struct err *e)
{
    char field[96];

    hparam_spell(c, w, field, sizeof field);
    return err_at(e, NULL, ERR_NO_OFFSET, field);
}

void hparams_slide(struct hparams *h, int64_t period)
{
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].is_sliding = i % period < period - 1;
}

void hparams_place_experts(struct hparams *h, int64_t n_dense, int64_t interval)
{
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].has_experts = i >= n_dense && (i + 1) % interval == 0;
}

void hparams_latent(struct hparams *h)
{
    const struct latent_hparams *m = &h->latent;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        h->layers[i].n_head_kv = 1;
        h->layers[i].head_dim_k = m->n_latent + m->n_rot;
        h->layers[i].head_dim_v = m->n_latent;
    }
}

double hparams_latent_scale(const struct hparams *h, double mscale)
{
    double by = h->rope.scaling == ROPE_YARN ? yarn_magnitude(h->rope.factor, mscale) : 1;

    return by * by / sqrt((double)h->latent.n_nope + h->latent.n_rot);
}

void hparams_channels(struct hparams *h)
{
    struct delta_hparams *d = &h->delta;

    d->n_channel = arch_has(h->arch, TRAIT_SHORT_CONV)
                       ? h->n_embd
                       : 2 * d->n_head_k * d->head_dim_k + d->n_head_v * d->head_dim_v;
}

void hparams_skip_rope(struct hparams *h, int64_t period)
{
    for (uint32_t i = 0; period > 0 && i < h->n_layer; i++)
        h->layers[i].is_ropeless = (i + 1) % period == 0;
}

void hparams_recur(struct hparams *h, int64_t period)
{
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].is_recurrent = (i + 1) % period != 0;
}

void hparams_hyper(struct hparams *h)
{
    h->n_mix = (2 + h->n_stream) * h->n_stream;
}

int hparams_entries(struct hparams *h, int64_t n_chosen, struct err *e)
{
    struct index_hparams *x = &h->index;

    x->block = 0;
    for (uint32_t i = 0; i < h->n_layer; i++) {
        uint32_t ratio = h->layers[i].ratio;

        if (ratio > 0 && (ratio < 2 || (ratio & (ratio - 1)) != 0 || ratio > MAX_INDEX_BLOCK))
            return err_set(e, ERR_UNSUPPORTED, "entries of %u positions are not supported",
                           ratio);
        if (ratio > 0 && (x->block == 0 || ratio < x->block))
            x->block = ratio;
    }
    /* Layers with the shortest entries choose among them: 4 positions in all models. */
    if (x->block != 4)
        return err_set(e, ERR_UNSUPPORTED, "the shortest entries have %u positions; expected 4",
                       x->block);
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].has_index = h->layers[i].ratio == x->block;
    x->n_block = (uint32_t)n_chosen;
    x->overlaps = true;
    return 0;
}

void hparams_entry_rope(struct hparams *h)
{
    h->rope.attn_factor = 1;
}

int hparams_choices(struct hparams *h, const int64_t *has_index, struct err *e)
{
    bool has_some = false;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        struct layer_hparams *layer = &h->layers[i];

        if (layer->is_recurrent)
            continue;
        layer->has_index = has_index[i] != 0;
        layer->shares_choice = !layer->has_index;
        has_some |= layer->has_index;
        if (!has_some)
            return err_set(e, ERR_FORMAT, "layer %u has no earlier layer that chooses", i);
    }
    return 0;
}

void hparams_hash(struct hparams *h, int64_t n)
{
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].is_hashed = i < n;
}

int hparams_index_budget(struct hparams *h, int64_t n_token, struct err *e)
{
    struct index_hparams *x = &h->index;

    if ((x->block & (x->block - 1)) != 0)
        return err_set(e, ERR_UNSUPPORTED, "blocks of %u positions are not supported",
                       x->block);
    if (x->block == 0 || n_token % x->block != 0)
        return err_set(e, ERR_FORMAT, "is %lld, which blocks of %u positions do not divide",
                       (long long)n_token, x->block);
    x->n_block = (uint32_t)(n_token / x->block);
    return 0;
}

void hparams_expert_rule(struct hparams *h, enum expert_rule rule)
{
    for (uint32_t i = 0; rule != EXPERTS_BESIDE && rule != EXPERTS_ROUTED && i < h->n_layer;
         i++)
        h->layers[i].n_ff = 0;
    if (rule == EXPERTS_GPT_OSS)
        h->swiglu_limit = 7;
}

void hparams_unscaled(struct rope_hparams *out, const struct rope_hparams *r)
{
    *out = (struct rope_hparams){
        .base = r->base, .n_rot = r->n_rot, .factor = 1, .attn_factor = 1
    };
}

double yarn_magnitude(double factor, double mscale)
{
    return factor > 1 ? 1 + 0.1 * mscale * log(factor) : 1;
}

static void add_id(uint32_t *ids, uint32_t *n, uint32_t room, int64_t id)
{
    if (id < 0 || id >= MAX_N_VOCAB || *n == room)
        return;
    for (uint32_t i = 0; i < *n; i++)
        if (ids[i] == (uint32_t)id)
            return;
    ids[(*n)++] = (uint32_t)id;
}

void generation_add_stop(struct generation_hparams *s, int64_t id)
{
    add_id(s->stop, &s->n_stop, MAX_STOP_ID, id);
}

void generation_add_suppress(struct generation_hparams *s, int64_t id)
{
    add_id(s->suppress, &s->n_suppress, MAX_SUPPRESS, id);
}

static int check_heads(const struct catalogue *c, struct err *e)
{
    const struct hparams *h = &c->hparams;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        const struct layer_hparams *layer = &h->layers[i];

        if (layer->n_head % layer->n_head_kv != 0) {
            err_set(e, ERR_FORMAT, "layer %u has %u KV heads, which do not divide its %u heads",
                    i, layer->n_head_kv, layer->n_head);
            return at_word(c, WORD_N_HEAD_KV, e);
        }
        /* Keeps every product of sizes below well under 63 bits. */
        if ((uint64_t)layer->n_head * layer->head_dim_k > (1u << 24) ||
            (uint64_t)layer->n_head * layer->head_dim_v > (1u << 24)) {
            err_set(e, ERR_FORMAT, "%u heads of %u values are too many", layer->n_head,
                    layer->head_dim_k);
            return at_word(c, WORD_N_HEAD, e);
        }
        /* A gate has as many values as a query, and is multiplied with values. */
        if (arch_has(h->arch, TRAIT_DELTA) && layer->head_dim_k != layer->head_dim_v) {
            err_set(e, ERR_FORMAT, "is %u, but gates of a head have %u values",
                    layer->head_dim_v, layer->head_dim_k);
            return at_word(c, WORD_HEAD_DIM_V, e);
        }
    }
    return 0;
}

/* A model without any key has no positions.  Sliding layers cannot have index keys, which cover
 * all earlier positions, nor latent keys, which are also values. */
static int check_attention(const struct catalogue *c, struct err *e)
{
    const struct hparams *h = &c->hparams;
    bool has_rings = (h->index.n_head == 0 && h->latent.n_latent == 0) ||
                     arch_has(h->arch, TRAIT_ENTRIES);
    bool has_attention = false;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        has_attention |= h->layers[i].attends;
        if (!h->layers[i].is_sliding || has_rings)
            continue;
        err_set(e, ERR_UNSUPPORTED, "is %u, but %s models have no windows", h->n_swa,
                h->arch->name);
        return at_word(c, WORD_N_SWA, e);
    }
    if (has_attention)
        return 0;
    err_set(e, ERR_UNSUPPORTED, "no layer has attention, which is not supported");
    return at_word(c, WORD_N_LAYER, e);
}

/* Layers with entries have a window, and one key for all heads. */
static int check_entries(const struct catalogue *c, struct err *e)
{
    const struct hparams *h = &c->hparams;

    for (uint32_t i = 0; arch_has(h->arch, TRAIT_ENTRIES) && i < h->n_layer; i++) {
        const struct layer_hparams *layer = &h->layers[i];

        if (!layer->is_sliding) {
            err_set(e, ERR_UNSUPPORTED, "layer %u has no window, which is not supported", i);
            return at_word(c, WORD_N_SWA, e);
        }
        if (layer->n_head_kv != 1) {
            err_set(e, ERR_UNSUPPORTED, "is %u; expected 1", layer->n_head_kv);
            return at_word(c, WORD_N_HEAD_KV, e);
        }
    }
    return 0;
}

/* Delta nets need heads that divide, and sizes whose products stay small. */
static int check_delta(const struct catalogue *c, struct err *e)
{
    const struct hparams *h = &c->hparams;
    const struct delta_hparams *d = &h->delta;

    if (!arch_recurs(h->arch) || d->conv_width == 0)
        return 0;
    if (d->n_head_v > 0 && d->n_head_v % d->n_head_k != 0) {
        err_set(e, ERR_FORMAT, "is %u, which does not divide the %u value heads of delta nets",
                d->n_head_k, d->n_head_v);
        return at_word(c, WORD_DELTA_N_HEAD_K, e);
    }
    if ((uint64_t)d->n_head_k * d->head_dim_k > (1u << 24) ||
        (uint64_t)d->n_head_v * d->head_dim_v > (1u << 24)) {
        err_set(e, ERR_FORMAT, "%u heads of %u values are too many", d->n_head_v,
                d->head_dim_v);
        return at_word(c, WORD_DELTA_N_HEAD_V, e);
    }
    return 0;
}

/* Every row of the n-grams is in the table, and products of sizes stay small. */
static int check_parts(const struct catalogue *c, struct err *e)
{
    const struct hparams *h = &c->hparams;
    const struct ngram_hparams *g = &h->ngram;

    if ((uint64_t)h->n_stream * h->n_embd > (1u << 24)) {
        err_set(e, ERR_FORMAT, "%u streams of %u values are too many", h->n_stream, h->n_embd);
        return at_word(c, WORD_N_STREAM, e);
    }
    if (h->out.n_group > 0 && h->layers[0].n_head % h->out.n_group != 0) {
        err_set(e, ERR_FORMAT, "is %u, which does not divide %u heads", h->out.n_group,
                h->layers[0].n_head);
        return at_word(c, WORD_OUT_GROUP, e);
    }
    if ((uint64_t)h->out.n_group * h->out.rank > (1u << 24)) {
        err_set(e, ERR_FORMAT, "%u groups of %u values are too many", h->out.n_group,
                h->out.rank);
        return at_word(c, WORD_OUT_RANK, e);
    }
    for (uint32_t i = 0; i < ngram_rows(g); i++) {
        if (g->n_row[i] > 0 && g->n_row[i] <= g->n_table &&
            g->first[i] <= g->n_table - g->n_row[i])
            continue;
        err_set(e, ERR_FORMAT, "rows %llu to %llu of hash %u are not all in the table of %u",
                (unsigned long long)g->first[i],
                (unsigned long long)(g->first[i] + g->n_row[i]), i, g->n_table);
        return at_word(c, WORD_NGRAM_ROWS, e);
    }
    return 0;
}

/* Layers that share KV need an earlier layer of their kind that has the same shape. */
static int check_shared(const struct catalogue *c, struct err *e)
{
    const struct hparams *h = &c->hparams;
    uint32_t first = h->n_layer - h->n_layer_kv_shared;

    if (arch_has(h->arch, TRAIT_ASSISTANT)) /* draft_head.c looks for them in the other model */
        return 0;
    for (uint32_t i = first; i < h->n_layer; i++) {
        const struct layer_hparams *layer = &h->layers[i], *donor = NULL;

        for (uint32_t j = 0; j < first; j++)
            if (h->layers[j].is_sliding == layer->is_sliding)
                donor = &h->layers[j];
        if (donor == NULL || donor->n_head_kv != layer->n_head_kv ||
            donor->head_dim_k != layer->head_dim_k || donor->head_dim_v != layer->head_dim_v) {
            err_set(e, ERR_FORMAT,
                    "layer %u has no earlier layer whose keys and values it could use", i);
            return at_word(c, WORD_N_LAYER_KV_SHARED, e);
        }
    }
    return 0;
}

static int check_rope(const struct catalogue *c, const struct rope_hparams *r, bool sliding,
                      struct err *e)
{
    const struct hparams *h = &c->hparams;

    if (r->n_rot % 2 != 0 || r->n_rot > 2 * MAX_ROPE_FACTOR) {
        err_set(e, ERR_FORMAT,
                "%u dimensions of a head rotate; expected an even number up to %d", r->n_rot,
                2 * MAX_ROPE_FACTOR);
        return at_word(c, WORD_N_ROT, e);
    }
    if (h->index.n_head > 0 && r->n_rot > h->index.head_dim) {
        err_set(e, ERR_FORMAT, "%u dimensions rotate, but index keys have only %u", r->n_rot,
                h->index.head_dim);
        return at_word(c, WORD_N_ROT, e);
    }
    for (uint32_t i = 0; i < h->n_layer; i++) {
        bool is_used = h->layers[i].is_sliding == sliding || h->layers[i].ratio > 0;

        if (!is_used || r->n_rot <= h->layers[i].head_dim_k)
            continue;
        err_set(e, ERR_FORMAT, "%u dimensions rotate, but heads have only %u", r->n_rot,
                h->layers[i].head_dim_k);
        return at_word(c, WORD_N_ROT, e);
    }
    return 0;
}

/* Reads out[n_rot / 2] from a tensor of floats.  Returns 1, 0 if it does not exist, or -1. */
static int read_factors(const struct catalogue *c, const char *name, uint32_t n, float *out,
                        struct err *e)
{
    const struct tensor_info *t = catalogue_find(c, name);
    const struct model_file *f;
    struct reader r;
    int rc;

    if (t == NULL)
        return 0;
    f = &c->files[t->file];
    if (t->type != TYPE_F32 || t->ne[0] != n || tensor_rows(t) != 1) {
        err_set(e, ERR_FORMAT, "has %llu values of type %s; expected %u of type F32",
                (unsigned long long)t->ne[0], tensor_type_info(t->type)->name, n);
        return err_at(e, f->path, t->offset, name);
    }
    if (reader_open(&r, f->fd, f->size, (size_t)t->bytes, e) != 0)
        return -1;
    reader_seek(&r, t->offset);
    rc = reader_copy(&r, out, (size_t)t->bytes, e);
    reader_close(&r);
    for (uint32_t i = 0; i < n && rc == 0; i++)
        if (!(out[i] > 0) || !isfinite(out[i]))
            rc = err_set(e, ERR_FORMAT, "factor %u is %g", i, (double)out[i]);
    return rc == 0 ? 1 : err_at(e, f->path, t->offset, name);
}

static int read_rope_tensors(struct catalogue *c, struct err *e)
{
    struct rope_hparams *r = &c->hparams.rope;
    uint32_t n = r->n_rot / 2;
    int all = read_factors(c, "rope_freqs.weight", n, r->factors, e);
    int low = read_factors(c, "rope_factors_short.weight", n, r->factors, e);
    int high = read_factors(c, "rope_factors_long.weight", n, r->factors_long, e);

    if (all < 0 || low < 0 || high < 0)
        return -1;
    if (low != high) {
        err_set(e, ERR_FORMAT, "only one of the two lists of factors exists");
        return err_at(e, NULL, ERR_NO_OFFSET,
                      low == 1 ? "rope_factors_long.weight" : "rope_factors_short.weight");
    }
    if (low == 1)
        r->scaling = ROPE_LONGROPE;
    if (all == 1 || low == 1)
        r->n_factor = n;
    return 0;
}

/* The magnitude that longrope was trained with, if the file does not state it. */
static void finish_longrope(struct hparams *h)
{
    struct rope_hparams *r = &h->rope;
    double s = (double)h->n_ctx_train / (r->n_ctx_orig != 0 ? r->n_ctx_orig : 1);

    if (r->attn_factor != 0)
        return;
    r->attn_factor = s <= 1 ? 1 : sqrt(1 + log(s) / log((double)r->n_ctx_orig));
}

static bool is_factor(double v)
{
    return v > 0 && v <= MAX_ATTN_FACTOR;
}

void hparams_parts(struct hparams *h)
{
    for (uint32_t i = 0; i < h->n_layer; i++) {
        struct layer_hparams *layer = &h->layers[i];

        if (!arch_has(h->arch, TRAIT_ONE_BLOCK))
            layer->attends = !layer->is_recurrent || arch_has(h->arch, TRAIT_SIDE_BY_SIDE);
        if (!arch_has(h->arch, TRAIT_ROUTED))
            layer->has_experts = h->n_expert > 0;
    }
}

int hparams_finish(struct catalogue *c, struct err *e)
{
    struct hparams *h = &c->hparams;
    bool own_table = (h->arch->traits & (TRAIT_ROPE_BY_KIND | TRAIT_SWA_UNSCALED |
                                         TRAIT_ENTRIES)) != 0;
    /* Where windows are optional, layers rotate without them. */
    bool has_windows = h->n_swa > 0 || h->arch->gguf.needs_window;

    /* A window as wide as the context hides nothing. */
    if (!own_table && h->n_swa >= h->n_ctx_train)
        h->n_swa = 0;
    for (uint32_t i = 0; i < h->n_layer; i++) {
        struct layer_hparams *layer = &h->layers[i];

        if (arch_has(h->arch, TRAIT_NOPE) ||
            (arch_has(h->arch, TRAIT_GLOBAL_NOPE) && has_windows && !layer->is_sliding))
            layer->is_ropeless = true;
        if (h->n_swa == 0)
            layer->is_sliding = false;
    }
    if (h->expert_factor == 0)
        h->expert_factor = 1;
    if (h->factors.attn == 0) /* none is stated */
        h->factors = (struct branch_factors){ 1, 1, 1, 1, { 1, 1, 1, 1, 1 } };
    if (h->post_eps == 0)
        h->post_eps = h->arch->post_eps > 0 ? (float)h->arch->post_eps : h->rms_eps;
    if (h->n_expert_group > 1 && h->n_expert % h->n_expert_group != 0) {
        err_set(e, ERR_FORMAT, "is %u, which %u groups do not divide", h->n_expert,
                h->n_expert_group);
        return at_word(c, WORD_N_EXPERT, e);
    }
    if (check_heads(c, e) != 0 || check_attention(c, e) != 0 || check_entries(c, e) != 0 ||
        check_delta(c, e) != 0 || check_parts(c, e) != 0 || check_shared(c, e) != 0)
        return -1;
    if (check_rope(c, &h->rope, false, e) != 0 || check_rope(c, &h->rope_swa, true, e) != 0)
        return -1;
    if (read_rope_tensors(c, e) != 0)
        return -1;
    if (h->rope.scaling == ROPE_LONGROPE)
        finish_longrope(h);
    if (h->rope.attn_factor == 0)
        h->rope.attn_factor = 1;
    if (!own_table)
        h->rope_swa = h->rope;
    /* A longrope trained on one position, or a yarn with absurd values. */
    if (!is_factor(h->rope.attn_factor) || !is_factor(h->rope_swa.attn_factor)) {
        err_set(e, ERR_FORMAT, "gives attention a factor outside 0 to %g", MAX_ATTN_FACTOR);
        return at_word(c, WORD_ROPE_MAGNITUDE, e);
    }
    return 0;
}
