/*
 * Hyper-parameters from a snapshot's config.json, and the author's recommendations from
 * generation_config.json.  A missing field has the default of the model's class in
 * transformers, which differs by architecture.  Published files rely on these defaults.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/visible.h"
#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/config_layers.h"
#include "engine/format/config_lookup.h"
#include "engine/format/config_rope.h"
#include "engine/format/foreign_files.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/snapshot.h"
#include "engine/format/value_rules.h"

const struct arch *snapshot_arch(const struct json_node *config, struct err *e)
{
    const struct json_node *classes = json_get(config, "architectures");
    const char *type = json_as_string(json_get(config, "model_type"));
    const char *class = classes != NULL && classes->kind == JSON_IS_ARRAY
                            ? json_as_string(classes->first)
                            : NULL;
    const struct arch *arch = arch_by_snapshot(type, class);

    if (arch != NULL)
        return arch;
    if (type == NULL && class == NULL)
        err_set(e, ERR_FORMAT, "the file does not name an architecture");
    else if (foreign_arch_is(type != NULL ? type : class) != NULL)
        err_set(e, ERR_UNSUPPORTED, "\"%.60s\" is %s; open a model that writes text",
                type != NULL ? type : class, foreign_arch_is(type != NULL ? type : class));
    else
        arch_refuse(type != NULL ? type : class, false, e);
    err_at(e, NULL, ERR_NO_OFFSET,
           type != NULL || class == NULL ? "model_type" : "architectures");
    return NULL;
}

/* Reads the experts of models without a dense branch. */
static void read_only_experts(struct config_lookup *l, struct hparams *h, enum expert_rule rule)
{
    bool is_shared = rule == EXPERTS_QWEN_SHARED, is_qwen = rule == EXPERTS_QWEN || is_shared;
    const char *usual = is_qwen ? "num_experts" : "num_local_experts";
    const char *other = is_qwen ? "num_local_experts" : "num_experts";
    int64_t n = config_int(l, other, 1, 65535, 0), shared;

    h->n_expert = (uint32_t)config_int(l, usual, 1, 65535, n > 0 ? n : CONFIG_NEEDED);
    defaults_drop(l->defaults, n > 0 ? usual : other);
    h->n_expert_used =
        (uint32_t)config_int(l, "num_experts_per_tok", 1, h->n_expert, CONFIG_NEEDED);
    h->n_ff_expert = (uint32_t)config_int(
        l, is_qwen ? "moe_intermediate_size" : "intermediate_size", 1, MAX_N_FF, CONFIG_NEEDED);
    hparams_expert_rule(h, rule);
    h->keeps_expert_weights = is_qwen && !config_bool(l, "norm_topk_prob", is_shared);
    if (is_qwen && json_get(l->node, "norm_topk_prob") == NULL)
        defaults_note(l->defaults, "norm_topk_prob", is_shared);
    if (is_shared) {
        shared = config_int(l, "shared_expert_intermediate_size", 1, MAX_N_FF, CONFIG_NEEDED);
        for (uint32_t i = 0; i < h->n_layer && !l->failed; i++)
            h->layers[i].n_ff = (uint32_t)shared;
    }
    if (rule == EXPERTS_GPT_OSS)
        h->swiglu_limit = (float)config_float(l, "swiglu_limit", 1e-3, 7);
}

static void read_experts(struct config_lookup *l, struct hparams *h)
{
    static const char *const counts[] = { "num_local_experts", "num_experts" };
    enum expert_rule rule = arch_experts(h->arch, false);
    int64_t old;

    if (rule == EXPERTS_NONE) {
        for (size_t i = 0; i < 2; i++) {
            if (config_int(l, counts[i], 0, 65535, 0) == 0 || l->failed)
                continue;
            err_set(l->e, ERR_UNSUPPORTED, "%s models with experts are not supported",
                    h->arch->name);
            config_fail(l, counts[i]);
        }
        for (size_t i = 0; i < 2; i++)
            defaults_drop(l->defaults, counts[i]);
        return;
    }
    if (rule == EXPERTS_ROUTED) {
        config_routed(l, h);
        return;
    }
    if (rule != EXPERTS_BESIDE) {
        read_only_experts(l, h, rule);
        return;
    }
    if (!config_bool(l, "enable_moe_block", false))
        return;
    h->n_expert = (uint32_t)config_int(l, "num_experts", 1, 65535, CONFIG_NEEDED);
    h->n_expert_used = (uint32_t)config_int(l, "top_k_experts", 1, h->n_expert, CONFIG_NEEDED);
    old = config_int(l, "expert_intermediate_size", 1, MAX_N_FF, CONFIG_NEEDED + 1);
    h->n_ff_expert = (uint32_t)config_int(l, "moe_intermediate_size", 1, MAX_N_FF,
                                          old > 0 ? old : CONFIG_NEEDED);
}

/*
 * Whether memwall knows how a snapshot is quantised.  The types of its tensors, and those of the
 * scales beside them, say the rest (join_scales.c).
 */
static bool is_quantised_as_known(const struct arch *a, const struct json_node *q)
{
    static const char *const known[] = { "fp8", "fbgemm_fp8", "modelopt" };
    static const char *const formats[] = { "float-quantized", "nvfp4-pack-quantized",
                                           "mixed-precision" };
    const char *method = json_as_string(json_get(q, "quant_method"));
    const char *format = json_as_string(json_get(q, "format"));

    if (method == NULL)
        return false;
    if (strcmp(method, "mxfp4") == 0)
        return a->experts == EXPERTS_GPT_OSS;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(method, known[i]) == 0)
            return true;
    if (strcmp(method, "compressed-tensors") != 0 || format == NULL)
        return false;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(format, formats[i]) == 0)
            return true;
    return false;
}

static void check_activation(struct config_lookup *l, const struct hparams *h)
{
    static const char *const keys[] = { "hidden_activation", "mlp_hidden_act", "hidden_act" };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *act = config_string(l, keys[i]);

        /* Old Gemma 2 files say "gelu" in hidden_act and mean the tanh form. */
        if (act == NULL || arch_activates(h->arch, act) ||
            (arch_has(h->arch, TRAIT_GELU) && strcmp(keys[i], "hidden_act") == 0))
            continue;
        err_set(l->e, ERR_UNSUPPORTED, "activation \"%.60s\" is not supported for %s", act,
                h->arch->name);
        config_fail(l, keys[i]);
    }
}

/* Refuses parts of a model that would be computed wrongly. */
static void refuse_unknown(struct config_lookup *l, const struct json_node *root,
                           const struct hparams *h)
{
    const struct json_node *q = json_get(root, "quantization_config");
    const char *method;

    check_activation(l, h);
    if (q == NULL)
        q = json_get(root, "quantization");
    method = json_as_string(json_get(q, "quant_method"));
    if (q != NULL && !l->failed && !is_quantised_as_known(h->arch, q)) {
        err_set(l->e, ERR_UNSUPPORTED,
                "the snapshot is quantised (%.40s), which is not supported; use a GGUF file or "
                "the original snapshot",
                method != NULL ? method : "in its own format");
        config_fail(l, q->key);
    }
}

/*
 * transformers ignores biases that the configuration does not state; converters keep those that
 * they find.  A snapshot whose biases differ from its configuration is refused: a missing bias
 * fails the check of tensors, and an unexpected one is a tensor that nothing reads.
 */
static void read_biases(struct config_lookup *l, struct hparams *h)
{
    h->attn_bias = arch_has(h->arch, TRAIT_QKV_BIAS) ? BIAS_QKV : BIAS_NONE;
    if (arch_has(h->arch, TRAIT_ATTN_BIAS) &&
        config_bool(l, "attention_bias", h->arch->experts == EXPERTS_GPT_OSS))
        h->attn_bias = BIAS_ALL;
    h->ffn_bias = BIAS_NONE;
    if (arch_has(h->arch, TRAIT_FFN_BIAS) && config_bool(l, "mlp_bias", false))
        h->ffn_bias = BIAS_ALL;
}

/* Whether the output head has its own weights.  The field is next to text_config or in it. */
static void read_head(struct config_lookup *l, const struct json_node *root, struct hparams *h)
{
    struct config_lookup top = { .node = root, .e = l->e, .failed = l->failed };
    bool is_tied = config_bool(l, "tie_word_embeddings", arch_has(h->arch, TRAIT_TIED));

    is_tied = config_bool(&top, "tie_word_embeddings", is_tied);
    if (arch_has(h->arch, TRAIT_SHORT_CONV)) /* the name in LFM2's first configurations */
        is_tied = config_bool(l, "tie_embedding", is_tied);
    h->own_head = !is_tied;
    l->failed = l->failed || top.failed;
}

/* null means no cap. */
static float read_cap(struct config_lookup *l, const char *key, float absent)
{
    return (float)config_float(l, key, 0,
                               json_member(l->node, key) != NULL ? 0 : (double)absent);
}

/* Other architectures refuse caps, see config_fields.c. */
static void read_caps(struct config_lookup *l, struct hparams *h)
{
    if (arch_has(h->arch, TRAIT_CAP_FINAL))
        h->softcap_final = read_cap(l, "final_logit_softcapping", h->arch->softcap_final);
    if (arch_has(h->arch, TRAIT_CAP_ATTN))
        h->softcap_attn = read_cap(l, "attn_logit_softcapping", h->arch->softcap_attn);
}

static double scale_of(struct config_lookup *l, const struct hparams *h)
{
    const struct json_node *all = json_get(l->node, "rope_parameters");
    struct config_lookup rope = { .node = all != NULL ? all : json_get(l->node, "rope_scaling"),
                                  .e = l->e };

    switch (h->arch->scale) {
    case SCALE_ONE: return 1;
    case SCALE_SCALAR: return 1 / sqrt(config_float(l, "query_pre_attn_scalar", 1e-3, 256));
    case SCALE_STATED: return config_float(l, "attention_multiplier", 1e-6, 1);
    case SCALE_HEAD_DIM: break;
    }
    if (h->latent.n_latent > 0)
        return hparams_latent_scale(h, config_float(&rope, "mscale_all_dim", 0, 0));
    return 1 / sqrt((double)h->layers[0].head_dim_k);
}

static double read_factor(struct config_lookup *l, const struct hparams *h, const char *key)
{
    return arch_has(h->arch, TRAIT_SCALES) ? config_float(l, key, 1e-6, 1) : 1;
}

static void read_scales(struct config_lookup *l, struct hparams *h)
{
    h->attn_scale = (float)scale_of(l, h);
    h->embd_scale = arch_has(h->arch, TRAIT_EMBD_SCALE)
                        ? sqrtf((float)h->n_embd)
                        : (float)read_factor(l, h, "embedding_multiplier");
    h->residual_scale = (float)read_factor(l, h, "residual_multiplier");
    h->logit_scale = (float)(1 / read_factor(l, h, "logits_scaling"));
    if (arch_has(h->arch, TRAIT_LOGIT_FACTOR))
        h->logit_scale = (float)config_float(
            l, arch_has(h->arch, TRAIT_UNIT_NORMS) ? "output_multiplier" : "logit_scale", 1e-6,
            (double)NAN);
    if (arch_has(h->arch, TRAIT_UNIT_NORMS)) /* of queries after their norm */
        h->attn_scale *= (float)config_float(l, "qk_scale_factor", 1e-6, (double)NAN);
    config_factors(l, h);
}

/* The field of Granite 4 for all layers: none rotates unless it is "rope". */
static void read_positions(struct config_lookup *l, struct hparams *h)
{
    const char *kind = config_string(l, "position_embedding_type");

    if (kind == NULL)
        defaults_note(l->defaults, "position_embedding_type", 0);
    for (uint32_t i = 0; (kind == NULL || strcmp(kind, "rope") != 0) && i < h->n_layer; i++)
        h->layers[i].is_ropeless = true;
}

/* Finds the layers that do not rotate: a list of 0 (no rotation) and 1, or a period. */
static void read_ropeless(struct config_lookup *l, struct hparams *h)
{
    const struct json_node *list = json_get(l->node, "no_rope_layers"), *n;
    uint32_t i = 0;
    int64_t rotates;

    if (arch_has(h->arch, TRAIT_MAYBE_NOPE | TRAIT_MAMBA))
        read_positions(l, h);
    if (!arch_has(h->arch, TRAIT_SKIP_ROPE))
        return;
    hparams_skip_rope(
        h, config_int(l, "no_rope_layer_interval", 1, MAX_LAYER, h->arch->ropeless_period));
    if (list == NULL)
        return;
    if (list->kind != JSON_IS_ARRAY || list->n != h->n_layer) {
        err_set(l->e, ERR_FORMAT, "has %u entries for %u layers", list->n, h->n_layer);
        config_fail(l, "no_rope_layers");
        return;
    }
    for (n = list->first; n != NULL; n = n->next, i++) {
        if (!json_as_int(n, &rotates) || rotates < 0 || rotates > 1) {
            err_set(l->e, ERR_FORMAT, "entry %u is not 0 or 1", i);
            config_fail(l, "no_rope_layers");
            return;
        }
        h->layers[i].is_ropeless = rotates == 0;
    }
}

static const char *eps_field(const struct arch *a)
{
    return arch_has(a, TRAIT_ONE_BLOCK)    ? "layer_norm_epsilon"
           : arch_has(a, TRAIT_MEAN_NORM)  ? "layer_norm_eps"
           : arch_has(a, TRAIT_SHORT_CONV) ? "norm_eps"
                                           : "rms_norm_eps";
}

/* Kimi's files may have another word for it. */
static const char *context_field(const struct config_lookup *l, const struct arch *a)
{
    static const char usual[] = "max_position_embeddings", other[] = "model_max_length";

    return arch_has(a, TRAIT_KDA_LOW) && json_get(l->node, usual) == NULL &&
                   json_get(l->node, other) != NULL
               ? other
               : usual;
}

static void read_model(struct config_lookup *l, struct hparams *h)
{
    const struct arch_defaults *d = &h->arch->absent;

    h->n_layer = (uint32_t)config_n_layer(l, h->arch);
    h->n_embd = (uint32_t)config_int(l, "hidden_size", 1, MAX_N_EMBD, CONFIG_NEEDED);
    h->n_ctx_train = (uint32_t)config_int(l, context_field(l, h->arch), 1, MAX_N_CTX, d->n_ctx);
    h->rms_eps = (float)config_float(l, eps_field(h->arch), 1e-30, d->rms_eps);
    if (h->arch->post_eps > 0)
        h->post_eps = (float)config_float(l, "post_norm_eps", 1e-30, h->arch->post_eps);
    if (l->failed)
        return;
    if (arch_has(h->arch, TRAIT_DRAFT))
        h->n_layer_draft =
            (uint32_t)config_int(l, "num_nextn_predict_layers", 0, MAX_LAYER - h->n_layer, 0);
    config_kinds(l, h);
    if (arch_has(h->arch, TRAIT_SHARED_KV))
        h->n_layer_kv_shared =
            (uint32_t)config_int(l, "num_kv_shared_layers", 0, h->n_layer - 1, 0);
    if (arch_has(h->arch, TRAIT_PER_LAYER_INPUT))
        h->n_embd_per_layer =
            (uint32_t)config_int(l, "hidden_size_per_layer_input", 0, MAX_N_EMBD, 0);
    config_windows(l, h);
    if (!l->failed)
        config_attention(l, h);
    read_caps(l, h);
    read_experts(l, h);
    if (arch_has(h->arch, TRAIT_DELTA))
        config_delta(l, h);
    else
        config_recurrent(l, h);
    if (arch_has(h->arch, TRAIT_LATENT))
        config_latent(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_STREAMS))
        config_streams(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_INDEX))
        config_index(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_HYPER))
        config_hyper(l, h);
    else if (!l->failed && arch_has(h->arch, TRAIT_CLAMPS))
        config_clamps(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_NGRAMS))
        config_ngrams(l, h);
    if (l->failed)
        return;
    read_biases(l, h);
    h->no_values =
        arch_has(h->arch, TRAIT_KEYS_AS_VALUES) && config_bool(l, "attention_k_eq_v", false);
    read_ropeless(l, h);
    h->rope_interleaved = arch_has(h->arch, TRAIT_INTERLEAVED_2);
    if (!l->failed)
        config_rope(l, h);
    read_scales(l, h);
}

static bool recommended(const struct json_node *n, const char *key, double min, double max,
                        float *out)
{
    double v;

    if (!json_as_float(json_get(n, key), &v) || !(v >= min && v <= max))
        return false;
    *out = (float)v;
    return true;
}

/* Adds one id or a list of them. */
static void each_id(const struct json_node *n, struct generation_hparams *s,
                    void (*add)(struct generation_hparams *, int64_t))
{
    int64_t id;

    if (json_as_int(n, &id))
        add(s, id);
    if (n == NULL || n->kind != JSON_IS_ARRAY)
        return;
    for (n = n->first; n != NULL; n = n->next)
        if (json_as_int(n, &id))
            add(s, id);
}

static void read_generation(struct generation_hparams *s, const struct json_node *g,
                            const struct json_node *config, const struct json_node *text)
{
    float top_k;

    s->has_temp = recommended(g, "temperature", 0, 100, &s->temp);
    s->has_top_p = recommended(g, "top_p", 0, 1, &s->top_p);
    s->has_min_p = recommended(g, "min_p", 0, 1, &s->min_p);
    s->has_repeat_penalty = recommended(g, "repetition_penalty", 0.01, 100, &s->repeat_penalty);
    s->has_top_k = recommended(g, "top_k", 0, 1e9, &top_k);
    if (s->has_top_k)
        s->top_k = (int32_t)top_k;
    each_id(json_get(g, "eos_token_id"), s, generation_add_stop);
    each_id(json_get(config, "eos_token_id"), s, generation_add_stop);
    if (s->n_stop == 0)
        each_id(json_get(text, "eos_token_id"), s, generation_add_stop);
    each_id(json_get(g, "suppress_tokens"), s, generation_add_suppress);
}

/* Returns the start of "models--..." in the path of a folder in the hub's cache, which is
 * models--ORGANIZATION--NAME/snapshots/COMMIT; or NULL. */
static char *hub_component(char *path)
{
    char *found = NULL;

    for (char *at = path; (at = strstr(at, "/models--")) != NULL; at++) {
        const char *end = strchr(at + 1, '/');

        if (end != NULL && strncmp(end, "/snapshots/", 11) == 0)
            found = at + 1;
    }
    return found;
}

/* Sets the name to the repository's if the folder is in the hub's cache, else to the
 * folder's. */
static void name_of_folder(struct catalogue *c)
{
    char *path = realpath(c->index->folder, NULL), *component, *repo, *dashes;
    struct hparams *h = &c->hparams;

    if (path == NULL)
        return;
    repo = strrchr(path, '/') + 1;
    component = hub_component(path);
    if (component != NULL) {
        component += strlen("models--");
        *strchr(component, '/') = '\0';
        dashes = strstr(component, "--");
        if (dashes != NULL && dashes[2] != '\0')
            repo = dashes + 2;
        else if (component[0] != '\0')
            repo = component;
    }
    visible_line(h->name, sizeof h->name, repo, strlen(repo));
    free(path);
}

/* Reads what an assistant states beside text_config.  All its layers read the keys and values of
 * another model. */
static void read_assistant(struct config_lookup *l, const struct json_node *root,
                           struct hparams *h)
{
    struct config_lookup top = { .node = root, .e = l->e, .failed = l->failed };
    struct head_hparams *head = &h->head;

    config_int(l, "num_kv_shared_layers", 0, h->n_layer, h->n_layer);
    h->n_layer_kv_shared = h->n_layer;
    head->n_hidden =
        (uint32_t)config_int(&top, "backbone_hidden_size", 1, MAX_N_EMBD, CONFIG_NEEDED);
    head->n_embd_in = head->n_hidden;
    if (config_bool(&top, "use_ordered_embeddings", false)) {
        head->n_cluster =
            (uint32_t)config_int(&top, "num_centroids", 1, MAX_N_VOCAB, CONFIG_NEEDED);
        head->n_cluster_used = (uint32_t)config_int(&top, "centroid_intermediate_top_k", 1,
                                                    head->n_cluster, CONFIG_NEEDED);
    }
    l->failed = l->failed || top.failed;
}

int hparams_from_trees(struct catalogue *c, const struct json_node *config,
                       const struct json_node *generation, struct err *e)
{
    struct config_lookup l = { .node = json_get(config, "text_config"),
                               .e = e,
                               .defaults = &c->defaults };

    if (l.node == NULL)
        l.node = config;
    refuse_unknown(&l, config, &c->hparams);
    if (!l.failed)
        read_model(&l, &c->hparams);
    if (!l.failed && arch_has(c->hparams.arch, TRAIT_ASSISTANT))
        read_assistant(&l, config, &c->hparams);
    read_head(&l, config, &c->hparams);
    if (!l.failed)
        hparams_parts(&c->hparams);
    if (!l.failed && config_check_fields(&c->hparams, l.node, e) != 0)
        l.failed = true;
    if (!l.failed)
        read_generation(&c->generation, generation, config, l.node);
    return l.failed ? -1 : 0;
}

int hparams_from_config(struct catalogue *c, struct err *e)
{
    struct json_doc *config = NULL, *generation = NULL;
    char *file = NULL;
    int rc;

    if (snapshot_json(c, "config.json", true, &config, e) != 1)
        return -1;
    if (snapshot_json(c, "generation_config.json", false, &generation, e) < 0) {
        json_free(config);
        return -1;
    }
    name_of_folder(c);
    rc = hparams_from_trees(c, json_root(config), json_root(generation), e);
    json_free(config);
    json_free(generation);
    if (rc != 0 && asprintf(&file, "%s/config.json", c->index->folder) >= 0) {
        err_at(e, file, ERR_NO_OFFSET, NULL);
        free(file);
    }
    return rc;
}
