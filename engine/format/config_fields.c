/*
 * Fields of config.json that other models compute with.  transformers ignores most of them in
 * the classes that memwall reads, but a configuration that states them means something else
 * than what would be computed.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/value_rules.h"

#define G2   ARCH_BIT(ARCH_GEMMA2)
#define G3   ARCH_BIT(ARCH_GEMMA3)
#define G4   ARCH_BIT(ARCH_GEMMA4)
#define Q3   ARCH_BIT(ARCH_QWEN3)
#define NONE 0u

/* clang-format off */
static const struct value_rule_row fields[] = {
    { "attn_logit_softcapping", G2, RULE_OFF, NULL },
    { "final_logit_softcapping", G2 | G3 | G4, RULE_OFF, NULL },
    { "num_kv_shared_layers", G4, RULE_OFF, NULL },
    { "hidden_size_per_layer_input", G4, RULE_OFF, NULL },
    { "attention_k_eq_v", G4, RULE_OFF, NULL },
    { "use_double_wide_mlp", G4, RULE_OFF, NULL },
    { "enable_moe_block", G4, RULE_OFF, NULL },
    { "use_qk_norm", Q3 | G3 | G4, RULE_OFF, NULL },
    { "qk_norm", Q3 | G3 | G4, RULE_OFF, NULL },
    { "qk_layernorm", Q3 | G3 | G4, RULE_OFF, NULL },

    { "attention_multiplier", NONE, RULE_SCALE, NULL },
    { "logits_scaling", NONE, RULE_ONE, NULL },
    { "logit_scale", NONE, RULE_ONE, NULL },
    { "residual_multiplier", NONE, RULE_ONE, NULL },
    { "embedding_multiplier", NONE, RULE_ONE, NULL },
    { "scale_emb", NONE, RULE_ONE, NULL },
    { "is_causal", NONE, RULE_ON, NULL },
    { "use_bidirectional_attention", NONE, RULE_OFF, NULL }, /* or "vision", see below */
    { "is_encoder_decoder", NONE, RULE_OFF, NULL },
    { "add_cross_attention", NONE, RULE_OFF, NULL },
    { "clip_qkv", NONE, RULE_OFF, NULL },
    { "alibi", NONE, RULE_OFF, NULL },
    { "parallel_attn", NONE, RULE_OFF, NULL },
    { "use_parallel_residual", NONE, RULE_OFF, NULL },
    { "no_rope_layers", NONE, RULE_OFF, NULL },
    { "no_rope_layer_interval", NONE, RULE_OFF, NULL },
    { "attention_chunk_size", NONE, RULE_OFF, NULL },
    { "attn_temperature_tuning", NONE, RULE_OFF, NULL },
    { "rotary_pct", NONE, RULE_ONE, NULL },
    { "rope_interleave", NONE, RULE_OFF, NULL },
    { "n_routed_experts", NONE, RULE_OFF, NULL },
    { "q_lora_rank", NONE, RULE_OFF, NULL },
    { "kv_lora_rank", NONE, RULE_OFF, NULL },
    { "num_nextn_predict_layers", NONE, RULE_OFF, NULL },
    { "altup_num_inputs", NONE, RULE_OFF, NULL },
    { "laurel_rank", NONE, RULE_OFF, NULL },
    { "activation_sparsity_pattern", NONE, RULE_OFF, NULL },
    { "compression_config", NONE, RULE_OFF, NULL },
};
/* clang-format on */

static bool follows(const struct value_rule_row *r, const struct json_node *n,
                    const struct hparams *h)
{
    double x;
    bool truth;

    if (n == NULL || (r->read_by & ARCH_BIT(h->arch)) != 0)
        return true;
    if (json_as_bool(n, &truth))
        return value_follows(r->rule, truth, h);
    if (json_as_float(n, &x))
        return value_follows(r->rule, x, h);
    if (n->kind == JSON_IS_STRING)
        return n->len == 0 || strcmp(n->text, "none") == 0 ||
               (strcmp(n->text, "vision") == 0 &&
                strcmp(r->name, "use_bidirectional_attention") == 0);
    if (n->kind == JSON_IS_ARRAY || n->kind == JSON_IS_OBJECT)
        return n->n == 0;
    return true;
}

int config_check_fields(const struct hparams *h, const struct json_node *text, struct err *e)
{
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const struct json_node *n = json_get(text, fields[i].name);
        char shown[64] = "set";

        if (follows(&fields[i], n, h))
            continue;
        if (n->kind == JSON_IS_NUMBER || n->kind == JSON_IS_STRING)
            snprintf(shown, sizeof shown, "%.40s", n->text);
        else if (n->kind == JSON_IS_BOOL)
            snprintf(shown, sizeof shown, "%s", n->truth ? "true" : "false");
        value_refuse(h, shown, e);
        return err_at(e, NULL, ERR_NO_OFFSET, fields[i].name);
    }
    return 0;
}
