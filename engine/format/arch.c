#include "config.h"

#include "engine/format/arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/hparams.h"
#include "engine/format/mixture.h"

#define N_ARCH (sizeof archs / sizeof archs[0])

#define GEMMA (TRAIT_POST_NORMS | TRAIT_GELU | TRAIT_EMBD_SCALE | TRAIT_TIED | TRAIT_ATTN_BIAS)
#define OLMO                                                                                   \
    (TRAIT_POST_NORMS | TRAIT_NO_PRE_NORMS | TRAIT_QK_NORM | TRAIT_WIDE_QK_NORM |              \
     TRAIT_ATTN_BIAS | TRAIT_SWA_UNSCALED)
#define DEEPSEEK                                                                               \
    (TRAIT_INTERLEAVED | TRAIT_INTERLEAVED_2 | TRAIT_LATENT | TRAIT_LOW_Q | TRAIT_EXPERTS |    \
     TRAIT_ROUTED | TRAIT_DRAFT)
#define NEMOTRON (TRAIT_RELU2 | TRAIT_NOPE | TRAIT_ONE_BLOCK | TRAIT_MAMBA | TRAIT_DRAFT)
#define QWEN_DELTA                                                                             \
    (TRAIT_QK_NORM | TRAIT_ATTN_BIAS | TRAIT_NORM_ADD_ONE | TRAIT_LATE_NAME | TRAIT_DELTA)

static const struct arch archs[] = {
    {
        .name = "arcee",
        .snapshots = { { "arcee", "ArceeForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_ATTN_BIAS | TRAIT_RELU2,
        .window = WINDOW_ALL_GGUF,
        .absent = { 32, 0, 0, 4096, 0, 1e-5, 1e4 },
    },
    {
        .name = "bailingmoe2",
        .snapshots = { { "bailing_moe_v2", "BailingMoeV2ForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_EXPERTS | TRAIT_ROUTED | TRAIT_DRAFT,
        .window = WINDOW_ALL_GGUF,
        .rope_dims = ROPE_PARTIAL,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_bailing,
        .names = names_bailing,
        .absent = { 0, 0, 0, 32768, 0, 1e-6, 6e5 },
    },
    {
        .name = "bailingmoe3",
        .snapshots = { { "bailing_hybrid", "BailingMoeV3ForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_INTERLEAVED_2 | TRAIT_LATENT | TRAIT_LOW_Q |
                  TRAIT_KDA | TRAIT_OUT_GATE | TRAIT_EXPERTS | TRAIT_ROUTED | TRAIT_DRAFT |
                  TRAIT_CLAMPS,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_bailing,
        .names = names_bailing,
        .gate = GATE_HEADS,
        .clamps_silu = true, /* as in vLLM and SGLang, which the publisher extended */
        .absent = { 0, 0, 0, 32768, 0, 1e-6, 6e5 },
    },
    {
        .name = "cohere2",
        .snapshots = { { "cohere2", "Cohere2ForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_INTERLEAVED_2 | TRAIT_TIED | TRAIT_PARALLEL |
                  TRAIT_MEAN_NORM | TRAIT_GLOBAL_NOPE | TRAIT_LOGIT_FACTOR | TRAIT_PERIOD_FIELD,
        .window = WINDOW_PERIOD,
        .window_period = 4,
        .absent = { 64, 0, 0, 8192, 4096, 1e-5, 1e4 },
        .gguf = { .needs_window = true },
    },
    {
        .name = "deepseek2",
        .other_name = "glm4moelite",
        .snapshots = { { "deepseek_v3", "DeepseekV3ForCausalLM" },
                       { "kimi_k2", "KimiK2ForCausalLM" },
                       { "glm4_moe_lite", "Glm4MoeLiteForCausalLM" } },
        .traits = DEEPSEEK,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_deepseek3,
        .absent = { 128, 0, 0, 4096, 0, 1e-6, 1e4 },
    },
    {
        .name = "deepseek2", /* the snapshots of V2 and V2-Lite */
        .snapshots = { { "deepseek_v2", "DeepseekV2ForCausalLM" } },
        .traits = DEEPSEEK,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_deepseek2,
        .absent = { 32, 0, 0, 2048, 0, 1e-6, 1e4 },
    },
    {
        .name = "deepseek4",
        .snapshots = { { "deepseek_v4", "DeepseekV4ForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_INTERLEAVED_2 | TRAIT_LOW_Q | TRAIT_HYPER |
                  TRAIT_ENTRIES | TRAIT_SCORED | TRAIT_SINKS | TRAIT_EXPERTS | TRAIT_ROUTED |
                  TRAIT_DRAFT | TRAIT_CLAMPS,
        .window = WINDOW_ALL,
        .rope_dims = ROPE_PARTIAL,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_deepseek4,
        .names = names_deepseek4,
        .absent = { 64, 1, 512, 1048576, 128, 1e-6, 1e4 },
        .gguf = { .needs_window = true },
    },
    {
        .name = "ernie4_5",
        .snapshots = { { "ernie4_5", "Ernie4_5ForCausalLM" },
                       { "ernie4_5", "Ernie4_5_ForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_INTERLEAVED_2 | TRAIT_TIED,
        .window = WINDOW_ALL_GGUF,
        .absent = { 16, 2, 128, 131072, 0, 1e-5, 5e5 },
    },
    {
        .name = "ernie4_5-moe",
        .snapshots = { { "ernie4_5_moe", "Ernie4_5_MoeForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_INTERLEAVED_2 | TRAIT_TIED | TRAIT_EXPERTS |
                  TRAIT_ROUTED | TRAIT_DRAFT,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_ernie,
        .absent = { 20, 4, 0, 131072, 0, 1e-5, 5e5 },
    },
    {
        .name = "exaone4",
        .snapshots = { { "exaone4", "Exaone4ForCausalLM" },
                       { "exaone4_5", "Exaone4_5_ForConditionalGeneration" },
                       { "exaone4_5_text", "Exaone4ForCausalLM" } },
        .traits = TRAIT_POST_NORMS | TRAIT_NO_PRE_NORMS | TRAIT_QK_NORM | TRAIT_GLOBAL_NOPE |
                  TRAIT_PERIOD_FIELD | TRAIT_DRAFT,
        .window = WINDOW_PERIOD,
        .window_period = 4,
        .absent = { 32, 32, 0, 2048, 4096, 1e-5, 1e4 },
    },
    {
        .name = "falcon-h1",
        .snapshots = { { "falcon_h1", "FalconH1ForCausalLM" } },
        .traits = TRAIT_MAMBA | TRAIT_SIDE_BY_SIDE,
        .window = WINDOW_ALL_GGUF,
        .names = names_falcon,
        .absent = { 32, 8, 0, 8192, 0, 1e-5, 1e4 },
    },
    {
        .name = "gemma",
        .snapshots = { { "gemma", "GemmaForCausalLM" } },
        .traits = (GEMMA & ~(uint64_t)TRAIT_POST_NORMS) | TRAIT_NORM_ADD_ONE,
        .window = WINDOW_ALL_GGUF,
        .absent = { 16, 16, 256, 8192, 0, 1e-6, 1e4 },
    },
    {
        .name = "gemma2",
        .snapshots = { { "gemma2", "Gemma2ForCausalLM" } },
        .traits = GEMMA | TRAIT_NORM_ADD_ONE | TRAIT_CAP_ATTN | TRAIT_CAP_FINAL,
        .window = WINDOW_PERIOD,
        .window_period = 2,
        .scale = SCALE_SCALAR,
        .n_layer_wide_scale = 46,
        .softcap_attn = 50,
        .softcap_final = 30,
        .n_swa_gguf = 4096,
        .absent = { 8, 4, 256, 8192, 4096, 1e-6, 1e4 },
    },
    {
        .name = "gemma3",
        .snapshots = { { "gemma3", "Gemma3ForConditionalGeneration" },
                       { "gemma3_text", "Gemma3ForCausalLM" } },
        .traits = GEMMA | TRAIT_NORM_ADD_ONE | TRAIT_QK_NORM | TRAIT_ROPE_BY_KIND |
                  TRAIT_PERIOD_FIELD | TRAIT_CAP_FINAL,
        .window = WINDOW_PERIOD,
        .window_period = 6,
        .scale = SCALE_SCALAR,
        .n_layer_wide_scale = 62,
        .absent = { 8, 4, 256, 131072, 4096, 1e-6, 1e6 },
        .gguf = { .rms_eps = 1e-6, .rope_base = 1e6, .head_dim = 256 },
        .lost = { { 34, 48, 62 }, 8, 26 },
    },
    {
        .name = "gemma4",
        .snapshots = { { "gemma4", "Gemma4ForConditionalGeneration" },
                       { "gemma4_text", "Gemma4ForCausalLM" },
                       { "gemma4_unified", "Gemma4UnifiedForConditionalGeneration" },
                       { "gemma4_unified_text", "Gemma4UnifiedForCausalLM" } },
        .traits = GEMMA | TRAIT_QK_NORM | TRAIT_V_NORM | TRAIT_OUT_SCALE | TRAIT_HEADS_BY_KIND |
                  TRAIT_ROPE_BY_KIND | TRAIT_PERIOD_FIELD | TRAIT_SHARED_KV |
                  TRAIT_KEYS_AS_VALUES | TRAIT_PER_LAYER_INPUT | TRAIT_EXPERTS |
                  TRAIT_CAP_FINAL,
        .window = WINDOW_PERIOD_OR_LAST,
        .window_period = 6,
        .scale = SCALE_ONE,
        .rope_dims = ROPE_PROPORTIONAL,
        .rotates = 0.25,
        .experts = EXPERTS_BESIDE,
        .absent = { 8, 4, 256, 131072, 512, 1e-6, 1e6 },
        .gguf = { .rms_eps = 1e-6, .rope_base = 1e6, .needs_window = true },
    },
    {
        .name = "glm4moe",
        .snapshots = { { "glm4_moe", "Glm4MoeForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_MAYBE_QK_NORM | TRAIT_QKV_BIAS | TRAIT_LATE_NAME |
                  TRAIT_EXPERTS | TRAIT_ROUTED | TRAIT_DRAFT,
        .window = WINDOW_ALL_GGUF,
        .rope_dims = ROPE_PARTIAL,
        .rotates = 0.5,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_glm4,
        .absent = { 96, 8, 0, 131072, 0, 1e-5, 1e6 },
    },
    {
        .name = "glm5-next",
        .other_name = "glm5next",
        .snapshots = { { "glm5_next", "Glm5NextForConditionalGeneration" },
                       { "glm5_next_text", "Glm5NextForCausalLM" } },
        .traits = TRAIT_LATENT | TRAIT_LOW_Q | TRAIT_NOPE | TRAIT_KDA | TRAIT_KDA_LOW |
                  TRAIT_HYPER | TRAIT_SCORED | TRAIT_EXPERTS | TRAIT_ROUTED | TRAIT_DRAFT |
                  TRAIT_CLAMPS,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_deepseek3,
        .absent = { 0, 0, 0, 1048576, 0, 1e-6, 1e4 },
    },
    {
        .name = "gpt-oss",
        .other_name = "gptoss",
        .snapshots = { { "gpt_oss", "GptOssForCausalLM" } },
        .traits = TRAIT_ATTN_BIAS | TRAIT_EXPERTS | TRAIT_SINKS | TRAIT_LATE_NAME,
        .window = WINDOW_PERIOD,
        .window_period = 2,
        .experts = EXPERTS_GPT_OSS,
        .absent = { 64, 8, 64, 131072, 128, 1e-5, 150000 },
        .gguf = { .needs_window = true, .is_yarn = true },
    },
    {
        .name = "granite",
        .snapshots = { { "granite", "GraniteForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_ATTN_BIAS | TRAIT_FFN_BIAS | TRAIT_SCALES |
                  TRAIT_MAYBE_NOPE,
        .window = WINDOW_ALL_GGUF,
        .scale = SCALE_STATED,
        .absent = { 32, 0, 0, 2048, 0, 1e-6, 1e4 },
    },
    {
        .name = "granitehybrid",
        .snapshots = { { "granitemoehybrid", "GraniteMoeHybridForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_TIED | TRAIT_SCALES | TRAIT_MAMBA |
                  TRAIT_MAYBE_NOPE | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .scale = SCALE_STATED,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_granite,
        .absent = { 32, 0, 0, 2048, 0, 1e-6, 1e4 },
    },
    {
        .name = "granitemoe",
        .snapshots = { { "granitemoe", "GraniteMoeForCausalLM" },
                       { "granitemoeshared", "GraniteMoeSharedForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_TIED | TRAIT_ATTN_BIAS | TRAIT_SCALES |
                  TRAIT_MAYBE_NOPE | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .scale = SCALE_STATED,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_granite,
        .absent = { 32, 0, 0, 2048, 0, 1e-6, 1e4 },
    },
    {
        .name = "hunyuan-dense",
        .snapshots = { { "hunyuan_v1_dense", "HunYuanDenseV1ForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_LATE_QK_NORM | TRAIT_ATTN_BIAS,
        .window = WINDOW_ALL_GGUF,
        .names = names_hunyuan,
        .absent = { 32, 0, 0, 2048, 0, 1e-5, 1e4 },
    },
    {
        .name = "hunyuan-moe",
        .snapshots = { { "hunyuan_v1_moe", "HunYuanMoEV1ForCausalLM" } },
        .traits =
            TRAIT_QK_NORM | TRAIT_LATE_QK_NORM | TRAIT_ATTN_BIAS | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_hunyuan,
        .names = names_hunyuan,
        .absent = { 32, 0, 0, 2048, 0, 1e-5, 1e4 },
    },
    {
        .name = "kimi-linear",
        .snapshots = { { "kimi_linear", "KimiLinearForCausalLM" } },
        .traits = TRAIT_LATENT | TRAIT_LOW_Q | TRAIT_NOPE | TRAIT_KDA | TRAIT_KDA_LOW |
                  TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_kimi,
        .absent = { 0, 0, 0, 1048576, 0, 1e-6, 1e4 },
    },
    {
        .name = "laguna",
        .snapshots = { { "laguna", "LagunaForCausalLM" } },
        .traits =
            TRAIT_QK_NORM | TRAIT_ROPE_BY_KIND | TRAIT_OUT_GATE | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_PERIOD_FIRST,
        .window_period = 4,
        .rope_dims = ROPE_PARTIAL,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_laguna,
        .names = names_laguna,
        .gate = GATE_SOFTPLUS,
        .absent = { 48, 8, 128, 131072, 512, 1e-6, 5e5 },
    },
    {
        .name = "lfm2",
        .snapshots = { { "lfm2", "Lfm2ForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_SHORT_CONV | TRAIT_TIED,
        .window = WINDOW_ALL_GGUF,
        .names = names_lfm2,
        .absent = { 32, 8, 0, 128000, 0, 1e-5, 1e6 },
    },
    {
        .name = "lfm2moe",
        .snapshots = { { "lfm2_moe", "Lfm2MoeForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_SHORT_CONV | TRAIT_TIED | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_lfm2,
        .names = names_lfm2,
        .absent = { 32, 8, 0, 128000, 0, 1e-5, 1e6 },
    },
    {
        .name = "llama", /* Llama 2 and 3; the GGUF files of Mistral and Mixtral */
        .snapshots = { { "llama", "LlamaForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_ATTN_BIAS | TRAIT_FFN_BIAS | TRAIT_EXPERTS,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_MIXTRAL_GGUF,
        .absent = { 0, 0, 0, 2048, 0, 1e-6, 1e4 },
    },
    {
        .name = "llama", /* Mistral's snapshots */
        .snapshots = { { "mistral", "MistralForCausalLM" } },
        .window = WINDOW_ALL,
        .absent = { 0, 8, 0, 2048, 4096, 1e-6, 1e4 },
    },
    {
        .name = "llama", /* Mixtral's snapshots */
        .snapshots = { { "mixtral", "MixtralForCausalLM" } },
        .traits = TRAIT_EXPERTS,
        .window = WINDOW_ALL,
        .experts = EXPERTS_MIXTRAL,
        .absent = { 32, 8, 0, 131072, 0, 1e-5, 1e6 },
    },
    {
        .name = "mellum",
        .snapshots = { { "mellum", "MellumForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_ROPE_BY_KIND | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_LISTED,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_mellum,
        .absent = { 32, 4, 128, 131072, 1024, 1e-6, 5e5 },
        .gguf = { .needs_window = true },
    },
    {
        .name = "minimax-m2",
        .snapshots = { { "minimax_m2", "MiniMaxM2ForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_WIDE_QK_NORM | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .rope_dims = ROPE_PARTIAL,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_minimax,
        .absent = { 48, 8, 128, 196608, 0, 1e-6, 5e6 },
    },
    {
        .name = "mistral3", /* Mistral Small 3.1 and later, Magistral, Devstral, Ministral 3 */
        .snapshots = { { "mistral3", "Mistral3ForConditionalGeneration" },
                       { "ministral3", "Ministral3ForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_TEMPERATURE,
        .window = WINDOW_ALL,
        .absent = { 32, 8, 128, 262144, 0, 1e-5, 1e6 },
    },
    {
        .name = "muse-glimmer",
        .snapshots = { { "muse_glimmer", "MuseGlimmerForConditionalGeneration" },
                       { "muse_glimmer_text", "MuseGlimmerForCausalLM" } },
        .traits = TRAIT_INTERLEAVED | TRAIT_POST_NORMS | TRAIT_NORM_ADD_ONE | TRAIT_QK_NORM |
                  TRAIT_UNIT_NORMS | TRAIT_OUT_GATE | TRAIT_GLOBAL_NOPE | TRAIT_LOGIT_FACTOR |
                  TRAIT_CAP_FINAL,
        .window = WINDOW_LISTED,
        .names = names_muse,
        .gate = GATE_VALUES,
        .post_eps = 1e-8,
        .absent = { 32, 2, 128, 131072, 2048, 1e-5, 5e5 },
        .gguf = { .needs_window = true },
    },
    {
        .name = "nemotron_h",
        .snapshots = { { "nemotron_h", "NemotronHForCausalLM" } },
        .traits = NEMOTRON | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_nemotron,
        .names = names_nemotron,
        .absent = { 32, 8, 128, 4096, 0, 1e-5, 1e4 },
    },
    {
        .name = "nemotron_h_moe",
        .traits = NEMOTRON | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_nemotron,
        .names = names_nemotron,
        .absent = { 32, 8, 128, 4096, 0, 1e-5, 1e4 },
    },
    {
        .name = "olmo2",
        .other_name = "olmo3",
        .snapshots = { { "olmo2", "Olmo2ForCausalLM" } },
        .traits = OLMO,
        .window = WINDOW_PERIOD,
        .window_period = 4,
        .absent = { 32, 0, 0, 2048, 0, 1e-5, 1e4 },
    },
    {
        .name = "olmo2", /* Olmo 3, whose GGUF files have the same architecture */
        .snapshots = { { "olmo3", "Olmo3ForCausalLM" } },
        .traits = OLMO,
        .window = WINDOW_PERIOD,
        .window_period = 4,
        .absent = { 32, 0, 0, 2048, 4096, 1e-5, 1e4 },
    },
    {
        .name = "olmoe",
        .snapshots = { { "olmoe", "OlmoeForCausalLM" } },
        .traits =
            TRAIT_QK_NORM | TRAIT_WIDE_QK_NORM | TRAIT_ATTN_BIAS | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_ALL_GGUF,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_olmoe,
        .absent = { 16, 0, 0, 4096, 0, 1e-5, 1e4 },
    },
    {
        .name = "phi3",
        .snapshots = { { "phi3", "Phi3ForCausalLM" } },
        .traits = TRAIT_FUSED_GATE_UP,
        .window = WINDOW_ALL,
        .rope_dims = ROPE_PARTIAL,
        .absent = { 0, 0, 0, 4096, 0, 1e-5, 1e4 },
    },
    {
        .name = "qwen2",
        .snapshots = { { "qwen2", "Qwen2ForCausalLM" } },
        .traits = TRAIT_QKV_BIAS,
        .window = WINDOW_UPPER,
        .absent = { 0, 0, 0, 32768, 4096, 1e-6, 1e4 },
    },
    {
        .name = "qwen2moe",
        .snapshots = { { "qwen2_moe", "Qwen2MoeForCausalLM" } },
        .traits = TRAIT_QKV_BIAS | TRAIT_EXPERTS | TRAIT_ROUTED,
        .window = WINDOW_EVEN,
        .experts = EXPERTS_ROUTED,
        .mixture = &mixture_qwen2,
        .absent = { 16, 16, 0, 32768, 4096, 1e-6, 1e4 },
    },
    {
        .name = "qwen3",
        .snapshots = { { "qwen3", "Qwen3ForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_ATTN_BIAS,
        .window = WINDOW_UPPER,
        .absent = { 0, 0, 128, 32768, 4096, 1e-6, 1e4 },
    },
    {
        .name = "qwen35",
        .snapshots = { { "qwen3_5", "Qwen3_5ForConditionalGeneration" },
                       { "qwen3_5_text", "Qwen3_5ForCausalLM" } },
        .traits = QWEN_DELTA,
        .window = WINDOW_LISTED,
        .rope_dims = ROPE_PARTIAL,
        .rotates = 0.25,
        .delta = DELTA_APART,
        .absent = { 16, 4, 256, 32768, 0, 1e-6, 1e4 },
    },
    {
        .name = "qwen35moe",
        .snapshots = { { "qwen3_5_moe", "Qwen3_5MoeForConditionalGeneration" },
                       { "qwen3_5_moe_text", "Qwen3_5MoeForCausalLM" } },
        .traits = QWEN_DELTA | TRAIT_EXPERTS,
        .window = WINDOW_LISTED,
        .rope_dims = ROPE_PARTIAL,
        .rotates = 0.25,
        .experts = EXPERTS_QWEN_SHARED,
        .delta = DELTA_APART,
        .absent = { 16, 2, 256, 32768, 0, 1e-6, 1e4 },
    },
    {
        .name = "qwen3moe",
        .snapshots = { { "qwen3_moe", "Qwen3MoeForCausalLM" } },
        .traits = TRAIT_QK_NORM | TRAIT_ATTN_BIAS | TRAIT_EXPERTS,
        .window = WINDOW_USED,
        .experts = EXPERTS_QWEN,
        .absent = { 32, 4, 0, 32768, 4096, 1e-6, 1e4 },
    },
    {
        .name = "qwen3next",
        .snapshots = { { "qwen3_next", "Qwen3NextForCausalLM" } },
        .traits = QWEN_DELTA | TRAIT_EXPERTS,
        .window = WINDOW_LISTED,
        .rope_dims = ROPE_PARTIAL,
        .rotates = 0.25,
        .experts = EXPERTS_QWEN_SHARED,
        .delta = DELTA_JOINED,
        .absent = { 16, 2, 256, 32768, 0, 1e-6, 1e4 },
    },
    {
        .name = "qwen4exp", /* Qwen3.8-Flash-Next */
        .snapshots = { { "qwen4_exp", "Qwen4ExpForConditionalGeneration" },
                       { "qwen4_exp_text", "Qwen4ExpForCausalLM" } },
        .traits = (QWEN_DELTA & ~(uint64_t)TRAIT_LATE_NAME) | TRAIT_EXPERTS | TRAIT_STREAMS |
                  TRAIT_INDEX | TRAIT_NGRAMS | TRAIT_SIGMOID_GATE,
        .window = WINDOW_LISTED,
        .rope_dims = ROPE_PARTIAL,
        .rotates = 0.25,
        .experts = EXPERTS_QWEN_SHARED,
        .delta = DELTA_APART,
        .absent = { 24, 2, 256, 262144, 0, 1e-6, 1e7 },
    },
    {
        .name = "seed_oss",
        .snapshots = { { "seed_oss", "SeedOssForCausalLM" } },
        .traits = TRAIT_QKV_BIAS | TRAIT_LATE_NAME,
        .window = WINDOW_ALL_GGUF,
        .absent = { 80, 8, 128, 524288, 0, 1e-6, 1e4 },
    },
    {
        .name = "smollm3",
        .snapshots = { { "smollm3", "SmolLM3ForCausalLM" } },
        .traits =
            TRAIT_INTERLEAVED | TRAIT_TIED | TRAIT_ATTN_BIAS | TRAIT_FFN_BIAS | TRAIT_SKIP_ROPE,
        .window = WINDOW_LISTED,
        .ropeless_period = 4,
        .absent = { 16, 4, 0, 32768, 0, 1e-6, 2e6 },
    },
};

/* Draft heads in files of their own. */
static const struct arch assistants[] = {
    {
        .name = "gemma4-assistant",
        .snapshots = { { "gemma4_assistant", "Gemma4AssistantForCausalLM" },
                       { "gemma4_unified_assistant", "Gemma4UnifiedAssistantForCausalLM" } },
        .traits = GEMMA | TRAIT_QK_NORM | TRAIT_V_NORM | TRAIT_OUT_SCALE | TRAIT_HEADS_BY_KIND |
                  TRAIT_ROPE_BY_KIND | TRAIT_PERIOD_FIELD | TRAIT_KEYS_AS_VALUES |
                  TRAIT_ASSISTANT | TRAIT_ORDERED,
        .window = WINDOW_PERIOD_OR_LAST,
        .window_period = 6,
        .scale = SCALE_ONE,
        .rope_dims = ROPE_PROPORTIONAL,
        .absent = { 8, 4, 256, 131072, 512, 1e-6, 1e6 },
        .gguf = { .rms_eps = 1e-6, .rope_base = 1e6, .needs_window = true },
    },
};

#define N_ASSISTANT (sizeof assistants / sizeof assistants[0])

const struct arch *arch_assistant_by_name(const char *name)
{
    for (size_t i = 0; i < N_ASSISTANT; i++)
        if (strcmp(assistants[i].name, name) == 0)
            return &assistants[i];
    return NULL;
}

const struct arch *arch_assistant_by_snapshot(const char *model_type)
{
    for (size_t i = 0; i < N_ASSISTANT; i++)
        for (int k = 0; k < ARCH_MAX_SNAPSHOT && assistants[i].snapshots[k].class != NULL; k++)
            if (model_type != NULL &&
                strcmp(model_type, assistants[i].snapshots[k].model_type) == 0)
                return &assistants[i];
    return NULL;
}

const struct arch *arch_by_name(const char *name)
{
    for (size_t i = 0; i < N_ARCH; i++)
        if (strcmp(archs[i].name, name) == 0 ||
            (archs[i].other_name != NULL && strcmp(archs[i].other_name, name) == 0))
            return &archs[i];
    return NULL;
}

const struct arch *arch_by_snapshot(const char *model_type, const char *class)
{
    for (size_t i = 0; i < N_ARCH; i++)
        for (int k = 0; k < ARCH_MAX_SNAPSHOT && archs[i].snapshots[k].class != NULL; k++)
            if (model_type != NULL
                    ? strcmp(model_type, archs[i].snapshots[k].model_type) == 0
                    : class != NULL && strcmp(class, archs[i].snapshots[k].class) == 0)
                return &archs[i];
    return NULL;
}

enum expert_rule arch_experts(const struct arch *a, bool is_gguf)
{
    if (a->experts == EXPERTS_MIXTRAL_GGUF)
        return is_gguf ? EXPERTS_MIXTRAL : EXPERTS_NONE;
    return a->experts;
}

bool arch_activates(const struct arch *a, const char *activation)
{
    if (arch_has(a, TRAIT_RELU2))
        return strcmp(activation, "relu2") == 0;
    if (arch_has(a, TRAIT_GELU))
        return strcmp(activation, "gelu_pytorch_tanh") == 0 ||
               strcmp(activation, "gelu_new") == 0;
    return strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0;
}

void arch_note_form(const char *name, struct err *e)
{
    const struct arch *a = arch_by_name(name);
    size_t used = strlen(e->what);

    if (a == NULL || strcmp(a->name, name) == 0 || strstr(e->what, "Ollama") != NULL)
        return;
    snprintf(e->what + used, sizeof e->what - used,
             "; the file has Ollama's own form of %s: fetch a GGUF file of llama.cpp's form",
             a->name);
}

/* Does an earlier model type begin number k of family i?  Such variants are not listed, because a
 * message has only so much room. */
static bool is_variant(size_t i, int k)
{
    const char *type = archs[i].snapshots[k].model_type;

    for (size_t f = 0; f <= i; f++)
        for (int n = 0; n < (f < i ? ARCH_MAX_SNAPSHOT : k); n++) {
            const char *before = archs[f].snapshots[n].model_type;

            if (before != NULL && strncmp(type, before, strlen(before)) == 0)
                return true;
        }
    return false;
}

/* Does the list have this name of family i?  GGUF files of some have the name of another one.
 */
static bool is_listed(size_t i, int k, bool is_gguf)
{
    if (is_gguf)
        return k == 0 && arch_by_name(archs[i].name) == &archs[i];
    return archs[i].snapshots[k].model_type != NULL && !is_variant(i, k);
}

int arch_refuse(const char *name, bool is_gguf, struct err *e)
{
    char list[900] = "";
    size_t used = 0;

    for (size_t i = 0; i < N_ARCH; i++)
        for (int k = 0; k < ARCH_MAX_SNAPSHOT && used < sizeof list; k++)
            if (is_listed(i, k, is_gguf))
                used += (size_t)snprintf(
                    list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "",
                    is_gguf ? archs[i].name : archs[i].snapshots[k].model_type);
    return err_set(e, ERR_UNSUPPORTED,
                   "architecture \"%.60s\" is not supported; memwall runs: %s", name, list);
}
