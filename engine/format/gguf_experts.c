/* Experts and their router from GGUF keys. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/gguf_hparams.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/mixture.h"
#include "engine/format/value_rules.h"

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

uint32_t gguf_rows_of(const struct catalogue *c, uint32_t layer, const char *suffix)
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
    static const int64_t numbers[] = {
        [SCORE_SOFTMAX] = 1, [SCORE_SIGMOID] = 2, [SCORE_SQRT_SOFTPLUS] = 4
    };
    const struct mixture *m = h->arch->mixture;
    enum router_score score = m->score_by_bias && !has_bias ? SCORE_SOFTMAX : m->score;
    int64_t stated;

    h->keeps_expert_weights = !lookup_bool(l, "expert_weights_norm", m->is_normed_gguf);
    h->expert_factor = (float)lookup_float(l, "expert_weights_scale", 0, MAX_SCALE,
                                           arch_has(h->arch, TRAIT_ENTRIES) ? (double)NAN : 1);
    h->n_expert_group = (uint32_t)lookup_int(l, "expert_group_count", 1, MAX_EXPERT_GROUP, 1);
    h->n_expert_group_used =
        (uint32_t)lookup_int(l, "expert_group_used_count", 1, MAX_EXPERT_GROUP, 1);
    if (!l->failed && h->n_expert_group_used > h->n_expert_group) {
        lookup_find(l, "expert_group_count");
        err_set(l->e, ERR_FORMAT, "is %u, but expert_group_used_count is %u", h->n_expert_group,
                h->n_expert_group_used);
        lookup_fail(l);
    }
    stated = lookup_int(l, "expert_gating_func", 1, 16, numbers[score]);
    if (!l->failed && stated != 1 && stated != 2 && stated != 4) {
        err_set(l->e, ERR_UNSUPPORTED,
                "is %lld; memwall computes 1 (softmax), 2 (sigmoid) and 4 (the root of softplus)",
                (long long)stated);
        lookup_fail(l);
    }
    h->router_score = stated == 4   ? SCORE_SQRT_SOFTPLUS
                      : stated == 2 ? SCORE_SIGMOID
                                    : SCORE_SOFTMAX;
    h->groups_by_max = h->router_score == SCORE_SOFTMAX;
    h->expert_guard = (float)m->guard;
}

/* Clamps of gate and up, one per layer; 0: none. */
static void read_clamps(struct gguf_lookup *l, struct hparams *h, const char *suffix,
                        bool of_experts)
{
    const struct gguf_value *v = lookup_find(l, suffix);
    double by;

    if (v == NULL && !l->failed && arch_has(h->arch, TRAIT_ENTRIES))
        lookup_missing(l);
    else if (v == NULL && !l->failed)
        defaults_note(l->defaults, suffix, 0);
    if (v == NULL)
        return;
    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        struct layer_hparams *layer = &h->layers[i];

        if (v->type == GGUF_ARRAY && v->count >= h->n_layer && gguf_elem_float(v, i, &by) &&
            by >= 0 && by <= 1e6) {
            *(of_experts ? &layer->clamp : &layer->clamp_dense) = (float)by;
            continue;
        }
        err_set(l->e, ERR_FORMAT, "is not an array of %u numbers from 0 to 1e6", h->n_layer);
        lookup_fail(l);
    }
}

/* Reads the experts of EXPERTS_ROUTED.  Tensors show which layers have experts, and how wide a
 * shared one is: published files have other numbers in keys. */
static void read_routed(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
{
    bool has_bias = false, has_some = false;
    uint32_t n_ff = 0, n_in = 0;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        struct layer_hparams *layer = &h->layers[i];

        /* A layer of one block that has another part has none; their tensors are reported. */
        layer->has_experts =
            gguf_rows_of(c, i, "ffn_gate_inp.weight") > 0 &&
            !(arch_has(h->arch, TRAIT_ONE_BLOCK) && (layer->attends || layer->is_recurrent));
        has_some |= layer->has_experts;
        if (!layer->has_experts)
            continue;
        layer->n_ff = gguf_rows_of(c, i, "ffn_up_shexp.weight");
        has_bias |= gguf_rows_of(c, i, "exp_probs_b.bias") > 0;
        if (n_ff == 0)
            n_ff = gguf_rows_of(c, i, "ffn_up_exps.weight");
        if (n_ff == 0)
            n_ff = gguf_rows_of(c, i, "ffn_gate_up_exps.weight") / 2;
        if (n_in == 0)
            n_in = gguf_rows_of(c, i, "ffn_latent_down.weight");
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
    if (!l->failed && arch_has(h->arch, TRAIT_ONE_BLOCK))
        h->n_expert_in = (uint32_t)lookup_int(l, "moe_latent_size", 0, h->n_embd,
                                              n_in <= h->n_embd ? n_in : 0);
    defaults_drop(l->defaults, "moe_latent_size");
    if (!l->failed)
        read_router(l, h, has_bias);
    if (!l->failed && arch_has(h->arch, TRAIT_CLAMPS)) {
        bool are_same = arch_has(h->arch, TRAIT_HYPER) &&
                        lookup_find(l, "swiglu_clamp_shexp") == NULL;

        read_clamps(l, h, "swiglu_clamp_exp", true);
        read_clamps(l, h, are_same ? "swiglu_clamp_exp" : "swiglu_clamp_shexp", false);
    }
    if (!l->failed && arch_has(h->arch, TRAIT_ENTRIES))
        defaults_drop(l->defaults, "feed_forward_length"); /* each layer has experts */
    if (!l->failed && arch_has(h->arch, TRAIT_ENTRIES))
        hparams_hash(h, lookup_int(l, "hash_layer_count", 0, h->n_layer, GGUF_NEEDED));
}

void gguf_experts(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
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
