/*
 * Keys "ARCH.*" that llama.cpp's models read, and what memwall does with each of them.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/value_rules.h"

#define G2   ARCH_BIT(ARCH_GEMMA2)
#define G3   ARCH_BIT(ARCH_GEMMA3)
#define G4   ARCH_BIT(ARCH_GEMMA4)
#define ALL  ARCH_ALL
#define NONE 0u

/* clang-format off */
static const struct value_rule_row keys[] = {
    { "block_count", ALL, RULE_ANY, NULL },
    { "context_length", ALL, RULE_ANY, NULL },
    { "embedding_length", ALL, RULE_ANY, NULL },
    { "feed_forward_length", ALL, RULE_ANY, NULL },
    { "attention.head_count", ALL, RULE_ANY, NULL },
    { "attention.head_count_kv", ALL, RULE_ANY, NULL },
    { "attention.head_dim", ALL, RULE_ANY, NULL },
    { "attention.key_length", ALL, RULE_ANY, NULL },
    { "attention.value_length", ALL, RULE_ANY, NULL },
    { "attention.key_length_swa", G4, RULE_SAME, "attention.key_length" },
    { "attention.value_length_swa", G4, RULE_SAME, "attention.value_length" },
    { "attention.layer_norm_rms_epsilon", ALL, RULE_ANY, NULL },
    { "attention.sliding_window", ALL, RULE_ANY, NULL },
    { "attention.sliding_window_pattern", ALL, RULE_ANY, NULL },
    { "attention.shared_kv_layers", G4, RULE_OFF, NULL },
    { "attention.scale", NONE, RULE_SCALE, NULL },
    { "attn_logit_softcapping", G2, RULE_OFF, NULL },
    { "final_logit_softcapping", G2 | G3 | G4, RULE_OFF, NULL },
    { "embedding_length_per_layer_input", G4, RULE_OFF, NULL },
    { "expert_count", ALL, RULE_ANY, NULL },
    { "expert_used_count", ALL, RULE_ANY, NULL },
    { "expert_feed_forward_length", ALL, RULE_ANY, NULL },
    { "rope.dimension_count", ALL, RULE_ANY, NULL },
    { "rope.dimension_count_swa", G3 | G4, RULE_SAME, "rope.dimension_count" },
    { "rope.freq_base", ALL, RULE_ANY, NULL },
    { "rope.freq_base_swa", G3 | G4, RULE_SAME, "rope.freq_base" },
    { "rope.local.freq_base", G3 | G4, RULE_SAME, "rope.freq_base" },
    { "rope.scale_linear", ALL, RULE_ANY, NULL },
    { "rope.scaling.type", ALL, RULE_ANY, NULL },
    { "rope.scaling.factor", ALL, RULE_ANY, NULL },
    { "rope.scaling.original_context_length", ALL, RULE_ANY, NULL },
    { "rope.scaling.attn_factor", ALL & ~(G3 | G4), RULE_ONE, NULL },
    { "rope.scaling.yarn_beta_fast", ALL, RULE_ANY, NULL },
    { "rope.scaling.yarn_beta_slow", ALL, RULE_ANY, NULL },

    /* About training, the file or other modalities; other norms; kinds of experts and the
     * pooling of embeddings, which do not touch the logits of a model without them. */
    { "vocab_size", NONE, RULE_ANY, NULL },
    { "tensor_data_layout", NONE, RULE_ANY, NULL },
    { "rope.scaling.finetuned", NONE, RULE_ANY, NULL },
    { "attention.layer_norm_epsilon", NONE, RULE_ANY, NULL },
    { "attention.group_norm_epsilon", NONE, RULE_ANY, NULL },
    { "pooling_type", NONE, RULE_ANY, NULL },
    { "decoder_start_token_id", NONE, RULE_ANY, NULL },

    /* What other architectures compute with. */
    { "logit_scale", NONE, RULE_ONE, NULL },
    { "residual_scale", NONE, RULE_ONE, NULL },
    { "embedding_scale", NONE, RULE_ONE, NULL },
    { "attention.causal", NONE, RULE_ON, NULL },
    { "attention.clamp_kqv", NONE, RULE_OFF, NULL },
    { "attention.max_alibi_bias", NONE, RULE_OFF, NULL },
    { "attention.output_scale", NONE, RULE_ONE, NULL },
    { "attention.value_scale", NONE, RULE_ONE, NULL },
    { "attention.temperature_length", NONE, RULE_OFF, NULL },
    { "attention.temperature_scale", NONE, RULE_OFF, NULL },
    { "attention.relative_buckets_count", NONE, RULE_OFF, NULL },
    { "attention.group_norm_groups", NONE, RULE_OFF, NULL },
    { "attention.q_lora_rank", NONE, RULE_OFF, NULL },
    { "attention.kv_lora_rank", NONE, RULE_OFF, NULL },
    { "attention.key_length_mla", NONE, RULE_OFF, NULL },
    { "attention.value_length_mla", NONE, RULE_OFF, NULL },
    { "attention.recurrent_layers", NONE, RULE_OFF, NULL },
    { "attention.rope_pattern", NONE, RULE_OFF, NULL },
    { "attention.compress_ratios", NONE, RULE_OFF, NULL },
    { "router_logit_softcapping", NONE, RULE_OFF, NULL },
    { "rope.dimension_sections", NONE, RULE_OFF, NULL },
    { "rope.scaling.alpha", NONE, RULE_ONE, NULL },
    { "rope.scaling.yarn_attn_factor", NONE, RULE_ONE, NULL },
    { "rope.scaling.yarn_ext_factor", NONE, RULE_ONE, NULL },
    { "rope.scaling.yarn_log_multiplier", NONE, RULE_OFF, NULL },
    { "hidden_activation", NONE, RULE_ACT, NULL },
    { "use_parallel_residual", NONE, RULE_OFF, NULL },
    { "swin_norm", NONE, RULE_OFF, NULL },
    { "swiglu_clamp_exp", NONE, RULE_OFF, NULL },
    { "swiglu_clamp_shexp", NONE, RULE_OFF, NULL },
    { "full_attention_interval", NONE, RULE_ONE, NULL },
    { "rescale_every_n_layers", NONE, RULE_OFF, NULL },
    { "nextn_predict_layers", NONE, RULE_OFF, NULL },
    { "num_loops", NONE, RULE_ONE, NULL },
    { "embedding_length_out", NONE, RULE_SAME, "embedding_length" },
    { "leading_dense_block_count", NONE, RULE_OFF, NULL },
    { "interleave_moe_layer_step", NONE, RULE_ONE, NULL },
    { "moe_every_n_layers", NONE, RULE_ONE, NULL },
    { "moe_latent_size", NONE, RULE_OFF, NULL },
    { "expert_latent_length", NONE, RULE_OFF, NULL },
    { "expert_gating_func", NONE, RULE_ONE, NULL }, /* 1 is softmax */
    { "expert_group_count", NONE, RULE_ONE, NULL },
    { "expert_group_used_count", NONE, RULE_ONE, NULL },
    { "expert_group_scale", NONE, RULE_ONE, NULL },
    { "expert_shared_count", NONE, RULE_OFF, NULL },
    { "expert_shared_feed_forward_length", NONE, RULE_OFF, NULL },
    { "expert_chunk_feed_forward_length", NONE, RULE_OFF, NULL },
    { "expert_weights_norm", NONE, RULE_ON, NULL },
    { "expert_weights_scale", NONE, RULE_ONE, NULL },
};

/* The same by the beginning of a key. */
static const struct value_rule_row groups[] = {
    { "vision.", NONE, RULE_ANY, NULL },
    { "audio.", NONE, RULE_ANY, NULL },
    { "mm.", NONE, RULE_ANY, NULL },
    { "adapters.", NONE, RULE_OFF, NULL },
    { "altup.", NONE, RULE_OFF, NULL },
    { "attention.indexer.", NONE, RULE_OFF, NULL },
    { "hrm.", NONE, RULE_OFF, NULL },
    { "hyper_connection.", NONE, RULE_OFF, NULL },
    { "kda.", NONE, RULE_OFF, NULL },
    { "ple.", NONE, RULE_OFF, NULL },
    { "shortconv.", NONE, RULE_OFF, NULL },
    { "ssm.", NONE, RULE_OFF, NULL },
    { "wkv.", NONE, RULE_OFF, NULL },
};
/* clang-format on */

static const struct value_rule_row *find_rule(const char *suffix)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i].name, suffix) == 0)
            return &keys[i];
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (strncmp(groups[i].name, suffix, strlen(groups[i].name)) == 0)
            return &groups[i];
    return NULL;
}

/* Key number i without its architecture; NULL if it is not one of the model's. */
static const char *suffix_at(const struct catalogue *c, uint32_t i)
{
    const char *name = c->gguf->keys[i].name, *arch = c->hparams.arch_name;
    size_t n = strlen(arch);

    return strncmp(name, arch, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

/* A number, whatever its type; false if it is none. */
static bool number_of(const struct gguf_value *v, double *out)
{
    switch (v->type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
    case GGUF_BOOL: *out = (double)v->num.u; return true;
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64: *out = (double)v->num.i; return true;
    case GGUF_F32:
    case GGUF_F64: *out = v->num.f; return true;
    case GGUF_STRING:
    case GGUF_ARRAY:
    case GGUF_TYPE_COUNT: break;
    }
    return false;
}

static bool array_follows(const struct gguf_value *v, enum value_rule rule,
                          const struct hparams *h)
{
    for (uint64_t i = 0; i < v->count; i++) {
        int64_t whole;
        double x;

        if (gguf_elem_int(v, i, &whole))
            x = (double)whole;
        else if (!gguf_elem_float(v, i, &x))
            return false;
        if (!value_follows(rule, x, h))
            return false;
    }
    return true;
}

static bool is_same(const struct catalogue *c, const char *other, double v)
{
    const struct gguf_value *o;
    char key[128];
    double x;

    snprintf(key, sizeof key, "%s.%s", c->hparams.arch_name, other);
    o = gguf_find(c->gguf, key);
    return o != NULL && number_of(o, &x) && x == v;
}

static bool is_activation(const struct hparams *h, const char *name)
{
    if (arch_traits(h->arch)->post_norms)
        return strcmp(name, "gelu_pytorch_tanh") == 0 || strcmp(name, "gelu_new") == 0;
    return strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0;
}

static bool follows(const struct catalogue *c, const struct value_rule_row *r,
                    const struct gguf_value *v)
{
    const struct hparams *h = &c->hparams;
    double x;

    if (r->rule == RULE_ANY || (r->read_by & ARCH_BIT(h->arch)) != 0)
        return true;
    if (v->type == GGUF_ARRAY)
        return array_follows(v, r->rule, h);
    if (r->rule == RULE_ACT)
        return v->type == GGUF_STRING && v->data != NULL &&
               is_activation(h, (const char *)v->data);
    if (v->type == GGUF_STRING)
        return v->count == 0 || (v->data != NULL && strcmp((const char *)v->data, "none") == 0);
    if (!number_of(v, &x))
        return false;
    return r->rule == RULE_SAME ? is_same(c, r->same_as, x) : value_follows(r->rule, x, h);
}

int gguf_check_keys(const struct catalogue *c, struct err *e)
{
    for (uint32_t i = 0; i < c->gguf->n_key; i++) {
        const struct gguf_value *v = &c->gguf->keys[i].value;
        const char *suffix = suffix_at(c, i);
        const struct value_rule_row *r = suffix != NULL ? find_rule(suffix) : NULL;
        char shown[64] = "set";
        double x;

        if (r == NULL || follows(c, r, v))
            continue;
        if (v->type == GGUF_STRING && v->data != NULL)
            clean_name(shown, sizeof shown, (const char *)v->data, (size_t)v->count);
        else if (v->type == GGUF_BOOL)
            snprintf(shown, sizeof shown, "%s", v->num.u != 0 ? "true" : "false");
        else if (number_of(v, &x))
            snprintf(shown, sizeof shown, "%g", x);
        value_refuse(&c->hparams, shown, e);
        return err_at(e, NULL, ERR_NO_OFFSET, c->gguf->keys[i].name);
    }
    return 0;
}

uint32_t gguf_unknown_keys(const struct catalogue *c, char *buf, size_t n)
{
    uint32_t count = 0;
    size_t used = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; c->gguf != NULL && i < c->gguf->n_key; i++) {
        const char *suffix = suffix_at(c, i);
        char name[80];

        if (suffix == NULL || find_rule(suffix) != NULL)
            continue;
        count++;
        clean_name(name, sizeof name, suffix, strlen(suffix));
        if (used + strlen(name) + 3 >= n)
            continue;
        used += (size_t)snprintf(buf + used, n - used, "%s%s", used > 0 ? ", " : "", name);
    }
    return count;
}
