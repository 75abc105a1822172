/*
 * Hyper-parameters from GGUF keys.
 *
 * A key that a file leaves out has a default only if llama.cpp, or Ollama for files of its own
 * converter, computes with that value too; otherwise the file is refused.  A number that is the
 * same in every layer may be stated once or once per layer.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/visible.h"
#include "engine/format/arch.h"
#include "engine/format/foreign_files.h"
#include "engine/format/gguf_lookup.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/mixture.h"
#include "engine/format/value_rules.h"

/* Whether a stated factor is the one that the rule gives, in a float32's precision. */
static bool is_rule(double stated, double rule)
{
    return fabs(stated - rule) <= 1e-4 * rule;
}

/*
 * The magnitude of yarn.  llama.cpp multiplies attn_factor with the rule, but converters also
 * write the complete magnitude there, as into yarn_attn_factor; it is the rule's in published
 * models.  llama.cpp ignores yarn_attn_factor where yarn_log_multiplier is stated, so it may be
 * the magnitude without the multiplier there.  Programs differ on any other yarn_attn_factor.
 */
static void read_yarn_magnitude(struct gguf_lookup *l, const struct hparams *h,
                                struct rope_hparams *r)
{
    double scale = 1, all = 0, rule, total;

    if (arch_has(h->arch, TRAIT_LATENT)) { /* published models have the same mscale for both */
        all = 10 * lookup_float(l, "rope.scaling.yarn_log_multiplier", 0, 100, 0);
        scale = all > 0 ? all : 1;
    }
    if (arch_has(h->arch, TRAIT_TEMPERATURE)) {
        scale = lookup_float(l, "rope.scaling.mscale", 0, 100, 1);
        all = lookup_float(l, "rope.scaling.yarn_log_multiplier", 0, 100, 0);
    }
    rule = yarn_magnitude(r->factor, all > 0 && scale > 0 ? scale : 1) /
           yarn_magnitude(r->factor, all);
    total = lookup_float(l, "rope.scaling.yarn_attn_factor", 0, MAX_ATTN_FACTOR, 0);
    defaults_drop(l->defaults, "rope.scaling.yarn_attn_factor"); /* it is only compared */
    if (!l->failed && total != 0 && total != 1 && !is_rule(total, rule) &&
        !(all > 0 && is_rule(total, yarn_magnitude(r->factor, 1)))) {
        err_set(l->e, ERR_UNSUPPORTED,
                "is %g; memwall computes yarn's own factor only, which is %g here, so the "
                "answers would be wrong",
                total, rule);
        lookup_fail(l);
    }
    r->attn_factor = is_rule(r->attn_factor, rule) ? rule : r->attn_factor * rule;
}

/* Ollama's converter leaves out the scaling of Gemma 3, which models of some sizes have. */
static double lost_scaling(struct gguf_lookup *l, const struct hparams *h)
{
    for (size_t i = 0; i < sizeof h->arch->lost.n_layer / sizeof h->arch->lost.n_layer[0]; i++)
        if (h->arch->lost.n_layer[i] == h->n_layer && h->n_swa > 0 &&
            gguf_is_ollama_rope(l->g, l->prefix))
            return h->arch->lost.factor;
    return 1;
}

/*
 * Returns the scaling of a file that states its factor, but not its type.  llama.cpp takes it
 * as linear.  A linear one has no original context, though, so with one the type is missing.
 */
static const char *absent_type(struct gguf_lookup *l, const struct hparams *h)
{
    if (h->rope.factor == 1)
        return "none";
    if (h->arch->gguf.is_yarn)
        return "yarn";
    if (lookup_find(l, "rope.scaling.original_context_length") == NULL)
        return "linear";
    lookup_find(l, "rope.scaling.type");
    lookup_missing(l);
    return "";
}

static void read_rope_scaling(struct gguf_lookup *l, const struct catalogue *c,
                              struct hparams *h)
{
    struct rope_hparams *r = &h->rope;
    bool is_longrope = catalogue_find(c, "rope_factors_long.weight") != NULL;
    struct default_list *defaults = l->defaults;
    const char *type = lookup_text(l, "rope.scaling.type");

    r->factor = lookup_scaling(l, "rope.scaling.factor", 1e-6, 1e6,
                               type == NULL ? lost_scaling(l, h) : 1);
    if (!l->failed && type != NULL &&
        (strcmp(type, "yarn") == 0 || strcmp(type, "linear") == 0) &&
        lookup_find(l, "rope.scaling.factor") == NULL)
        lookup_missing(l);
    if (!l->failed && type == NULL)
        type = absent_type(l, h);
    if (l->failed)
        return;
    if (strcmp(type, "none") == 0 || strcmp(type, "default") == 0) {
        r->factor = 1;
    } else if (strcmp(type, "linear") == 0) {
        r->scaling = ROPE_LINEAR;
    } else if (strcmp(type, "yarn") == 0) {
        r->scaling = ROPE_YARN;
        r->is_untruncated = h->arch->experts == EXPERTS_GPT_OSS;
    } else if (strcmp(type, "longrope") != 0) { /* its tensors show that one */
        lookup_find(l, "rope.scaling.type");
        err_set(l->e, ERR_UNSUPPORTED, "rope scaling \"%.60s\" is not supported", type);
        lookup_fail(l);
    }
    if (r->scaling != ROPE_YARN && !is_longrope) /* the others do not use these */
        l->defaults = NULL;
    /* llama.cpp takes 1, but longrope is trained with the magnitude of its rule. */
    r->attn_factor = lookup_scaling(l, "rope.scaling.attn_factor", 1e-6, MAX_ATTN_FACTOR,
                                    is_longrope ? (double)NAN : 1);
    r->n_ctx_orig = (uint32_t)lookup_int(l, "rope.scaling.original_context_length", 1,
                                         MAX_N_CTX, h->n_ctx_train);
    if (r->scaling != ROPE_YARN)
        l->defaults = NULL;
    r->beta_fast = lookup_scaling(l, "rope.scaling.yarn_beta_fast", 1e-6, 1e6, 32);
    r->beta_slow = lookup_scaling(l, "rope.scaling.yarn_beta_slow", 1e-6, 1e6, 1);
    if (r->scaling == ROPE_YARN)
        read_yarn_magnitude(l, h, r);
    l->defaults = defaults;
}

/* llama.cpp takes 10000 for a missing base.  That is right only where the family has the same
 * default. */
static double absent_base(const struct arch *a)
{
    if (a->gguf.rope_base != 0)
        return a->gguf.rope_base;
    return a->absent.rope_base == 1e4 ? 1e4 : (double)NAN;
}

static void read_rope(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
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
    h->rope.base = lookup_float(l, "rope.freq_base", 1.001, 1e15, absent_base(h->arch));
    /* llama.cpp rotates whole heads if the key is missing; models with delta nets do not. */
    h->rope.n_rot = (uint32_t)lookup_int(
        l, "rope.dimension_count", 2, MAX_HEAD_DIM,
        arch_has(h->arch, TRAIT_DELTA) ? GGUF_NEEDED : (int64_t)global->head_dim_k);
    if (arch_has(h->arch, TRAIT_NOPE) && h->latent.n_latent == 0)
        h->rope.n_rot = 2; /* files state some number that means nothing */
    read_rope_scaling(l, c, h);
    h->rope_swa = h->rope;
    if (arch_has(h->arch, TRAIT_SWA_UNSCALED))
        hparams_unscaled(&h->rope_swa, &h->rope);
    if (!arch_has(h->arch, TRAIT_ROPE_BY_KIND))
        return;

    /* Sliding layers rotate with their own base and are never scaled. */
    h->rope_swa = (struct rope_hparams){ .factor = 1, .attn_factor = 1 };
    h->rope_swa.base = lookup_float(l, "rope.freq_base_swa", 1.001, 1e15, 10000);
    h->rope_swa.n_rot = (uint32_t)lookup_int(
        l, "rope.dimension_count_swa", 2, MAX_HEAD_DIM,
        sliding != NULL && arch_has(h->arch, TRAIT_HEADS_BY_KIND) ? sliding->head_dim_k
                                                                  : h->rope.n_rot);
}

/* attention.sliding_window_pattern: a boolean per layer, or a period whose last layer is
 * global. */
static void read_pattern(struct gguf_lookup *l, struct hparams *h, const struct gguf_value *v)
{
    int64_t sliding[MAX_LAYER], period;

    if (v->type == GGUF_ARRAY) {
        lookup_per_layer(l, "attention.sliding_window_pattern", h->n_layer,
                         h->n_layer + h->n_layer_draft, 0, 1, GGUF_NEEDED, sliding);
        for (uint32_t i = 0; i < h->n_layer && !l->failed; i++)
            h->layers[i].is_sliding = sliding[i] != 0;
        return;
    }
    period = lookup_int(l, "attention.sliding_window_pattern", 1, MAX_LAYER, GGUF_NEEDED);
    if (!l->failed)
        hparams_slide(h, period);
}

/* Refuses a file that says which layers have a window, but not how wide it is. */
static void check_pattern(struct gguf_lookup *l, const struct hparams *h)
{
    const struct gguf_value *v = lookup_find(l, "attention.sliding_window_pattern");
    int64_t is_sliding = 0;

    for (uint64_t i = 0; v != NULL && v->type == GGUF_ARRAY && i < h->n_layer; i++)
        if (gguf_elem_int(v, i, &is_sliding) && is_sliding != 0)
            break;
    if (is_sliding != 0 && lookup_find(l, "attention.sliding_window") == NULL)
        lookup_missing(l);
}

/* Finds the layers that have a window. */
static void read_windows(struct gguf_lookup *l, struct hparams *h)
{
    const struct arch *a = h->arch;
    const struct gguf_value *v;

    h->n_swa =
        (uint32_t)lookup_int(l, "attention.sliding_window", a->gguf.needs_window, MAX_N_CTX,
                             a->gguf.needs_window ? GGUF_NEEDED : a->n_swa_gguf);
    if (!l->failed && h->n_swa == 0)
        check_pattern(l, h);
    if (l->failed || h->n_swa == 0)
        return;
    v = lookup_find(l, "attention.sliding_window_pattern");
    if (v != NULL) {
        read_pattern(l, h, v);
        return;
    }
    switch (a->window) {
    case WINDOW_PERIOD_FIRST:
        for (uint32_t i = 0; i < h->n_layer; i++)
            h->layers[i].is_sliding = i % a->window_period != 0;
        return;
    case WINDOW_PERIOD:
        defaults_note(l->defaults, "attention.sliding_window_pattern", a->window_period);
        hparams_slide(h, a->window_period);
        return;
    case WINDOW_PERIOD_OR_LAST:
    case WINDOW_LISTED: lookup_missing(l); return;
    case WINDOW_UPPER:
        if (h->n_swa < h->n_ctx_train) {
            lookup_find(l, "attention.sliding_window");
            err_set(l->e, ERR_UNSUPPORTED,
                    "is %u, but no key states which layers have this window", h->n_swa);
            lookup_fail(l);
        }
        return;
    case WINDOW_ALL:
    case WINDOW_ALL_GGUF:
        for (uint32_t i = 0; i < h->n_layer; i++)
            h->layers[i].is_sliding = true;
        return;
    }
}

/* Layers without attention may have 0 heads of keys and values.  They get the number of the
 * others, which their description shares. */
static void fill_kv_heads(struct gguf_lookup *l, const struct hparams *h, int64_t *kv)
{
    int64_t most = 1;

    for (uint32_t i = 0; i < h->n_layer; i++)
        most = kv[i] > most ? kv[i] : most;
    for (uint32_t i = 0; i < h->n_layer; i++) {
        if (kv[i] != 0)
            continue;
        if (arch_has(h->arch, TRAIT_ONE_BLOCK) ? h->layers[i].attends
                                               : !h->layers[i].is_recurrent) {
            lookup_find(l, "attention.head_count_kv");
            err_set(l->e, ERR_FORMAT, "is 0 for layer %u, which has attention", i);
            lookup_fail(l);
            return;
        }
        kv[i] = most;
    }
}

/* Reads the sizes of latent attention.  Files of before April 2025 have those of a head, k and
 * v, in the keys that later files use for what is stored. */
static void read_latent(struct gguf_lookup *l, struct hparams *h, int64_t k, int64_t v)
{
    struct latent_hparams *m = &h->latent;
    int64_t n_head_k;

    m->n_latent = (uint32_t)lookup_int(l, "attention.kv_lora_rank", 1, MAX_LATENT, GGUF_NEEDED);
    m->n_query = (uint32_t)lookup_int(l, "attention.q_lora_rank", 1, MAX_N_EMBD, 0);
    defaults_drop(l->defaults, "attention.q_lora_rank"); /* its tensors say so, too */
    m->n_value = (uint32_t)lookup_int(l, "attention.value_length_mla", 1, MAX_HEAD_DIM, v);
    m->n_rot = (uint32_t)lookup_int(l, "rope.dimension_count", 2, MAX_HEAD_DIM, GGUF_NEEDED);
    n_head_k = lookup_int(l, "attention.key_length_mla", 1, MAX_HEAD_DIM, k);
    if (l->failed)
        return;
    if (n_head_k <= m->n_rot) {
        err_set(l->e, ERR_FORMAT, "is %lld, but %u dimensions of a head rotate",
                (long long)n_head_k, m->n_rot);
        lookup_fail(l);
        return;
    }
    m->n_nope = (uint32_t)n_head_k - m->n_rot;
    hparams_latent(h);
}

static void read_heads(struct gguf_lookup *l, struct hparams *h)
{
    enum expert_rule rule = arch_experts(h->arch, true);
    bool is_dense = rule == EXPERTS_NONE || rule == EXPERTS_BESIDE || rule == EXPERTS_MIXTRAL;
    uint32_t n_all = h->n_layer + h->n_layer_draft;
    int64_t heads[MAX_LAYER], kv[MAX_LAYER], ff[MAX_LAYER];
    bool is_by_kind = arch_has(h->arch, TRAIT_HEADS_BY_KIND);
    int64_t k, v, k_swa = 0, v_swa = 0;

    lookup_per_layer(l, "attention.head_count", h->n_layer, n_all, 1, MAX_N_HEAD, GGUF_NEEDED,
                     heads);
    if (l->failed)
        return;
    lookup_per_layer(l, "attention.head_count_kv", h->n_layer, n_all,
                     arch_recurs(h->arch) ? 0 : 1, MAX_N_HEAD, -1, kv);
    lookup_per_layer(l, "feed_forward_length", h->n_layer, n_all,
                     arch_has(h->arch, TRAIT_ONE_BLOCK) ? 0 : 1, MAX_N_FF,
                     is_dense ? GGUF_NEEDED : 1, ff);
    k = lookup_int(l, "attention.key_length", 1, MAX_HEAD_DIM,
                   h->arch->gguf.head_dim != 0 ? h->arch->gguf.head_dim : h->n_embd / heads[0]);
    v = lookup_int(l, "attention.value_length", 1, MAX_HEAD_DIM, k);
    if (is_by_kind) {
        k_swa = lookup_int(l, "attention.key_length_swa", 1, MAX_HEAD_DIM, GGUF_NEEDED);
        v_swa = lookup_int(l, "attention.value_length_swa", 1, MAX_HEAD_DIM, GGUF_NEEDED);
    }
    if (!l->failed)
        fill_kv_heads(l, h, kv);
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        struct layer_hparams *layer = &h->layers[i];
        bool own_size = layer->is_sliding && is_by_kind;

        layer->n_head = (uint32_t)heads[i];
        layer->n_head_kv = (uint32_t)(kv[i] < 0 ? heads[i] : kv[i]);
        layer->n_ff = (uint32_t)ff[i];
        layer->head_dim_k = (uint32_t)(own_size ? k_swa : k);
        layer->head_dim_v = (uint32_t)(own_size ? v_swa : v);
        if (kv[i] < 0)
            defaults_note(l->defaults, "attention.head_count_kv", (double)heads[i]);
    }
    if (!l->failed && arch_has(h->arch, TRAIT_LATENT))
        read_latent(l, h, k, v);
    if (!l->failed && k == 0) {
        lookup_find(l, "attention.key_length");
        err_set(l->e, ERR_FORMAT,
                "is missing, and embedding_length is smaller than the number of heads");
        lookup_fail(l);
    }
}

/* Returns the width of an expert's feed-forward by the shape of the first experts, or 0. */
static int64_t expert_rows(const struct catalogue *c)
{
    const struct tensor_info *gate = catalogue_find(c, "blk.0.ffn_gate_exps.weight");
    const struct tensor_info *both = catalogue_find(c, "blk.0.ffn_gate_up_exps.weight");
    uint64_t n = gate != NULL ? gate->ne[1] : both != NULL ? both->ne[1] / 2 : 0;

    return n <= MAX_N_FF ? (int64_t)n : 0;
}

/* Whether the weights of the chosen experts are divided by their sum. */
static void read_expert_norm(struct gguf_lookup *l, struct hparams *h, enum expert_rule rule)
{
    bool is_qwen = rule == EXPERTS_QWEN || rule == EXPERTS_QWEN_SHARED;
    bool is_normed = lookup_bool(l, "expert_weights_norm", true);

    if (!is_qwen) /* there is no other choice */
        defaults_drop(l->defaults, "expert_weights_norm");
    h->keeps_expert_weights = is_qwen && !is_normed;
    if (l->failed || is_normed || is_qwen)
        return;
    err_set(l->e, ERR_UNSUPPORTED, "is false, which is not supported for %s", h->arch->name);
    lookup_fail(l);
}

/* Returns the rows of a tensor of a layer, or 0. */
static uint32_t rows_of(const struct catalogue *c, uint32_t layer, const char *suffix)
{
    char name[64];
    const struct tensor_info *t;

    snprintf(name, sizeof name, "blk.%u.%s", layer, suffix);
    t = catalogue_find(c, name);
    return t != NULL && t->ne[1] <= MAX_N_FF ? (uint32_t)t->ne[1] : 0;
}

/* How the router chooses and weighs. */
static void read_router(struct gguf_lookup *l, struct hparams *h, bool has_bias)
{
    const struct mixture *m = h->arch->mixture;
    enum router_score score = m->score_by_bias && !has_bias ? SCORE_SOFTMAX : m->score;
    int64_t stated;

    h->keeps_expert_weights = !lookup_bool(l, "expert_weights_norm", m->is_normed_gguf);
    h->expert_factor = (float)lookup_float(l, "expert_weights_scale", 0, MAX_SCALE, 1);
    h->n_expert_group = (uint32_t)lookup_int(l, "expert_group_count", 1, MAX_EXPERT_GROUP, 1);
    h->n_expert_group_used =
        (uint32_t)lookup_int(l, "expert_group_used_count", 1, MAX_EXPERT_GROUP, 1);
    if (!l->failed && h->n_expert_group_used > h->n_expert_group) {
        lookup_find(l, "expert_group_count");
        err_set(l->e, ERR_FORMAT, "is %u, but expert_group_used_count is %u", h->n_expert_group,
                h->n_expert_group_used);
        lookup_fail(l);
    }
    stated = lookup_int(l, "expert_gating_func", 1, 16, score == SCORE_SIGMOID ? 2 : 1);
    if (!l->failed && stated > 2) {
        err_set(l->e, ERR_UNSUPPORTED, "is %lld; memwall computes 1 (softmax) and 2 (sigmoid)",
                (long long)stated);
        lookup_fail(l);
    }
    h->router_score = stated == 2 ? SCORE_SIGMOID : SCORE_SOFTMAX;
    h->groups_by_max = h->router_score == SCORE_SOFTMAX;
    h->expert_guard = (float)m->guard;
}

/* Reads the experts of EXPERTS_ROUTED.  Tensors show which layers have experts, and how wide a
 * shared one is: published files have other numbers in keys. */
static void read_routed(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
{
    bool has_bias = false, has_some = false;
    uint32_t n_ff = 0;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        struct layer_hparams *layer = &h->layers[i];

        /* A layer of one block that has another part has none; their tensors are reported. */
        layer->has_experts =
            rows_of(c, i, "ffn_gate_inp.weight") > 0 &&
            !(arch_has(h->arch, TRAIT_ONE_BLOCK) && (layer->attends || layer->is_recurrent));
        has_some |= layer->has_experts;
        if (!layer->has_experts)
            continue;
        layer->n_ff = rows_of(c, i, "ffn_up_shexp.weight");
        has_bias |= rows_of(c, i, "exp_probs_b.bias") > 0;
        if (n_ff == 0)
            n_ff = rows_of(c, i, "ffn_up_exps.weight");
        if (n_ff == 0)
            n_ff = rows_of(c, i, "ffn_gate_up_exps.weight") / 2;
    }
    h->n_expert =
        (uint32_t)lookup_int(l, "expert_count", has_some, 65535, has_some ? GGUF_NEEDED : 0);
    if (!has_some)
        h->n_expert = 0;
    if (h->n_expert == 0)
        defaults_drop(l->defaults, "expert_count");
    if (l->failed || h->n_expert == 0)
        return;
    h->n_expert_used =
        (uint32_t)lookup_int(l, "expert_used_count", 1, h->n_expert, GGUF_NEEDED);
    h->n_ff_expert = (uint32_t)lookup_int(l, "expert_feed_forward_length", 1, MAX_N_FF,
                                          n_ff > 0 ? n_ff : GGUF_NEEDED);
    defaults_drop(l->defaults, "expert_feed_forward_length");
    if (!l->failed)
        read_router(l, h, has_bias);
}

static void read_experts(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
{
    enum expert_rule rule = arch_experts(h->arch, true);
    int64_t shared, rows = expert_rows(c);
    bool may_be_dense = rule == EXPERTS_NONE ||
                        (rows == 0 && (rule == EXPERTS_BESIDE || rule == EXPERTS_MIXTRAL));

    if (rule == EXPERTS_ROUTED) {
        read_routed(l, c, h);
        return;
    }
    h->n_expert = (uint32_t)lookup_int(l, "expert_count", may_be_dense ? 0 : 1, 65535,
                                       may_be_dense ? 0 : GGUF_NEEDED);
    if (h->n_expert == 0) /* its tensors say so, too */
        defaults_drop(l->defaults, "expert_count");
    if (l->failed || h->n_expert == 0)
        return;
    if (rule == EXPERTS_NONE) {
        err_set(l->e, ERR_UNSUPPORTED,
                "%s models with experts (this one has %u) are not supported", h->arch->name,
                h->n_expert);
        lookup_fail(l);
        return;
    }
    h->n_expert_used =
        (uint32_t)lookup_int(l, "expert_used_count", 1, h->n_expert, GGUF_NEEDED);
    if (rows == 0 && rule == EXPERTS_MIXTRAL)
        rows = h->layers[0].n_ff;
    h->n_ff_expert = (uint32_t)lookup_int(l, "expert_feed_forward_length", 1, MAX_N_FF,
                                          rows > 0 ? rows : GGUF_NEEDED);
    read_expert_norm(l, h, rule);
    hparams_expert_rule(h, rule);
    if (rule != EXPERTS_QWEN_SHARED)
        return;
    shared = lookup_int(l, "expert_shared_feed_forward_length", 1, MAX_N_FF,
                        (int64_t)h->n_ff_expert);
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].n_ff = (uint32_t)shared;
}

/* Ollama's converter gives each layer a number of KV heads, which is 0 for delta nets. */
static void recur_by_heads(struct gguf_lookup *l, struct hparams *h)
{
    const struct gguf_value *v = lookup_find(l, "attention.head_count_kv");
    bool is_none[MAX_LAYER], has_none = false, has_some = false;
    int64_t n;

    if (v == NULL || v->type != GGUF_ARRAY || v->count < h->n_layer)
        return;
    for (uint32_t i = 0; i < h->n_layer; i++) {
        if (!gguf_elem_int(v, i, &n))
            return; /* read_heads() reports it */
        is_none[i] = n == 0;
        has_none |= n == 0;
        has_some |= n != 0;
    }
    for (uint32_t i = 0; has_none && has_some && i < h->n_layer; i++)
        h->layers[i].is_recurrent = is_none[i];
    if (has_none && has_some && arch_has(h->arch, TRAIT_DELTA))
        defaults_drop(l->defaults, "full_attention_interval");
}

/* Reads the sizes of delta nets and Mamba-2. */
static void read_state_sizes(struct gguf_lookup *l, struct hparams *h)
{
    struct delta_hparams *d = &h->delta;
    int64_t inner;

    d->n_head_k = (uint32_t)lookup_int(l, "ssm.group_count", 1, MAX_N_HEAD, GGUF_NEEDED);
    d->n_head_v = (uint32_t)lookup_int(l, "ssm.time_step_rank", 1, MAX_N_HEAD, GGUF_NEEDED);
    d->head_dim_k = (uint32_t)lookup_int(l, "ssm.state_size", 1, MAX_HEAD_DIM, GGUF_NEEDED);
    d->conv_width = (uint32_t)lookup_int(l, "ssm.conv_kernel", 2, MAX_CONV_WIDTH, GGUF_NEEDED);
    inner = lookup_int(l, "ssm.inner_size", 1, (int64_t)MAX_HEAD_DIM * MAX_N_HEAD, GGUF_NEEDED);
    if (l->failed)
        return;
    d->head_dim_v = (uint32_t)(inner / d->n_head_v);
    if (inner % d->n_head_v != 0 || d->head_dim_v > MAX_HEAD_DIM) {
        err_set(l->e, ERR_FORMAT, "is %lld for %u heads", (long long)inner, d->n_head_v);
        lookup_fail(l);
    }
}

/* Layers with a feed-forward are neither recurrent nor have they attention. */
static void read_one_block(struct gguf_lookup *l, struct hparams *h)
{
    const struct gguf_value *v = lookup_find(l, "feed_forward_length");
    int64_t ff[MAX_LAYER];

    if (v != NULL && v->type != GGUF_ARRAY) {
        err_set(l->e, ERR_FORMAT, "is not a list, which shows the layers with a feed-forward");
        lookup_fail(l);
    }
    lookup_per_layer(l, "feed_forward_length", h->n_layer, h->n_layer + h->n_layer_draft, 0,
                     MAX_N_FF, GGUF_NEEDED, ff);
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        h->layers[i].attends = !h->layers[i].is_recurrent;
        if (ff[i] > 0)
            h->layers[i].is_recurrent = h->layers[i].attends = false;
    }
}

/* Reads which layers are recurrent, and their sizes. */
static void read_recurrent(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
{
    struct delta_hparams *d = &h->delta;
    bool has_some = false;

    if (!arch_has(h->arch, TRAIT_SIDE_BY_SIDE) &&
        lookup_find(l, "attention.head_count_kv") == NULL) {
        lookup_missing(l); /* it shows the layers with attention */
        return;
    }
    recur_by_heads(l, h);
    for (uint32_t i = 0; i < h->n_layer; i++) {
        if (arch_has(h->arch, TRAIT_SIDE_BY_SIDE))
            h->layers[i].is_recurrent = true;
        has_some |= h->layers[i].is_recurrent;
    }
    if (arch_has(h->arch, TRAIT_ONE_BLOCK))
        read_one_block(l, h);
    if (l->failed || !has_some)
        return;
    if (arch_has(h->arch, TRAIT_SHORT_CONV)) {
        d->conv_width =
            (uint32_t)lookup_int(l, "shortconv.l_cache", 2, MAX_CONV_WIDTH, GGUF_NEEDED);
    } else if (arch_has(h->arch, TRAIT_KDA)) {
        d->head_dim_k = d->head_dim_v =
            (uint32_t)lookup_int(l, "kda.head_dim", 1, MAX_HEAD_DIM, GGUF_NEEDED);
        d->n_head_k = d->n_head_v =
            (uint32_t)lookup_int(l, "attention.head_count", 1, MAX_N_HEAD, GGUF_NEEDED);
        d->conv_width =
            (uint32_t)lookup_int(l, "ssm.conv_kernel", 2, MAX_CONV_WIDTH, GGUF_NEEDED);
        d->gate_bound = (float)lookup_float(l, "kda.gate_lower_bound", -1e6, 0, 0);
    } else {
        read_state_sizes(l, h);
        for (uint32_t i = 0; i < h->n_layer; i++) /* one layer is like another */
            d->has_norm |= rows_of(c, i, "ssm_norm.weight") > 0;
    }
    hparams_channels(h);
}

/* Reads the sizes of delta nets, and which layers have one. */
static void read_delta(struct gguf_lookup *l, struct hparams *h)
{
    int64_t recurrent[MAX_LAYER];

    h->delta.is_sigmoid = arch_has(h->arch, TRAIT_SIGMOID_GATE);
    h->delta.is_tiled = lookup_bool(l, "ssm.v_head_reordered", h->arch->delta == DELTA_APART);
    read_state_sizes(l, h);
    if (l->failed)
        return;
    hparams_channels(h);
    hparams_recur(h, lookup_int(l, "full_attention_interval", 1, MAX_LAYER, 4));
    if (l->failed)
        return;
    if (lookup_find(l, "attention.recurrent_layers") == NULL) {
        recur_by_heads(l, h);
        return;
    }
    lookup_per_layer(l, "attention.recurrent_layers", h->n_layer, h->n_layer + h->n_layer_draft,
                     0, 1, GGUF_NEEDED, recurrent);
    defaults_drop(l->defaults, "full_attention_interval");
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++)
        h->layers[i].is_recurrent = recurrent[i] != 0;
}

/* Residual streams and their mixers. */
static void read_streams(struct gguf_lookup *l, struct hparams *h)
{
    h->n_stream = (uint32_t)lookup_int(l, "hyper_connection.count", 1, MAX_STREAM, GGUF_NEEDED);
    h->n_mix = (uint32_t)lookup_int(l, "hyper_connection.low_rank", 1, MAX_N_EMBD, GGUF_NEEDED);
}

/* Index keys.  Layers with attention have the same block, others none. */
static void read_index(struct gguf_lookup *l, struct hparams *h)
{
    struct index_hparams *x = &h->index;
    int64_t block[MAX_LAYER], budget;

    x->n_head =
        (uint32_t)lookup_int(l, "attention.indexer.head_count", 1, MAX_INDEX_HEAD, GGUF_NEEDED);
    x->head_dim =
        (uint32_t)lookup_int(l, "attention.indexer.key_length", 1, MAX_INDEX_DIM, GGUF_NEEDED);
    budget = lookup_int(l, "attention.indexer.top_k", 1, MAX_N_CTX, GGUF_NEEDED);
    lookup_per_layer(l, "attention.compress_ratios", h->n_layer, h->n_layer + h->n_layer_draft,
                     0, MAX_INDEX_BLOCK, GGUF_NEEDED, block);
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        if (h->layers[i].is_recurrent)
            continue;
        if (x->block == 0)
            x->block = (uint32_t)block[i];
        if (x->block > 1 && block[i] == x->block)
            continue;
        err_set(l->e, ERR_UNSUPPORTED,
                "is %lld for layer %u; expected the same value above 1 "
                "for all layers with attention",
                (long long)block[i], i);
        lookup_fail(l);
    }
    if (!l->failed && hparams_index_budget(h, budget, l->e) != 0) {
        lookup_find(l, "attention.indexer.top_k");
        lookup_fail(l);
    }
}

/* Reads the n numbers of an array. */
static void read_numbers(struct gguf_lookup *l, const char *suffix, uint32_t n, uint64_t *out)
{
    const struct gguf_value *v = lookup_find(l, suffix);
    int64_t x;

    if (l->failed)
        return;
    if (v == NULL) {
        lookup_missing(l);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (v->type == GGUF_ARRAY && v->count == n && gguf_elem_int(v, i, &x) && x >= 0) {
            out[i] = (uint64_t)x;
            continue;
        }
        err_set(l->e, ERR_FORMAT, "is not an array of %u numbers", n);
        lookup_fail(l);
        return;
    }
}

/* The table of n-grams. */
static void read_ngrams(struct gguf_lookup *l, struct hparams *h)
{
    struct ngram_hparams *g = &h->ngram;
    uint64_t layer = 0;

    g->n_token = (uint32_t)lookup_int(l, "ple.ngram_size", 2, MAX_NGRAM, GGUF_NEEDED);
    g->n_hash = (uint32_t)lookup_int(l, "ple.heads_per_ngram", 1,
                                     MAX_NGRAM_ROW / (MAX_NGRAM - 1), GGUF_NEEDED);
    g->conv_width = (uint32_t)lookup_int(l, "ple.conv_kernel", 1, MAX_CONV_WIDTH, GGUF_NEEDED);
    g->width =
        (uint32_t)lookup_int(l, "embedding_length_per_layer_input", 1, MAX_N_EMBD, GGUF_NEEDED);
    g->end_id = (uint32_t)lookup_int(l, "ple.eos_token_id", 0, MAX_N_VOCAB, GGUF_NEEDED);
    read_numbers(l, "ple.layer_multipliers", g->n_token, g->factor);
    read_numbers(l, "ple.head_vocab_sizes", ngram_rows(g), g->n_row);
    read_numbers(l, "ple.head_offsets", ngram_rows(g), g->first);
    read_numbers(l, "ple.layers", 1, &layer);
    if (!l->failed && layer >= h->n_layer) {
        err_set(l->e, ERR_FORMAT, "is %llu of %u layers", (unsigned long long)layer,
                h->n_layer);
        lookup_fail(l);
    }
    g->layer = (uint32_t)layer;
}

static float scale_of(struct gguf_lookup *l, const struct hparams *h)
{
    const struct layer_hparams *first = &h->layers[0];
    double stated = 0;

    if (h->arch->scale == SCALE_ONE)
        return 1;
    if (h->latent.n_latent > 0 && h->rope.scaling == ROPE_YARN)
        stated = 10 * lookup_float(l, "rope.scaling.yarn_log_multiplier", 0, 100, 0);
    if (h->latent.n_latent > 0)
        return (float)hparams_latent_scale(h, stated);
    if (h->arch->scale == SCALE_STATED)
        stated = lookup_float(l, "attention.scale", 0, 1e6, (double)NAN);
    if (stated > 0)
        return (float)stated;
    if (h->arch->scale == SCALE_SCALAR && h->n_layer == h->arch->n_layer_wide_scale)
        return (float)(1 / sqrt((double)h->n_embd / first->n_head));
    return (float)(1 / sqrt((double)first->head_dim_k));
}

/* A factor that an architecture with TRAIT_SCALES states; 0 means none. */
static double get_factor(struct gguf_lookup *l, const struct hparams *h, const char *suffix)
{
    double v = arch_has(h->arch, TRAIT_SCALES)
                   ? lookup_float(l, suffix, 0, MAX_SCALE, (double)NAN)
                   : 0;

    return v > 0 ? v : 1;
}

static void read_scales(struct gguf_lookup *l, struct hparams *h)
{
    h->attn_scale = scale_of(l, h);
    h->embd_scale = arch_has(h->arch, TRAIT_EMBD_SCALE)
                        ? sqrtf((float)h->n_embd)
                        : (float)get_factor(l, h, "embedding_scale");
    h->residual_scale = (float)get_factor(l, h, "residual_scale");
    h->logit_scale = (float)(1 / get_factor(l, h, "logit_scale"));
    if (arch_has(h->arch, TRAIT_LOGIT_FACTOR))
        h->logit_scale = (float)lookup_float(l, "logit_scale", 1e-6, MAX_SCALE, (double)NAN);
    if (!arch_has(h->arch, TRAIT_TEMPERATURE))
        return;
    h->temp_scale = (float)lookup_float(l, "attention.temperature_scale", 0, 100, 0);
    h->temp_len = (uint32_t)lookup_int(l, "attention.temperature_length", 1, MAX_N_CTX,
                                       h->rope.n_ctx_orig);
    if (h->temp_scale == 0)
        defaults_drop(l->defaults, "attention.temperature_length");
}

/* Nemotron's files call the epsilon of their rms norms that of layer norms. */
static const char *eps_key(struct gguf_lookup *l, const struct arch *a)
{
    bool is_other = arch_has(a, TRAIT_MEAN_NORM) ||
                    (arch_has(a, TRAIT_ONE_BLOCK) &&
                     lookup_find(l, "attention.layer_norm_rms_epsilon") == NULL);

    return is_other ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
}

static void read_model(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
{
    h->n_layer = (uint32_t)lookup_int(l, "block_count", 1, MAX_LAYER, GGUF_NEEDED);
    h->n_embd = (uint32_t)lookup_int(l, "embedding_length", 1, MAX_N_EMBD, GGUF_NEEDED);
    h->n_ctx_train = (uint32_t)lookup_int(l, "context_length", 1, MAX_N_CTX, GGUF_NEEDED);
    h->rms_eps =
        (float)lookup_float(l, eps_key(l, h->arch), 1e-30, 1,
                            h->arch->gguf.rms_eps != 0 ? h->arch->gguf.rms_eps : (double)NAN);
    if (arch_has(h->arch, TRAIT_CAP_ATTN))
        h->softcap_attn = (float)lookup_float(l, "attn_logit_softcapping", 0, 1e6,
                                              (double)h->arch->softcap_attn);
    if (arch_has(h->arch, TRAIT_CAP_FINAL))
        h->softcap_final = (float)lookup_float(l, "final_logit_softcapping", 0, 1e6,
                                               (double)h->arch->softcap_final);
    if (h->n_layer == h->arch->lost.n_layer_uncapped && gguf_is_ollama_rope(l->g, l->prefix))
        h->softcap_final = 0;
    if (!l->failed && (h->arch->traits & (TRAIT_DELTA | TRAIT_DRAFT)) != 0) {
        h->n_layer_draft =
            (uint32_t)lookup_int(l, "nextn_predict_layers", 0, h->n_layer - 1, 0);
        if (arch_has(h->arch, TRAIT_DRAFT)) /* its tensors say so, too */
            defaults_drop(l->defaults, "nextn_predict_layers");
        h->n_layer -= h->n_layer_draft;
    }
    if (!l->failed && arch_has(h->arch, TRAIT_DELTA))
        read_delta(l, h);
    else if (!l->failed && arch_recurs(h->arch))
        read_recurrent(l, c, h);
    if (!l->failed && arch_has(h->arch, TRAIT_STREAMS))
        read_streams(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_INDEX))
        read_index(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_NGRAMS))
        read_ngrams(l, h);
    if (l->failed)
        return;
    if (arch_has(h->arch, TRAIT_SHARED_KV))
        h->n_layer_kv_shared =
            (uint32_t)lookup_int(l, "attention.shared_kv_layers", 0, h->n_layer - 1, 0);
    if (arch_has(h->arch, TRAIT_PER_LAYER_INPUT)) {
        bool has_table = catalogue_find(c, "per_layer_token_embd.weight") != NULL;

        h->n_embd_per_layer =
            (uint32_t)lookup_int(l, "embedding_length_per_layer_input", has_table, MAX_N_EMBD,
                                 has_table ? GGUF_NEEDED : 0);
    }
    read_windows(l, h);
    if (!l->failed)
        read_heads(l, h);
    if (!l->failed)
        read_rope(l, c, h);
    read_experts(l, c, h);
    if (!l->failed)
        read_scales(l, h);
    hparams_skip_rope(h, h->arch->ropeless_period);
    if (arch_has(h->arch, TRAIT_MAYBE_NOPE) && !lookup_bool(l, "rope.scaling.finetuned", true))
        for (uint32_t i = 0; i < h->n_layer; i++)
            h->layers[i].is_ropeless = true;
    h->rope_interleaved = arch_has(h->arch, TRAIT_INTERLEAVED);
}

/* Refuses files that are not models that write text. */
static int check_kind(const struct catalogue *c, struct err *e)
{
    const char *type = NULL, *key;
    char is[200];

    if (gguf_string(c->gguf, "general.type", &type, NULL, e) < 0)
        return -1;
    if (!foreign_gguf_is(c, is, sizeof is, &key))
        return 0;
    err_set(e, ERR_UNSUPPORTED, "%s", is);
    return err_at(e, NULL, ERR_NO_OFFSET, key[0] != '\0' ? key : NULL);
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

static void each_id(struct generation_hparams *s, const struct gguf *g, const char *key,
                    void (*add)(struct generation_hparams *, int64_t))
{
    const struct gguf_value *v = gguf_find(g, key);
    int64_t id;

    for (uint64_t i = 0; v != NULL && v->type == GGUF_ARRAY && i < v->count; i++)
        if (gguf_elem_int(v, i, &id))
            add(s, id);
}

static void read_generation(struct generation_hparams *s, const struct gguf *g)
{
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
    each_id(s, g, "tokenizer.ggml.eos_token_ids", generation_add_stop); /* Ollama */
    each_id(s, g, "tokenizer.ggml.suppress_tokens", generation_add_suppress);
}

/* Sets the name to general.name, else to the file's name without its suffix. */
static void read_name(struct catalogue *c)
{
    const char *name = NULL, *slash = strrchr(c->path, '/'), *dot;
    struct hparams *h = &c->hparams;
    struct err ignored = ERR_INIT;
    size_t len = 0;

    if (gguf_string(c->gguf, "general.name", &name, &len, &ignored) == 1)
        visible_line(h->name, sizeof h->name, name, len);
    if (h->name[0] != '\0')
        return;
    name = slash != NULL ? slash + 1 : c->path;
    dot = strrchr(name, '.');
    if (dot != NULL && strcmp(dot, ".gguf") == 0)
        visible_line(h->name, sizeof h->name, name, (size_t)(dot - name));
}

int hparams_from_gguf(struct catalogue *c, struct err *e)
{
    struct gguf_lookup l = {
        .g = c->gguf, .prefix = gguf_prefix(c->gguf), .defaults = &c->defaults, .e = e
    };
    struct hparams *h = &c->hparams;

    if (check_kind(c, e) != 0 || read_arch(h, c->gguf, e) != 0)
        return -1;
    read_name(c);
    read_model(&l, c, h);
    if (l.failed)
        return -1;
    hparams_parts(h);
    if (gguf_check_keys(c, e) != 0)
        return -1;
    read_generation(&c->generation, c->gguf);
    return 0;
}
