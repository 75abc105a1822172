/* Keys "ARCH.*" that llama.cpp reads, and the values of each that memwall accepts. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/visible.h"
#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/gguf_lookup.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/value_rules.h"

/* clang-format off */
static const struct value_rule_row keys[] = {
    { .name = "block_count", .rule = RULE_ANY },
    { .name = "context_length", .rule = RULE_ANY },
    { .name = "embedding_length", .rule = RULE_ANY },
    { .name = "feed_forward_length", .rule = RULE_ANY },
    { .name = "attention.head_count", .rule = RULE_ANY },
    { .name = "attention.head_count_kv", .rule = RULE_ANY },
    { .name = "attention.key_length", .rule = RULE_ANY },
    { .name = "attention.value_length", .rule = RULE_ANY },
    { .name = "attention.key_length_swa", .rule = RULE_SAME, .read_if = TRAIT_HEADS_BY_KIND,
      .other = "attention.key_length" },
    { .name = "attention.value_length_swa", .rule = RULE_SAME, .read_if = TRAIT_HEADS_BY_KIND,
      .other = "attention.value_length" },
    { .name = "attention.layer_norm_rms_epsilon", .rule = RULE_ANY },
    { .name = "attention.sliding_window", .rule = RULE_ANY },
    { .name = "attention.sliding_window_pattern", .rule = RULE_ANY },
    { .name = "attention.shared_kv_layers", .rule = RULE_OFF,
      .read_if = TRAIT_SHARED_KV | TRAIT_ASSISTANT },
    { .name = "attention.scale", .rule = RULE_SCALE },
    { .name = "attn_logit_softcapping", .rule = RULE_OFF, .read_if = TRAIT_CAP_ATTN },
    { .name = "final_logit_softcapping", .rule = RULE_OFF, .read_if = TRAIT_CAP_FINAL },
    { .name = "embedding_length_per_layer_input", .rule = RULE_OFF,
      .read_if = TRAIT_PER_LAYER_INPUT | TRAIT_NGRAMS },
    { .name = "expert_count", .rule = RULE_ANY },
    { .name = "expert_used_count", .rule = RULE_ANY },
    { .name = "expert_feed_forward_length", .rule = RULE_ANY },
    { .name = "rope.dimension_count", .rule = RULE_ANY },
    { .name = "rope.dimension_count_swa", .rule = RULE_SAME, .read_if = TRAIT_ROPE_BY_KIND,
      .other = "rope.dimension_count" },
    { .name = "rope.freq_base", .rule = RULE_ANY },
    { .name = "rope.freq_base_swa", .rule = RULE_SAME, .read_if = TRAIT_ROPE_BY_KIND,
      .other = "rope.freq_base" },
    { .name = "rope.scaling.type", .rule = RULE_ANY },
    { .name = "rope.scaling.factor", .rule = RULE_ANY },
    { .name = "rope.scaling.original_context_length", .rule = RULE_ANY },
    { .name = "rope.scaling.attn_factor", .rule = RULE_ONE_BY_KIND },
    { .name = "rope.scaling.yarn_beta_fast", .rule = RULE_ANY },
    { .name = "rope.scaling.yarn_beta_slow", .rule = RULE_ANY },

    /* Training, the file itself and other modalities; other norms; details of experts and
     * pooling that do not affect models without them. */
    { .name = "vocab_size", .rule = RULE_ANY },
    { .name = "tensor_data_layout", .rule = RULE_ANY },
    { .name = "rope.scaling.finetuned", .rule = RULE_ANY },
    { .name = "attention.layer_norm_epsilon", .rule = RULE_ANY },
    { .name = "attention.group_norm_epsilon", .rule = RULE_ANY },
    { .name = "pooling_type", .rule = RULE_ANY },
    { .name = "rope.mrope_interleaved", .rule = RULE_ANY }, /* texts have one position */
    { .name = "image_token_id", .rule = RULE_ANY },
    { .name = "image_token_index", .rule = RULE_ANY },
    { .name = "spatial_merge_size", .rule = RULE_ANY },
    { .name = "vision_start_token_id", .rule = RULE_ANY },
    { .name = "vision_end_token_id", .rule = RULE_ANY },
    { .name = "decoder_start_token_id", .rule = RULE_ANY },
    { .name = "decoder_block_count", .rule = RULE_ANY },
    { .name = "n_deepstack_layers", .rule = RULE_ANY },
    { .name = "deepstack_mapping", .rule = RULE_ANY },
    { .name = "features_length", .rule = RULE_ANY },
    { .name = "classifier.output_labels", .rule = RULE_ANY },
    { .name = "dense_2_feat_in", .rule = RULE_ANY },
    { .name = "dense_2_feat_out", .rule = RULE_ANY },
    { .name = "dense_3_feat_in", .rule = RULE_ANY },
    { .name = "dense_3_feat_out", .rule = RULE_ANY },

    /* Keys that change the arithmetic of other architectures.  Granite's files of models without
     * Mamba layers and experts have keys of both, too. */
    { .name = "logit_scale", .rule = RULE_ONE, .read_if = TRAIT_SCALES | TRAIT_LOGIT_FACTOR },
    { .name = "residual_scale", .rule = RULE_ONE, .read_if = TRAIT_SCALES },
    { .name = "embedding_scale", .rule = RULE_ONE, .read_if = TRAIT_SCALES },
    { .name = "attention.causal", .rule = RULE_ON },
    { .name = "attention.clamp_kqv", .rule = RULE_OFF },
    { .name = "attention.max_alibi_bias", .rule = RULE_OFF },
    { .name = "attention.output_scale", .rule = RULE_ONE },
    { .name = "attention.value_scale", .rule = RULE_ONE },
    { .name = "attention.temperature_length", .rule = RULE_OFF, .read_if = TRAIT_TEMPERATURE },
    { .name = "attention.temperature_scale", .rule = RULE_OFF, .read_if = TRAIT_TEMPERATURE },
    { .name = "attention.relative_buckets_count", .rule = RULE_OFF },
    { .name = "attention.group_norm_groups", .rule = RULE_OFF },
    { .name = "attention.q_lora_rank", .rule = RULE_OFF, .read_if = TRAIT_LATENT | TRAIT_ENTRIES },
    { .name = "attention.kv_lora_rank", .rule = RULE_OFF, .read_if = TRAIT_LATENT },
    { .name = "attention.key_length_mla", .rule = RULE_OFF, .read_if = TRAIT_LATENT },
    { .name = "attention.value_length_mla", .rule = RULE_OFF, .read_if = TRAIT_LATENT },
    { .name = "attention.recurrent_layers", .rule = RULE_OFF, .read_if = TRAIT_DELTA },
    { .name = "attention.rope_pattern", .rule = RULE_OFF },
    { .name = "attention.compress_ratios", .rule = RULE_OFF,
      .read_if = TRAIT_INDEX | TRAIT_ENTRIES },
    { .name = "attention.compress_rope_freq_base", .rule = RULE_OFF, .read_if = TRAIT_ENTRIES },
    { .name = "attention.output_group_count", .rule = RULE_OFF, .read_if = TRAIT_ENTRIES },
    { .name = "attention.output_lora_rank", .rule = RULE_OFF, .read_if = TRAIT_ENTRIES },
    { .name = "hash_layer_count", .rule = RULE_OFF, .read_if = TRAIT_ENTRIES },
    { .name = "router_logit_softcapping", .rule = RULE_OFF },
    /* Texts have one position.  Files of Qwen 3.5, and of GLM-4.6V, whose norms are optional. */
    { .name = "rope.dimension_sections", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_MAYBE_QK_NORM },
    { .name = "rope.scaling.alpha", .rule = RULE_ONE },
    { .name = "rope.scaling.yarn_attn_factor", .rule = RULE_ONE_UNSCALED },
    { .name = "rope.scaling.yarn_ext_factor", .rule = RULE_ONE },
    { .name = "rope.scaling.yarn_log_multiplier", .rule = RULE_OFF,
      .read_if = TRAIT_TEMPERATURE | TRAIT_LATENT },
    { .name = "rope.scaling.mscale", .rule = RULE_ONE, .read_if = TRAIT_TEMPERATURE },
    { .name = "rope.partial_rotary_factor", .rule = RULE_ONE },
    { .name = "hidden_activation", .rule = RULE_ACT },
    { .name = "use_parallel_residual", .rule = RULE_OFF },
    { .name = "swin_norm", .rule = RULE_OFF },
    { .name = "swiglu_clamp_exp", .rule = RULE_OFF, .read_if = TRAIT_CLAMPS },
    { .name = "swiglu_clamp_shexp", .rule = RULE_OFF, .read_if = TRAIT_CLAMPS },
    { .name = "full_attention_interval", .rule = RULE_ONE, .read_if = TRAIT_DELTA },
    { .name = "rescale_every_n_layers", .rule = RULE_OFF },
    { .name = "token_shift_count", .rule = RULE_OFF },
    { .name = "activation_sparsity_scale", .rule = RULE_OFF },
    { .name = "nextn_predict_layers", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_DRAFT | TRAIT_ASSISTANT },
    { .name = "num_loops", .rule = RULE_ONE },
    { .name = "embedding_length_out", .rule = RULE_SAME, .other = "embedding_length",
      .read_if = TRAIT_HYPER | TRAIT_ASSISTANT },
    { .name = "leading_dense_block_count", .rule = RULE_OFF, .read_if = TRAIT_ROUTED },
    { .name = "interleave_moe_layer_step", .rule = RULE_ONE, .read_if = TRAIT_ROUTED },
    { .name = "moe_every_n_layers", .rule = RULE_ONE },
    { .name = "moe_latent_size", .rule = RULE_OFF, .read_if = TRAIT_ONE_BLOCK },
    { .name = "expert_latent_length", .rule = RULE_OFF },
    { .name = "expert_gating_func", .rule = RULE_ONE, .read_if = TRAIT_ROUTED }, /* 1 is softmax */
    { .name = "expert_group_count", .rule = RULE_ONE, .read_if = TRAIT_ROUTED },
    { .name = "expert_group_used_count", .rule = RULE_ONE, .read_if = TRAIT_ROUTED },
    { .name = "expert_group_scale", .rule = RULE_ONE },
    { .name = "experts_per_group", .rule = RULE_ONE },
    { .name = "expert_shared_count", .rule = RULE_OFF, .read_if = TRAIT_DELTA | TRAIT_ROUTED },
    { .name = "expert_shared_feed_forward_length", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_ROUTED | TRAIT_SCALES },
    { .name = "expert_chunk_feed_forward_length", .rule = RULE_OFF },
    { .name = "expert_weights_norm", .rule = RULE_ON, .read_if = TRAIT_EXPERTS },
    { .name = "expert_weights_scale", .rule = RULE_ONE, .read_if = TRAIT_ROUTED },

    /* Keys of parts that some architectures have; other architectures refuse their groups. */
    { .name = "attention.indexer.head_count", .rule = RULE_OFF,
      .read_if = TRAIT_INDEX | TRAIT_SCORED },
    { .name = "attention.indexer.index_share_mtp", .rule = RULE_OFF,
      .read_if = TRAIT_INDEX | TRAIT_SCORED },
    { .name = "attention.indexer.key_length", .rule = RULE_OFF,
      .read_if = TRAIT_INDEX | TRAIT_SCORED },
    { .name = "attention.indexer.kpool", .rule = RULE_OFF, .read_if = TRAIT_SCORED },
    { .name = "attention.indexer.kpool_select_tail", .rule = RULE_OFF, .read_if = TRAIT_SCORED },
    { .name = "attention.indexer.top_k", .rule = RULE_OFF,
      .read_if = TRAIT_INDEX | TRAIT_SCORED },
    { .name = "attention.indexer.types", .rule = RULE_OFF, .read_if = TRAIT_SCORED },
    { .name = "hyper_connection.count", .rule = RULE_OFF,
      .read_if = TRAIT_STREAMS | TRAIT_HYPER },
    { .name = "hyper_connection.epsilon", .rule = RULE_OFF, .read_if = TRAIT_HYPER },
    { .name = "hyper_connection.low_rank", .rule = RULE_OFF, .read_if = TRAIT_STREAMS },
    { .name = "hyper_connection.sinkhorn_iterations", .rule = RULE_OFF,
      .read_if = TRAIT_HYPER },
    { .name = "kda.gate_lower_bound", .rule = RULE_OFF, .read_if = TRAIT_KDA },
    { .name = "kda.head_dim", .rule = RULE_OFF, .read_if = TRAIT_KDA },
    { .name = "kda.safe_gate", .rule = RULE_OFF, .read_if = TRAIT_KDA },
    { .name = "ple.conv_kernel", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "ple.eos_token_id", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "ple.head_offsets", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "ple.head_vocab_sizes", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "ple.heads_per_ngram", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "ple.image_token_id", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "ple.layer_multipliers", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "ple.layers", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "ple.ngram_size", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "shortconv.l_cache", .rule = RULE_OFF, .read_if = TRAIT_SHORT_CONV },
    { .name = "ssm.conv_kernel", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_MAMBA | TRAIT_KDA | TRAIT_SCALES },
    { .name = "ssm.dt_b_c_rms", .rule = RULE_OFF },
    { .name = "ssm.group_count", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_MAMBA | TRAIT_KDA | TRAIT_SCALES },
    { .name = "ssm.inner_size", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_MAMBA | TRAIT_KDA | TRAIT_SCALES },
    { .name = "ssm.state_size", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_MAMBA | TRAIT_KDA | TRAIT_SCALES },
    { .name = "ssm.time_step_rank", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_MAMBA | TRAIT_KDA | TRAIT_SCALES },
    { .name = "ssm.v_head_reordered", .rule = RULE_OFF, .read_if = TRAIT_DELTA },
};

/* The same, by the beginning of a key.  A key of a part that the architecture has must be in the
 * table above: no other one is read. */
static const struct value_rule_row groups[] = {
    { .name = "vision.", .rule = RULE_ANY },
    { .name = "audio.", .rule = RULE_ANY },
    { .name = "mm.", .rule = RULE_ANY },
    { .name = "adapters.", .rule = RULE_OFF },
    { .name = "altup.", .rule = RULE_OFF },
    { .name = "attention.indexer.", .rule = RULE_OFF, .read_if = TRAIT_INDEX | TRAIT_SCORED },
    { .name = "hrm.", .rule = RULE_OFF },
    { .name = "hyper_connection.", .rule = RULE_OFF, .read_if = TRAIT_STREAMS | TRAIT_HYPER },
    { .name = "kda.", .rule = RULE_OFF, .read_if = TRAIT_KDA },
    { .name = "ple.", .rule = RULE_OFF, .read_if = TRAIT_NGRAMS },
    { .name = "shortconv.", .rule = RULE_OFF, .read_if = TRAIT_SHORT_CONV },
    { .name = "ssm.", .rule = RULE_OFF,
      .read_if = TRAIT_DELTA | TRAIT_MAMBA | TRAIT_KDA | TRAIT_SCALES },
    { .name = "wkv.", .rule = RULE_OFF },
};
/* clang-format on */

static const struct value_rule_row *find_rule(const char *suffix, const struct arch *a)
{
    const char *usual = gguf_usual_suffix(suffix);

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(keys[i].name, usual != NULL ? usual : suffix) == 0)
            return &keys[i];
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (strncmp(groups[i].name, suffix, strlen(groups[i].name)) == 0 &&
            (groups[i].read_if & a->traits) == 0)
            return &groups[i];
    return NULL;
}

/* Returns key i without its architecture; NULL if it does not start with this architecture. */
static const char *suffix_at(const struct catalogue *c, uint32_t i)
{
    const char *name = c->gguf->keys[i].name, *arch = gguf_prefix(c->gguf);
    size_t n = strlen(arch);

    return strncmp(name, arch, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

/* --- values --- */

/* Reads a number of any type; false if the value is not a number. */
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

static bool element_at(const void *ctx, uint64_t i, double *out)
{
    const struct gguf_value *v = ctx;
    int64_t whole;

    if (gguf_elem_int(v, i, &whole)) {
        *out = (double)whole;
        return true;
    }
    return gguf_elem_float(v, i, out);
}

static bool is_same(const struct catalogue *c, const char *other, double v)
{
    const struct gguf_value *o;
    char key[128];
    double x;

    o = gguf_find_suffix(c->gguf, gguf_prefix(c->gguf), other, key, sizeof key);
    return o != NULL && number_of(o, &x) && x == v;
}

static struct stated_value value_of(const struct catalogue *c, const struct value_rule_row *r,
                                    const struct gguf_value *g)
{
    struct stated_value v = { .kind = STATED_BAD };

    if (g->type == GGUF_ARRAY) {
        v.kind = STATED_LIST;
        v.n = g->count;
        v.element = element_at;
        v.ctx = g;
    } else if (g->type == GGUF_STRING && (g->data != NULL || g->count == 0)) {
        v.kind = STATED_TEXT;
        v.text = g->count == 0 ? "" : (const char *)g->data;
        visible_line(v.shown, sizeof v.shown, v.text, (size_t)g->count);
    } else if (number_of(g, &v.number)) {
        v.kind = STATED_NUMBER;
        v.is_same = r->rule == RULE_SAME && is_same(c, r->other, v.number);
        if (g->type == GGUF_BOOL)
            snprintf(v.shown, sizeof v.shown, "%s", g->num.u != 0 ? "true" : "false");
        else
            snprintf(v.shown, sizeof v.shown, "%g", v.number);
    }
    return v;
}

int gguf_check_keys(const struct catalogue *c, const struct absent_list *absent, struct err *e)
{
    for (uint32_t i = 0; i < c->gguf->n_key; i++) {
        const char *suffix = suffix_at(c, i);
        const struct value_rule_row *r =
            suffix != NULL ? find_rule(suffix, c->hparams.arch) : NULL;
        struct stated_value v;
        int rc;

        if (r != NULL) {
            v = value_of(c, r, &c->gguf->keys[i].value);
            rc = value_check(r, &v, &c->hparams, e);
        } else {
            rc = gguf_check_unknown(c, suffix, c->gguf->keys[i].name, absent, e);
        }
        if (rc != 0)
            return err_at(e, NULL, ERR_NO_OFFSET, c->gguf->keys[i].name);
    }
    return 0;
}

uint32_t gguf_unknown_keys(const struct catalogue *c, char *buf, size_t n)
{
    uint32_t count = 0;
    size_t used = 0;

    buf[0] = '\0';
    for (uint32_t i = 0; c->gguf != NULL && c->hparams.arch != NULL && i < c->gguf->n_key; i++) {
        const char *suffix = suffix_at(c, i);
        char name[80];

        if (suffix == NULL || find_rule(suffix, c->hparams.arch) != NULL)
            continue;
        count++;
        visible_line(name, sizeof name, suffix, strlen(suffix));
        if (used + strlen(name) + 3 >= n)
            continue;
        used += (size_t)snprintf(buf + used, n - used, "%s%s", used > 0 ? ", " : "", name);
    }
    return count;
}
