#include "config.h"

#include "engine/format/tensor_table.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/mixture.h"

/* clang-format off */
static const struct tensor_spec specs[T_COUNT] = {
    [T_TOKEN_EMBD] = {
        "token_embd.weight", "embed_tokens.weight", FORM_LOOKUP, .dims = { DIM_EMBD, DIM_VOCAB } },
    [T_PER_LAYER_EMBD] = {
        "per_layer_token_embd.weight", "embed_tokens_per_layer.weight",
        FORM_LOOKUP, { DIM_PER_LAYER_ALL, DIM_VOCAB }, TRAIT_PER_LAYER_INPUT,
        .when = FACT_HAS_PER_LAYER },
    [T_PER_LAYER_PROJ] = {
        "per_layer_model_proj.weight", "per_layer_model_projection.weight",
        FORM_MATRIX, { DIM_EMBD, DIM_PER_LAYER_ALL }, .when = FACT_HAS_PER_LAYER },
    [T_PER_LAYER_PROJ_NORM] = {
        "per_layer_proj_norm.weight", "per_layer_projection_norm.weight",
        FORM_VECTOR, { DIM_PER_LAYER }, .when = FACT_HAS_PER_LAYER },
    [T_ROPE_FREQS] = {
        "rope_freqs.weight", NULL, FORM_VECTOR, { DIM_ROPE_PAIRS },
        .needed = FACT_NEEDS_ROPE_FREQS },
    [T_ROPE_SHORT] = {
        "rope_factors_short.weight", NULL, FORM_VECTOR, { DIM_ROPE_PAIRS },
        .needed = FACT_NEVER },
    [T_ROPE_LONG] = {
        "rope_factors_long.weight", NULL, FORM_VECTOR, { DIM_ROPE_PAIRS },
        .needed = FACT_NEVER },
    [T_NGRAM_EMBD] = {
        "per_layer_token_embd.weight", NULL, FORM_LOOKUP, { DIM_NGRAM_ROW, DIM_NGRAM_TABLE },
        .traits = TRAIT_NGRAMS },
    [T_HEAD_EMBD] = {
        "head_embd.weight", NULL, FORM_LOOKUP, { DIM_EMBD_IN, DIM_VOCAB },
        .traits = TRAIT_ASSISTANT },
    [T_HEAD_EMBD_NORM] = {
        "nextn.enorm.weight", "pre_fc_norm_embedding.weight", FORM_VECTOR, { DIM_EMBD },
        .traits = TRAIT_NEXTN },
    [T_HEAD_HIDDEN_NORM] = {
        "nextn.hnorm.weight", "pre_fc_norm_hidden.weight", FORM_VECTOR, { DIM_ROW },
        .traits = TRAIT_NEXTN },
    [T_HEAD_JOIN] = {
        "nextn.eh_proj.weight", "fc.weight", FORM_MATRIX, { DIM_EMBD_2, DIM_EMBD },
        .traits = TRAIT_NEXTN, .needed = FACT_NEVER },
    [T_HEAD_JOIN_EMBD] = {
        "nextn.e_proj.weight", "fc_embedding.weight", FORM_MATRIX, { DIM_EMBD, DIM_EMBD },
        .traits = TRAIT_NEXTN, .needed = FACT_NEVER },
    [T_HEAD_JOIN_HIDDEN] = {
        "nextn.h_proj.weight", "fc_hidden.weight", FORM_MATRIX, { DIM_EMBD, DIM_EMBD },
        .traits = TRAIT_NEXTN, .needed = FACT_NEVER },
    [T_HEAD_IN] = {
        "nextn.pre_projection.weight", "pre_projection.weight", FORM_MATRIX,
        { DIM_JOINED, DIM_EMBD }, .traits = TRAIT_ASSISTANT },
    [T_HEAD_CLUSTERS] = {
        "masked_embd_centroids.weight", "masked_embedding.centroids.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_CLUSTER }, .traits = TRAIT_ORDERED },
    [T_HEAD_OUT] = {
        "nextn.post_projection.weight", "post_projection.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_HIDDEN }, .traits = TRAIT_ASSISTANT },
    [T_OUT_MIX_NORM] = {
        "output_hc_norm.weight", "hyper_connection_mixer.hc_norm.weight",
        FORM_VECTOR, { DIM_STREAMS }, .traits = TRAIT_STREAMS },
    [T_OUT_MIX_DOWN] = {
        "output_hc_down.weight", "hyper_connection_mixer.input_mix_weight_down.weight",
        FORM_MATRIX, { DIM_STREAMS, DIM_MIX }, .traits = TRAIT_STREAMS },
    [T_OUT_MIX_UP] = {
        "output_hc_up.weight", "hyper_connection_mixer.input_mix_weight_up.weight",
        FORM_MATRIX, { DIM_MIX, DIM_STREAMS }, .traits = TRAIT_STREAMS },
    [T_OUT_HYPER] = {
        "output_hc_fn.weight", "hc_head_fn", FORM_MATRIX, { DIM_STREAMS, DIM_N_STREAM },
        .traits = TRAIT_HYPER | TRAIT_ENTRIES },
    [T_OUT_HYPER_BASE] = {
        "output_hc_base.weight", "hc_head_base", FORM_VECTOR, { DIM_N_STREAM },
        .traits = TRAIT_HYPER | TRAIT_ENTRIES },
    [T_OUT_HYPER_SCALE] = {
        "output_hc_scale.weight", "hc_head_scale", FORM_VECTOR, { DIM_ONE },
        .traits = TRAIT_HYPER | TRAIT_ENTRIES },
    [T_OUTPUT_NORM] = {
        "output_norm.weight", "norm.weight", FORM_VECTOR, { DIM_EMBD },
        .when = FACT_ONE_STREAM },
    [T_OUTPUT] = {
        "output.weight", "lm_head.weight", FORM_HEAD, { DIM_EMBD, DIM_VOCAB },
        .needed = FACT_NEEDS_HEAD },

    [T_NGRAM_KEY] = {
        "ple_key.weight", "ple.key_proj.weight", FORM_MATRIX, { DIM_NGRAM_ROWS, DIM_STREAMS },
        TRAIT_NGRAMS, .when = FACT_NGRAMS },
    [T_NGRAM_VALUE] = {
        "ple_value.weight", "ple.value_proj.weight", FORM_MATRIX, { DIM_NGRAM_ROWS, DIM_EMBD },
        TRAIT_NGRAMS, .when = FACT_NGRAMS },
    [T_NGRAM_KEY_NORM] = {
        "ple_norm_key.weight", "ple.norm_key.weight", FORM_VECTOR, { DIM_STREAMS },
        TRAIT_NGRAMS, .when = FACT_NGRAMS },
    [T_NGRAM_QUERY_NORM] = {
        "ple_norm_query.weight", "ple.norm_query.weight", FORM_VECTOR, { DIM_STREAMS },
        TRAIT_NGRAMS, .when = FACT_NGRAMS },
    [T_NGRAM_CONV_NORM] = {
        "ple_norm_conv.weight", "ple.norm_conv.weight", FORM_VECTOR, { DIM_STREAMS },
        TRAIT_NGRAMS, .when = FACT_NGRAMS },
    [T_NGRAM_CONV] = {
        "ple_conv1d.weight", "ple.conv1d.weight", FORM_VECTOR, { DIM_NGRAM_CONV, DIM_STREAMS },
        TRAIT_NGRAMS, .when = FACT_NGRAMS },
    [T_ATTN_MIX_NORM] = {
        "hc_attn_norm.weight", "attn_hyper_connection.hc_norm.weight",
        FORM_VECTOR, { DIM_STREAMS }, .traits = TRAIT_STREAMS },
    [T_ATTN_MIX_DOWN] = {
        "hc_attn_down.weight", "attn_hyper_connection.input_mix_weight_down.weight",
        FORM_MATRIX, { DIM_STREAMS, DIM_MIX }, .traits = TRAIT_STREAMS },
    [T_ATTN_MIX_UP] = {
        "hc_attn_up.weight", "attn_hyper_connection.input_mix_weight_up.weight",
        FORM_MATRIX, { DIM_MIX, DIM_STREAMS }, .traits = TRAIT_STREAMS },
    [T_ATTN_MIX_INJECT] = {
        "hc_attn_inject.weight", "attn_hyper_connection.block_inject_weight.weight",
        FORM_ROUTER, { DIM_STREAMS, DIM_N_STREAM }, .traits = TRAIT_STREAMS },
    [T_ATTN_HYPER] = {
        "hc_attn_fn.weight", "hc_attn_fn", FORM_MATRIX, { DIM_STREAMS, DIM_MIX },
        .traits = TRAIT_HYPER },
    [T_ATTN_HYPER_BASE] = {
        "hc_attn_base.weight", "hc_attn_base", FORM_VECTOR, { DIM_MIX }, .traits = TRAIT_HYPER },
    [T_ATTN_HYPER_SCALE] = {
        "hc_attn_scale.weight", "hc_attn_scale", FORM_VECTOR, { DIM_3 }, .traits = TRAIT_HYPER },
    [T_ATTN_NORM] = {
        "attn_norm.weight", "input_layernorm.weight", FORM_VECTOR, { DIM_EMBD },
        .when = FACT_PRE_NORMS },
    [T_DELTA_QKVZ] = {
        "ssm_in.weight", "linear_attn.in_proj_qkvz.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_DELTA_QKVZ }, TRAIT_DELTA,
        .when = FACT_RECURRENT | FACT_DELTA_JOINED, .needed = FACT_NEVER },
    [T_DELTA_QKV] = {
        "attn_qkv.weight", "linear_attn.in_proj_qkv.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_DELTA_QKV }, TRAIT_DELTA,
        .when = FACT_RECURRENT, .needed = FACT_DELTA_APART },
    [T_DELTA_Z] = {
        "attn_gate.weight", "linear_attn.in_proj_z.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_DELTA_V }, TRAIT_DELTA,
        .when = FACT_RECURRENT, .needed = FACT_DELTA_APART },
    [T_DELTA_BA] = {
        "ssm_ba.weight", "linear_attn.in_proj_ba.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_DELTA_HEADS_TWICE }, TRAIT_DELTA,
        .when = FACT_RECURRENT | FACT_DELTA_JOINED },
    [T_DELTA_BETA] = {
        "ssm_beta.weight", "linear_attn.in_proj_b.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_DELTA_HEADS }, TRAIT_DELTA,
        .when = FACT_RECURRENT | FACT_DELTA_APART },
    [T_DELTA_ALPHA] = {
        "ssm_alpha.weight", "linear_attn.in_proj_a.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_DELTA_HEADS }, TRAIT_DELTA,
        .when = FACT_RECURRENT | FACT_DELTA_APART },
    [T_DELTA_CONV] = {
        "ssm_conv1d.weight", "linear_attn.conv1d.weight", FORM_VECTOR,
        { DIM_DELTA_CONV, DIM_DELTA_QKV }, TRAIT_DELTA, .when = FACT_RECURRENT },
    [T_DELTA_DECAY] = {
        "ssm_a", "linear_attn.A_log", FORM_VECTOR, { DIM_DELTA_HEADS },
        TRAIT_DELTA, .when = FACT_RECURRENT },
    [T_DELTA_BIAS] = {
        "ssm_dt.bias", "linear_attn.dt_bias", FORM_VECTOR, { DIM_DELTA_HEADS },
        TRAIT_DELTA, .when = FACT_RECURRENT },
    [T_DELTA_NORM] = {
        "ssm_norm.weight", "linear_attn.norm.weight", FORM_VECTOR, { DIM_DELTA_HEAD_V },
        TRAIT_DELTA, .when = FACT_RECURRENT },
    [T_DELTA_OUT] = {
        "ssm_out.weight", "linear_attn.out_proj.weight", FORM_MATRIX,
        { DIM_DELTA_V, DIM_EMBD }, TRAIT_DELTA, .when = FACT_RECURRENT },
    [T_MAMBA_IN] = {
        "ssm_in.weight", "mamba.in_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_MAMBA_IN },
        TRAIT_MAMBA, .when = FACT_RECURRENT },
    [T_MAMBA_CONV] = {
        "ssm_conv1d.weight", "mamba.conv1d.weight", FORM_FLAT,
        { DIM_DELTA_CONV, DIM_DELTA_QKV }, TRAIT_MAMBA, .when = FACT_RECURRENT },
    [T_MAMBA_CONV_BIAS] = {
        "ssm_conv1d.bias", "mamba.conv1d.bias", FORM_VECTOR, { DIM_DELTA_QKV },
        TRAIT_MAMBA, .when = FACT_RECURRENT },
    [T_MAMBA_BIAS] = {
        "ssm_dt.bias", "mamba.dt_bias", FORM_VECTOR, { DIM_DELTA_HEADS },
        TRAIT_MAMBA, .when = FACT_RECURRENT },
    [T_MAMBA_DECAY] = {
        "ssm_a", "mamba.A_log", FORM_FLAT, { DIM_DELTA_HEADS },
        TRAIT_MAMBA, .when = FACT_RECURRENT },
    [T_MAMBA_SKIP] = {
        "ssm_d", "mamba.D", FORM_FLAT, { DIM_DELTA_HEADS }, TRAIT_MAMBA,
        .when = FACT_RECURRENT },
    [T_MAMBA_NORM] = {
        "ssm_norm.weight", "mamba.norm.weight", FORM_FLAT, { DIM_DELTA_V }, TRAIT_MAMBA,
        .when = FACT_RECURRENT, .needed = FACT_MAMBA_NORM },
    [T_MAMBA_OUT] = {
        "ssm_out.weight", "mamba.out_proj.weight", FORM_MATRIX, { DIM_DELTA_V, DIM_EMBD },
        TRAIT_MAMBA, .when = FACT_RECURRENT },
    [T_CONV_IN] = {
        "shortconv.in_proj.weight", "conv.in_proj.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_EMBD_3 }, TRAIT_SHORT_CONV, .when = FACT_RECURRENT },
    [T_CONV_FILTER] = {
        "shortconv.conv.weight", "conv.conv.weight", FORM_FLAT, { DIM_DELTA_CONV, DIM_EMBD },
        TRAIT_SHORT_CONV, .when = FACT_RECURRENT },
    [T_CONV_OUT] = {
        "shortconv.out_proj.weight", "conv.out_proj.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_EMBD }, TRAIT_SHORT_CONV, .when = FACT_RECURRENT },
    [T_KDA_Q] = {
        "attn_q.weight", "self_attn.q_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_DELTA_V },
        TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_K] = {
        "attn_k.weight", "self_attn.k_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_DELTA_V },
        TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_V] = {
        "attn_v.weight", "self_attn.v_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_DELTA_V },
        TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_Q_CONV] = {
        "ssm_conv1d_q.weight", "self_attn.q_conv1d.weight", FORM_FLAT,
        { DIM_DELTA_CONV, DIM_DELTA_V }, TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_K_CONV] = {
        "ssm_conv1d_k.weight", "self_attn.k_conv1d.weight", FORM_FLAT,
        { DIM_DELTA_CONV, DIM_DELTA_V }, TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_V_CONV] = {
        "ssm_conv1d_v.weight", "self_attn.v_conv1d.weight", FORM_FLAT,
        { DIM_DELTA_CONV, DIM_DELTA_V }, TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_DECAY_A] = {
        "ssm_f_a.weight", "self_attn.f_a_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_KDA_LOW },
        TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_DECAY_B] = {
        "ssm_f_b.weight", "self_attn.f_b_proj.weight", FORM_MATRIX,
        { DIM_KDA_LOW, DIM_DELTA_V }, TRAIT_KDA | TRAIT_KDA_LOW, .when = FACT_RECURRENT },
    [T_KDA_GATE_A] = {
        "ssm_g_a.weight", "self_attn.g_a_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_KDA_LOW },
        TRAIT_KDA, .when = FACT_RECURRENT, .alias = T_ATTN_GATE },
    [T_KDA_GATE_B] = {
        "ssm_g_b.weight", "self_attn.g_b_proj.weight", FORM_MATRIX,
        { DIM_KDA_LOW, DIM_DELTA_V }, TRAIT_KDA | TRAIT_KDA_LOW, .when = FACT_RECURRENT },
    [T_KDA_BETA] = {
        "ssm_beta.weight", "self_attn.b_proj.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_DELTA_HEADS }, TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_RATE] = {
        "ssm_a", "self_attn.A_log", FORM_FLAT, { DIM_DELTA_HEADS }, TRAIT_KDA,
        .when = FACT_RECURRENT },
    [T_KDA_BIAS] = {
        "ssm_dt.bias", "self_attn.dt_bias", FORM_VECTOR, { DIM_DELTA_V }, TRAIT_KDA,
        .when = FACT_RECURRENT },
    [T_KDA_NORM] = {
        "ssm_norm.weight", "self_attn.o_norm.weight", FORM_VECTOR, { DIM_DELTA_HEAD_V },
        TRAIT_KDA, .when = FACT_RECURRENT },
    [T_KDA_OUT] = {
        "attn_output.weight", "self_attn.o_proj.weight", FORM_MATRIX, { DIM_DELTA_V, DIM_EMBD },
        TRAIT_KDA, .when = FACT_RECURRENT },
    [T_Q_A] = {
        "attn_q_a.weight", "self_attn.q_a_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_Q_LATENT },
        TRAIT_LOW_Q, .when = FACT_ATTENDS, .needed = FACT_NEVER },
    [T_Q_A_NORM] = {
        "attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight", FORM_VECTOR,
        { DIM_Q_LATENT }, TRAIT_LOW_Q, .when = FACT_ATTENDS, .needed = FACT_NEVER },
    [T_Q_B] = {
        "attn_q_b.weight", "self_attn.q_b_proj.weight", FORM_MATRIX, { DIM_Q_LATENT, DIM_Q },
        TRAIT_LOW_Q, .when = FACT_ATTENDS, .needed = FACT_NEVER },
    [T_KV_A] = {
        "attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_KV_A }, TRAIT_LATENT, .when = FACT_ATTENDS },
    [T_KV_A_NORM] = {
        "attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight", FORM_VECTOR,
        { DIM_KV_LATENT }, TRAIT_LATENT, .when = FACT_ATTENDS },
    [T_KV_B] = {
        "attn_kv_b.weight", "self_attn.kv_b_proj.weight", FORM_MATRIX,
        { DIM_KV_LATENT, DIM_KV_B }, TRAIT_LATENT, .when = FACT_ATTENDS, .needed = FACT_NEVER },
    [T_K_B] = {
        "attn_k_b.weight", NULL, FORM_MATRIX, { DIM_NOPE, DIM_KV_LATENT, DIM_N_HEAD },
        TRAIT_LATENT, .when = FACT_ATTENDS, .needed = FACT_NEVER },
    [T_V_B] = {
        "attn_v_b.weight", NULL, FORM_MATRIX, { DIM_KV_LATENT, DIM_V_LATENT, DIM_N_HEAD },
        TRAIT_LATENT, .when = FACT_ATTENDS, .needed = FACT_NEVER },
    [T_ATTN_QKV] = {
        "attn_qkv.weight", "self_attn.qkv_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_QKV },
        .when = FACT_ATTENDS, .needed = FACT_NEVER },
    [T_ATTN_Q] = {
        "attn_q.weight", "self_attn.q_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_Q },
        .when = FACT_ATTENDS, .needed = FACT_NEEDS_Q, .fused = T_ATTN_QKV,
        .unless = TRAIT_ENTRIES },
    [T_ATTN_K] = {
        "attn_k.weight", "self_attn.k_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_K },
        .when = FACT_ATTENDS | FACT_OWNS_KV, .fused = T_ATTN_QKV, .unless = TRAIT_ENTRIES },
    [T_ATTN_V] = {
        "attn_v.weight", "self_attn.v_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_V },
        .when = FACT_ATTENDS | FACT_OWNS_KV | FACT_READS_V, .needed = FACT_NEEDS_V,
        .fused = T_ATTN_QKV, .unless = TRAIT_ENTRIES },
    [T_ATTN_QKV_BIAS] = {
        "attn_qkv.bias", "self_attn.qkv_proj.bias", FORM_VECTOR, { DIM_QKV },
        .when = FACT_ATTENDS | FACT_FUSED_QKV | FACT_READS_BIAS, .needed = FACT_NEEDS_BIAS },
    [T_ATTN_Q_BIAS] = {
        "attn_q.bias", "self_attn.q_proj.bias", FORM_VECTOR, { DIM_Q },
        .when = FACT_ATTENDS | FACT_READS_BIAS, .needed = FACT_NEEDS_BIAS, .fused = T_ATTN_QKV_BIAS },
    [T_ATTN_K_BIAS] = {
        "attn_k.bias", "self_attn.k_proj.bias", FORM_VECTOR, { DIM_K },
        .when = FACT_ATTENDS | FACT_OWNS_KV | FACT_READS_BIAS, .needed = FACT_NEEDS_BIAS,
        .fused = T_ATTN_QKV_BIAS },
    [T_ATTN_V_BIAS] = {
        "attn_v.bias", "self_attn.v_proj.bias", FORM_VECTOR, { DIM_V },
        .when = FACT_ATTENDS | FACT_OWNS_KV | FACT_READS_V | FACT_READS_BIAS,
        .needed = FACT_NEEDS_V | FACT_NEEDS_BIAS, .fused = T_ATTN_QKV_BIAS },
    [T_ATTN_Q_NORM] = {
        "attn_q_norm.weight", "self_attn.q_norm.weight", FORM_VECTOR, { DIM_Q_NORM },
        TRAIT_QK_NORM, .when = FACT_ATTENDS, .needed = FACT_NEEDS_QK_NORM },
    [T_ATTN_K_NORM] = {
        "attn_k_norm.weight", "self_attn.k_norm.weight", FORM_VECTOR, { DIM_K_NORM },
        TRAIT_QK_NORM, .when = FACT_ATTENDS | FACT_OWNS_KV, .needed = FACT_NEEDS_QK_NORM },
    [T_INDEX_QK] = {
        "indexer.qk_proj.weight", "self_attn.indexer.index_qk_proj.weight",
        FORM_MATRIX, { DIM_EMBD, DIM_INDEX_QK }, TRAIT_INDEX,
        .when = FACT_ATTENDS, .needed = FACT_NEVER },
    [T_INDEX_Q] = {
        "indexer.q_proj.weight", NULL, FORM_MATRIX, { DIM_EMBD, DIM_INDEX_Q }, TRAIT_INDEX,
        .when = FACT_ATTENDS, .fused = T_INDEX_QK },
    [T_INDEX_K] = {
        "indexer.k_proj.weight", NULL, FORM_MATRIX, { DIM_EMBD, DIM_INDEX_K }, TRAIT_INDEX,
        .when = FACT_ATTENDS, .fused = T_INDEX_QK },
    [T_INDEX_Q_NORM] = {
        "indexer.q_norm.weight", "self_attn.indexer.q_layernorm.weight",
        FORM_VECTOR, { DIM_INDEX_K }, TRAIT_INDEX, .when = FACT_ATTENDS },
    [T_INDEX_K_NORM] = {
        "indexer.k_norm.weight", "self_attn.indexer.k_layernorm.weight",
        FORM_VECTOR, { DIM_INDEX_K }, TRAIT_INDEX, .when = FACT_ATTENDS },
    [T_SCORE_Q] = {
        "indexer.attn_q_b.weight", "self_attn.indexer.wq_b.weight", FORM_MATRIX,
        { DIM_Q_LATENT, DIM_INDEX_Q }, TRAIT_SCORED, .when = FACT_HAS_INDEX },
    [T_SCORE_WEIGHTS] = {
        "indexer.proj.weight", "self_attn.indexer.weights_proj.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_INDEX_HEADS }, TRAIT_SCORED, .when = FACT_HAS_INDEX },
    [T_SCORE_K] = {
        "indexer.attn_k.weight", "self_attn.indexer.wk.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_INDEX_K }, TRAIT_SCORED, .when = FACT_HAS_INDEX,
        .unless = TRAIT_ENTRIES },
    [T_SCORE_K_NORM] = {
        "indexer.k_norm.weight", "self_attn.indexer.k_norm.weight", FORM_VECTOR,
        { DIM_INDEX_K }, TRAIT_SCORED, .when = FACT_HAS_INDEX, .unless = TRAIT_ENTRIES },
    [T_SCORE_K_BIAS] = {
        "indexer.k_norm.bias", "self_attn.indexer.k_norm.bias", FORM_VECTOR, { DIM_INDEX_K },
        TRAIT_SCORED, .when = FACT_HAS_INDEX, .unless = TRAIT_ENTRIES },
    [T_SCORE_POOL] = {
        "indexer_compressor_kv.weight", "attn.indexer.compressor.wkv.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_INDEX_POOL }, TRAIT_SCORED | TRAIT_ENTRIES, .when = FACT_HAS_INDEX },
    [T_SCORE_GATE] = {
        "indexer_compressor_gate.weight", "self_attn.indexer.index_kpool_compress_gate",
        FORM_MATRIX, { DIM_EMBD, DIM_INDEX_POOL }, TRAIT_SCORED, .when = FACT_HAS_INDEX },
    [T_SCORE_PLACE] = {
        "indexer_compressor_ape.weight", "self_attn.indexer.index_kpool_compress_ape",
        FORM_ROUTER, { DIM_INDEX_POOL, DIM_INDEX_BLOCK }, TRAIT_SCORED,
        .when = FACT_HAS_INDEX },
    [T_SCORE_NORM] = {
        "indexer_compressor_norm.weight", "attn.indexer.compressor.norm.weight", FORM_VECTOR,
        { DIM_INDEX_K }, TRAIT_SCORED | TRAIT_ENTRIES, .when = FACT_HAS_INDEX },
    [T_KV_ONE] = {
        "attn_kv.weight", "attn.wkv.weight", FORM_MATRIX, { DIM_EMBD, DIM_K }, TRAIT_ENTRIES,
        .when = FACT_ATTENDS },
    [T_KV_ONE_NORM] = {
        "attn_kv_a_norm.weight", "attn.kv_norm.weight", FORM_VECTOR, { DIM_K }, TRAIT_ENTRIES,
        .when = FACT_ATTENDS },
    [T_ENTRY_POOL] = {
        "attn_compressor_kv.weight", "attn.compressor.wkv.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_ENTRY }, TRAIT_ENTRIES, .when = FACT_HAS_ENTRIES },
    [T_ENTRY_GATE] = {
        "attn_compressor_gate.weight", "attn.compressor.wgate.weight", FORM_MATRIX,
        { DIM_EMBD, DIM_ENTRY }, TRAIT_ENTRIES, .when = FACT_HAS_ENTRIES },
    [T_ENTRY_PLACE] = {
        "attn_compressor_ape.weight", "attn.compressor.ape", FORM_ROUTER,
        { DIM_ENTRY, DIM_RATIO }, TRAIT_ENTRIES, .when = FACT_HAS_ENTRIES },
    [T_ENTRY_NORM] = {
        "attn_compressor_norm.weight", "attn.compressor.norm.weight", FORM_VECTOR, { DIM_K },
        TRAIT_ENTRIES, .when = FACT_HAS_ENTRIES },
    [T_OUT_A] = {
        "attn_output_a.weight", "attn.wo_a.weight", FORM_MATRIX, { DIM_OUT_GROUP, DIM_OUT_LOW },
        TRAIT_ENTRIES, .when = FACT_ATTENDS },
    [T_OUT_B] = {
        "attn_output_b.weight", "attn.wo_b.weight", FORM_MATRIX, { DIM_OUT_LOW, DIM_EMBD },
        TRAIT_ENTRIES, .when = FACT_ATTENDS },
    [T_ATTN_GATE] = {
        "attn_gate.weight", "self_attn.g_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_GATE },
        TRAIT_OUT_GATE, .when = FACT_ATTENDS },
    [T_ATTN_OUT] = {
        "attn_output.weight", "self_attn.o_proj.weight", FORM_MATRIX, { DIM_ATTN, DIM_EMBD },
        .when = FACT_ATTENDS, .unless = TRAIT_ENTRIES },
    [T_ATTN_OUT_BIAS] = {
        "attn_output.bias", "self_attn.o_proj.bias", FORM_VECTOR, { DIM_EMBD },
        .when = FACT_ATTENDS | FACT_READS_BIAS_OUT, .needed = FACT_NEEDS_BIAS_OUT },
    [T_ATTN_SINKS] = {
        "attn_sinks.weight", "self_attn.sinks", FORM_VECTOR, { DIM_N_HEAD }, TRAIT_SINKS,
        .when = FACT_ATTENDS },
    [T_POST_ATTN_NORM] = {
        "post_attention_norm.weight", "post_attention_layernorm.weight",
        FORM_VECTOR, { DIM_EMBD }, .traits = TRAIT_POST_NORMS },

    [T_FFN_MIX_NORM] = {
        "hc_ffn_norm.weight", "mlp_hyper_connection.hc_norm.weight",
        FORM_VECTOR, { DIM_STREAMS }, .traits = TRAIT_STREAMS },
    [T_FFN_MIX_DOWN] = {
        "hc_ffn_down.weight", "mlp_hyper_connection.input_mix_weight_down.weight",
        FORM_MATRIX, { DIM_STREAMS, DIM_MIX }, .traits = TRAIT_STREAMS },
    [T_FFN_MIX_UP] = {
        "hc_ffn_up.weight", "mlp_hyper_connection.input_mix_weight_up.weight",
        FORM_MATRIX, { DIM_MIX, DIM_STREAMS }, .traits = TRAIT_STREAMS },
    [T_FFN_MIX_INJECT] = {
        "hc_ffn_inject.weight", "mlp_hyper_connection.block_inject_weight.weight",
        FORM_ROUTER, { DIM_STREAMS, DIM_N_STREAM }, .traits = TRAIT_STREAMS },
    [T_FFN_HYPER] = {
        "hc_ffn_fn.weight", "hc_ffn_fn", FORM_MATRIX, { DIM_STREAMS, DIM_MIX },
        .traits = TRAIT_HYPER },
    [T_FFN_HYPER_BASE] = {
        "hc_ffn_base.weight", "hc_ffn_base", FORM_VECTOR, { DIM_MIX }, .traits = TRAIT_HYPER },
    [T_FFN_HYPER_SCALE] = {
        "hc_ffn_scale.weight", "hc_ffn_scale", FORM_VECTOR, { DIM_3 }, .traits = TRAIT_HYPER },
    [T_FFN_NORM] = {
        "ffn_norm.weight", "pre_feedforward_layernorm.weight", FORM_VECTOR, { DIM_EMBD },
        .when = FACT_PRE_NORMS, .late = "post_attention_norm.weight",
        .plain = "post_attention_layernorm.weight", .unless = TRAIT_ONE_BLOCK | TRAIT_PARALLEL },
    [T_FFN_GATE_UP] = {
        "ffn_up.weight", "mlp.gate_up_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_FF_TWICE },
        TRAIT_FUSED_GATE_UP, .when = FACT_HAS_DENSE },
    [T_FFN_GATE] = {
        "ffn_gate.weight", "mlp.gate_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_FF },
        .when = FACT_HAS_DENSE, .fused = T_FFN_GATE_UP, .unless = TRAIT_RELU2 },
    [T_FFN_UP] = {
        "ffn_up.weight", "mlp.up_proj.weight", FORM_MATRIX, { DIM_EMBD, DIM_FF },
        .when = FACT_HAS_DENSE, .fused = T_FFN_GATE_UP },
    [T_FFN_DOWN] = {
        "ffn_down.weight", "mlp.down_proj.weight", FORM_MATRIX, { DIM_FF, DIM_EMBD },
        .when = FACT_HAS_DENSE },
    [T_SHARED_GATE_UP] = {
        "ffn_gate_up_shexp.weight", NULL, FORM_MATRIX, { DIM_EMBD, DIM_FF_TWICE },
        .when = FACT_SHARED_EXPERT, .needed = FACT_NEVER },
    [T_SHARED_GATE] = {
        "ffn_gate_shexp.weight", "mlp.shared_expert.gate_proj.weight",
        FORM_MATRIX, { DIM_EMBD, DIM_FF }, .when = FACT_SHARED_EXPERT,
        .fused = T_SHARED_GATE_UP, .unless = TRAIT_RELU2 },
    [T_SHARED_UP] = {
        "ffn_up_shexp.weight", "mlp.shared_expert.up_proj.weight",
        FORM_MATRIX, { DIM_EMBD, DIM_FF }, .when = FACT_SHARED_EXPERT,
        .fused = T_SHARED_GATE_UP },
    [T_SHARED_DOWN] = {
        "ffn_down_shexp.weight", "mlp.shared_expert.down_proj.weight",
        FORM_MATRIX, { DIM_FF, DIM_EMBD }, .when = FACT_SHARED_EXPERT },
    [T_SHARED_ROUTER] = {
        "ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight",
        FORM_ROUTER, { DIM_EMBD }, .when = FACT_SHARED_EXPERT | FACT_SHARED_GATE },
    [T_FFN_GATE_BIAS] = {
        "ffn_gate.bias", "mlp.gate_proj.bias", FORM_VECTOR, { DIM_FF },
        TRAIT_FFN_BIAS, .when = FACT_HAS_DENSE | FACT_READS_BIAS_FFN, .needed = FACT_NEEDS_BIAS_FFN },
    [T_FFN_UP_BIAS] = {
        "ffn_up.bias", "mlp.up_proj.bias", FORM_VECTOR, { DIM_FF },
        TRAIT_FFN_BIAS, .when = FACT_HAS_DENSE | FACT_READS_BIAS_FFN, .needed = FACT_NEEDS_BIAS_FFN },
    [T_FFN_DOWN_BIAS] = {
        "ffn_down.bias", "mlp.down_proj.bias", FORM_VECTOR, { DIM_EMBD },
        TRAIT_FFN_BIAS, .when = FACT_HAS_DENSE | FACT_READS_BIAS_FFN, .needed = FACT_NEEDS_BIAS_FFN },
    [T_POST_FFN_NORM] = {
        "post_ffw_norm.weight", "post_feedforward_layernorm.weight",
        FORM_VECTOR, { DIM_EMBD }, .traits = TRAIT_POST_NORMS },

    [T_ROUTER] = {
        "ffn_gate_inp.weight", "router.proj.weight", FORM_ROUTER, { DIM_EMBD, DIM_EXPERT },
        .when = FACT_HAS_EXPERTS },
    [T_ROUTER_BIAS] = {
        "ffn_gate_inp.bias", NULL, FORM_VECTOR, { DIM_EXPERT }, .when = FACT_EXPERT_BIAS },
    [T_CHOICE_BIAS] = {
        "exp_probs_b.bias", NULL, FORM_FLAT, { DIM_EXPERT }, TRAIT_ROUTED,
        .when = FACT_HAS_EXPERTS | FACT_BY_SCORE, .needed = FACT_NEVER },
    [T_EXPERT_IDS] = {
        "ffn_gate_tid2eid.weight", "ffn.gate.tid2eid", FORM_IDS,
        { DIM_EXPERT_USED, DIM_VOCAB }, TRAIT_ENTRIES, .when = FACT_HASHED },
    [T_ROUTER_SCALE] = {
        "ffn_gate_inp.scale", "router.scale", FORM_VECTOR, { DIM_EMBD },
        .when = FACT_EXPERTS_BESIDE },
    [T_EXPERT_SCALE] = {
        "ffn_down_exps.scale", "router.per_expert_scale", FORM_VECTOR, { DIM_EXPERT },
        .when = FACT_EXPERTS_BESIDE },
    [T_EXPERT_IN] = {
        "ffn_latent_down.weight", NULL, FORM_MATRIX, { DIM_EMBD, DIM_EXPERT_IN }, TRAIT_ROUTED,
        .when = FACT_HAS_EXPERTS | FACT_LATENT },
    [T_EXPERT_OUT] = {
        "ffn_latent_up.weight", NULL, FORM_MATRIX, { DIM_EXPERT_IN, DIM_EMBD }, TRAIT_ROUTED,
        .when = FACT_HAS_EXPERTS | FACT_LATENT },
    [T_EXPERTS_GATE_UP] = {
        "ffn_gate_up_exps.weight", "experts.gate_up_proj",
        FORM_EXPERTS, { DIM_EXPERT_IN, DIM_FF_EXPERT_TWICE, DIM_EXPERT },
        .when = FACT_HAS_EXPERTS, .needed = FACT_NEVER },
    [T_EXPERTS_GATE] = {
        "ffn_gate_exps.weight", NULL, FORM_EXPERTS, { DIM_EXPERT_IN, DIM_FF_EXPERT, DIM_EXPERT },
        .when = FACT_HAS_EXPERTS, .fused = T_EXPERTS_GATE_UP, .unless = TRAIT_RELU2 },
    [T_EXPERTS_UP] = {
        "ffn_up_exps.weight", NULL, FORM_EXPERTS,
        { DIM_EXPERT_IN, DIM_FF_EXPERT, DIM_EXPERT },
        .when = FACT_HAS_EXPERTS, .fused = T_EXPERTS_GATE_UP },
    [T_EXPERTS_DOWN] = {
        "ffn_down_exps.weight", "experts.down_proj",
        FORM_EXPERTS, { DIM_FF_EXPERT, DIM_EXPERT_IN, DIM_EXPERT }, .when = FACT_HAS_EXPERTS },
    [T_EXPERTS_GATE_UP_BIAS] = {
        "ffn_gate_up_exps.bias", NULL, FORM_ROUTER, { DIM_FF_EXPERT_TWICE, DIM_EXPERT },
        .when = FACT_EXPERT_BIAS, .needed = FACT_NEVER },
    [T_EXPERTS_GATE_BIAS] = {
        "ffn_gate_exps.bias", NULL, FORM_ROUTER, { DIM_FF_EXPERT, DIM_EXPERT },
        .when = FACT_EXPERT_BIAS, .needed = FACT_NEVER },
    [T_EXPERTS_UP_BIAS] = {
        "ffn_up_exps.bias", NULL, FORM_ROUTER, { DIM_FF_EXPERT, DIM_EXPERT },
        .when = FACT_EXPERT_BIAS, .needed = FACT_NEVER },
    [T_EXPERTS_DOWN_BIAS] = {
        "ffn_down_exps.bias", NULL, FORM_ROUTER, { DIM_EMBD, DIM_EXPERT },
        .when = FACT_EXPERT_BIAS },
    [T_EXPERTS_PRE_NORM] = {
        "pre_ffw_norm_2.weight", "pre_feedforward_layernorm_2.weight",
        FORM_VECTOR, { DIM_EMBD }, .when = FACT_EXPERTS_BESIDE },
    [T_DENSE_POST_NORM] = {
        "post_ffw_norm_1.weight", "post_feedforward_layernorm_1.weight",
        FORM_VECTOR, { DIM_EMBD }, .when = FACT_EXPERTS_BESIDE },
    [T_EXPERTS_POST_NORM] = {
        "post_ffw_norm_2.weight", "post_feedforward_layernorm_2.weight",
        FORM_VECTOR, { DIM_EMBD }, .when = FACT_EXPERTS_BESIDE },

    [T_PER_LAYER_GATE] = {
        "inp_gate.weight", "per_layer_input_gate.weight",
        FORM_MATRIX, { DIM_EMBD, DIM_PER_LAYER }, .when = FACT_HAS_PER_LAYER },
    [T_PER_LAYER_OUT] = {
        "proj.weight", "per_layer_projection.weight",
        FORM_MATRIX, { DIM_PER_LAYER, DIM_EMBD }, .when = FACT_HAS_PER_LAYER },
    [T_PER_LAYER_NORM] = {
        "post_norm.weight", "post_per_layer_input_norm.weight",
        FORM_VECTOR, { DIM_EMBD }, .when = FACT_HAS_PER_LAYER },
    [T_OUT_SCALE] = {
        "layer_output_scale.weight", "layer_scalar", FORM_VECTOR, { DIM_ONE },
        TRAIT_OUT_SCALE, .needed = FACT_NEVER },
};
/* clang-format on */

const struct tensor_spec *tensor_spec(enum tensor_id id)
{
    return &specs[id];
}

/* --- names --- */

const char *layer_suffix(const char *name, uint32_t n_layer, uint32_t *layer)
{
    const char *p = name + 4;
    uint32_t n = 0;

    if (strncmp(name, "blk.", 4) != 0 || *p < '0' || *p > '9' || (p[0] == '0' && p[1] != '.'))
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (uint32_t)(*p - '0');
        if (n >= MAX_LAYER)
            return NULL;
    }
    if (*p != '.' || (n_layer != 0 && n >= n_layer))
        return NULL;
    if (layer != NULL)
        *layer = n;
    return p + 1;
}

static const char *gguf_name(const struct arch *a, enum tensor_id id)
{
    const struct tensor_spec *s = &specs[id];

    if (id == T_OUTPUT_NORM && arch_has(a, TRAIT_SHORT_CONV))
        return "token_embd_norm.weight"; /* LFM2's name of the last norm */

    return s->late != NULL && arch_has(a, TRAIT_LATE_NAME) ? s->late : s->gguf;
}

enum tensor_id tensor_id_of(const struct arch *a, const char *name, uint32_t n_layer,
                            uint32_t *layer)
{
    const char *suffix;
    enum tensor_id other = T_COUNT;

    *layer = 0;
    suffix = layer_suffix(name, n_layer, layer);
    for (int i = suffix != NULL ? T_LAYER : 0; i < (suffix != NULL ? T_COUNT : T_LAYER); i++) {
        if (strcmp(gguf_name(a, (enum tensor_id)i), suffix != NULL ? suffix : name) != 0)
            continue;
        if (arch_has(a, specs[i].traits) && (a->traits & specs[i].unless) == 0)
            return (enum tensor_id)i;
        other = (enum tensor_id)i;
    }
    return other;
}

void tensor_name(const struct arch *a, enum tensor_id id, uint32_t layer, char *buf, size_t n)
{
    if (id < T_LAYER)
        snprintf(buf, n, "%s", gguf_name(a, id));
    else
        snprintf(buf, n, "blk.%u.%s", layer, gguf_name(a, id));
}

/* Names in layers of files of other converters, and of llama.cpp's. */
static const struct {
    const char *other, *usual;
} other_names[] = {
    { "attn_out.bias", "attn_output.bias" },
    { "attn_out.weight", "attn_output.weight" },
    { "attn_post_norm.weight", "post_attention_norm.weight" },
    { "attn_sinks", "attn_sinks.weight" },
    { "ffn_gate_inp.per_expert_scale", "ffn_down_exps.scale" },
    { "ffn_latent_in.weight", "ffn_latent_down.weight" },
    { "ffn_latent_out.weight", "ffn_latent_up.weight" },
    { "ffn_norm", "ffn_norm.weight" },
    { "ffn_post_norm.weight", "post_ffw_norm.weight" },
    { "ffn_post_norm_1.weight", "post_ffw_norm_1.weight" },
    { "ffn_post_norm_2.weight", "post_ffw_norm_2.weight" },
    { "ffn_pre_norm.weight", "ffn_norm.weight" },
    { "ffn_pre_norm_2.weight", "pre_ffw_norm_2.weight" },
    { "indexer.kpool_ape.weight", "indexer_compressor_ape.weight" },
    { "indexer.kpool_gate.weight", "indexer_compressor_gate.weight" },
    { "layer_scalar", "layer_output_scale.weight" },
    { "ssm_dt", "ssm_dt.bias" },
};

const char *tensor_usual_name(const struct arch *a, const char *name, char *buf, size_t n)
{
    uint32_t layer;
    const char *suffix = a != NULL ? layer_suffix(name, 0, &layer) : NULL, *usual = NULL;

    for (size_t i = 0; suffix != NULL && i < sizeof other_names / sizeof other_names[0]; i++)
        if (strcmp(other_names[i].other, suffix) == 0)
            usual = other_names[i].usual;
    if (suffix != NULL && arch_has(a, TRAIT_LATE_NAME) &&
        strcmp(suffix, specs[T_FFN_NORM].gguf) == 0)
        usual = specs[T_FFN_NORM].late;
    if (suffix == NULL && a != NULL && strcmp(name, specs[T_OUTPUT_NORM].gguf) == 0)
        return gguf_name(a, T_OUTPUT_NORM);
    if (usual == NULL)
        return name;
    snprintf(buf, n, "blk.%u.%s", layer, usual);
    return buf;
}

/* --- sizes --- */

/* The first word of a size is the one that usually states it. */
static const enum hparam_word dim_words[DIM_COUNT][MAX_DIM_WORD] = {
    [DIM_ONE] = { WORD_N_LAYER },
    [DIM_EMBD] = { WORD_N_EMBD },
    [DIM_VOCAB] = { WORD_N_VOCAB },
    [DIM_Q] = { WORD_N_HEAD, WORD_HEAD_DIM_K, WORD_HEAD_LATENT_K },
    [DIM_K] = { WORD_N_HEAD_KV, WORD_HEAD_DIM_K },
    [DIM_V] = { WORD_N_HEAD_KV, WORD_HEAD_DIM_V },
    [DIM_QKV] = { WORD_N_HEAD, WORD_N_HEAD_KV, WORD_HEAD_DIM_K, WORD_HEAD_DIM_V },
    [DIM_ATTN] = { WORD_N_HEAD, WORD_HEAD_DIM_V },
    [DIM_N_HEAD] = { WORD_N_HEAD },
    [DIM_Q_NORM] = { WORD_HEAD_DIM_K },
    [DIM_K_NORM] = { WORD_HEAD_DIM_K },
    [DIM_FF] = { WORD_N_FF },
    [DIM_FF_TWICE] = { WORD_N_FF },
    [DIM_EXPERT] = { WORD_N_EXPERT },
    [DIM_FF_EXPERT] = { WORD_N_FF_EXPERT },
    [DIM_FF_EXPERT_TWICE] = { WORD_N_FF_EXPERT },
    [DIM_EXPERT_IN] = { WORD_N_EMBD, WORD_N_EXPERT_IN },
    [DIM_PER_LAYER] = { WORD_N_EMBD_PER_LAYER },
    [DIM_PER_LAYER_ALL] = { WORD_N_EMBD_PER_LAYER },
    [DIM_ROPE_PAIRS] = { WORD_N_ROT },
    [DIM_DELTA_QKV] = { WORD_DELTA_N_HEAD_K, WORD_DELTA_HEAD_DIM_K, WORD_DELTA_N_HEAD_V,
                        WORD_DELTA_HEAD_DIM_V },
    [DIM_DELTA_V] = { WORD_DELTA_N_HEAD_V, WORD_DELTA_HEAD_DIM_V },
    [DIM_DELTA_QKVZ] = { WORD_DELTA_N_HEAD_K, WORD_DELTA_HEAD_DIM_K, WORD_DELTA_N_HEAD_V,
                         WORD_DELTA_HEAD_DIM_V },
    [DIM_DELTA_HEADS] = { WORD_DELTA_N_HEAD_V },
    [DIM_DELTA_HEADS_TWICE] = { WORD_DELTA_N_HEAD_V },
    [DIM_DELTA_HEAD_V] = { WORD_DELTA_HEAD_DIM_V },
    [DIM_DELTA_CONV] = { WORD_DELTA_CONV },
    [DIM_STREAMS] = { WORD_N_STREAM, WORD_N_EMBD },
    [DIM_N_STREAM] = { WORD_N_STREAM },
    [DIM_MIX] = { WORD_N_MIX },
    [DIM_INDEX_Q] = { WORD_INDEX_N_HEAD, WORD_INDEX_HEAD_DIM },
    [DIM_INDEX_K] = { WORD_INDEX_HEAD_DIM },
    [DIM_INDEX_QK] = { WORD_INDEX_N_HEAD, WORD_INDEX_HEAD_DIM },
    [DIM_NGRAM_ROW] = { WORD_NGRAM_WIDTH },
    [DIM_NGRAM_TABLE] = { WORD_NGRAM_ROWS },
    [DIM_NGRAM_ROWS] = { WORD_NGRAM_WIDTH, WORD_NGRAM_TOKENS, WORD_NGRAM_HASHES },
    [DIM_NGRAM_CONV] = { WORD_NGRAM_CONV },
    [DIM_MAMBA_IN] = { WORD_DELTA_N_HEAD_K, WORD_DELTA_HEAD_DIM_K, WORD_DELTA_N_HEAD_V,
                       WORD_DELTA_HEAD_DIM_V },
    [DIM_EMBD_3] = { WORD_N_EMBD },
    [DIM_KDA_LOW] = { WORD_DELTA_HEAD_DIM_V, WORD_DELTA_N_HEAD_V },
    [DIM_Q_LATENT] = { WORD_Q_LATENT },
    [DIM_KV_A] = { WORD_KV_LATENT, WORD_N_ROT },
    [DIM_KV_LATENT] = { WORD_KV_LATENT },
    [DIM_KV_B] = { WORD_N_HEAD, WORD_HEAD_LATENT_K, WORD_HEAD_LATENT_V },
    [DIM_NOPE] = { WORD_HEAD_LATENT_K, WORD_N_ROT },
    [DIM_V_LATENT] = { WORD_HEAD_LATENT_V },
    [DIM_GATE] = { WORD_N_HEAD, WORD_HEAD_DIM_V },
    [DIM_3] = { WORD_N_LAYER },
    [DIM_INDEX_HEADS] = { WORD_INDEX_N_HEAD },
    [DIM_INDEX_POOL] = { WORD_INDEX_HEAD_DIM },
    [DIM_INDEX_BLOCK] = { WORD_RATIO },
    [DIM_ENTRY] = { WORD_HEAD_DIM_K, WORD_RATIO },
    [DIM_RATIO] = { WORD_RATIO },
    [DIM_OUT_GROUP] = { WORD_N_HEAD, WORD_HEAD_DIM_V, WORD_OUT_GROUP },
    [DIM_OUT_LOW] = { WORD_OUT_GROUP, WORD_OUT_RANK },
    [DIM_EXPERT_USED] = { WORD_N_EXPERT_USED },
    [DIM_EMBD_IN] = { WORD_N_HIDDEN },
    [DIM_HIDDEN] = { WORD_N_HIDDEN },
    [DIM_JOINED] = { WORD_N_HIDDEN },
    [DIM_ROW] = { WORD_N_EMBD, WORD_N_STREAM },
    [DIM_EMBD_2] = { WORD_N_EMBD },
    [DIM_CLUSTER] = { WORD_N_CLUSTER },
};

const enum hparam_word *tensor_dim_words(enum tensor_dim d)
{
    return dim_words[d];
}

uint64_t tensor_dim(const struct hparams *h, uint32_t layer, enum tensor_dim d)
{
    const struct layer_hparams *l = &h->layers[layer];
    uint64_t q = (uint64_t)l->n_head * l->head_dim_k;
    uint64_t k = (uint64_t)l->n_head_kv * l->head_dim_k;
    uint64_t v = (uint64_t)l->n_head_kv * l->head_dim_v;
    uint64_t delta_k = (uint64_t)h->delta.n_head_k * h->delta.head_dim_k;
    uint64_t delta_v = (uint64_t)h->delta.n_head_v * h->delta.head_dim_v;
    const struct latent_hparams *m = &h->latent;

    if (m->n_latent > 0)
        q = (uint64_t)l->n_head * (m->n_nope + m->n_rot);
    switch (d) {
    case DIM_NONE:
    case DIM_ONE: return 1;
    case DIM_EMBD: return h->n_embd;
    case DIM_VOCAB: return h->n_vocab;
    case DIM_Q: return arch_has(h->arch, TRAIT_DELTA) ? 2 * q : q;
    case DIM_K: return k;
    case DIM_V: return v;
    case DIM_QKV: return q + k + v;
    case DIM_ATTN: return l->n_head * (uint64_t)(m->n_latent > 0 ? m->n_value : l->head_dim_v);
    case DIM_N_HEAD: return l->n_head;
    case DIM_Q_NORM: return arch_has(h->arch, TRAIT_WIDE_QK_NORM) ? q : l->head_dim_k;
    case DIM_K_NORM: return arch_has(h->arch, TRAIT_WIDE_QK_NORM) ? k : l->head_dim_k;
    case DIM_FF: return l->n_ff;
    case DIM_FF_TWICE: return 2 * (uint64_t)l->n_ff;
    case DIM_EXPERT: return h->n_expert;
    case DIM_FF_EXPERT: return h->n_ff_expert;
    case DIM_FF_EXPERT_TWICE: return 2 * (uint64_t)h->n_ff_expert;
    case DIM_EXPERT_IN: return h->n_expert_in > 0 ? h->n_expert_in : h->n_embd;
    case DIM_PER_LAYER: return h->n_embd_per_layer;
    case DIM_PER_LAYER_ALL: return (uint64_t)h->n_layer * h->n_embd_per_layer;
    /* Rounded up, so that hparams_finish reports an odd n_rot and not the tensor. */
    case DIM_ROPE_PAIRS: return (h->rope.n_rot + 1) / 2;
    case DIM_DELTA_QKV: return 2 * delta_k + delta_v;
    case DIM_MAMBA_IN: return 2 * (delta_k + delta_v) + h->delta.n_head_v;
    case DIM_EMBD_3: return 3 * (uint64_t)h->n_embd;
    case DIM_KDA_LOW: return arch_has(h->arch, TRAIT_KDA_LOW) ? h->delta.head_dim_v : delta_v;
    case DIM_Q_LATENT: return m->n_query;
    case DIM_KV_A: return (uint64_t)m->n_latent + m->n_rot;
    case DIM_KV_LATENT: return m->n_latent;
    case DIM_KV_B: return l->n_head * ((uint64_t)m->n_nope + m->n_value);
    case DIM_NOPE: return m->n_nope;
    case DIM_V_LATENT: return m->n_value;
    case DIM_GATE:
        return h->arch->gate == GATE_VALUES || l->gates_values
                   ? (uint64_t)l->n_head * l->head_dim_v
                   : l->n_head;
    case DIM_3: return 3;
    case DIM_INDEX_HEADS: return h->index.n_head;
    case DIM_INDEX_POOL:
        return (hparams_overlaps(h, h->index.block) ? 2 : 1) * (uint64_t)h->index.head_dim;
    case DIM_INDEX_BLOCK: return h->index.block;
    case DIM_ENTRY: return (hparams_overlaps(h, l->ratio) ? 2 : 1) * (uint64_t)l->head_dim_k;
    case DIM_RATIO: return l->ratio;
    case DIM_OUT_GROUP:
        return h->out.n_group > 0 ? (uint64_t)l->n_head * l->head_dim_v / h->out.n_group : 0;
    case DIM_OUT_LOW: return (uint64_t)h->out.n_group * h->out.rank;
    case DIM_EXPERT_USED: return h->n_expert_used;
    case DIM_EMBD_IN: return h->head.n_embd_in;
    case DIM_HIDDEN: return h->head.n_hidden;
    case DIM_JOINED: return 2 * (uint64_t)h->head.n_embd_in;
    case DIM_ROW: return h->head.n_hidden;
    case DIM_EMBD_2: return 2 * (uint64_t)h->n_embd;
    case DIM_CLUSTER: return h->head.n_cluster;
    case DIM_DELTA_V: return delta_v;
    case DIM_DELTA_QKVZ: return 2 * (delta_k + delta_v);
    case DIM_DELTA_HEADS: return h->delta.n_head_v;
    case DIM_DELTA_HEADS_TWICE: return 2 * (uint64_t)h->delta.n_head_v;
    case DIM_DELTA_HEAD_V: return h->delta.head_dim_v;
    case DIM_DELTA_CONV: return h->delta.conv_width;
    case DIM_STREAMS: return (uint64_t)h->n_stream * h->n_embd;
    case DIM_N_STREAM: return h->n_stream;
    case DIM_MIX: return h->n_mix;
    case DIM_INDEX_Q: return (uint64_t)h->index.n_head * h->index.head_dim;
    case DIM_INDEX_K: return h->index.head_dim;
    case DIM_INDEX_QK: return (uint64_t)(h->index.n_head + 1) * h->index.head_dim;
    case DIM_NGRAM_ROW: return h->ngram.width;
    case DIM_NGRAM_TABLE: return h->ngram.n_table;
    case DIM_NGRAM_ROWS: return (uint64_t)ngram_rows(&h->ngram) * h->ngram.width;
    case DIM_NGRAM_CONV: return h->ngram.conv_width;
    case DIM_COUNT: break;
    }
    return 0;
}

/* --- conditions --- */

static uint64_t fact(bool holds, uint64_t f)
{
    return holds ? f : 0;
}

const struct tensor_info *tensor_own(const struct catalogue *c, enum tensor_id id,
                                     uint32_t layer)
{
    char name[96];
    const struct tensor_info *t;

    tensor_name(c->hparams.arch, id, layer, name, sizeof name);
    t = catalogue_find(c, name);
    if (t != NULL || specs[id].alias == 0)
        return t;
    tensor_name(c->hparams.arch, specs[id].alias, layer, name, sizeof name);
    return catalogue_find(c, name);
}

/* Returns the facts that hold.  FACT_FUSED_QKV needs a search for its tensor, so it is checked
 * only if asked for. */
static uint64_t facts_of(const struct catalogue *c, uint32_t layer, uint64_t asked)
{
    const struct hparams *h = &c->hparams;
    bool is_gguf = c->kind == CATALOGUE_GGUF;
    /* GGUF files show it by a missing tensor, snapshots by a field. */
    bool may_lack_v = arch_has(h->arch, TRAIT_KEYS_AS_VALUES) && !h->layers[layer].is_sliding &&
                      (is_gguf || h->no_values);

    const struct layer_hparams *l = &h->layers[layer];
    bool has_experts = h->n_expert > 0 && l->has_experts;
    enum expert_rule rule = has_experts ? arch_experts(h->arch, is_gguf) : EXPERTS_NONE;
    const struct mixture *mixture = h->arch->mixture;
    bool is_latent = h->latent.n_latent > 0;
    /* Granite's snapshots call their dense branch a shared expert. */
    bool is_shared = rule == EXPERTS_QWEN_SHARED || (rule == EXPERTS_ROUTED && l->n_ff > 0) ||
                     (mixture != NULL && mixture->is_fused && !is_gguf && !c->is_known &&
                      l->n_ff > 0);

    return fact(has_experts, FACT_HAS_EXPERTS) |
           fact(rule == EXPERTS_BESIDE, FACT_EXPERTS_BESIDE) |
           fact(rule == EXPERTS_GPT_OSS, FACT_EXPERT_BIAS) |
           fact(l->n_ff > 0 && !is_shared, FACT_HAS_DENSE) |
           fact(is_shared, FACT_SHARED_EXPERT) |
           fact(rule == EXPERTS_QWEN_SHARED || (mixture != NULL && mixture->has_shared_gate),
                FACT_SHARED_GATE) |
           fact(h->delta.has_norm, FACT_MAMBA_NORM) |
           fact(!arch_has(h->arch, TRAIT_MAYBE_QK_NORM) &&
                    (is_gguf || !arch_has(h->arch, TRAIT_UNIT_NORMS)),
                FACT_NEEDS_QK_NORM) |
           fact(!is_latent, FACT_NEEDS_Q) | fact(l->attends, FACT_ATTENDS) |
           fact(h->layers[layer].is_recurrent, FACT_RECURRENT) |
           fact(h->arch->delta == DELTA_JOINED, FACT_DELTA_JOINED) |
           fact(h->arch->delta == DELTA_APART, FACT_DELTA_APART) |
           fact(h->n_embd_per_layer > 0, FACT_HAS_PER_LAYER) |
           fact(h->own_head, FACT_NEEDS_HEAD) |
           fact(is_gguf && h->arch->rope_dims == ROPE_PROPORTIONAL, FACT_NEEDS_ROPE_FREQS) |
           fact(layer < h->n_layer - h->n_layer_kv_shared && !is_latent, FACT_OWNS_KV) |
           fact(!(may_lack_v && h->no_values), FACT_READS_V) | fact(!may_lack_v, FACT_NEEDS_V) |
           fact((asked & FACT_FUSED_QKV) != 0 && tensor_own(c, T_ATTN_QKV, layer) != NULL,
                FACT_FUSED_QKV) |
           fact(!arch_has(h->arch, TRAIT_NO_PRE_NORMS) && !arch_has(h->arch, TRAIT_STREAMS),
                FACT_PRE_NORMS) |
           fact(!arch_has(h->arch, TRAIT_STREAMS), FACT_ONE_STREAM) |
           fact(l->has_index, FACT_HAS_INDEX) | fact(l->ratio > 0, FACT_HAS_ENTRIES) |
           fact(has_experts && l->is_hashed, FACT_HASHED) |
           fact(has_experts && !l->is_hashed, FACT_BY_SCORE) |
           fact(h->n_expert_in > 0, FACT_LATENT) |
           fact(h->ngram.n_token > 0 && h->ngram.layer == layer, FACT_NGRAMS) |
           fact(h->attn_bias != BIAS_NONE, FACT_READS_BIAS) |
           fact(arch_has(h->arch, TRAIT_QKV_BIAS) || h->attn_bias >= BIAS_QKV,
                FACT_NEEDS_BIAS) |
           fact(h->attn_bias == BIAS_AS_FOUND || h->attn_bias == BIAS_ALL,
                FACT_READS_BIAS_OUT) |
           fact(h->attn_bias == BIAS_ALL, FACT_NEEDS_BIAS_OUT) |
           fact(h->ffn_bias != BIAS_NONE, FACT_READS_BIAS_FFN) |
           fact(h->ffn_bias == BIAS_ALL, FACT_NEEDS_BIAS_FFN);
}

enum tensor_role tensor_role(const struct catalogue *c, enum tensor_id id, uint32_t layer)
{
    const struct tensor_spec *s = &specs[id];
    uint64_t facts = facts_of(c, layer, s->when), missing = s->when & ~facts;

    if (!arch_has(c->hparams.arch, s->traits) || (c->hparams.arch->traits & s->unless) != 0)
        return ROLE_NONE;
    if ((missing & FACT_ATTENDS) != 0)
        return ROLE_NONE;
    if (missing != 0)
        return (missing & FACT_OWNS_KV) != 0 ? ROLE_IDLE : ROLE_NONE;
    return (s->needed & ~facts) == 0 ? ROLE_NEEDED : ROLE_OPTIONAL;
}

/* --- places --- */

/* Weights that stay in memory are counted in values, others in rows. */
static bool is_in_values(const struct tensor_spec *s)
{
    return s->form == FORM_VECTOR || s->form == FORM_FLAT || s->form == FORM_ROUTER ||
           s->form == FORM_IDS;
}

/* Returns the size of a tensor in the unit of tensor_part.first. */
static uint64_t part_size(const struct hparams *h, enum tensor_id id, uint32_t layer)
{
    const struct tensor_spec *s = &specs[id];
    uint64_t rows = tensor_dim(h, layer, s->dims[1]);

    if (s->form == FORM_MATRIX) /* a matrix for each head */
        rows *= tensor_dim(h, layer, s->dims[2]);
    return is_in_values(s) ? tensor_dim(h, layer, s->dims[0]) * rows : rows;
}

const struct tensor_info *tensor_fused(const struct catalogue *c, enum tensor_id id,
                                       uint32_t layer)
{
    enum tensor_id fused = specs[id].fused;

    if (fused == 0 || tensor_role(c, fused, layer) < ROLE_OPTIONAL)
        return NULL;
    return tensor_own(c, fused, layer);
}

bool tensor_find(const struct catalogue *c, enum tensor_id id, uint32_t layer,
                 struct tensor_part *out)
{
    *out = (struct tensor_part){ .n = part_size(&c->hparams, id, layer) };
    if (tensor_role(c, id, layer) < ROLE_OPTIONAL)
        return false;
    out->tensor = tensor_fused(c, id, layer);
    if (out->tensor == NULL) {
        out->tensor = tensor_own(c, id, layer);
        return out->tensor != NULL;
    }
    for (int i = specs[id].fused + 1; i < (int)id; i++)
        if (specs[i].fused == specs[id].fused)
            out->first += part_size(&c->hparams, (enum tensor_id)i, layer);
    return true;
}

uint64_t tensor_values_read(const struct catalogue *c, const struct tensor_info *t,
                            enum tensor_id id, uint32_t layer)
{
    uint64_t n = t->ne[0] * tensor_rows(t);

    for (int i = 0; i < T_COUNT; i++)
        if (specs[i].fused == id && id != 0 &&
            tensor_role(c, (enum tensor_id)i, layer) == ROLE_IDLE)
            n -= part_size(&c->hparams, (enum tensor_id)i, layer) *
                 (is_in_values(&specs[i]) ? 1 : t->ne[0]);
    return n;
}
