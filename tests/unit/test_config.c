/*
 * config.json in its many forms: missing fields, both layouts, rope rules compared with
 * published figures, and refusals of models that would be computed wrongly.
 */
#include "config.h"

#include <sys/mman.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/json.h"
#include "engine/format/ngram_numbers.h"
#include "engine/format/snapshot.h"

static struct catalogue c;
static struct catalogue_index no_index;
static struct err e;

static struct json_doc *parse(const char *text)
{
    struct json_doc *d = NULL;
    size_t n = strlen(text);
    int fd = memfd_create("json", MFD_CLOEXEC);

    assert_int_equal(write(fd, text, n), n);
    e = (struct err)ERR_INIT;
    json_read(&d, fd, n, &e);
    close(fd);
    return d;
}

/* Read hyper-parameters from a config and generation settings (or NULL) into c. */
static int read_config(const char *config, const char *generation)
{
    struct json_doc *d = parse(config), *g = generation != NULL ? parse(generation) : NULL;
    int rc = -1;

    assert_non_null(d);
    c = (struct catalogue){ .kind = CATALOGUE_SNAPSHOT, .index = &no_index };
    c.hparams.arch = snapshot_arch(json_root(d), &e);
    if (c.hparams.arch != NULL) {
        rc = hparams_from_trees(&c, json_root(d), json_root(g), &e);
        if (rc == 0)
            rc = hparams_finish(&c, &e);
    }
    json_free(d);
    json_free(g);
    return rc;
}

static void accept(const char *config)
{
    if (read_config(config, NULL) != 0)
        fail_msg("%s: %s", e.field, e.what);
}

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-4 * fabs(b)))
        fail_msg("%.9g is not near %.9g", a, b);
}

#define LLAMA(more)                                                                            \
    "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,"              \
    "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,"           \
    "\"max_position_embeddings\":131072,\"rms_norm_eps\":1e-5,\"rope_theta\":500000.0" more    \
    "}"

static void llama3_divisors_are_the_published_ones(void **state)
{
    static const double want[] = { 1.20748, 1.55341, 2.02631, 2.69453, 3.68425, 5.25733, 8 };
    const struct rope_hparams *r = &c.hparams.rope;

    (void)state;
    accept(LLAMA(",\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0,"
                 "\"low_freq_factor\":1.0,\"high_freq_factor\":4.0,"
                 "\"original_max_position_embeddings\":8192}"));
    assert_int_equal(r->n_rot, 128);
    assert_int_equal(r->n_factor, 64);
    assert_int_equal(r->scaling, ROPE_NONE);
    assert_true(r->factors[0] == 1.0f && r->factors[28] == 1.0f);
    for (int i = 0; i < 7; i++)
        assert_near((double)r->factors[29 + i], want[i]);
    assert_true(r->factors[63] == 8.0f);
}

static void yarn_computes_its_magnitude(void **state)
{
    (void)state;
    accept("{\"model_type\":\"qwen2\",\"hidden_size\":3584,\"intermediate_size\":18944,"
           "\"num_hidden_layers\":28,\"num_attention_heads\":28,\"num_key_value_heads\":4,"
           "\"rope_theta\":1000000.0,\"use_sliding_window\":false,\"sliding_window\":131072,"
           "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,"
           "\"original_max_position_embeddings\":32768}}");
    assert_int_equal(c.hparams.rope.scaling, ROPE_YARN);
    assert_near(c.hparams.rope.attn_factor, 1.138629);
    assert_int_equal(c.hparams.rope.n_ctx_orig, 32768);
    assert_int_equal(c.hparams.n_swa, 0);
    assert_false(c.hparams.layers[0].is_sliding);
}

static void a_stated_magnitude_replaces_yarns(void **state)
{
    (void)state;
    accept(LLAMA(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4.0,"
                 "\"attention_factor\":1.5}"));
    assert_true(c.hparams.rope.attn_factor == 1.5);
}

static void longrope_computes_its_magnitude(void **state)
{
    char config[4096], list[1024] = "";

    (void)state;
    for (int i = 0; i < 48; i++)
        strcat(list, i > 0 ? ",1.5" : "1.5");
    snprintf(config, sizeof config,
             "{\"model_type\":\"phi3\",\"hidden_size\":3072,\"intermediate_size\":8192,"
             "\"num_hidden_layers\":32,\"num_attention_heads\":32,"
             "\"max_position_embeddings\":131072,\"original_max_position_embeddings\":4096,"
             "\"sliding_window\":262144,\"rope_scaling\":{\"type\":\"su\",\"long_factor\":[%s],"
             "\"short_factor\":[%s]}}",
             list, list);
    accept(config);
    assert_near(c.hparams.rope.attn_factor, 1.1902381);
    assert_int_equal(c.hparams.rope.n_ctx_orig, 4096);
    assert_true(c.hparams.rms_eps == 1e-5f); /* phi3's own default */
    assert_int_equal(c.hparams.layers[0].n_head_kv, 32);
}

static void gemma_3_relies_on_defaults_for_missing_fields(void **state)
{
    const struct hparams *h = &c.hparams;

    (void)state;
    accept("{\"architectures\":[\"Gemma3ForConditionalGeneration\"],\"model_type\":\"gemma3\","
           "\"eos_token_id\":[1,106],\"text_config\":{\"hidden_size\":2560,"
           "\"intermediate_size\":10240,\"num_hidden_layers\":34,\"sliding_window\":1024,"
           "\"model_type\":\"gemma3_text\",\"rope_scaling\":{\"factor\":8.0,"
           "\"rope_type\":\"linear\"}}}");
    assert_int_equal(h->layers[0].n_head, 8);
    assert_int_equal(h->layers[0].n_head_kv, 4);
    assert_int_equal(h->layers[0].head_dim_k, 256);
    assert_int_equal(h->n_ctx_train, 131072);
    assert_true(h->rms_eps == 1e-6f);
    assert_true(h->attn_scale == 1.0f / 16);
    assert_true(h->softcap_attn == 0 && h->softcap_final == 0);
    assert_true(h->rope.base == 1e6 && h->rope.factor == 8);
    assert_true(h->rope_swa.base == 1e4 && h->rope_swa.scaling == ROPE_NONE);
    for (uint32_t i = 0; i < 34; i++)
        assert_int_equal(h->layers[i].is_sliding, (i + 1) % 6 != 0);
    assert_int_equal(c.generation.n_stop, 2);
}

static void a_newer_layout_states_two_ropes(void **state)
{
    (void)state;
    accept("{\"model_type\":\"gemma3_text\",\"hidden_size\":640,\"intermediate_size\":2048,"
           "\"num_hidden_layers\":6,\"num_attention_heads\":4,\"num_key_value_heads\":1,"
           "\"sliding_window\":512,\"rope_parameters\":{"
           "\"full_attention\":{\"rope_type\":\"linear\",\"factor\":4,\"rope_theta\":5e5},"
           "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":2e4}}}");
    assert_true(c.hparams.rope.base == 5e5 && c.hparams.rope.factor == 4);
    assert_true(c.hparams.rope_swa.base == 2e4);
}

static void gemma_2_has_caps_and_a_window_by_default(void **state)
{
    (void)state;
    accept("{\"model_type\":\"gemma2\",\"hidden_size\":3584,\"intermediate_size\":14336,"
           "\"num_hidden_layers\":4,\"num_attention_heads\":16,\"num_key_value_heads\":8,"
           "\"query_pre_attn_scalar\":224,\"hidden_act\":\"gelu\"}");
    assert_true(c.hparams.softcap_attn == 50 && c.hparams.softcap_final == 30);
    assert_int_equal(c.hparams.n_swa, 4096);
    assert_true(c.hparams.layers[0].is_sliding && !c.hparams.layers[1].is_sliding);
    assert_near((double)c.hparams.attn_scale, 1 / sqrt(224));
}

#define MISTRAL(more)                                                                          \
    "{\"architectures\":[\"MistralForCausalLM\"],\"hidden_size\":4096,"                        \
    "\"intermediate_size\":14336,\"num_hidden_layers\":32,\"num_attention_heads\":32,"         \
    "\"max_position_embeddings\":32768" more "}"

static void mistral_has_a_window_unless_it_says_null(void **state)
{
    (void)state;
    accept(MISTRAL(""));
    assert_string_equal(c.hparams.arch->name, "llama");
    assert_int_equal(c.hparams.n_swa, 4096);
    assert_true(c.hparams.layers[31].is_sliding);
    assert_int_equal(c.hparams.layers[0].n_head_kv, 8);
    accept(MISTRAL(",\"sliding_window\":null"));
    assert_int_equal(c.hparams.n_swa, 0);
    assert_false(c.hparams.layers[31].is_sliding);
}

static void qwens_window_begins_at_a_layer(void **state)
{
    (void)state;
    accept("{\"model_type\":\"qwen3\",\"hidden_size\":1024,\"intermediate_size\":3072,"
           "\"num_hidden_layers\":4,\"num_attention_heads\":16,\"num_key_value_heads\":8,"
           "\"use_sliding_window\":true,\"sliding_window\":512,\"max_window_layers\":2}");
    assert_int_equal(c.hparams.layers[0].head_dim_k, 128);
    assert_false(c.hparams.layers[1].is_sliding);
    assert_true(c.hparams.layers[2].is_sliding);
}

/* transformers gives every second layer below max_window_layers a window in one class, and every
 * layer in the other, which has no such field. */
static void qwens_mixtures_have_windows_in_other_layers(void **state)
{
#define MIXTURE(type, more)                                                                    \
    "{\"model_type\":\"" type "\",\"hidden_size\":1024,\"intermediate_size\":3072,"              \
    "\"num_hidden_layers\":6,\"num_attention_heads\":16,\"num_key_value_heads\":8,"            \
    "\"num_experts\":4,\"num_experts_per_tok\":2,\"moe_intermediate_size\":64,"                \
    "\"shared_expert_intermediate_size\":64,\"sliding_window\":512,\"max_window_layers\":3" more \
    "}"
    static const bool even[] = { true, false, true, false, false, false };

    (void)state;
    accept(MIXTURE("qwen2_moe", ",\"use_sliding_window\":true"));
    for (int i = 0; i < 6; i++)
        assert_int_equal(c.hparams.layers[i].is_sliding, even[i]);
    accept(MIXTURE("qwen3_moe", ",\"use_sliding_window\":true"));
    for (int i = 0; i < 6; i++)
        assert_true(c.hparams.layers[i].is_sliding);
    accept(MIXTURE("qwen2_moe", ""));
    assert_int_equal(c.hparams.n_swa, 0);
    accept(MIXTURE("qwen3_moe", ""));
    assert_int_equal(c.hparams.n_swa, 0);
#undef MIXTURE
}

#define GEMMA4(more)                                                                           \
    "{\"model_type\":\"gemma4\",\"text_config\":{\"hidden_size\":5376,"                        \
    "\"intermediate_size\":21504,\"num_hidden_layers\":12.0,\"num_attention_heads\":32,"       \
    "\"num_key_value_heads\":16,\"head_dim\":256,\"sliding_window\":1024,"                     \
    "\"hidden_size_per_layer_input\":null,\"final_logit_softcapping\":30.0" more "}}"

static void gemma_4_has_global_layers_of_another_size(void **state)
{
    const struct hparams *h = &c.hparams;

    (void)state;
    accept(GEMMA4(",\"global_head_dim\":512,\"num_global_key_value_heads\":4,"
                  "\"attention_k_eq_v\":true"));
    assert_int_equal(h->n_layer, 12);
    assert_int_equal(h->layers[0].head_dim_k, 256);
    assert_int_equal(h->layers[0].n_head_kv, 16);
    assert_int_equal(h->layers[5].head_dim_k, 512);
    assert_int_equal(h->layers[5].n_head_kv, 4);
    assert_false(h->layers[11].is_sliding);
    assert_true(h->attn_scale == 1.0f);
    assert_int_equal(h->n_embd_per_layer, 0);
    assert_int_equal(h->rope.n_rot, 512);
    assert_int_equal(h->rope.n_factor, 256);
    assert_true(h->rope.factors[63] == 1.0f && h->rope.factors[64] >= 1e20f);
    assert_int_equal(h->rope_swa.n_rot, 256);
    assert_int_equal(h->rope_swa.n_factor, 0);
}

static void gemma_4_may_state_layers_one_by_one(void **state)
{
    (void)state;
    accept(
        GEMMA4(",\"per_layer_config\":{\"5\":{\"head_dim\":512,\"num_key_value_heads\":2}}"));
    assert_int_equal(c.hparams.layers[5].n_head_kv, 2);
    assert_int_equal(c.hparams.layers[11].n_head_kv, 16);
}

static void shared_layers_may_be_twice_as_wide(void **state)
{
    (void)state;
    accept(GEMMA4(",\"num_kv_shared_layers\":6,\"use_double_wide_mlp\":true"));
    assert_int_equal(c.hparams.layers[5].n_ff, 21504);
    assert_int_equal(c.hparams.layers[6].n_ff, 43008);
}

static void generation_settings_are_used_if_they_make_sense(void **state)
{
    const struct generation_hparams *g = &c.generation;

    (void)state;
    assert_int_equal(read_config(LLAMA(",\"eos_token_id\":7"),
                                 "{\"temperature\":0.6,\"top_p\":7,\"top_k\":null,"
                                 "\"repetition_penalty\":1.05,\"eos_token_id\":[5,6,-1,5],"
                                 "\"suppress_tokens\":[9,8]}"),
                     0);
    assert_true(g->has_temp && g->temp == 0.6f);
    assert_false(g->has_top_p);
    assert_false(g->has_top_k);
    assert_true(g->has_repeat_penalty);
    assert_int_equal(g->n_stop, 3);
    assert_int_equal(g->stop[2], 7);
    assert_int_equal(g->n_suppress, 2);
}

#define GEMMA3(more)                                                                           \
    "{\"model_type\":\"gemma3_text\",\"hidden_size\":64,\"intermediate_size\":64,"             \
    "\"num_hidden_layers\":2" more "}"

static void settings_that_change_nothing_are_accepted(void **state)
{
    (void)state;
    accept(LLAMA(
        ",\"partial_rotary_factor\":0.5")); /* as transformers does: a llama rotates it all */
    assert_int_equal(c.hparams.rope.n_rot, 128);
    accept(LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1e4,"
                 "\"partial_rotary_factor\":0.5}"));
    assert_int_equal(c.hparams.rope.n_rot, 128);
    accept(LLAMA(",\"attn_logit_softcapping\":null,\"logits_scaling\":1.0,\"is_causal\":true,"
                 "\"use_bidirectional_attention\":false,\"sliding_window\":131072,"
                 "\"attention_multiplier\":0.088388347648,\"no_rope_layers\":[],"
                 "\"attention_dropout\":0.1,\"pretraining_tp\":2,\"what_nobody_knows\":7"));
    assert_int_equal(c.hparams.n_swa, 0);
    accept(GEMMA3(",\"attn_logit_softcapping\":null,\"final_logit_softcapping\":30.0"));
    assert_true(c.hparams.softcap_attn == 0 && c.hparams.softcap_final == 30);
    accept(GEMMA4(",\"use_bidirectional_attention\":\"vision\""));
    assert_true(c.hparams.softcap_final == 30);
}

/* Without the field, the class of an architecture decides. */
static void a_part_of_a_head_rotates_by_default(void **state)
{
    (void)state;
    accept("{\"model_type\":\"glm4_moe\",\"hidden_size\":4096,\"num_hidden_layers\":2,"
           "\"intermediate_size\":10944,\"num_attention_heads\":32,\"head_dim\":128,"
           "\"n_routed_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":64}");
    assert_int_equal(c.hparams.rope.n_rot, 64);
    accept("{\"model_type\":\"qwen3_5_text\",\"hidden_size\":1024,\"num_hidden_layers\":4,"
           "\"intermediate_size\":3584}");
    assert_int_equal(c.hparams.rope.n_rot, 64);
    accept(LLAMA(""));
    assert_int_equal(c.hparams.rope.n_rot, 128);
}

/* Files for older and newer programs may state the same twice. */
static void a_scaling_may_be_in_both_fields(void **state)
{
    (void)state;
    accept(LLAMA(",\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":4,"
                 "\"rope_theta\":5e5},\"rope_scaling\":{\"type\":\"linear\",\"factor\":4.0}"));
    assert_true(c.hparams.rope.factor == 4 && c.hparams.rope.base == 5e5);
    accept(LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":5e5},"
                 "\"rope_scaling\":null"));
    assert_true(c.hparams.rope.factor == 1 && c.hparams.rope.base == 5e5);
}

struct refusal {
    const char *name, *config, *field, *says;
};

static struct refusal refusals[] = {
    { "an unknown scaling", LLAMA(",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}"),
      "type", "scaling \"dynamic\" is not supported" },
    { "a scaling that is not an object", LLAMA(",\"rope_scaling\":8"), "rope_scaling",
      "is 8; expected an object" },
    { "a list of scalings", LLAMA(",\"rope_scaling\":[\"linear\",8]"), "rope_scaling",
      "is an array" },
    { "parameters of rope as text", LLAMA(",\"rope_parameters\":\"linear\""),
      "rope_parameters", "is a string" },
    { "parameters of a kind of layer as a number",
      GEMMA3(",\"rope_parameters\":{\"full_attention\":1e6}"), "full_attention", "is 1e6" },
    { "a scaling that was added beside the parameters",
      LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\",\"rope_theta\":1e6},"
            "\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4}"),
      "rope_scaling", "another scaling than rope_parameters" },
    { "another factor beside the parameters",
      LLAMA(",\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":2},"
            "\"rope_scaling\":{\"type\":\"linear\",\"factor\":4}"),
      "rope_scaling", "another scaling than rope_parameters" },
    { "another activation", LLAMA(",\"hidden_act\":\"relu\""), "hidden_act", "\"relu\"" },
    { "a cap of attention in gemma 3", GEMMA3(",\"attn_logit_softcapping\":50.0"),
      "attn_logit_softcapping", "is 50.0; memwall's gemma3 models do not use this value" },
    { "a cap in a llama", LLAMA(",\"final_logit_softcapping\":30"), "final_logit_softcapping",
      "is 30" },
    { "granite's factors", LLAMA(",\"attention_multiplier\":0.0078125"), "attention_multiplier",
      "is 0.0078125" },
    { "a divisor of the logits", LLAMA(",\"logits_scaling\":8"), "logits_scaling", "is 8" },
    { "attention in both directions", GEMMA3(",\"use_bidirectional_attention\":true"),
      "use_bidirectional_attention", "is true" },
    { "no causal mask", LLAMA(",\"is_causal\":false"), "is_causal", "is false" },
    { "layers without rope", LLAMA(",\"no_rope_layers\":[1,1,1,0]"), "no_rope_layers",
      "is set" },
    { "a part of each head with a scaling",
      LLAMA(",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2},"
            "\"partial_rotary_factor\":0.5"),
      "partial_rotary_factor", "whole heads" },
    { "queries that grow",
      LLAMA(",\"rope_parameters\":{\"rope_type\":\"default\",\"llama_4_scaling_beta\":0.1}"),
      "llama_4_scaling_beta", "is not 0" },
    { "a window in a llama", LLAMA(",\"sliding_window\":4096"), "sliding_window", "is 4096" },
    { "a layer of another kind without any window",
      LLAMA(",\"layer_types\":[\"linear_attention\"]"), "layer_types", "1 entries for 32" },
    { "a factor of attention without bounds",
      LLAMA(",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":2,"
            "\"attention_factor\":1e29}"),
      "original_max_position_embeddings", "outside 0 to 1000" },
    { "a size of one layer", GEMMA4(",\"per_layer_config\":{\"3\":{\"intermediate_size\":64}}"),
      "per_layer_config", "intermediate_size" },
    { "experts", LLAMA(",\"num_local_experts\":8"), "num_local_experts", "experts" },
    { "a quantised snapshot", LLAMA(",\"quantization_config\":{\"quant_method\":\"gptq\"}"),
      "quantization_config", "gptq" },
    { "heads that do not divide", LLAMA(",\"num_key_value_heads\":5"), "num_key_value_heads",
      "5 KV heads" },
    { "an odd number that turns", LLAMA(",\"head_dim\":65"), "head_dim", "even" },
    { "a negative base", LLAMA(",\"rope_theta\":-1"), "rope_theta", "-1" },
    { "a number as text", LLAMA(",\"hidden_size\":\"64\""), "hidden_size", "a string" },
    { "too many layers", LLAMA(",\"num_hidden_layers\":513"), "num_hidden_layers", "513" },
    { "a factor list of the wrong length",
      "{\"model_type\":\"phi3\",\"hidden_size\":64,\"intermediate_size\":64,"
      "\"num_hidden_layers\":1,\"num_attention_heads\":4,\"rope_scaling\":{"
      "\"type\":\"longrope\",\"short_factor\":[1],\"long_factor\":[1]}}",
      "short_factor", "8 factors" },
    { "layer types of another number",
      "{\"model_type\":\"gemma2\",\"hidden_size\":64,\"intermediate_size\":64,"
      "\"num_hidden_layers\":2,\"layer_types\":[\"full_attention\"]}",
      "layer_types", "1 entries for 2" },
    { "an attention of another kind",
      "{\"model_type\":\"gemma2\",\"hidden_size\":64,\"intermediate_size\":64,"
      "\"num_hidden_layers\":1,\"layer_types\":[\"chunked_attention\"]}",
      "layer_types", "chunked_attention" },
    { "shared layers without a donor", GEMMA4(",\"num_kv_shared_layers\":11"),
      "num_kv_shared_layers", "no earlier layer" },
    { "a neighbour of a known family", "{\"model_type\":\"gemma3n\"}", "model_type",
      "architecture \"gemma3n\" is not supported; memwall runs: " },
    { "the name of a GGUF file", "{\"model_type\":\"qwen35\"}", "model_type",
      "qwen2, qwen3, qwen4_exp, seed_oss, smollm3" },
    { "an assistant", "{\"model_type\":\"gemma4_assistant\"}", "model_type",
      "a drafting model" },
    { "no architecture at all", "{}", "model_type", "does not name an architecture" },
};

static void is_refused_by_name(void **state)
{
    const struct refusal *r = *state;

    assert_int_equal(read_config(r->config, NULL), -1);
    assert_string_equal(e.field, r->field);
    if (strstr(e.what, r->says) == NULL)
        fail_msg("%s", e.what);
}

/* Those of the published files of Qwen3.8-Flash-Next. */
static void numbers_of_ngrams_follow_from_their_rule(void **state)
{
    static const uint64_t factor[] = { 23703573157769, 20109073645365, 8052911324071 };
    static const uint64_t row[] = { 3,  23, 33,  47,  59,  63,  69,  77,
                                    81, 93, 107, 147, 153, 159, 161, 171 };
    struct ngram_hparams g = { .n_token = 3, .n_hash = 8 };
    uint64_t sum = 0;

    (void)state;
    ngram_numbers_derive(&g, 1234, 248320, 20000000, 128);
    assert_memory_equal(g.factor, factor, sizeof factor);
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(g.n_row[i], 20000000 + row[i]);
        assert_int_equal(g.first[i], sum);
        sum += g.n_row[i];
    }
    assert_int_equal(g.n_table, 320001536);
}

int main(void)
{
    enum { N = sizeof refusals / sizeof refusals[0] };
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(numbers_of_ngrams_follow_from_their_rule),
        cmocka_unit_test(llama3_divisors_are_the_published_ones),
        cmocka_unit_test(settings_that_change_nothing_are_accepted),
        cmocka_unit_test(a_part_of_a_head_rotates_by_default),
        cmocka_unit_test(a_scaling_may_be_in_both_fields),
        cmocka_unit_test(yarn_computes_its_magnitude),
        cmocka_unit_test(a_stated_magnitude_replaces_yarns),
        cmocka_unit_test(longrope_computes_its_magnitude),
        cmocka_unit_test(gemma_3_relies_on_defaults_for_missing_fields),
        cmocka_unit_test(a_newer_layout_states_two_ropes),
        cmocka_unit_test(gemma_2_has_caps_and_a_window_by_default),
        cmocka_unit_test(mistral_has_a_window_unless_it_says_null),
        cmocka_unit_test(qwens_window_begins_at_a_layer),
        cmocka_unit_test(qwens_mixtures_have_windows_in_other_layers),
        cmocka_unit_test(gemma_4_has_global_layers_of_another_size),
        cmocka_unit_test(gemma_4_may_state_layers_one_by_one),
        cmocka_unit_test(shared_layers_may_be_twice_as_wide),
        cmocka_unit_test(generation_settings_are_used_if_they_make_sense),
    };
    struct CMUnitTest tests[N];
    int failed;

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){ refusals[i].name, is_refused_by_name, NULL, NULL,
                                        &refusals[i] };
    failed = cmocka_run_group_tests_name("config.json", others, NULL, NULL);
    failed += cmocka_run_group_tests_name("refused", tests, NULL, NULL);
    return failed;
}
