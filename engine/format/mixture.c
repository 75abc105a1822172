/* See mixture.h. */
#include "config.h"

#include "engine/format/mixture.h"

#define PROJECTIONS                                                                            \
    {                                                                                          \
        "gate_proj.weight", "up_proj.weight", "down_proj.weight"                               \
    }
#define NUMBERED                                                                               \
    {                                                                                          \
        "w1.weight", "w3.weight", "w2.weight"                                                  \
    }

/* Fields that DeepSeek's configurations and most later ones have. */
#define DEEPSEEK_FIELDS                                                                        \
    .n_expert = "n_routed_experts", .n_used = "num_experts_per_tok",                           \
    .n_ff = "moe_intermediate_size", .n_shared = "n_shared_experts",                           \
    .n_dense = "first_k_dense_replace", .is_normed = "norm_topk_prob",                         \
    .scale = "routed_scaling_factor", .score = "scoring_func", .n_group = "n_group",           \
    .n_group_used = "topk_group"

#define DEEPSEEK_NAMES                                                                         \
    .router = "mlp.gate.weight", .bias = "mlp.gate.e_score_correction_bias",                   \
    .experts = "mlp.experts.", .words = PROJECTIONS, .shared = "mlp.shared_experts.",          \
    .shared_words = PROJECTIONS

const struct mixture mixture_deepseek2 = {
    .config = { DEEPSEEK_FIELDS },
    .scale = 1,
    DEEPSEEK_NAMES,
};

const struct mixture mixture_deepseek3 = {
    .config = { DEEPSEEK_FIELDS },
    .n_dense = 3,
    .scale = 2.5,
    .is_normed = true,
    .score = SCORE_SIGMOID,
    .score_by_bias = true,
    DEEPSEEK_NAMES,
};

const struct mixture mixture_deepseek4 = {
    .config = { DEEPSEEK_FIELDS },
    .scale = 1.5,
    .is_normed = true,
    .score = SCORE_SQRT_SOFTPLUS,
    .is_normed_gguf = true,
    .router = "ffn.gate.weight",
    .bias = "ffn.gate.bias",
    .experts = "ffn.experts.",
    .words = NUMBERED,
    .shared = "ffn.shared_experts.",
    .shared_words = NUMBERED,
};

const struct mixture mixture_glm4 = {
    .config = { DEEPSEEK_FIELDS },
    .n_dense = 1,
    .scale = 1,
    .is_normed = true,
    .score = SCORE_SIGMOID,
    DEEPSEEK_NAMES,
};

const struct mixture mixture_bailing = {
    .config = { .n_expert = "num_experts",
                .n_used = "num_experts_per_tok",
                .n_ff = "moe_intermediate_size",
                .n_shared = "num_shared_experts",
                .n_ff_shared = "moe_shared_expert_intermediate_size",
                .n_dense = "first_k_dense_replace",
                .is_normed = "norm_topk_prob",
                .scale = "routed_scaling_factor",
                .score = "score_function",
                .n_group = "n_group",
                .n_group_used = "topk_group" },
    .scale = 1,
    .is_normed = true,
    .score = SCORE_SIGMOID,
    .router = "mlp.gate.weight",
    .bias = "mlp.gate.expert_bias",
    .experts = "mlp.experts.",
    .words = PROJECTIONS,
    .shared = "mlp.shared_experts.",
    .shared_words = PROJECTIONS,
};

const struct mixture mixture_ernie = {
    .config = { .n_expert = "moe_num_experts",
                .n_used = "moe_k",
                .n_ff = "moe_intermediate_size",
                .n_shared = "moe_num_shared_experts",
                .n_dense = "moe_layer_start_index",
                .last = "moe_layer_end_index",
                .interval = "moe_layer_interval" },
    .n_dense = 1,
    .scale = 1,
    .is_normed = true,
    .is_normed_gguf = true,
    .router = "mlp.gate.weight",
    .bias = "mlp.moe_statics.e_score_correction_bias",
    .experts = "mlp.experts.",
    .words = PROJECTIONS,
    .shared = "mlp.shared_experts.",
    .shared_words = PROJECTIONS,
};

const struct mixture mixture_granite = {
    .config = { .n_expert = "num_local_experts",
                .n_used = "num_experts_per_tok",
                .n_ff_shared = "shared_intermediate_size" },
    .scale = 1,
    .is_normed = true,
    .is_normed_gguf = true,
    .is_fused = true,
    .router = "block_sparse_moe.router.layer.weight",
    .experts = "block_sparse_moe.",
    .words = { "input_linear.weight", NULL, "output_linear.weight" },
    .shared = "shared_mlp.",
    .shared_words = { "input_linear.weight", NULL, "output_linear.weight" },
};

const struct mixture mixture_hunyuan = {
    .config = { .n_expert = "num_experts",
                .n_used = "moe_topk",
                .n_ff = "moe_intermediate_size",
                .n_shared = "num_shared_expert" },
    .scale = 1,
    .is_normed = true,
    .is_normed_gguf = true,
    .router = "mlp.gate.wg.weight",
    .experts = "mlp.experts.",
    .words = PROJECTIONS,
    .shared = "mlp.shared_mlp.",
    .shared_words = PROJECTIONS,
};

const struct mixture mixture_kimi = {
    .config = { .n_expert = "num_experts",
                .n_used = "num_experts_per_token",
                .n_ff = "moe_intermediate_size",
                .n_shared = "num_shared_experts",
                .n_dense = "first_k_dense_replace",
                .is_normed = "moe_renormalize",
                .scale = "routed_scaling_factor",
                .score = "moe_router_activation_func",
                .n_group = "num_expert_group",
                .n_group_used = "topk_group" },
    .scale = 1,
    .is_normed = true,
    .score = SCORE_SIGMOID,
    .is_normed_gguf = true,
    .router = "block_sparse_moe.gate.weight",
    .bias = "block_sparse_moe.gate.e_score_correction_bias",
    .experts = "block_sparse_moe.experts.",
    .words = NUMBERED,
    .shared = "block_sparse_moe.shared_experts.",
    .shared_words = PROJECTIONS,
};

const struct mixture mixture_laguna = {
    .config = { .n_expert = "num_experts",
                .n_used = "num_experts_per_tok",
                .n_ff = "moe_intermediate_size",
                .n_ff_shared = "shared_expert_intermediate_size",
                .scale = "moe_routed_scaling_factor" },
    .scale = 1,
    .is_normed = true,
    .score = SCORE_SIGMOID,
    .router = "mlp.gate.weight",
    .experts = "mlp.experts.",
    .words = PROJECTIONS,
    .shared = "mlp.shared_expert.",
    .shared_words = PROJECTIONS,
};

const struct mixture mixture_lfm2 = {
    .config = { .n_expert = "num_experts",
                .n_used = "num_experts_per_tok",
                .n_ff = "moe_intermediate_size",
                .n_dense = "num_dense_layers",
                .is_normed = "norm_topk_prob",
                .scale = "routed_scaling_factor" },
    .n_dense = 2,
    .scale = 1,
    .is_normed = true,
    .score = SCORE_SIGMOID,
    .is_normed_gguf = true,
    .guard = 1e-6,
    .router = "feed_forward.gate.weight",
    .bias = "feed_forward.expert_bias",
    .experts = "feed_forward.experts.",
    .words = NUMBERED,
};

const struct mixture mixture_mellum = {
    .config = { .n_expert = "num_local_experts",
                .n_used = "num_experts_per_tok",
                .n_ff = "moe_intermediate_size",
                .is_normed = "norm_topk_prob" },
    .scale = 1,
    .router = "mlp.gate.weight",
    .experts = "mlp.experts.",
    .words = PROJECTIONS,
};

const struct mixture mixture_minimax = {
    .config = { .n_expert = "num_local_experts",
                .n_used = "num_experts_per_tok",
                .score = "scoring_func" },
    .scale = 1,
    .is_normed = true,
    .score = SCORE_SIGMOID,
    .is_normed_gguf = true,
    .router = "block_sparse_moe.gate.weight",
    .bias = "block_sparse_moe.e_score_correction_bias",
    .experts = "block_sparse_moe.experts.",
    .words = NUMBERED,
};

const struct mixture mixture_nemotron = {
    .config = { .n_expert = "n_routed_experts",
                .n_used = "num_experts_per_tok",
                .n_ff = "moe_intermediate_size",
                .n_ff_shared = "moe_shared_expert_intermediate_size",
                .is_normed = "norm_topk_prob",
                .scale = "routed_scaling_factor",
                .n_group = "n_group",
                .n_group_used = "topk_group" },
    .scale = 1,
    .is_normed = true,
    .score = SCORE_SIGMOID,
    .router = "mixer.gate.weight",
    .bias = "mixer.gate.e_score_correction_bias",
    .experts = "mixer.experts.",
    .words = PROJECTIONS,
    .shared = "mixer.shared_experts.",
    .shared_words = PROJECTIONS,
};

const struct mixture mixture_olmoe = {
    .config = { .n_expert = "num_experts",
                .n_used = "num_experts_per_tok",
                .is_normed = "norm_topk_prob" },
    .scale = 1,
    .router = "mlp.gate.weight",
    .experts = "mlp.experts.",
    .words = PROJECTIONS,
};

const struct mixture mixture_qwen2 = {
    .config = { .n_expert = "num_experts",
                .n_used = "num_experts_per_tok",
                .n_ff = "moe_intermediate_size",
                .n_ff_shared = "shared_expert_intermediate_size",
                .is_normed = "norm_topk_prob" },
    .scale = 1,
    .has_shared_gate = true,
    .router = "mlp.gate.weight",
    .experts = "mlp.experts.",
    .words = PROJECTIONS,
    .shared = "mlp.shared_expert.",
    .shared_words = PROJECTIONS,
    .shared_gate = "mlp.shared_expert_gate.weight",
};

/* --- other tensors --- */

#define LATENT_NAMES(block)                                                                    \
    { T_Q_A, block "q_a_proj.weight" }, { T_Q_A_NORM, block "q_a_layernorm.weight" },          \
        { T_Q_B, block "q_b_proj.weight" }, { T_KV_A, block "kv_a_proj_with_mqa.weight" },     \
        { T_KV_A_NORM, block "kv_a_layernorm.weight" },                                        \
    {                                                                                          \
        T_KV_B, block "kv_b_proj.weight"                                                       \
    }

const struct snapshot_name names_bailing[] = {
    { T_TOKEN_EMBD, "word_embeddings.weight" },
    { T_ATTN_QKV, "attention.query_key_value.weight" },
    { T_ATTN_Q, "attention.q_proj.weight" },
    { T_ATTN_Q_NORM, "attention.query_layernorm.weight" },
    { T_ATTN_K_NORM, "attention.key_layernorm.weight" },
    { T_ATTN_OUT, "attention.dense.weight" },
    { T_ATTN_GATE, "attention.g_proj.weight" },
    LATENT_NAMES("attention."),
    { T_KDA_Q, "attention.q_proj.weight" },
    { T_KDA_K, "attention.k_proj.weight" },
    { T_KDA_V, "attention.v_proj.weight" },
    { T_KDA_Q_CONV, "attention.q_conv1d.weight" },
    { T_KDA_K_CONV, "attention.k_conv1d.weight" },
    { T_KDA_V_CONV, "attention.v_conv1d.weight" },
    { T_KDA_DECAY_A, "attention.f_proj.weight" },
    { T_KDA_BETA, "attention.b_proj.weight" },
    { T_KDA_RATE, "attention.A_log" },
    { T_KDA_BIAS, "attention.dt_bias" },
    { T_KDA_NORM, "attention.o_norm.weight" },
    { T_KDA_OUT, "attention.o_proj.weight" },
    { T_COUNT, NULL },
};

const struct snapshot_name names_deepseek4[] = {
    { T_TOKEN_EMBD, "embed.weight" },
    { T_OUTPUT, "head.weight" },
    { T_ATTN_NORM, "attn_norm.weight" },
    { T_FFN_NORM, "ffn_norm.weight" },
    { T_Q_A, "attn.wq_a.weight" },
    { T_Q_A_NORM, "attn.q_norm.weight" },
    { T_Q_B, "attn.wq_b.weight" },
    { T_ATTN_SINKS, "attn.attn_sink" },
    { T_SCORE_Q, "attn.indexer.wq_b.weight" },
    { T_SCORE_WEIGHTS, "attn.indexer.weights_proj.weight" },
    { T_SCORE_GATE, "attn.indexer.compressor.wgate.weight" },
    { T_SCORE_PLACE, "attn.indexer.compressor.ape" },
    { T_COUNT, NULL },
};

const struct snapshot_name names_falcon[] = {
    { T_OUTPUT_NORM, "final_layernorm.weight" },
    { T_FFN_NORM, "pre_ff_layernorm.weight" },
    { T_FFN_GATE, "feed_forward.gate_proj.weight" },
    { T_FFN_UP, "feed_forward.up_proj.weight" },
    { T_FFN_DOWN, "feed_forward.down_proj.weight" },
    { T_COUNT, NULL },
};

const struct snapshot_name names_hunyuan[] = {
    { T_ATTN_Q_NORM, "self_attn.query_layernorm.weight" },
    { T_ATTN_K_NORM, "self_attn.key_layernorm.weight" },
    { T_COUNT, NULL },
};

const struct snapshot_name names_laguna[] = {
    { T_CHOICE_BIAS, "mlp.experts.e_score_correction_bias" },
    { T_CHOICE_BIAS, "mlp.gate.e_score_correction_bias" },
    { T_COUNT, NULL },
};

const struct snapshot_name names_lfm2[] = {
    { T_OUTPUT_NORM, "embedding_norm.weight" },
    { T_ATTN_NORM, "operator_norm.weight" },
    { T_ATTN_Q_NORM, "self_attn.q_layernorm.weight" },
    { T_ATTN_K_NORM, "self_attn.k_layernorm.weight" },
    { T_ATTN_OUT, "self_attn.out_proj.weight" },
    { T_FFN_NORM, "ffn_norm.weight" },
    { T_FFN_GATE, "feed_forward.w1.weight" },
    { T_FFN_UP, "feed_forward.w3.weight" },
    { T_FFN_DOWN, "feed_forward.w2.weight" },
    { T_COUNT, NULL },
};

const struct snapshot_name names_muse[] = {
    { T_ATTN_GATE, "self_attn.gate_proj.weight" },
    { T_COUNT, NULL },
};

const struct snapshot_name names_nemotron[] = {
    { T_OUTPUT_NORM, "norm_f.weight" },
    { T_TOKEN_EMBD, "embedding.weight" },
    { T_TOKEN_EMBD, "embeddings.weight" },
    { T_ATTN_NORM, "norm.weight" },
    { T_ATTN_Q, "mixer.q_proj.weight" },
    { T_ATTN_K, "mixer.k_proj.weight" },
    { T_ATTN_V, "mixer.v_proj.weight" },
    { T_ATTN_OUT, "mixer.o_proj.weight" },
    { T_FFN_UP, "mixer.up_proj.weight" },
    { T_FFN_DOWN, "mixer.down_proj.weight" },
    { T_EXPERT_IN, "mixer.fc1_latent_proj.weight" },
    { T_EXPERT_OUT, "mixer.fc2_latent_proj.weight" },
    { T_MAMBA_IN, "mixer.in_proj.weight" },
    { T_MAMBA_CONV, "mixer.conv1d.weight" },
    { T_MAMBA_CONV_BIAS, "mixer.conv1d.bias" },
    { T_MAMBA_BIAS, "mixer.dt_bias" },
    { T_MAMBA_DECAY, "mixer.A_log" },
    { T_MAMBA_SKIP, "mixer.D" },
    { T_MAMBA_NORM, "mixer.norm.weight" },
    { T_MAMBA_OUT, "mixer.out_proj.weight" },
    { T_COUNT, NULL },
};
