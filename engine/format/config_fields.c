/*
 * Fields of config.json that other models compute with.  transformers ignores most of them in
 * the classes that memwall reads, but a configuration that states them describes a model
 * other than the one that memwall would compute.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/value_rules.h"

/* clang-format off */
static const struct value_rule_row fields[] = {
    { .name = "attn_logit_softcapping", .rule = RULE_OFF, .read_if = TRAIT_CAP_ATTN },
    { .name = "final_logit_softcapping", .rule = RULE_OFF, .read_if = TRAIT_CAP_FINAL },
    { .name = "num_kv_shared_layers", .rule = RULE_OFF,
      .read_if = TRAIT_SHARED_KV | TRAIT_ASSISTANT },
    { .name = "hidden_size_per_layer_input", .rule = RULE_OFF, .read_if = TRAIT_PER_LAYER_INPUT },
    { .name = "attention_k_eq_v", .rule = RULE_OFF, .read_if = TRAIT_KEYS_AS_VALUES },
    { .name = "use_double_wide_mlp", .rule = RULE_OFF, .read_if = TRAIT_SHARED_KV },
    { .name = "enable_moe_block", .rule = RULE_OFF, .read_if = TRAIT_EXPERTS },
    { .name = "use_qk_norm", .rule = RULE_OFF, .read_if = TRAIT_QK_NORM },
    { .name = "qk_norm", .rule = RULE_OFF, .read_if = TRAIT_QK_NORM },
    { .name = "qk_layernorm", .rule = RULE_OFF, .read_if = TRAIT_QK_NORM },

    { .name = "attention_multiplier", .rule = RULE_SCALE },
    { .name = "logits_scaling", .rule = RULE_ONE, .read_if = TRAIT_SCALES },
    { .name = "logit_scale", .rule = RULE_ONE, .read_if = TRAIT_LOGIT_FACTOR },
    { .name = "residual_multiplier", .rule = RULE_ONE, .read_if = TRAIT_SCALES },
    { .name = "embedding_multiplier", .rule = RULE_ONE,
      .read_if = TRAIT_SCALES | TRAIT_SIDE_BY_SIDE },
    { .name = "scale_emb", .rule = RULE_ONE },
    { .name = "is_causal", .rule = RULE_ON },
    { .name = "use_bidirectional_attention", .rule = RULE_OFF, .other = "vision" },
    { .name = "is_encoder_decoder", .rule = RULE_OFF },
    { .name = "add_cross_attention", .rule = RULE_OFF },
    { .name = "attn_output_gate", .rule = RULE_OFF, .read_if = TRAIT_DELTA },
    { .name = "clip_qkv", .rule = RULE_OFF },
    { .name = "alibi", .rule = RULE_OFF },
    { .name = "parallel_attn", .rule = RULE_OFF },
    { .name = "use_parallel_residual", .rule = RULE_OFF },
    { .name = "no_rope_layers", .rule = RULE_OFF, .read_if = TRAIT_SKIP_ROPE },
    { .name = "no_rope_layer_interval", .rule = RULE_OFF, .read_if = TRAIT_SKIP_ROPE },
    { .name = "attention_chunk_size", .rule = RULE_OFF },
    { .name = "attn_res_block_size", .rule = RULE_OFF },
    { .name = "mla_use_output_gate", .rule = RULE_OFF },
    { .name = "attn_temperature_tuning", .rule = RULE_OFF },
    { .name = "rotary_pct", .rule = RULE_ONE },
    { .name = "rope_interleave", .rule = RULE_OFF, .read_if = TRAIT_INTERLEAVED_2 },
    { .name = "n_routed_experts", .rule = RULE_OFF, .read_if = TRAIT_ROUTED },
    { .name = "moe_latent_size", .rule = RULE_OFF, .read_if = TRAIT_ONE_BLOCK },
    { .name = "mlp_only_layers", .rule = RULE_OFF, .read_if = TRAIT_ROUTED },
    { .name = "decoder_sparse_step", .rule = RULE_ONE, .read_if = TRAIT_ROUTED },
    { .name = "moe_layer_freq", .rule = RULE_ONE },
    { .name = "moe_router_logit_softcapping", .rule = RULE_OFF },
    { .name = "moe_router_use_sigmoid", .rule = RULE_SIGMOID },
    { .name = "moe_apply_router_weight_on_input", .rule = RULE_OFF },
    { .name = "swa_attention_sink_enabled", .rule = RULE_OFF },
    { .name = "q_lora_rank", .rule = RULE_OFF, .read_if = TRAIT_LATENT | TRAIT_ENTRIES },
    { .name = "kv_lora_rank", .rule = RULE_OFF, .read_if = TRAIT_LATENT },
    { .name = "num_nextn_predict_layers", .rule = RULE_OFF, .read_if = TRAIT_DRAFT },
    { .name = "altup_num_inputs", .rule = RULE_OFF },
    { .name = "laurel_rank", .rule = RULE_OFF },
    { .name = "activation_sparsity_pattern", .rule = RULE_OFF },
    { .name = "compression_config", .rule = RULE_OFF },
};
/* clang-format on */

static struct stated_value value_of(const struct json_node *n)
{
    struct stated_value v = { .kind = STATED_NOTHING };

    if (n == NULL)
        return v;
    if (n->kind == JSON_IS_NUMBER || n->kind == JSON_IS_STRING)
        snprintf(v.shown, sizeof v.shown, "%.40s", n->text);
    else if (n->kind == JSON_IS_BOOL)
        snprintf(v.shown, sizeof v.shown, "%s", n->truth ? "true" : "false");
    if (n->kind == JSON_IS_BOOL) {
        v.kind = STATED_NUMBER;
        v.number = n->truth;
    } else if (json_as_float(n, &v.number)) {
        v.kind = STATED_NUMBER;
    } else if (n->kind == JSON_IS_STRING) {
        v.kind = strlen(n->text) == n->len ? STATED_TEXT : STATED_BAD;
        v.text = n->text;
    } else if (n->kind == JSON_IS_ARRAY || n->kind == JSON_IS_OBJECT) {
        v.kind = STATED_LIST;
        v.n = n->n;
    }
    return v;
}

int config_check_fields(const struct hparams *h, const struct json_node *text, struct err *e)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        struct stated_value v = value_of(json_get(text, fields[i].name));

        if (value_check(&fields[i], &v, h, e) != 0)
            return err_at(e, NULL, ERR_NO_OFFSET, fields[i].name);
    }
    return 0;
}
