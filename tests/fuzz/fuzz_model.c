#include "config.h"

#include "tests/fuzz/fuzz_model.h"

#include <sys/mman.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Sizes of all models; block types need rows of 32. */
#define EMBD    32
#define HEADS   2
#define HEADS_K 1
#define HEAD    16
#define FF      32
#define VOCAB   32
#define LAYERS  2
#define EXTRA   32 /* Gemma 4's per-layer input */

#define MAX_KEY    48
#define MAX_TENSOR 64
#define MAX_FILE   (256 << 10)
#define MAX_DATA   (192 << 10)
#define ALIGN      32

/* clang-format off */
enum {
    G_U8, G_I8, G_U16, G_I16, G_U32, G_I32, G_F32, G_BOOL, G_STRING, G_ARRAY, G_U64, G_I64, G_F64,
    G_TYPES
};
/* clang-format on */

struct key {
    char name[64];
    uint32_t type;
    uint32_t n;
    uint8_t value[640]; /* as in the file; for a snapshot, JSON text */
};

struct tensor {
    char name[72];
    uint32_t type, n_dims;
    uint64_t ne[5];
    uint64_t shift; /* added to the correct offset */
};

static struct made {
    bool is_snapshot;
    uint32_t version;
    uint64_t extra_keys, extra_tensors; /* added to the counts in the header */
    uint64_t cut;                       /* bytes missing at the end */
    struct key keys[MAX_KEY];
    struct tensor tensors[MAX_TENSOR];
    uint32_t n_key, n_tensor, type;
    const char *arch;
} model;

/* ---- the input ---- */

static const uint8_t *input;
static size_t n_input;

static uint32_t take(void)
{
    if (n_input == 0)
        return 0;
    n_input--;
    return *input++;
}

/* clang-format off */
static const uint64_t numbers[] = {
    0, 1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 48, 64, 96, 128, 255, 256, 1000, 4096, 32768,
    65535, 65536, 1u << 24, 0x7fffffffu, 0x80000000u, 0xffffffffu, (uint64_t)1 << 32,
    ((uint64_t)1 << 32) + 32, (uint64_t)1 << 40, INT64_MAX, UINT64_MAX
};
/* clang-format on */

static uint64_t take_number(void)
{
    return numbers[take() % (sizeof numbers / sizeof numbers[0])];
}

static const float floats[] = {
    0.0f,    1.0f,  -1.0f, 0.5f,   1e-6f, 1e-30f,  1e30f,     2.0f,
    10000.f, 1e29f, 30.f,  1e-45f, -0.0f, 3.4e38f, 0.f / 1.f, 8.0f
};

/* Includes infinity and not-a-number. */
static float take_float(void)
{
    static const uint32_t odd[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u };
    uint32_t n = take() % (sizeof floats / sizeof floats[0] + 4);
    float f;

    if (n < sizeof floats / sizeof floats[0])
        return floats[n];
    memcpy(&f, &odd[n - sizeof floats / sizeof floats[0]], 4);
    return f;
}

/* ---- parts ---- */

static struct key *add_key(const char *name, uint32_t type, const void *value, size_t n)
{
    struct key *k = &model.keys[model.n_key];

    if (model.n_key == MAX_KEY || n > sizeof k->value)
        return NULL;
    model.n_key++;
    *k = (struct key){ .type = type, .n = (uint32_t)n };
    snprintf(k->name, sizeof k->name, "%s", name);
    memcpy(k->value, value, n);
    return k;
}

static void of_arch(char *buf, size_t n, const char *name)
{
    snprintf(buf, n, "%s.%s", model.arch, name);
}

static void add_u32(const char *name, uint32_t value)
{
    char full[64];

    of_arch(full, sizeof full, name);
    add_key(full, G_U32, &value, 4);
}

static void add_f32(const char *name, float value)
{
    char full[64];

    of_arch(full, sizeof full, name);
    add_key(full, G_F32, &value, 4);
}

static size_t put_string(uint8_t *out, const char *text)
{
    uint64_t n = strlen(text);

    memcpy(out, &n, 8);
    memcpy(out + 8, text, n);
    return 8 + n;
}

static void add_string(const char *name, const char *text)
{
    uint8_t value[256];

    add_key(name, G_STRING, value, put_string(value, text));
}

static struct tensor *add_tensor(const char *name, uint32_t type, uint64_t in, uint64_t out)
{
    struct tensor *t = &model.tensors[model.n_tensor];

    if (model.n_tensor == MAX_TENSOR)
        return NULL;
    model.n_tensor++;
    *t = (struct tensor){ .type = type, .n_dims = out > 0 ? 2 : 1, .ne = { in, out, 1, 1, 1 } };
    if (out == 0)
        t->ne[1] = 1;
    snprintf(t->name, sizeof t->name, "%s", name);
    return t;
}

static void add_layer_tensor(uint32_t layer, const char *name, uint64_t in, uint64_t out)
{
    char full[72];

    snprintf(full, sizeof full, model.is_snapshot ? "model.layers.%u.%s" : "blk.%u.%s", layer,
             name);
    add_tensor(full, out > 0 ? model.type : 0, in, out);
}

/* ---- GGUF models ---- */

static void add_vocabulary(void)
{
    uint8_t tokens[640], scores[12 + 4 * VOCAB], types[12 + 4 * VOCAB];
    uint32_t elem = G_STRING, kind;
    uint64_t n = VOCAB;
    size_t at = 12;

    memcpy(tokens, &elem, 4);
    memcpy(tokens + 4, &n, 8);
    elem = G_F32;
    memcpy(scores, &elem, 4);
    memcpy(scores + 4, &n, 8);
    elem = G_I32;
    memcpy(types, &elem, 4);
    memcpy(types + 4, &n, 8);
    for (uint32_t i = 0; i < VOCAB; i++) {
        float score = -(float)i;
        char text[8];

        snprintf(text, sizeof text, i < 3 ? "<%u>" : "t%u", i);
        at += put_string(tokens + at, text);
        memcpy(scores + 12 + 4 * i, &score, 4);
        kind = i < 3 ? 3 : 1;
        memcpy(types + 12 + 4 * i, &kind, 4);
    }
    add_string("tokenizer.ggml.model", "llama");
    add_key("tokenizer.ggml.tokens", G_ARRAY, tokens, at);
    add_key("tokenizer.ggml.scores", G_ARRAY, scores, sizeof scores);
    add_key("tokenizer.ggml.token_type", G_ARRAY, types, sizeof types);
    kind = 1;
    add_key("tokenizer.ggml.bos_token_id", G_U32, &kind, 4);
}

static void add_attention(uint32_t i, bool has_bias, bool has_norms)
{
    if (strcmp(model.arch, "phi3") == 0) {
        add_layer_tensor(i, "attn_qkv.weight", EMBD, (HEADS + 2 * HEADS_K) * HEAD);
    } else {
        add_layer_tensor(i, "attn_q.weight", EMBD, HEADS * HEAD);
        add_layer_tensor(i, "attn_k.weight", EMBD, HEADS_K * HEAD);
        add_layer_tensor(i, "attn_v.weight", EMBD, HEADS_K * HEAD);
    }
    if (has_bias) {
        add_layer_tensor(i, "attn_q.bias", HEADS * HEAD, 0);
        add_layer_tensor(i, "attn_k.bias", HEADS_K * HEAD, 0);
        add_layer_tensor(i, "attn_v.bias", HEADS_K * HEAD, 0);
    }
    if (has_norms) {
        add_layer_tensor(i, "attn_q_norm.weight", HEAD, 0);
        add_layer_tensor(i, "attn_k_norm.weight", HEAD, 0);
    }
    add_layer_tensor(i, "attn_output.weight", HEADS * HEAD, EMBD);
}

static void add_experts(uint32_t i)
{
    static const char *const three[] = { "ffn_gate_up_exps.weight", "ffn_down_exps.weight" };

    add_layer_tensor(i, "ffn_gate_inp.weight", EMBD, 4);
    add_layer_tensor(i, "ffn_gate_inp.scale", EMBD, 0);
    add_layer_tensor(i, "ffn_down_exps.scale", 4, 0);
    for (int k = 0; k < 2; k++) {
        add_layer_tensor(i, three[k], k == 0 ? EMBD : FF, k == 0 ? 2 * FF : EMBD);
        model.tensors[model.n_tensor - 1].n_dims = 3;
        model.tensors[model.n_tensor - 1].ne[2] = 4;
    }
    add_layer_tensor(i, "pre_ffw_norm_2.weight", EMBD, 0);
    add_layer_tensor(i, "post_ffw_norm_1.weight", EMBD, 0);
    add_layer_tensor(i, "post_ffw_norm_2.weight", EMBD, 0);
}

static void add_layer(uint32_t i, bool has_extra, bool has_experts)
{
    const char *a = model.arch;
    bool is_gemma = strncmp(a, "gemma", 5) == 0;

    add_layer_tensor(i, "attn_norm.weight", EMBD, 0);
    add_attention(i, strcmp(a, "qwen2") == 0,
                  strcmp(a, "qwen3") == 0 || strcmp(a, "gemma3") == 0 ||
                      strcmp(a, "gemma4") == 0);
    add_layer_tensor(i, "ffn_norm.weight", EMBD, 0);
    if (strcmp(a, "phi3") != 0)
        add_layer_tensor(i, "ffn_gate.weight", EMBD, FF);
    add_layer_tensor(i, "ffn_up.weight", EMBD, strcmp(a, "phi3") == 0 ? 2 * FF : FF);
    add_layer_tensor(i, "ffn_down.weight", FF, EMBD);
    if (is_gemma) {
        add_layer_tensor(i, "post_attention_norm.weight", EMBD, 0);
        add_layer_tensor(i, "post_ffw_norm.weight", EMBD, 0);
    }
    if (has_experts)
        add_experts(i);
    if (has_extra) {
        add_layer_tensor(i, "inp_gate.weight", EMBD, EXTRA);
        add_layer_tensor(i, "proj.weight", EXTRA, EMBD);
        add_layer_tensor(i, "post_norm.weight", EMBD, 0);
        add_layer_tensor(i, "layer_output_scale.weight", 1, 0);
    }
}

static void add_gemma_keys(bool has_extra, bool has_experts)
{
    uint8_t pattern[12 + LAYERS] = { G_BOOL, 0, 0, 0, LAYERS };
    char name[64];

    add_u32("attention.sliding_window", 4);
    add_f32("final_logit_softcapping", 30);
    if (strcmp(model.arch, "gemma4") != 0)
        return;
    pattern[12] = 1;
    of_arch(name, sizeof name, "attention.sliding_window_pattern");
    add_key(name, G_ARRAY, pattern, sizeof pattern);
    add_u32("attention.key_length_swa", HEAD);
    add_u32("attention.value_length_swa", HEAD);
    add_u32("rope.dimension_count_swa", HEAD);
    add_f32("rope.freq_base_swa", 10000);
    add_u32("attention.shared_kv_layers", 0);
    add_u32("embedding_length_per_layer_input", has_extra ? EXTRA : 0);
    add_tensor("rope_freqs.weight", 0, HEAD / 2, 0);
    if (has_extra) {
        add_tensor("per_layer_token_embd.weight", model.type, LAYERS * EXTRA, VOCAB);
        add_tensor("per_layer_model_proj.weight", model.type, EMBD, LAYERS * EXTRA);
        add_tensor("per_layer_proj_norm.weight", 0, EXTRA, 0);
    }
    if (has_experts) {
        add_u32("expert_count", 4);
        add_u32("expert_used_count", 2);
        add_u32("expert_feed_forward_length", FF);
    }
}

static void make_gguf(uint32_t which)
{
    static const char *const archs[] = { "llama",  "qwen2",  "qwen3",  "phi3",
                                         "gemma2", "gemma3", "gemma4", "gemma4" };
    bool has_experts = which % 8 == 7, has_extra = which % 8 == 6;

    model.arch = archs[which % 8];
    add_string("general.architecture", model.arch);
    add_string("general.name", "tiny");
    add_u32("block_count", LAYERS);
    add_u32("context_length", 64);
    add_u32("embedding_length", EMBD);
    add_u32("feed_forward_length", FF);
    add_u32("attention.head_count", HEADS);
    add_u32("attention.head_count_kv", HEADS_K);
    add_u32("attention.key_length", HEAD);
    add_u32("attention.value_length", HEAD);
    add_u32("rope.dimension_count", HEAD);
    add_f32("rope.freq_base", 10000);
    add_f32("attention.layer_norm_rms_epsilon", 1e-5f);
    add_tensor("token_embd.weight", model.type, EMBD, VOCAB);
    add_tensor("output_norm.weight", 0, EMBD, 0);
    if (strncmp(model.arch, "gemma", 5) == 0)
        add_gemma_keys(has_extra, has_experts);
    else
        add_tensor("output.weight", model.type, EMBD, VOCAB);
    if ((which & 8) != 0)
        add_vocabulary();
    else
        add_u32("vocab_size", VOCAB);
    for (uint32_t i = 0; i < LAYERS; i++)
        add_layer(i, has_extra, has_experts);
}

/* ---- snapshots ---- */

static void add_json(const char *name, const char *value)
{
    add_key(name, G_STRING, value, strlen(value));
}

static void make_snapshot(uint32_t which)
{
    static const struct {
        const char *type, *class;
    } archs[] = {
        { "\"llama\"", "[\"LlamaForCausalLM\"]" },
        { "\"qwen3\"", "[\"Qwen3ForCausalLM\"]" },
        { "\"mistral\"", "[\"MistralForCausalLM\"]" },
        { "\"qwen2\"", "[\"Qwen2ForCausalLM\"]" },
    };
    bool is_qwen3 = which % 4 == 1;

    model.arch = "config";
    add_json("architectures", archs[which % 4].class);
    add_json("model_type", archs[which % 4].type);
    add_json("hidden_size", "32");
    add_json("intermediate_size", "32");
    add_json("num_hidden_layers", "2");
    add_json("num_attention_heads", "2");
    add_json("num_key_value_heads", "1");
    add_json("head_dim", "16");
    add_json("vocab_size", "32");
    add_json("max_position_embeddings", "64");
    add_json("rms_norm_eps", "1e-5");
    add_json("rope_theta", "10000.0");
    add_json("hidden_act", "\"silu\"");
    add_json("tie_word_embeddings", "false");
    add_tensor("model.embed_tokens.weight", model.type, EMBD, VOCAB);
    add_tensor("model.norm.weight", model.type, EMBD, 0);
    add_tensor("lm_head.weight", model.type, EMBD, VOCAB);
    for (uint32_t i = 0; i < LAYERS; i++) {
        add_layer_tensor(i, "input_layernorm.weight", EMBD, 0);
        add_layer_tensor(i, "post_attention_layernorm.weight", EMBD, 0);
        add_layer_tensor(i, "self_attn.q_proj.weight", EMBD, HEADS * HEAD);
        add_layer_tensor(i, "self_attn.k_proj.weight", EMBD, HEADS_K * HEAD);
        add_layer_tensor(i, "self_attn.v_proj.weight", EMBD, HEADS_K * HEAD);
        add_layer_tensor(i, "self_attn.o_proj.weight", HEADS * HEAD, EMBD);
        add_layer_tensor(i, "mlp.gate_proj.weight", EMBD, FF);
        add_layer_tensor(i, "mlp.up_proj.weight", EMBD, FF);
        add_layer_tensor(i, "mlp.down_proj.weight", FF, EMBD);
        if (is_qwen3) {
            add_layer_tensor(i, "self_attn.q_norm.weight", HEAD, 0);
            add_layer_tensor(i, "self_attn.k_norm.weight", HEAD, 0);
        }
        if (which % 4 == 3) {
            add_layer_tensor(i, "self_attn.q_proj.bias", HEADS * HEAD, 0);
            add_layer_tensor(i, "self_attn.k_proj.bias", HEADS_K * HEAD, 0);
            add_layer_tensor(i, "self_attn.v_proj.bias", HEADS_K * HEAD, 0);
        }
    }
}

/* ---- changes ---- */

/* clang-format off */
static const char *const new_keys[] = {
    "rope.scaling.type", "rope.scaling.factor", "rope.scaling.attn_factor",
    "rope.scaling.original_context_length", "attention.sliding_window",
    "attention.sliding_window_pattern", "attn_logit_softcapping", "final_logit_softcapping",
    "attention.scale", "logit_scale", "residual_scale", "embedding_scale", "expert_count",
    "expert_used_count", "expert_feed_forward_length", "attention.shared_kv_layers",
    "rope.freq_base_swa", "rope.dimension_count", "attention.key_length",
    "attention.value_length", "vocab_size", "embedding_length_per_layer_input",
};
/* clang-format on */

/* clang-format off */
static const char *const words[] = {
    "none", "linear", "yarn", "longrope", "llama3", "llama", "qwen2", "qwen3", "phi3",
    "gemma2", "gemma3", "gemma4", "gpt2", "", "default", "x",
};
/* clang-format on */

/* clang-format off */
static const char *const json_values[] = {
    "null", "true", "false", "0", "1", "2", "3", "16", "32", "64", "4096", "65536",
    "4294967296", "-1", "0.5", "1e30", "1e-30", "1e400", "\"x\"", "\"silu\"", "\"gelu\"",
    "\"llama\"", "[]", "{}", "[1,2]", "9223372036854775807", "2.0", "[[[[]]]]", "1e-5",
    "{\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":32}",
    ("{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\""
     ":1.0,\"high_freq_factor\":4.0,\"original_max_position_embeddings\":32}"),
    "{\"type\":\"linear\",\"factor\":2.0}", "{\"rope_type\":\"default\"}",
    "[\"full_attention\",\"sliding_attention\"]",
};
/* clang-format on */

/* clang-format off */
static const char *const json_keys[] = {
    "rope_scaling", "sliding_window", "layer_types", "attention_bias", "mlp_bias", "head_dim",
    "use_sliding_window", "max_window_layers", "rope_parameters", "partial_rotary_factor",
    "tie_word_embeddings", "text_config", "torch_dtype", "quantization_config", "num_experts",
    "hidden_activation", "query_pre_attn_scalar", "attn_logit_softcapping",
};
/* clang-format on */

/* clang-format off */
static const char *const tensor_names[] = {
    "attn_q.bias", "attn_q_norm.weight", "attn_k_norm.weight", "attn_qkv.weight",
    "attn_qkv.bias", "attn_output.bias", "ffn_up.bias", "ffn_gate.bias", "ffn_down.bias",
    "ffn_gate_inp.weight", "attn_v.weight", "ffn_norm.weight", "post_ffw_norm.weight",
    "layer_output_scale.weight", "attn_rot_embd.weight", "inp_gate.weight",
};
/* clang-format on */

#define PICK(list) ((list)[take() % (sizeof(list) / sizeof(list)[0])])

static void set_word(struct key *k, const char *word)
{
    k->type = G_STRING;
    k->n = (uint32_t)put_string(k->value, word);
}

/* A number, written in the type of the key. */
static void set_number(struct key *k, uint64_t n)
{
    static const uint8_t sizes[G_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 8, 4, 8, 8, 8 };

    if (k->type >= G_TYPES || k->type == G_STRING || k->type == G_ARRAY)
        k->type = G_U32;
    memcpy(k->value, &n, 8);
    k->n = sizes[k->type];
}

static void change_array(struct key *k)
{
    uint64_t n;

    if (k->type != G_ARRAY || k->n < 12)
        return;
    if (take() % 2 == 0) {
        n = take_number();
        memcpy(k->value + 4, &n, 8);
    } else {
        k->value[0] = (uint8_t)take();
    }
}

static void change_key(struct key *k)
{
    float f;

    if (model.is_snapshot) {
        const char *text = PICK(json_values);

        k->n = (uint32_t)strlen(text);
        memcpy(k->value, text, k->n);
        return;
    }
    switch (take() % 7) {
    case 0:
    case 1: set_number(k, take_number()); break;
    case 2:
        f = take_float();
        k->type = G_F32;
        k->n = 4;
        memcpy(k->value, &f, 4);
        break;
    case 3: set_word(k, PICK(words)); break;
    case 4: k->type = take() % (G_TYPES + 2); break;
    case 5: change_array(k); break;
    default: set_number(k, take()); break;
    }
}

static void change_keys(uint32_t what, uint32_t i)
{
    struct key *k = &model.keys[i], other;

    switch (what) {
    case 0: change_key(k); break;
    case 1: model.keys[i] = model.keys[--model.n_key]; break;
    case 2:
        if (model.n_key < MAX_KEY)
            model.keys[model.n_key++] = *k;
        break;
    case 3:
        other = *k;
        *k = model.keys[0];
        model.keys[0] = other;
        break;
    case 4: memcpy(k->name, model.keys[take() % model.n_key].name, sizeof k->name); break;
    default:
        if (model.is_snapshot)
            add_json(PICK(json_keys), PICK(json_values));
        else
            add_u32(PICK(new_keys), 0);
        change_key(&model.keys[model.n_key - 1]);
    }
}

static void change_tensors(uint32_t what, uint32_t i)
{
    struct tensor *t = &model.tensors[i], other;
    uint32_t d;

    switch (what) {
    case 0: t->type = take() % 41; break;
    case 1:
        d = take() % 4;
        t->ne[d] = take_number();
        t->n_dims = d + 1 > t->n_dims ? d + 1 : t->n_dims;
        break;
    case 2: t->n_dims = take() % 6; break;
    case 3: t->shift = take_number(); break;
    case 4: memcpy(t->name, model.tensors[take() % model.n_tensor].name, sizeof t->name); break;
    case 5: model.tensors[i] = model.tensors[--model.n_tensor]; break;
    case 6:
        if (model.n_tensor < MAX_TENSOR)
            model.tensors[model.n_tensor++] = *t;
        break;
    case 7:
        other = *t;
        *t = model.tensors[0];
        model.tensors[0] = other;
        break;
    default:
        add_layer_tensor(take() % LAYERS, PICK(tensor_names), take_number(),
                         take() % 2 == 0 ? 0 : take_number());
    }
}

/* Bytes of the data: their places and new values. */
#define MAX_POKE 8
static struct {
    uint32_t at;
    float value;
} pokes[MAX_POKE];
static uint32_t n_poke;

static void change(void)
{
    uint32_t what = take() % 20, i = take();

    if (what < 6 && model.n_key > 0) {
        change_keys(what, i % model.n_key);
    } else if (what < 15 && model.n_tensor > 0) {
        change_tensors(what - 6, i % model.n_tensor);
    } else if (what < 17 && n_poke < MAX_POKE) {
        pokes[n_poke].at = i << 8 | take();
        pokes[n_poke++].value = take_float();
    } else if (what == 17) {
        model.extra_keys = take_number();
    } else if (what == 18) {
        model.extra_tensors = take_number();
    } else if (what == 19) {
        if (i % 2 == 0)
            model.version = take();
        else
            model.cut = take_number();
    }
}

/* ---- writing files ---- */

static uint8_t file[MAX_FILE];
static size_t n_file;

static void put(const void *bytes, size_t n)
{
    if (n > sizeof file - n_file)
        n = sizeof file - n_file;
    memcpy(file + n_file, bytes, n);
    n_file += n;
}

static void put_u32(uint32_t v)
{
    put(&v, 4);
}

static void put_u64(uint64_t v)
{
    put(&v, 8);
}

static void put_name(const char *name)
{
    put_u64(strlen(name));
    put(name, strlen(name));
}

/* Values and bytes of a block, for the types of the models; other types count as one byte per
 * value. */
static void block_of(uint32_t type, uint64_t *n, uint64_t *bytes)
{
    static const struct {
        uint32_t type, n, bytes;
    } rows[] = { { 0, 1, 4 },  { 1, 1, 2 },      { 2, 32, 18 },    { 8, 32, 34 },
                 { 30, 1, 2 }, { 12, 256, 144 }, { 14, 256, 210 }, { 39, 32, 17 } };

    *n = *bytes = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].type == type) {
            *n = rows[i].n;
            *bytes = rows[i].bytes;
        }
}

static uint64_t tensor_bytes(const struct tensor *t)
{
    uint64_t n = 1, per, bytes;

    for (uint32_t d = 0; d < t->n_dims && d < 4; d++)
        if (t->ne[d] > MAX_DATA || (n *= t->ne[d]) > MAX_DATA)
            return 0;
    block_of(t->type, &per, &bytes);
    return n / per * bytes;
}

/* Small numbers for any type: 16 bits that are valid halves and upper halves of floats.
 * Vectors are between 1 and 2, because some of them are divisors. */
static void make_pattern(uint8_t *out, size_t n, uint32_t type, uint64_t bytes, bool is_vector)
{
    uint32_t state = 12345;

    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        out[i] = (uint8_t)(state >> 24);
        if (type == 0 && is_vector)
            out[i] = i % 4 == 3 ? 0x3f : i % 4 == 2 ? out[i] | 0x80 : out[i];
        else if (type == 0 && i % 4 == 3)
            out[i] = 0x3d | (out[i] & 0x80);
        else if (type == 30 && i % 2 == 1)
            out[i] = 0x3d | (out[i] & 0x80);
        else if (type == 1 && i % 2 == 1)
            out[i] = 0x2c | (out[i] & 0x80);
        else if (bytes > 4 && i % bytes == 1)
            out[i] = 0x24;
    }
}

/* Made once per type: most of the bytes of a file come from here. */
static void fill(uint8_t *out, uint64_t n, uint32_t type, bool is_vector)
{
    enum { TYPES = 64, SIZE = 8192 };
    static uint8_t *patterns[TYPES][2];
    uint8_t **pattern = &patterns[type % TYPES][is_vector];
    uint64_t per, bytes, whole;

    block_of(type, &per, &bytes);
    whole = SIZE / bytes * bytes;
    if (*pattern == NULL) {
        *pattern = malloc(SIZE);
        if (*pattern == NULL)
            exit(1);
        make_pattern(*pattern, SIZE, type, bytes, is_vector);
    }
    for (uint64_t at = 0; at < n; at += whole)
        memcpy(out + at, *pattern, n - at < whole ? n - at : whole);
}

static uint64_t place_data(uint64_t *offsets)
{
    uint64_t at = 0;

    for (uint32_t i = 0; i < model.n_tensor; i++) {
        uint64_t bytes = tensor_bytes(&model.tensors[i]);

        offsets[i] = at + model.tensors[i].shift;
        if (at + bytes <= MAX_DATA)
            at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    return at;
}

static void put_data(uint64_t n)
{
    size_t from = n_file;

    for (uint32_t i = 0; i < model.n_tensor; i++) {
        uint64_t bytes = tensor_bytes(&model.tensors[i]);
        uint64_t whole = (bytes + ALIGN - 1) / ALIGN * ALIGN;

        if (n_file - from + whole > n || whole > sizeof file - n_file)
            continue;
        memset(file + n_file, 0, whole);
        fill(file + n_file, bytes, model.tensors[i].type, model.tensors[i].n_dims == 1);
        n_file += whole;
    }
    for (uint32_t i = 0; i < n_poke && n >= 4 && n_file - from >= 4; i++)
        memcpy(file + from + pokes[i].at % ((n_file - from) / 4) * 4, &pokes[i].value, 4);
}

static void write_gguf(void)
{
    static const uint8_t zeros[ALIGN];
    uint64_t offsets[MAX_TENSOR], n = place_data(offsets);

    put("GGUF", 4);
    put_u32(model.version);
    put_u64(model.n_tensor + model.extra_tensors);
    put_u64(model.n_key + model.extra_keys);
    for (uint32_t i = 0; i < model.n_key; i++) {
        put_name(model.keys[i].name);
        put_u32(model.keys[i].type);
        put(model.keys[i].value, model.keys[i].n);
    }
    for (uint32_t i = 0; i < model.n_tensor; i++) {
        const struct tensor *t = &model.tensors[i];

        put_name(t->name);
        put_u32(t->n_dims);
        for (uint32_t d = 0; d < t->n_dims && d < 5; d++)
            put_u64(t->ne[d]);
        put_u32(t->type);
        put_u64(offsets[i]);
    }
    put(zeros, (ALIGN - n_file % ALIGN) % ALIGN);
    put_data(n);
}

static const char *dtype(uint32_t type)
{
    static const char *const names[] = {
        "F32", "F16", "BF16", "F64", "I64", "I8", "F8_E4M3", ""
    };

    return type == 30 ? "BF16" : names[type % (sizeof names / sizeof names[0])];
}

/* In a snapshot's shapes, rows come first. */
static void write_safetensors(void)
{
    uint64_t offsets[MAX_TENSOR], n = place_data(offsets), length;
    char text[400];

    put_u64(0);
    put("{", 1);
    for (uint32_t i = 0; i < model.n_tensor; i++) {
        const struct tensor *t = &model.tensors[i];
        int len = snprintf(text, sizeof text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                           i > 0 ? "," : "", t->name, dtype(t->type));

        put(text, (size_t)len);
        for (uint32_t d = t->n_dims > 5 ? 5 : t->n_dims; d-- > 0;) {
            len = snprintf(text, sizeof text, "%llu%s", (unsigned long long)t->ne[d],
                           d > 0 ? "," : "");
            put(text, (size_t)len);
        }
        len = snprintf(text, sizeof text, "],\"data_offsets\":[%llu,%llu]}",
                       (unsigned long long)offsets[i],
                       (unsigned long long)(offsets[i] + tensor_bytes(t)));
        put(text, (size_t)len);
    }
    put("}", 1);
    while (n_file % ALIGN != 0)
        put(" ", 1);
    length = n_file - 8 + model.extra_tensors;
    memcpy(file, &length, 8);
    put_data(n);
}

static void write_config(void)
{
    put("{", 1);
    for (uint32_t i = 0; i < model.n_key; i++) {
        put(i > 0 ? ",\"" : "\"", i > 0 ? 2 : 1);
        put(model.keys[i].name, strlen(model.keys[i].name));
        put("\":", 2);
        put(model.keys[i].value, model.keys[i].n);
    }
    put("}", 1);
}

/* One descriptor for each file, made once; the folder links to them. */
static int fds[3] = { -1, -1, -1 };
static char folder[] = "/tmp/memwall-fuzz-XXXXXX", gguf_path[40];

static void remove_folder(void)
{
    char path[80];

    snprintf(path, sizeof path, "%s/config.json", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    unlink(path);
    rmdir(folder);
}

static bool make_files(void)
{
    static const char *const names[] = { "", "config.json", "model.safetensors" };
    char target[40], path[80];

    if (fds[0] >= 0)
        return true;
    if (mkdtemp(folder) == NULL)
        return false;
    atexit(remove_folder);
    for (int i = 0; i < 3; i++) {
        fds[i] = memfd_create("model", MFD_CLOEXEC);
        snprintf(target, sizeof target, "/proc/self/fd/%d", fds[i]);
        if (i == 0)
            memcpy(gguf_path, target, sizeof target);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (fds[i] < 0 || (i > 0 && symlink(target, path) != 0))
            return false;
    }
    return true;
}

static bool save(int fd)
{
    size_t n = model.cut < n_file ? n_file - model.cut : n_file;

    if (ftruncate(fd, 0) != 0 || pwrite(fd, file, n, 0) != (ssize_t)n)
        return false;
    n_file = 0;
    return true;
}

const char *fuzz_model_make(const uint8_t *data, size_t size)
{
    static const uint32_t types[] = { 0, 1, 30, 8, 2, 0, 0, 0 };
    uint32_t which, type;

    if (!make_files())
        return NULL;
    input = data;
    n_input = size;
    memset(&model, 0, offsetof(struct made, keys));
    model.n_key = model.n_tensor = 0;
    model.version = 3;
    n_poke = 0;
    n_file = 0;
    which = take();
    type = take();
    model.is_snapshot = (which & 0x80) != 0;
    model.type = types[type % (model.is_snapshot ? 3 : 8)];
    if (model.is_snapshot)
        make_snapshot(which);
    else
        make_gguf(which);
    while (n_input > 0)
        change();
    if (!model.is_snapshot) {
        write_gguf();
        return save(fds[0]) ? gguf_path : NULL;
    }
    write_safetensors();
    if (!save(fds[2]))
        return NULL;
    model.cut = 0;
    write_config();
    return save(fds[1]) ? folder : NULL;
}
