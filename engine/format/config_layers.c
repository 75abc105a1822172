/* See config_layers.h. */
#include "config.h"

#include "engine/format/config_layers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/hparams_fill.h"

/* --- kinds of layers --- */

/* Nemotron: one letter or one word for each layer. */
static const char pattern[] = "hybrid_override_pattern", block_types[] = "layers_block_type";

int64_t config_n_layer(struct config_lookup *l, const struct arch *a)
{
    const struct json_node *list = json_get(l->node, block_types);
    const char *letters = arch_has(a, TRAIT_ONE_BLOCK) ? config_string(l, pattern) : NULL;
    int64_t n = CONFIG_NEEDED;

    if (arch_has(a, TRAIT_ONE_BLOCK) && letters == NULL && list != NULL &&
        list->kind == JSON_IS_ARRAY)
        n = list->n;
    else if (letters != NULL)
        n = (int64_t)strlen(letters);
    n = config_int(l, "num_hidden_layers", 1, MAX_LAYER, n);
    if (arch_has(a, TRAIT_ONE_BLOCK))
        defaults_drop(l->defaults, "num_hidden_layers");
    if (l->failed || (n >= 1 && n <= MAX_LAYER))
        return n;
    err_set(l->e, ERR_FORMAT, "has %lld entries; expected 1 to %d layers", (long long)n,
            MAX_LAYER);
    config_fail(l, letters != NULL ? pattern : block_types);
    return 1;
}

bool config_kind(struct hparams *h, uint32_t layer, const char *word)
{
    struct layer_hparams *to = &h->layers[layer];
    bool is_one = arch_has(h->arch, TRAIT_ONE_BLOCK);

    if (((h->arch->traits & (TRAIT_DELTA | TRAIT_KDA)) != 0 &&
         strcmp(word, "linear_attention") == 0) ||
        (arch_has(h->arch, TRAIT_MAMBA) && strcmp(word, "mamba") == 0) ||
        (arch_has(h->arch, TRAIT_SHORT_CONV) && strcmp(word, "conv") == 0)) {
        to->is_recurrent = true;
        return true;
    }
    to->attends = strcmp(word, "attention") == 0;
    to->has_experts = is_one && strcmp(word, "moe") == 0;
    return (to->attends && arch_has(h->arch, TRAIT_MAMBA)) || to->has_experts ||
           (is_one && strcmp(word, "mlp") == 0);
}

static void nemotron_kinds(struct config_lookup *l, struct hparams *h)
{
    static const char *const words[] = {
        ['M'] = "mamba", ['-'] = "mlp", ['*'] = "attention", ['E'] = "moe"
    };
    const char *letters = config_string(l, pattern);
    const struct json_node *list = json_get(l->node, block_types), *n;
    const char *key = letters != NULL ? pattern : block_types;

    n = list != NULL && list->kind == JSON_IS_ARRAY ? list->first : NULL;
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        const char *word = letters == NULL ? json_as_string(n) : NULL;

        if (letters != NULL && (unsigned char)letters[i] < sizeof words / sizeof words[0])
            word = words[(unsigned char)letters[i]];
        if (word == NULL || !config_kind(h, i, word)) {
            err_set(l->e, ERR_UNSUPPORTED,
                    "does not state a kind of layer that is known for %u", i);
            config_fail(l, key);
        }
        n = n != NULL ? n->next : NULL;
    }
}

/* Kimi's lists count layers from 1.  transformers writes layer_types, which win there, too. */
static void kimi_kinds(struct config_lookup *l, struct hparams *h)
{
    const struct json_node *in = json_get(l->node, "linear_attn_config"), *n;
    const struct json_node *list = json_get(in, "full_attn_layers");
    int64_t layer;

    if (json_get(l->node, "layer_types") != NULL)
        return;
    if (list == NULL || list->kind != JSON_IS_ARRAY) {
        err_set(l->e, ERR_FORMAT, "full_attn_layers is missing");
        config_fail(l, "linear_attn_config");
        return;
    }
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].is_recurrent = true;
    for (n = list->first; n != NULL; n = n->next) {
        if (!json_as_int(n, &layer) || layer < 1 || layer > h->n_layer) {
            err_set(l->e, ERR_FORMAT, "full_attn_layers has entries outside 1 to %u",
                    h->n_layer);
            config_fail(l, "linear_attn_config");
            return;
        }
        h->layers[layer - 1].is_recurrent = false;
    }
}

/* Ling 3: the last of each group has attention, and so do all layers of an incomplete group. */
static void ling_kinds(struct config_lookup *l, struct hparams *h)
{
    int64_t group = config_int(l, "layer_group_size", 1, MAX_LAYER, CONFIG_NEEDED);

    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++)
        h->layers[i].is_recurrent = (i + 1) % group != 0 && i < h->n_layer / group * group;
}

/* GLM 5: layer_types has the kinds. */
static void glm_kinds(struct config_lookup *l)
{
    if (json_get(l->node, "layer_types") != NULL)
        return;
    err_set(l->e, ERR_FORMAT, "the field is missing");
    config_fail(l, "layer_types");
}

/* Old configurations of LFM2 list the layers with attention. */
static void lfm_kinds(struct config_lookup *l, struct hparams *h)
{
    const struct json_node *list = json_get(l->node, "full_attn_idxs"), *n;
    int64_t layer;

    if (list == NULL || list->kind != JSON_IS_ARRAY) {
        err_set(l->e, ERR_FORMAT, "is missing, and full_attn_idxs, too");
        config_fail(l, "layer_types");
        return;
    }
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].is_recurrent = true;
    for (n = list->first; n != NULL; n = n->next)
        if (json_as_int(n, &layer) && layer >= 0 && layer < h->n_layer)
            h->layers[layer].is_recurrent = false;
}

void config_kinds(struct config_lookup *l, struct hparams *h)
{
    if (arch_has(h->arch, TRAIT_ONE_BLOCK))
        nemotron_kinds(l, h);
    else if (arch_has(h->arch, TRAIT_KDA | TRAIT_HYPER))
        glm_kinds(l);
    else if (arch_has(h->arch, TRAIT_KDA | TRAIT_KDA_LOW))
        kimi_kinds(l, h);
    else if (arch_has(h->arch, TRAIT_KDA))
        ling_kinds(l, h);
    else if (arch_has(h->arch, TRAIT_SHORT_CONV) && json_get(l->node, "layer_types") == NULL)
        lfm_kinds(l, h);
    for (uint32_t i = 0; arch_has(h->arch, TRAIT_SIDE_BY_SIDE) && i < h->n_layer; i++)
        h->layers[i].is_recurrent = true;
}

/* --- recurrent layers --- */

static void refuse_true(struct config_lookup *l, const char *key)
{
    if (!config_bool(l, key, false) || l->failed)
        return;
    err_set(l->e, ERR_UNSUPPORTED, "is true, which is not supported");
    config_fail(l, key);
}

/* Steps of time are not clamped: time_step_limit must be from 0 to infinity, which is not a number
 * here. */
static void check_time_steps(struct config_lookup *l)
{
    const struct json_node *list = json_get(l->node, "time_step_limit");
    double from = 0, to = 0;

    if (l->failed || list == NULL || list->kind != JSON_IS_ARRAY || list->n != 2)
        return;
    json_as_float(list->first, &from);
    if (from <= 0 && (!json_as_float(list->first->next, &to) || to >= 1e6))
        return;
    err_set(l->e, ERR_UNSUPPORTED, "clamps steps of time, which is not supported");
    config_fail(l, "time_step_limit");
}

/* Outputs are gated before their norm.  Falcon-H1 has it the other way round unless its file says
 * so. */
static void refuse_early_norm(struct config_lookup *l, const struct hparams *h)
{
    static const char key[] = "mamba_norm_before_gate";
    bool is_missing = json_get(l->node, key) == NULL;

    if (!config_bool(l, key, arch_has(h->arch, TRAIT_SIDE_BY_SIDE)) || l->failed)
        return;
    err_set(l->e, ERR_UNSUPPORTED, "is %strue, which is not supported",
            is_missing ? "missing, so it is " : "");
    config_fail(l, key);
}

/* The size of a head, which may be "auto": the heads share the inner width. */
static int64_t mamba_head_dim(struct config_lookup *l, const struct hparams *h, int64_t n_head)
{
    static const char key[] = "mamba_d_head", inner_key[] = "mamba_d_ssm";
    const struct json_node *n = json_get(l->node, key);
    const char *word = json_as_string(n);
    int64_t inner = 0;

    if (n != NULL && (word == NULL || strcmp(word, "auto") != 0))
        return config_int(l, key, 1, MAX_HEAD_DIM, CONFIG_NEEDED);
    if (arch_has(h->arch, TRAIT_SIDE_BY_SIDE))
        inner = config_int(l, inner_key, 1, (int64_t)MAX_N_HEAD * MAX_HEAD_DIM,
                           json_member(l->node, inner_key) != NULL ? 0 : 1024);
    defaults_drop(l->defaults, inner_key);
    if (inner == 0)
        inner = h->n_embd * config_int(l, "mamba_expand", 1, 1024, 2);
    if (!l->failed && (inner % n_head != 0 || inner / n_head > MAX_HEAD_DIM)) {
        err_set(l->e, ERR_FORMAT,
                "is \"auto\" or missing, but %lld heads cannot share %lld values",
                (long long)n_head, (long long)inner);
        config_fail(l, key);
    }
    return l->failed ? 1 : inner / n_head;
}

static void mamba_sizes(struct config_lookup *l, struct hparams *h)
{
    struct delta_hparams *d = &h->delta;
    bool is_nemotron = arch_has(h->arch, TRAIT_ONE_BLOCK);
    const char *heads = is_nemotron ? "mamba_num_heads" : "mamba_n_heads";
    static const char dim[] = "mamba_head_dim";
    const char *groups = is_nemotron ? "n_groups" : "mamba_n_groups";
    const char *state = is_nemotron ? "ssm_state_size" : "mamba_d_state";
    const char *width = is_nemotron ? "conv_kernel" : "mamba_d_conv";
    static const char *const biases[] = { "mamba_proj_bias", "use_bias", "projectors_bias" };

    d->n_head_v = (uint32_t)config_int(l, heads, 1, MAX_N_HEAD, 128);
    d->head_dim_v = (uint32_t)(is_nemotron ? config_int(l, dim, 1, MAX_HEAD_DIM, 64)
                                           : mamba_head_dim(l, h, d->n_head_v));
    d->n_head_k = (uint32_t)config_int(l, groups, 1, MAX_N_HEAD, is_nemotron ? 8 : 1);
    d->head_dim_k = (uint32_t)config_int(l, state, 1, MAX_HEAD_DIM, is_nemotron ? 128 : 256);
    d->conv_width = (uint32_t)config_int(l, width, 2, MAX_CONV_WIDTH, 4);
    d->has_norm =
        !arch_has(h->arch, TRAIT_SIDE_BY_SIDE) || config_bool(l, "mamba_rms_norm", false);
    for (size_t i = 0; i < sizeof biases / sizeof biases[0]; i++)
        refuse_true(l, biases[i]);
    if (d->has_norm)
        refuse_early_norm(l, h);
    check_time_steps(l);
    /* transformers has one norm for all of them there, files of llama.cpp one for each. */
    if (l->failed || !arch_has(h->arch, TRAIT_MAYBE_NOPE) || d->n_head_k == 1)
        return;
    err_set(l->e, ERR_UNSUPPORTED, "is %u; only 1 group is supported for %s", d->n_head_k,
            h->arch->name);
    config_fail(l, groups);
}

static void kda_sizes(struct config_lookup *l, struct hparams *h)
{
    struct delta_hparams *d = &h->delta;
    /* Published files have these in a member of their own, those of transformers beside the
     * others. */
    const struct json_node *own = json_get(l->node, "linear_attn_config");
    const char *const words[2][4] = {
        { "linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim",
          "linear_lower_bound" },
        { "num_heads", "head_dim", "short_conv_kernel_size", "gate_lower_bound" },
    };
    const char *const *word = words[own != NULL];
    struct config_lookup in = { .node = own != NULL ? own : l->node,
                                .e = l->e,
                                .failed = l->failed };

    if (arch_has(h->arch, TRAIT_KDA_LOW)) {
        d->n_head_v = (uint32_t)config_int(&in, word[0], 1, MAX_N_HEAD, CONFIG_NEEDED);
        d->head_dim_v = (uint32_t)config_int(&in, word[1], 1, MAX_HEAD_DIM, CONFIG_NEEDED);
        d->conv_width = (uint32_t)config_int(&in, word[2], 2, MAX_CONV_WIDTH, CONFIG_NEEDED);
        if (arch_has(h->arch, TRAIT_HYPER))
            d->gate_bound = (float)config_float(&in, word[3], -1e6, (double)NAN);
        l->failed = in.failed;
    } else {
        d->n_head_v = h->layers[0].n_head;
        d->head_dim_v = (uint32_t)config_int(l, "head_dim", 1, MAX_HEAD_DIM, CONFIG_NEEDED);
        d->conv_width = (uint32_t)config_int(l, "short_conv_kernel_size", 2, MAX_CONV_WIDTH, 4);
        if (json_get(l->node, "kda_safe_gate") == NULL)
            defaults_note(l->defaults, "kda_safe_gate", 0);
        if (config_bool(l, "kda_safe_gate", false))
            d->gate_bound = (float)config_float(l, "kda_lower_bound", -1e6, -5);
    }
    d->n_head_k = d->n_head_v;
    d->head_dim_k = d->head_dim_v;
}

void config_recurrent(struct config_lookup *l, struct hparams *h)
{
    bool has_some = false;

    for (uint32_t i = 0; i < h->n_layer; i++)
        has_some |= h->layers[i].is_recurrent;
    if (!has_some || l->failed)
        return;
    if (arch_has(h->arch, TRAIT_SHORT_CONV))
        h->delta.conv_width =
            (uint32_t)config_int(l, "conv_L_cache", 2, MAX_CONV_WIDTH, CONFIG_NEEDED);
    else if (arch_has(h->arch, TRAIT_KDA))
        kda_sizes(l, h);
    else if (arch_has(h->arch, TRAIT_MAMBA))
        mamba_sizes(l, h);
    hparams_channels(h);
}

/* --- latent attention --- */

/* Refuses latent attention that rotates, or does not, as its architecture never does. */
static void check_rotation(struct config_lookup *l, const struct hparams *h)
{
    static const char *const keys[] = { "mla_use_nope", "use_mla_nope" };
    bool is_ropeless = arch_has(h->arch, TRAIT_NOPE);

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (config_bool(l, keys[i], is_ropeless) == is_ropeless || l->failed)
            continue;
        err_set(l->e, ERR_UNSUPPORTED, "is %s, which is not supported for %s",
                is_ropeless ? "false" : "true", h->arch->name);
        config_fail(l, keys[i]);
    }
}

void config_latent(struct config_lookup *l, struct hparams *h)
{
    struct latent_hparams *m = &h->latent;

    check_rotation(l, h);
    m->n_latent = (uint32_t)config_int(l, "kv_lora_rank", 1, MAX_LATENT, CONFIG_NEEDED);
    m->n_rot = (uint32_t)config_int(l, "qk_rope_head_dim",
                                    arch_may_not_rotate(h->arch) ? 0 : 2, MAX_HEAD_DIM,
                                    CONFIG_NEEDED);
    m->n_nope = (uint32_t)config_int(l, "qk_nope_head_dim", 1, MAX_HEAD_DIM, CONFIG_NEEDED);
    m->n_value = (uint32_t)config_int(l, "v_head_dim", 1, MAX_HEAD_DIM, CONFIG_NEEDED);
    m->n_query = (uint32_t)config_int(l, "q_lora_rank", 1, MAX_N_EMBD, 0);
    defaults_drop(l->defaults, "q_lora_rank"); /* its tensors say so, too */
    if (!l->failed)
        hparams_latent(h);
}

/* --- streams that matrices mix, entries, and index keys whose queries have weights --- */

static void hyper(struct config_lookup *l, struct hparams *h)
{
    h->n_stream = (uint32_t)config_int(l, "hc_mult", 1, MAX_HYPER_STREAM, CONFIG_NEEDED);
    h->hyper.n_round = (uint32_t)config_int(l, "hc_sinkhorn_iters", 1, 1000, CONFIG_NEEDED);
    h->hyper.eps = (float)config_float(l, "hc_eps", 1e-30, (double)NAN);
    hparams_hyper(h);
}

/* Reads a list of one number or word for each layer, and maybe for layers that only draft. */
static bool layer_list(struct config_lookup *l, const struct hparams *h, const char *key,
                       const char *word, int64_t *out)
{
    const struct json_node *list = json_get(l->node, key), *n;
    uint32_t i = 0;

    if (list != NULL && list->kind == JSON_IS_ARRAY && list->n >= h->n_layer)
        for (n = list->first; n != NULL && i < h->n_layer; n = n->next, i++) {
            const char *text = json_as_string(n);

            if (word == NULL ? !json_as_int(n, &out[i]) || out[i] < 0 || out[i] > MAX_INDEX_BLOCK
                             : text == NULL)
                break;
            if (word != NULL)
                out[i] = strcmp(text, word) == 0;
        }
    if (i == h->n_layer)
        return true;
    err_set(l->e, ERR_FORMAT, "is not a list for %u layers", h->n_layer);
    config_fail(l, key);
    return false;
}

static void entries(struct config_lookup *l, struct hparams *h, int64_t top)
{
    int64_t ratio[MAX_LAYER];

    if (l->failed || !layer_list(l, h, "compress_ratios", NULL, ratio))
        return;
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].ratio = (uint32_t)ratio[i];
    if (hparams_entries(h, top, l->e) != 0)
        config_fail(l, "compress_ratios");
    h->out.n_group = (uint32_t)config_int(l, "o_groups", 1, MAX_N_HEAD, CONFIG_NEEDED);
    h->out.rank = (uint32_t)config_int(l, "o_lora_rank", 1, MAX_N_EMBD, CONFIG_NEEDED);
    h->latent.n_query = (uint32_t)config_int(l, "q_lora_rank", 1, MAX_N_EMBD, CONFIG_NEEDED);
    h->latent.n_rot =
        (uint32_t)config_int(l, "qk_rope_head_dim", 2, MAX_HEAD_DIM, CONFIG_NEEDED);
    defaults_drop(l->defaults, "intermediate_size"); /* each layer has experts */
    hparams_hash(h, config_int(l, "num_hash_layers", 0, h->n_layer, CONFIG_NEEDED));
}

static void pools(struct config_lookup *l, struct hparams *h, int64_t top)
{
    int64_t has_index[MAX_LAYER];

    h->index.block = (uint32_t)config_int(l, "index_kpool", 2, MAX_INDEX_BLOCK, CONFIG_NEEDED);
    if (!l->failed && !config_bool(l, "index_kpool_always_select_tail", true)) {
        err_set(l->e, ERR_UNSUPPORTED, "is false, which is not supported");
        config_fail(l, "index_kpool_always_select_tail");
    }
    if (!l->failed && hparams_index_budget(h, top, l->e) != 0)
        config_fail(l, "index_topk");
    if (l->failed || !layer_list(l, h, "indexer_types", "full", has_index))
        return;
    if (hparams_choices(h, has_index, l->e) != 0)
        config_fail(l, "indexer_types");
}

void config_hyper(struct config_lookup *l, struct hparams *h)
{
    struct index_hparams *x = &h->index;
    float clamp;
    int64_t top;

    hyper(l, h);
    x->n_head = (uint32_t)config_int(l, "index_n_heads", 1, MAX_INDEX_HEAD, CONFIG_NEEDED);
    x->head_dim = (uint32_t)config_int(l, "index_head_dim", 1, MAX_INDEX_DIM, CONFIG_NEEDED);
    top = config_int(l, "index_topk", 1, MAX_CHOSEN, CONFIG_NEEDED);
    if (arch_has(h->arch, TRAIT_ENTRIES))
        entries(l, h, top);
    else
        pools(l, h, top);
    clamp = (float)config_float(l, "swiglu_limit", 0, (double)NAN);
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].clamp = h->layers[i].clamp_dense = clamp;
}

/* Reads one clamp for each layer, and maybe for layers that only draft; 0 or null: none. */
static void clamp_list(struct config_lookup *l, struct hparams *h, const char *key, bool of_experts)
{
    const struct json_node *list = json_get(l->node, key), *n;
    uint32_t i = 0;

    if (list == NULL && !l->failed)
        defaults_note(l->defaults, key, 0);
    if (list == NULL || l->failed)
        return;
    n = list->kind == JSON_IS_ARRAY ? list->first : NULL;
    for (; n != NULL && i < h->n_layer; n = n->next, i++) {
        double by = 0;

        if (n->kind != JSON_IS_NULL && !(json_as_float(n, &by) && by >= 0 && by <= 1e6))
            break;
        *(of_experts ? &h->layers[i].clamp : &h->layers[i].clamp_dense) = (float)by;
    }
    if (i == h->n_layer)
        return;
    err_set(l->e, ERR_FORMAT, "is not a list of %u numbers from 0 to 1e6", h->n_layer);
    config_fail(l, key);
}

void config_clamps(struct config_lookup *l, struct hparams *h)
{
    clamp_list(l, h, "expert_swiglu_limit_list", true);
    clamp_list(l, h, "share_expert_swiglu_limit_list", false);
}

/* --- Falcon-H1's factors --- */

/* Reads n numbers. */
static void factor_list(struct config_lookup *l, const char *key, uint32_t n, float *out)
{
    const struct json_node *list = json_get(l->node, key), *node;
    double v;
    uint32_t i = 0;

    if (list == NULL) {
        defaults_note(l->defaults, key, 1);
        return;
    }
    if (list->kind == JSON_IS_ARRAY && list->n == n)
        for (node = list->first; node != NULL && json_as_float(node, &v); node = node->next)
            out[i++] = (float)v;
    if (i == n)
        return;
    err_set(l->e, ERR_FORMAT, "is not a list of %u numbers", n);
    config_fail(l, key);
}

void config_factors(struct config_lookup *l, struct hparams *h)
{
    struct branch_factors *f = &h->factors;
    float ffn[2] = { 1, 1 };
    double in, mamba_in;

    if (!arch_has(h->arch, TRAIT_SIDE_BY_SIDE))
        return;
    for (int i = 0; i < 5; i++)
        f->mamba_parts[i] = 1;
    in = config_float(l, "attention_in_multiplier", 1e-6, 1);
    mamba_in = config_float(l, "ssm_in_multiplier", 1e-6, 1);
    h->attn_scale *= (float)(in * in * config_float(l, "key_multiplier", 1e-6, 1));
    f->attn = (float)(in * config_float(l, "attention_out_multiplier", 1e-6, 1));
    f->mamba = (float)config_float(l, "ssm_out_multiplier", 1e-6, 1);
    h->embd_scale = (float)config_float(l, "embedding_multiplier", 1e-6, 1);
    h->logit_scale = (float)config_float(l, "lm_head_multiplier", 1e-6, 1);
    factor_list(l, "ssm_multipliers", 5, f->mamba_parts);
    factor_list(l, "mlp_multipliers", 2, ffn);
    for (int i = 0; i < 5; i++)
        f->mamba_parts[i] *= (float)mamba_in;
    f->gate = ffn[0];
    f->ffn = ffn[1];
}
