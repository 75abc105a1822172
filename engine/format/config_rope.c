/*
 * Rope tables from config.json.
 *
 * Older files have rope_theta at the top and the scaling in rope_scaling.  Newer ones have both
 * in rope_parameters, for Gemma 3 and 4 once per kind of layer.  GGUF files store the divisors
 * that follow from the rules of llama3 and Gemma 4 as a tensor.  They are computed here, so the
 * rest of the program cannot tell the two kinds of file apart.
 */
#include "config.h"

#include "engine/format/config_rope.h"

#include <math.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/hparams_fill.h"

#define STILL 1e30f /* a divisor that stops a pair from rotating */

/* The field that names the scaling: older files have another one. */
static const char *type_key(const struct json_node *table)
{
    return json_get(table, "rope_type") != NULL ? "rope_type" : "type";
}

/* llama3: divides the frequency of long waves by factor and leaves short ones; a ramp connects
 * the two. */
static void llama3_factors(struct config_lookup *s, struct rope_hparams *r)
{
    double factor = config_float(s, "factor", 1e-6, (double)NAN);
    double low = config_float(s, "low_freq_factor", 1e-6, 1);
    double high = config_float(s, "high_freq_factor", 1e-6, 4);
    double n = config_float(s, "original_max_position_embeddings", 1, 8192);

    if (!s->failed && high <= low) {
        err_set(s->e, ERR_FORMAT, "is not above low_freq_factor");
        config_fail(s, "high_freq_factor");
    }
    if (s->failed)
        return;
    r->n_factor = r->n_rot / 2;
    for (uint32_t i = 0; i < r->n_factor; i++) {
        double wave = 2 * 3.14159265358979323846 * pow(r->base, 2.0 * i / r->n_rot);
        double t = (n / wave - low) / (high - low);

        if (wave < n / high)
            r->factors[i] = 1;
        else if (wave > n / low)
            r->factors[i] = (float)factor;
        else
            r->factors[i] = (float)(1 / ((1 - t) / factor + t));
    }
}

/* Gemma 4's global layers: frequencies count all pairs, but only the first ones rotate. */
static void proportional_factors(struct config_lookup *s, struct rope_hparams *r,
                                 double partial)
{
    double divisor = config_float(s, "factor", 1e-6, 1);
    uint32_t n_rotated = (uint32_t)(partial * r->n_rot / 2);

    r->n_factor = r->n_rot / 2;
    for (uint32_t i = 0; i < r->n_factor; i++)
        r->factors[i] = i < n_rotated ? (float)divisor : STILL;
}

/* The context before yarn.  Files with a table for each kind of layer may have the field beside
 * these tables. */
static uint32_t original_context(struct config_lookup *s, const struct config_lookup *l,
                                 const struct hparams *h)
{
    static const char key[] = "original_max_position_embeddings";
    const struct json_node *all = json_get(l->node, "rope_parameters");
    struct config_lookup from = *s;
    int64_t n;

    if (json_get(s->node, key) == NULL && all != NULL)
        from.node = all;
    n = config_int(&from, key, 1, MAX_N_CTX, h->n_ctx_train);
    s->failed = from.failed;
    return (uint32_t)n;
}

static void yarn(struct config_lookup *s, const struct config_lookup *l,
                 const struct hparams *h, struct rope_hparams *r)
{
    double mscale, all;

    r->scaling = ROPE_YARN;
    r->factor = config_float(s, "factor", 1e-6, (double)NAN);
    r->n_ctx_orig = original_context(s, l, h);
    r->beta_fast = config_float(s, "beta_fast", 1e-6, 32);
    r->beta_slow = config_float(s, "beta_slow", 1e-6, 1);
    mscale = config_float(s, "mscale", 0, 0);
    all = config_float(s, "mscale_all_dim", 0, 0);
    r->is_untruncated = !config_bool(s, "truncate", true);
    if (json_get(s->node, "truncate") == NULL)
        defaults_note(s->defaults, "truncate", 1);
    if (s->failed)
        return;
    r->attn_factor = yarn_magnitude(r->factor, 1);
    if (mscale > 0 && all > 0)
        r->attn_factor = yarn_magnitude(r->factor, mscale) / yarn_magnitude(r->factor, all);
    r->attn_factor = config_float(s, "attention_factor", 1e-6, r->attn_factor);
    defaults_drop(s->defaults, "attention_factor"); /* it follows from the factor */
}

static void longrope_list(struct config_lookup *s, const char *key, uint32_t n, float *out)
{
    const struct json_node *list = json_get(s->node, key), *node;
    uint32_t i = 0;
    double v;

    if (s->failed)
        return;
    if (list == NULL || list->kind != JSON_IS_ARRAY || list->n != n) {
        err_set(s->e, ERR_FORMAT, "expected a list of %u factors, one per rotated pair", n);
        config_fail(s, key);
        return;
    }
    for (node = list->first; node != NULL; node = node->next) {
        if (!json_as_float(node, &v) || !(v > 0)) {
            err_set(s->e, ERR_FORMAT, "factor %u is not a number above 0", i);
            config_fail(s, key);
            return;
        }
        out[i++] = (float)v;
    }
}

static void longrope(struct config_lookup *s, struct config_lookup *l, struct hparams *h,
                     struct rope_hparams *r)
{
    r->scaling = ROPE_LONGROPE;
    r->n_ctx_orig = (uint32_t)config_int(
        s, "original_max_position_embeddings", 1, MAX_N_CTX,
        config_int(l, "original_max_position_embeddings", 1, MAX_N_CTX, h->n_ctx_train));
    r->attn_factor = config_float(s, "attention_factor", 1e-6, 0); /* 0: by the rule */
    defaults_drop(s->defaults, "attention_factor");
    r->n_factor = r->n_rot / 2;
    longrope_list(s, "short_factor", r->n_factor, r->factors);
    longrope_list(s, "long_factor", r->n_factor, r->factors_long);
}

/* Scaling of queries with the position. */
static void read_temperature(struct config_lookup *s, struct hparams *h)
{
    double beta = config_float(s, "llama_4_scaling_beta", 0, 0);

    if (!arch_has(h->arch, TRAIT_TEMPERATURE))
        defaults_drop(s->defaults, "llama_4_scaling_beta");
    if (s->failed || beta == 0)
        return;
    if (!arch_has(h->arch, TRAIT_TEMPERATURE)) {
        err_set(s->e, ERR_UNSUPPORTED,
                "is not 0; scaling of queries with the position is not supported for %s",
                h->arch->name);
        config_fail(s, "llama_4_scaling_beta");
        return;
    }
    h->temp_scale = (float)beta;
    h->temp_len = (uint32_t)config_int(s, "original_max_position_embeddings", 1, MAX_N_CTX,
                                       CONFIG_NEEDED);
}

/* Whether a table has values that only a type of scaling uses. */
static bool is_scaled(const struct json_node *node, const struct arch *a)
{
    return json_get(node, "factor") != NULL || json_get(node, "long_factor") != NULL ||
           (a->rope_dims == ROPE_PROPORTIONAL &&
            json_get(node, "partial_rotary_factor") != NULL);
}

/* Hunyuan's "dynamic" scaling has a constant in it that enlarges the base at every length. */
static bool has_alpha(struct config_lookup *s, const struct hparams *h)
{
    return arch_has(h->arch, TRAIT_LATE_QK_NORM) && json_get(s->node, "alpha") != NULL;
}

static double ntk_base(struct config_lookup *s, const struct hparams *h, double base,
                       uint32_t head_dim)
{
    if (s->failed || !has_alpha(s, h) || head_dim <= 2)
        return base;
    return base * pow(config_float(s, "alpha", 1e-6, 1), head_dim / (head_dim - 2.0));
}

static void scale(struct config_lookup *s, struct config_lookup *l, struct hparams *h,
                  struct rope_hparams *r, double partial)
{
    const char *key = type_key(s->node);
    const char *type = config_string(s, key);

    read_temperature(s, h);
    if (!s->failed && type == NULL && is_scaled(s->node, h->arch)) {
        err_set(s->e, ERR_FORMAT,
                "the field is missing; fetch the config.json of the published model");
        config_fail(s, "rope_type");
    }
    if (s->failed || type == NULL || strcmp(type, "default") == 0 ||
        (strcmp(type, "dynamic") == 0 && has_alpha(s, h)))
        return;
    if (strcmp(type, "linear") == 0) {
        r->scaling = ROPE_LINEAR;
        r->factor = config_float(s, "factor", 1e-6, (double)NAN);
    } else if (strcmp(type, "llama3") == 0) {
        llama3_factors(s, r);
    } else if (strcmp(type, "yarn") == 0) {
        yarn(s, l, h, r);
    } else if (strcmp(type, "longrope") == 0 || strcmp(type, "su") == 0) {
        longrope(s, l, h, r);
    } else if (strcmp(type, "proportional") == 0 && h->arch->rope_dims == ROPE_PROPORTIONAL) {
        proportional_factors(s, r, partial);
    } else {
        err_set(s->e, ERR_UNSUPPORTED, "rope scaling \"%.60s\" is not supported", type);
        config_fail(s, key);
    }
}

/*
 * transformers' classes that rotate whole heads ignore the field with plain rope, as converters
 * do, and fail if there is a scaling.
 */
static double whole_heads(struct config_lookup *s, double partial)
{
    const char *key = type_key(s->node);
    const char *type = config_string(s, key);

    if (!s->failed && partial != 1 && type != NULL && strcmp(type, "default") != 0) {
        err_set(s->e, ERR_UNSUPPORTED, "is %g; models of this architecture rotate whole heads",
                partial);
        config_fail(s, "partial_rotary_factor");
    }
    return 1;
}

/* Reads one table.  node holds base and scaling; NULL means the defaults. */
static void one_table(struct config_lookup *l, const struct json_node *node, struct hparams *h,
                      struct rope_hparams *r, uint32_t head_dim, double base, double partial)
{
    struct config_lookup s = {
        .node = node, .e = l->e, .failed = l->failed, .defaults = l->defaults
    };

    *r = (struct rope_hparams){ .factor = 1,
                                .attn_factor = 1,
                                .beta_fast = 32,
                                .beta_slow = 1,
                                .n_ctx_orig = h->n_ctx_train };
    r->base = config_float(&s, "rope_theta", 1.001, base);
    partial = config_float(&s, "partial_rotary_factor", 1e-6, partial);
    if (!s.failed && h->arch->rope_dims == ROPE_WHOLE) {
        partial = whole_heads(&s, partial);
        defaults_drop(l->defaults, "partial_rotary_factor");
    }
    if (!s.failed && partial > 1) {
        err_set(s.e, ERR_FORMAT, "is more than 1");
        config_fail(&s, "partial_rotary_factor");
    }
    r->base = ntk_base(&s, h, r->base, head_dim);
    r->n_rot = h->arch->rope_dims == ROPE_PROPORTIONAL ? head_dim
                                                       : (uint32_t)(head_dim * partial + 1e-6);
    if (!s.failed && (r->n_rot < 2 || r->n_rot % 2 != 0 || r->n_rot > 2 * MAX_ROPE_FACTOR)) {
        err_set(s.e, ERR_FORMAT,
                "%u dimensions of a head rotate; expected an even number from 2 to %d",
                r->n_rot, 2 * MAX_ROPE_FACTOR);
        config_fail(&s, partial < 1 ? "partial_rotary_factor" : "head_dim");
    }
    if (!s.failed)
        scale(&s, l, h, r, partial);
    l->failed = l->failed || s.failed;
}

static uint32_t dim_of(const struct hparams *h, bool sliding)
{
    if (h->latent.n_rot > 0)
        return h->latent.n_rot;
    if (h->latent.n_latent > 0)
        return 2; /* nothing rotates */
    for (uint32_t i = h->n_layer; i > 0; i--)
        if (h->layers[i - 1].is_sliding == sliding)
            return h->layers[i - 1].head_dim_k;
    return h->layers[0].head_dim_k;
}

static const char *type_of(const struct json_node *table)
{
    const char *type = json_as_string(json_get(table, type_key(table)));

    return type != NULL ? type : "default";
}

static double factor_of(const struct json_node *table)
{
    double factor = 0;

    return json_as_float(json_get(table, "factor"), &factor) ? factor : 0;
}

/* A rope_scaling that was added to a file with rope_parameters is what transformers uses, with the
 * base of neither.  So the two must agree. */
static void check_both(struct config_lookup *l, const struct json_node *scaling,
                       const struct json_node *table)
{
    if (l->failed || scaling == NULL || scaling->n == 0 || table == NULL ||
        (strcmp(type_of(scaling), type_of(table)) == 0 &&
         factor_of(scaling) == factor_of(table)))
        return;
    err_set(l->e, ERR_FORMAT,
            "states another scaling than rope_parameters; write it there and remove this field");
    config_fail(l, "rope_scaling");
}

/* The table of a file that does not state one. */
static void proportional_default(struct hparams *h)
{
    struct rope_hparams *r = &h->rope;
    struct err ignored = ERR_INIT;
    struct config_lookup none = { .e = &ignored };

    proportional_factors(&none, r, h->arch->rotates);
}

void config_rope(struct config_lookup *l, struct hparams *h)
{
    bool is_proportional = h->arch->rope_dims == ROPE_PROPORTIONAL;
    const struct json_node *all = config_object(l, "rope_parameters");
    const struct json_node *scaling = config_object(l, "rope_scaling");
    struct config_lookup in = { .node = all, .e = l->e, .failed = l->failed };
    const struct json_node *global = config_object(&in, "full_attention");
    const struct json_node *sliding = config_object(&in, "sliding_attention");
    struct default_list *defaults;
    double base = config_float(l, "rope_theta", 1.001, h->arch->absent.rope_base);
    double local = config_float(l, "rope_local_base_freq", 1.001, 1e4);
    double partial = config_float(l, "partial_rotary_factor", 1e-6,
                                  h->arch->rotates > 0 ? h->arch->rotates : 1);
    int64_t n_rot = config_int(l, "rotary_dim", 2, MAX_HEAD_DIM, 0); /* MiniMax */

    defaults_drop(l->defaults, "rotary_dim");
    if (n_rot > 0 && h->arch->rope_dims == ROPE_PARTIAL && !l->failed)
        partial = (double)n_rot / dim_of(h, false);

    l->failed = l->failed || in.failed;
    if (global == NULL)
        global = all;
    check_both(l, scaling, global);
    if (global == NULL)
        global = scaling;
    if (!l->failed && global == NULL && h->arch->gguf.is_yarn) {
        err_set(l->e, ERR_FORMAT,
                "the field is missing; fetch the config.json of the published model");
        config_fail(l, "rope_parameters");
    }
    one_table(l, global, h, &h->rope, dim_of(h, false), base, partial);
    if (is_proportional && global == NULL && !l->failed)
        proportional_default(h);
    h->rope_swa = h->rope;
    if ((h->arch->traits & (TRAIT_SWA_UNSCALED | TRAIT_ENTRIES)) != 0)
        hparams_unscaled(&h->rope_swa, &h->rope);
    if (arch_has(h->arch, TRAIT_ENTRIES)) {
        h->rope.base = config_float(l, "compress_rope_theta", 1.001, (double)NAN);
        hparams_entry_rope(h);
    }
    if (!arch_has(h->arch, TRAIT_ROPE_BY_KIND)) {
        defaults_drop(l->defaults, "rope_local_base_freq");
        return;
    }
    if (json_get(sliding, "rope_theta") != NULL)
        defaults_drop(l->defaults, "rope_local_base_freq");
    defaults = l->defaults;
    l->defaults = NULL; /* its fields have the names of those of global layers */
    one_table(l, sliding, h, &h->rope_swa, dim_of(h, true), local, 1);
    l->defaults = defaults;
}
