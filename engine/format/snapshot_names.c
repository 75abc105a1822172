/*
 * Tensor names of a snapshot and those of GGUF: one table, read in both directions.
 * post_attention_layernorm is the second norm of a layer in most architectures, and the
 * norm behind attention in those that have one.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/snapshot.h"

struct pair {
    const char *hf, *gguf;
};

static const struct pair outside[] = {
    { "embed_tokens.weight", "token_embd.weight" },
    { "norm.weight", "output_norm.weight" },
    { "embed_tokens_per_layer.weight", "per_layer_token_embd.weight" },
    { "per_layer_model_projection.weight", "per_layer_model_proj.weight" },
    { "per_layer_projection_norm.weight", "per_layer_proj_norm.weight" },
    { NULL, NULL },
};

static const struct pair plain_norms[] = {
    { "post_attention_layernorm.weight", "ffn_norm.weight" },
    { NULL, NULL },
};

static const struct pair post_norms[] = {
    { "post_attention_layernorm.weight", "post_attention_norm.weight" },
    { "pre_feedforward_layernorm.weight", "ffn_norm.weight" },
    { "post_feedforward_layernorm.weight", "post_ffw_norm.weight" },
    { NULL, NULL },
};

static const struct pair inside[] = {
    { "input_layernorm.weight", "attn_norm.weight" },
    { "self_attn.q_proj.weight", "attn_q.weight" },
    { "self_attn.q_proj.bias", "attn_q.bias" },
    { "self_attn.k_proj.weight", "attn_k.weight" },
    { "self_attn.k_proj.bias", "attn_k.bias" },
    { "self_attn.v_proj.weight", "attn_v.weight" },
    { "self_attn.v_proj.bias", "attn_v.bias" },
    { "self_attn.qkv_proj.weight", "attn_qkv.weight" },
    { "self_attn.o_proj.weight", "attn_output.weight" },
    { "self_attn.o_proj.bias", "attn_output.bias" },
    { "self_attn.q_norm.weight", "attn_q_norm.weight" },
    { "self_attn.k_norm.weight", "attn_k_norm.weight" },
    { "mlp.gate_proj.weight", "ffn_gate.weight" },
    { "mlp.gate_proj.bias", "ffn_gate.bias" },
    { "mlp.up_proj.weight", "ffn_up.weight" },
    { "mlp.up_proj.bias", "ffn_up.bias" },
    { "mlp.down_proj.weight", "ffn_down.weight" },
    { "mlp.down_proj.bias", "ffn_down.bias" },
    { "mlp.gate_up_proj.weight", "ffn_up.weight" },
    { "layer_scalar", "layer_output_scale.weight" },
    { "per_layer_input_gate.weight", "inp_gate.weight" },
    { "per_layer_projection.weight", "proj.weight" },
    { "post_per_layer_input_norm.weight", "post_norm.weight" },
    { "router.proj.weight", "ffn_gate_inp.weight" },
    { "router.scale", "ffn_gate_inp.scale" },
    { "router.per_expert_scale", "ffn_down_exps.scale" },
    { "experts.gate_up_proj", "ffn_gate_up_exps.weight" },
    { "experts.down_proj", "ffn_down_exps.weight" },
    { "pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight" },
    { "post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight" },
    { "post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight" },
    { NULL, NULL },
};

/* What may stand before the names, tried in this order. */
static const char *const prefixes[] = {
    "model.language_model.", "language_model.model.", "language_model.", "model.", "",
};

static const char *find(const struct pair *table, const char *hf)
{
    for (; table->hf != NULL; table++)
        if (strcmp(table->hf, hf) == 0)
            return table->gguf;
    return NULL;
}

static const char *find_back(const struct pair *table, const char *gguf)
{
    for (; table->hf != NULL; table++)
        if (strcmp(table->gguf, gguf) == 0)
            return table->hf;
    return NULL;
}

static const struct pair *norms_of(const struct arch *a)
{
    return arch_has(a, TRAIT_POST_NORMS) ? post_norms : plain_norms;
}

/* A name without its prefix. */
static bool translate(const struct arch *a, const char *name, char *buf, size_t n)
{
    const char *found, *p = name + 7;
    uint32_t layer = 0;

    if (strncmp(name, "layers.", 7) != 0) {
        found = find(outside, name);
        if (found != NULL)
            snprintf(buf, n, "%s", found);
        return found != NULL;
    }
    if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] != '.'))
        return false;
    for (; *p >= '0' && *p <= '9' && layer < MAX_LAYER; p++)
        layer = layer * 10 + (uint32_t)(*p - '0');
    if (layer >= MAX_LAYER || *p != '.')
        return false;
    found = find(norms_of(a), p + 1);
    if (found == NULL)
        found = find(inside, p + 1);
    if (found != NULL)
        snprintf(buf, n, "blk.%u.%s", layer, found);
    return found != NULL;
}

bool snapshot_to_canonical(const struct arch *a, const char *name, char *buf, size_t n, char *prefix)
{
    if (strcmp(name, "lm_head.weight") == 0 ||
        strcmp(name, "language_model.lm_head.weight") == 0) {
        snprintf(buf, n, "output.weight");
        return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t len = strlen(prefixes[i]);

        if (strncmp(name, prefixes[i], len) == 0 && translate(a, name + len, buf, n)) {
            snprintf(prefix, 40, "%s", prefixes[i]);
            return true;
        }
    }
    return false;
}

void snapshot_from_canonical(const struct arch *a, const char *prefix, const char *canonical,
                             char *buf, size_t n)
{
    uint32_t layer = 0;
    const char *suffix = layer_suffix(canonical, 0, &layer);
    const char *found;

    if (strcmp(canonical, "output.weight") == 0) {
        snprintf(buf, n, "lm_head.weight");
        return;
    }
    if (suffix == NULL) {
        found = find_back(outside, canonical);
        snprintf(buf, n, "%s%s", found != NULL ? prefix : "",
                 found != NULL ? found : canonical);
        return;
    }
    found = find_back(norms_of(a), suffix);
    if (found == NULL)
        found = find_back(inside, suffix);
    /* Two names lead to ffn_up; the table's first is the one of most architectures. */
    if (strcmp(suffix, "ffn_up.weight") == 0 && arch_has(a, TRAIT_FUSED_GATE_UP))
        found = "mlp.gate_up_proj.weight";
    if (found != NULL)
        snprintf(buf, n, "%slayers.%u.%s", prefix, layer, found);
    else
        snprintf(buf, n, "%s", canonical);
}
