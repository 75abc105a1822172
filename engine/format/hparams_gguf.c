/*
 * Hyper-parameters from GGUF keys.
 *
 * Most keys are "ARCH.something".  A number that is the same in every layer may be stated once
 * or once per layer.  The first wrong key is kept in the lookup; the rest of its group then
 * returns minimums, so the lists below need no checks in between.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/value_rules.h"

struct lookup {
    const struct gguf *g;
    const char *arch;
    struct err *e;
    bool failed;
    char key[128];
};

static const char *spell(struct lookup *l, const char *suffix)
{
    snprintf(l->key, sizeof l->key, "%s.%s", l->arch, suffix);
    return l->key;
}

static void fail_at(struct lookup *l)
{
    const struct gguf_value *v = gguf_find(l->g, l->key);

    /* The offset of a well-formed value does not help. */
    err_at(l->e, NULL, v != NULL && l->e->code != ERR_UNSUPPORTED ? v->offset : ERR_NO_OFFSET,
           l->key);
    l->failed = true;
}

static void missing(struct lookup *l)
{
    err_set(l->e, ERR_FORMAT, "the key is missing");
    fail_at(l);
}

static void check_range(struct lookup *l, int64_t v, int64_t min, int64_t max)
{
    if (v >= min && v <= max)
        return;
    err_set(l->e, ERR_FORMAT, "is %lld; expected %lld to %lld", (long long)v, (long long)min,
            (long long)max);
    fail_at(l);
}

/* If absent is INT64_MIN, the key is required. */
static int64_t get_int(struct lookup *l, const char *suffix, int64_t min, int64_t max,
                       int64_t absent)
{
    int64_t v = min;
    int found;

    if (l->failed)
        return min;
    found = gguf_int(l->g, spell(l, suffix), &v, l->e);
    if (found < 0) {
        l->failed = true;
    } else if (found == 0) {
        if (absent != INT64_MIN)
            return absent;
        missing(l);
    } else {
        check_range(l, v, min, max);
    }
    return l->failed ? min : v;
}

/* A number from min to max.  If absent is NaN, the key is required. */
static double get_float(struct lookup *l, const char *suffix, double min, double max,
                        double absent)
{
    double v = min;
    int found;

    if (l->failed)
        return min;
    found = gguf_float(l->g, spell(l, suffix), &v, l->e);
    if (found < 0) {
        l->failed = true;
    } else if (found == 0) {
        if (!isnan(absent))
            return absent;
        missing(l);
    } else if (!(v >= min && v <= max)) {
        err_set(l->e, ERR_FORMAT, "is %g; expected %g to %g", v, min, max);
        fail_at(l);
    }
    return l->failed ? min : v;
}

/* Reads out[n_layer], stated once for all layers or once per layer. */
static void get_per_layer(struct lookup *l, const char *suffix, uint32_t n_layer, int64_t min,
                          int64_t max, int64_t absent, int64_t *out)
{
    const struct gguf_value *v = gguf_find(l->g, spell(l, suffix));

    if (l->failed)
        return;
    if (v == NULL || v->type != GGUF_ARRAY) {
        int64_t one = get_int(l, suffix, min, max, absent);

        for (uint32_t i = 0; i < n_layer; i++)
            out[i] = one;
        return;
    }
    if (v->count != n_layer) {
        err_set(l->e, ERR_FORMAT, "has %llu values for %u layers", (unsigned long long)v->count,
                n_layer);
        fail_at(l);
        return;
    }
    for (uint32_t i = 0; i < n_layer && !l->failed; i++) {
        if (!gguf_elem_int(v, i, &out[i])) {
            err_set(l->e, ERR_FORMAT, "is an array of %s, not of integers",
                    gguf_type_name(v->elem));
            fail_at(l);
        } else {
            check_range(l, out[i], min, max);
        }
    }
}

static void read_rope_scaling(struct lookup *l, struct hparams *h)
{
    struct rope_hparams *r = &h->rope;
    const char *type = "";
    double log_mul = 0;
    size_t len = 0;
    int found;

    if (arch_has(h->arch, TRAIT_TEMPERATURE))
        log_mul = get_float(l, "rope.scaling.yarn_log_multiplier", 0, 100, 0);
    r->factor = get_float(l, "rope.scaling.factor", 1e-6, 1e6,
                          get_float(l, "rope.scale_linear", 1e-6, 1e6, 1));
    /* 0: by the scaling's rule */
    r->attn_factor = get_float(l, "rope.scaling.attn_factor", 1e-6, MAX_ATTN_FACTOR, 0);
    r->n_ctx_orig = (uint32_t)get_int(l, "rope.scaling.original_context_length", 0, MAX_N_CTX,
                                      h->n_ctx_train);
    r->beta_fast = get_float(l, "rope.scaling.yarn_beta_fast", 1e-6, 1e6, 32);
    r->beta_slow = get_float(l, "rope.scaling.yarn_beta_slow", 1e-6, 1e6, 1);
    if (l->failed)
        return;
    if (r->n_ctx_orig == 0)
        r->n_ctx_orig = h->n_ctx_train;
    found = gguf_string(l->g, spell(l, "rope.scaling.type"), &type, &len, l->e);
    if (found < 0) {
        l->failed = true;
        return;
    }
    if (found == 0)
        type = r->factor != 1 ? "linear" : "none";
    if (strcmp(type, "none") == 0) {
        r->factor = 1;
    } else if (strcmp(type, "linear") == 0) {
        r->scaling = ROPE_LINEAR;
    } else if (strcmp(type, "yarn") == 0) {
        r->scaling = ROPE_YARN;
        r->is_untruncated = h->arch->experts == EXPERTS_GPT_OSS;
        r->attn_factor = (r->attn_factor != 0 ? r->attn_factor : 1) *
                         yarn_magnitude(r->factor, 1) / yarn_magnitude(r->factor, log_mul);
    } else if (strcmp(type, "longrope") != 0) { /* its tensors show that one */
        err_set(l->e, ERR_UNSUPPORTED, "rope scaling \"%s\" is not supported", type);
        fail_at(l);
    }
}

static void read_rope(struct lookup *l, struct hparams *h)
{
    const struct layer_hparams *global = NULL, *sliding = NULL;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        if (h->layers[i].is_sliding)
            sliding = &h->layers[i];
        else
            global = &h->layers[i];
    }
    if (global == NULL)
        global = sliding;
    h->rope.base = get_float(l, "rope.freq_base", 1.001, 1e15, 10000);
    h->rope.n_rot =
        (uint32_t)get_int(l, "rope.dimension_count", 2, MAX_HEAD_DIM, global->head_dim_k);
    read_rope_scaling(l, h);
    h->rope_swa = h->rope;
    if (arch_has(h->arch, TRAIT_SWA_UNSCALED))
        hparams_unscaled(&h->rope_swa, &h->rope);
    if (!arch_has(h->arch, TRAIT_ROPE_BY_KIND))
        return;

    /* Sliding layers rotate with their own base and are never scaled. */
    h->rope_swa = (struct rope_hparams){ .factor = 1, .attn_factor = 1 };
    h->rope_swa.base = get_float(l, "rope.freq_base_swa", 1.001, 1e15,
                                 get_float(l, "rope.local.freq_base", 1.001, 1e15, 10000));
    h->rope_swa.n_rot = (uint32_t)get_int(
        l, "rope.dimension_count_swa", 2, MAX_HEAD_DIM,
        sliding != NULL && arch_has(h->arch, TRAIT_HEADS_BY_KIND) ? sliding->head_dim_k
                                                                  : h->rope.n_rot);
}

/* attention.sliding_window_pattern: a boolean per layer, or a period whose last layer is
 * global. */
static void read_pattern(struct lookup *l, struct hparams *h, const struct gguf_value *v)
{
    int64_t sliding[MAX_LAYER], period;

    if (v->type == GGUF_ARRAY) {
        get_per_layer(l, "attention.sliding_window_pattern", h->n_layer, 0, 1, INT64_MIN,
                      sliding);
        for (uint32_t i = 0; i < h->n_layer && !l->failed; i++)
            h->layers[i].is_sliding = sliding[i] != 0;
        return;
    }
    period = get_int(l, "attention.sliding_window_pattern", 1, MAX_LAYER, INT64_MIN);
    if (!l->failed)
        hparams_slide(h, period);
}

/* Finds the layers that have a window. */
static void read_windows(struct lookup *l, struct hparams *h)
{
    const struct gguf_value *v;

    h->n_swa =
        (uint32_t)get_int(l, "attention.sliding_window", 0, MAX_N_CTX, h->arch->n_swa_gguf);
    if (l->failed || h->n_swa == 0)
        return;
    v = gguf_find(l->g, spell(l, "attention.sliding_window_pattern"));
    if (v != NULL) {
        read_pattern(l, h, v);
        return;
    }
    switch (h->arch->window) {
    case WINDOW_PERIOD: hparams_slide(h, h->arch->window_period); return;
    case WINDOW_PERIOD_OR_LAST:
    case WINDOW_LISTED: missing(l); return;
    case WINDOW_UPPER:
        if (h->n_swa < h->n_ctx_train) {
            spell(l, "attention.sliding_window");
            err_set(l->e, ERR_UNSUPPORTED,
                    "is %u, but no key states which layers have this window", h->n_swa);
            fail_at(l);
        }
        return;
    case WINDOW_ALL:
    case WINDOW_ALL_GGUF:
        for (uint32_t i = 0; i < h->n_layer; i++)
            h->layers[i].is_sliding = true;
        return;
    }
}

static void read_heads(struct lookup *l, struct hparams *h)
{
    int64_t heads[MAX_LAYER], kv[MAX_LAYER], ff[MAX_LAYER];
    int64_t k, v, k_swa, v_swa;

    get_per_layer(l, "attention.head_count", h->n_layer, 1, MAX_N_HEAD, INT64_MIN, heads);
    if (l->failed)
        return;
    get_per_layer(l, "attention.head_count_kv", h->n_layer, 1, MAX_N_HEAD, -1, kv);
    get_per_layer(l, "feed_forward_length", h->n_layer, 1, MAX_N_FF,
                  arch_experts(h->arch, true) == EXPERTS_QWEN_SHARED ? 1 : INT64_MIN, ff);
    k = get_int(l, "attention.key_length", 1, MAX_HEAD_DIM,
                get_int(l, "attention.head_dim", 1, MAX_HEAD_DIM, h->n_embd / heads[0]));
    v = get_int(l, "attention.value_length", 1, MAX_HEAD_DIM, k);
    k_swa = get_int(l, "attention.key_length_swa", 1, MAX_HEAD_DIM, k);
    v_swa = get_int(l, "attention.value_length_swa", 1, MAX_HEAD_DIM, v);
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        struct layer_hparams *layer = &h->layers[i];
        bool own_size = layer->is_sliding && arch_has(h->arch, TRAIT_HEADS_BY_KIND);

        layer->n_head = (uint32_t)heads[i];
        layer->n_head_kv = (uint32_t)(kv[i] < 0 ? heads[i] : kv[i]);
        layer->n_ff = (uint32_t)ff[i];
        layer->head_dim_k = (uint32_t)(own_size ? k_swa : k);
        layer->head_dim_v = (uint32_t)(own_size ? v_swa : v);
    }
    if (!l->failed && k == 0) {
        spell(l, "attention.key_length");
        err_set(l->e, ERR_FORMAT,
                "is missing, and embedding_length is smaller than the number of heads");
        fail_at(l);
    }
}

static void read_experts(struct lookup *l, struct hparams *h)
{
    enum expert_rule rule = arch_experts(h->arch, true);
    bool may_be_dense =
        rule == EXPERTS_NONE || rule == EXPERTS_BESIDE || rule == EXPERTS_MIXTRAL;
    int64_t shared;

    h->n_expert = (uint32_t)get_int(l, "expert_count", may_be_dense ? 0 : 1, 65535,
                                    may_be_dense ? 0 : INT64_MIN);
    if (l->failed || h->n_expert == 0)
        return;
    if (rule == EXPERTS_NONE) {
        err_set(l->e, ERR_UNSUPPORTED,
                "%s models with experts (this one has %u) are not supported", h->arch->name,
                h->n_expert);
        fail_at(l);
        return;
    }
    h->n_expert_used = (uint32_t)get_int(l, "expert_used_count", 1, h->n_expert, INT64_MIN);
    h->n_ff_expert = (uint32_t)get_int(l, "expert_feed_forward_length", 1, MAX_N_FF,
                                       rule == EXPERTS_MIXTRAL ? h->layers[0].n_ff : INT64_MIN);
    hparams_expert_rule(h, rule);
    if (rule != EXPERTS_QWEN_SHARED)
        return;
    shared =
        get_int(l, "expert_shared_feed_forward_length", 1, MAX_N_FF, (int64_t)h->n_ff_expert);
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].n_ff = (uint32_t)shared;
}

/* Reads the sizes of delta nets, and which layers have one. */
static void read_delta(struct lookup *l, struct hparams *h)
{
    struct delta_hparams *d = &h->delta;
    uint32_t n_all = h->n_layer + h->n_layer_draft;
    int64_t inner, recurrent[MAX_LAYER];

    d->is_tiled = h->arch->delta == DELTA_APART;
    d->n_head_k = (uint32_t)get_int(l, "ssm.group_count", 1, MAX_N_HEAD, INT64_MIN);
    d->n_head_v = (uint32_t)get_int(l, "ssm.time_step_rank", 1, MAX_N_HEAD, INT64_MIN);
    d->head_dim_k = (uint32_t)get_int(l, "ssm.state_size", 1, MAX_HEAD_DIM, INT64_MIN);
    d->conv_width = (uint32_t)get_int(l, "ssm.conv_kernel", 2, MAX_CONV_WIDTH, INT64_MIN);
    inner = get_int(l, "ssm.inner_size", 1, (int64_t)MAX_HEAD_DIM * MAX_N_HEAD, INT64_MIN);
    if (l->failed)
        return;
    d->head_dim_v = (uint32_t)(inner / d->n_head_v);
    if (inner % d->n_head_v != 0 || d->head_dim_v > MAX_HEAD_DIM) {
        err_set(l->e, ERR_FORMAT, "is %lld for %u heads", (long long)inner, d->n_head_v);
        fail_at(l);
        return;
    }
    hparams_recur(h, get_int(l, "full_attention_interval", 1, MAX_LAYER, 4));
    if (l->failed || gguf_find(l->g, spell(l, "attention.recurrent_layers")) == NULL)
        return;
    get_per_layer(l, "attention.recurrent_layers", n_all, 0, 1, INT64_MIN, recurrent);
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++)
        h->layers[i].is_recurrent = recurrent[i] != 0;
}

static float scale_of(struct lookup *l, const struct hparams *h)
{
    const struct layer_hparams *first = &h->layers[0];
    double stated = 0;

    if (h->arch->scale == SCALE_ONE)
        return 1;
    if (h->arch->scale == SCALE_STATED)
        stated = get_float(l, "attention.scale", 0, 1e6, 0);
    if (stated > 0)
        return (float)stated;
    if (h->arch->scale == SCALE_SCALAR && h->n_layer == h->arch->n_layer_wide_scale)
        return (float)(1 / sqrt((double)h->n_embd / first->n_head));
    return (float)(1 / sqrt((double)first->head_dim_k));
}

/* A factor that an architecture with TRAIT_SCALES may state; 0 means none. */
static double get_factor(struct lookup *l, const struct hparams *h, const char *suffix)
{
    double v = arch_has(h->arch, TRAIT_SCALES) ? get_float(l, suffix, 0, MAX_SCALE, 0) : 0;

    return v > 0 ? v : 1;
}

static void read_scales(struct lookup *l, struct hparams *h)
{
    h->attn_scale = scale_of(l, h);
    h->embd_scale = arch_has(h->arch, TRAIT_EMBD_SCALE)
                        ? sqrtf((float)h->n_embd)
                        : (float)get_factor(l, h, "embedding_scale");
    h->residual_scale = (float)get_factor(l, h, "residual_scale");
    h->logit_scale = (float)(1 / get_factor(l, h, "logit_scale"));
    if (!arch_has(h->arch, TRAIT_TEMPERATURE))
        return;
    h->temp_scale = (float)get_float(l, "attention.temperature_scale", 0, 100, 0);
    h->temp_len =
        (uint32_t)get_int(l, "attention.temperature_length", 1, MAX_N_CTX, h->rope.n_ctx_orig);
}

static void read_model(struct lookup *l, struct hparams *h)
{
    h->n_layer = (uint32_t)get_int(l, "block_count", 1, MAX_LAYER, INT64_MIN);
    h->n_embd = (uint32_t)get_int(l, "embedding_length", 1, MAX_N_EMBD, INT64_MIN);
    h->n_ctx_train = (uint32_t)get_int(l, "context_length", 1, MAX_N_CTX, INT64_MIN);
    h->rms_eps = (float)get_float(l, "attention.layer_norm_rms_epsilon", 1e-30, 1, (double)NAN);
    h->softcap_attn =
        (float)get_float(l, "attn_logit_softcapping", 0, 1e6, (double)h->arch->softcap_attn);
    h->softcap_final =
        (float)get_float(l, "final_logit_softcapping", 0, 1e6, (double)h->arch->softcap_final);
    if (!l->failed && arch_has(h->arch, TRAIT_DELTA)) {
        h->n_layer_draft = (uint32_t)get_int(l, "nextn_predict_layers", 0, h->n_layer - 1, 0);
        h->n_layer -= h->n_layer_draft;
        read_delta(l, h);
    }
    if (l->failed)
        return;
    h->n_layer_kv_shared =
        (uint32_t)get_int(l, "attention.shared_kv_layers", 0, h->n_layer - 1, 0);
    h->n_embd_per_layer =
        (uint32_t)get_int(l, "embedding_length_per_layer_input", 0, MAX_N_EMBD, 0);
    read_windows(l, h);
    if (!l->failed)
        read_heads(l, h);
    if (!l->failed)
        read_rope(l, h);
    read_experts(l, h);
    if (!l->failed)
        read_scales(l, h);
    hparams_skip_rope(h, h->arch->ropeless_period);
    h->rope_interleaved = arch_has(h->arch, TRAIT_INTERLEAVED);
}

/* Refuses files that are not text models, by general.type. */
static int check_kind(const struct gguf *g, struct err *e)
{
    static const struct {
        const char *type, *is;
    } kinds[] = {
        { "adapter", "an adapter (LoRA), not a model" },
        { "imatrix", "an importance matrix, not a model" },
        { "mmproj", "a vision or audio projector, not a text model" },
        { "vocab", "a vocabulary only, not a model" },
    };
    const char *type = NULL;
    int found = gguf_string(g, "general.type", &type, NULL, e);

    if (found < 0)
        return -1;
    for (size_t i = 0; found == 1 && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(type, kinds[i].type) == 0) {
            err_set(e, ERR_UNSUPPORTED, "the file is %s", kinds[i].is);
            return err_at(e, NULL, ERR_NO_OFFSET, "general.type");
        }
    }
    return 0;
}

static int read_arch(struct hparams *h, const struct gguf *g, struct err *e)
{
    static const char key[] = "general.architecture";
    const char *name = NULL;
    int found = gguf_string(g, key, &name, NULL, e);

    if (found < 0)
        return -1;
    if (found == 0) {
        err_set(e, ERR_FORMAT, "the key is missing");
        return err_at(e, NULL, ERR_NO_OFFSET, key);
    }
    h->arch = arch_by_name(name);
    if (h->arch == NULL) {
        if (strcmp(name, "clip") == 0)
            err_set(e, ERR_UNSUPPORTED, "the file is a vision projector, not a text model");
        else if (strcmp(name, "gemma4-assistant") == 0)
            err_set(e, ERR_UNSUPPORTED,
                    "the file is a drafting model for Gemma 4, which cannot run alone");
        else
            arch_refuse(name, e);
        return err_at(e, NULL, ERR_NO_OFFSET, key);
    }
    return 0;
}

/* Recommendations are optional; an invalid one is ignored. */
static bool recommended(const struct gguf *g, const char *key, double min, double max,
                        float *out)
{
    struct err ignored = ERR_INIT;
    double v;

    if (gguf_float(g, key, &v, &ignored) != 1 || !(v >= min && v <= max))
        return false;
    *out = (float)v;
    return true;
}

static void add_stop(struct generation_hparams *s, const struct gguf *g, const char *key)
{
    struct err ignored = ERR_INIT;
    int64_t id;

    if (gguf_int(g, key, &id, &ignored) == 1)
        generation_add_stop(s, id);
}

static void read_generation(struct generation_hparams *s, const struct gguf *g)
{
    const struct gguf_value *v;
    float top_k;

    s->has_temp = recommended(g, "general.sampling.temp", 0, 100, &s->temp);
    s->has_top_p = recommended(g, "general.sampling.top_p", 0, 1, &s->top_p);
    s->has_min_p = recommended(g, "general.sampling.min_p", 0, 1, &s->min_p);
    s->has_repeat_penalty =
        recommended(g, "general.sampling.penalty_repeat", 0.01, 100, &s->repeat_penalty);
    s->has_top_k = recommended(g, "general.sampling.top_k", 0, 1e9, &top_k);
    if (s->has_top_k)
        s->top_k = (int32_t)top_k;
    add_stop(s, g, "tokenizer.ggml.eos_token_id");
    add_stop(s, g, "tokenizer.ggml.eot_token_id");
    add_stop(s, g, "tokenizer.ggml.eom_token_id");
    v = gguf_find(g, "tokenizer.ggml.suppress_tokens");
    for (uint64_t i = 0; v != NULL && v->type == GGUF_ARRAY && i < v->count; i++) {
        int64_t id;

        if (!gguf_elem_int(v, i, &id))
            break;
        generation_add_suppress(s, id);
    }
}

/* Sets the name to general.name, else to the file's name without its suffix. */
static void read_name(struct catalogue *c)
{
    const char *name = NULL, *slash = strrchr(c->path, '/'), *dot;
    struct hparams *h = &c->hparams;
    struct err ignored = ERR_INIT;
    size_t len = 0;

    if (gguf_string(c->gguf, "general.name", &name, &len, &ignored) == 1)
        clean_name(h->name, sizeof h->name, name, len);
    if (h->name[0] != '\0')
        return;
    name = slash != NULL ? slash + 1 : c->path;
    dot = strrchr(name, '.');
    if (dot != NULL && strcmp(dot, ".gguf") == 0)
        clean_name(h->name, sizeof h->name, name, (size_t)(dot - name));
}

int hparams_from_gguf(struct catalogue *c, struct err *e)
{
    struct lookup l = { .g = c->gguf, .e = e };
    struct hparams *h = &c->hparams;

    if (check_kind(c->gguf, e) != 0 || read_arch(h, c->gguf, e) != 0)
        return -1;
    read_name(c);
    l.arch = h->arch->name;
    read_model(&l, h);
    if (l.failed)
        return -1;
    if (gguf_check_keys(c, e) != 0)
        return -1;
    read_generation(&c->generation, c->gguf);
    return 0;
}
