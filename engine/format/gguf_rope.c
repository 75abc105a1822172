/* Rope tables from GGUF keys, with their scaling. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/gguf_hparams.h"
#include "engine/format/hparams_fill.h"

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

void gguf_rope(struct gguf_lookup *l, const struct catalogue *c, struct hparams *h)
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
        l, "rope.dimension_count", arch_may_not_rotate(h->arch) ? 0 : 2, MAX_HEAD_DIM,
        arch_has(h->arch, TRAIT_DELTA) ? GGUF_NEEDED : (int64_t)global->head_dim_k);
    if (arch_has(h->arch, TRAIT_NOPE) && h->latent.n_rot == 0)
        h->rope.n_rot = 2; /* files state some number that means nothing */
    read_rope_scaling(l, c, h);
    h->rope_swa = h->rope;
    if ((h->arch->traits & (TRAIT_SWA_UNSCALED | TRAIT_ENTRIES)) != 0)
        hparams_unscaled(&h->rope_swa, &h->rope);
    if (arch_has(h->arch, TRAIT_ENTRIES)) {
        h->rope.base = lookup_float(l, "attention.compress_rope_freq_base", 1.001, 1e15,
                                    (double)NAN);
        hparams_entry_rope(h);
    }
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
