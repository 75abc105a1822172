#include "config.h"

#include "engine/format/gguf_lookup.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Names of the same value: llama.cpp's, and those of older versions and of Ollama's
 * converter. */
static const struct {
    const char *usual, *other;
} names[] = {
    { "attention.key_length", "attention.head_dim" },
    { "attention.temperature_scale", "rope.scaling_beta" },
    { "expert_weights_norm", "norm_top_k_prob" },
    { "rope.dimension_sections", "rope.mrope_section" },
    { "rope.dimension_sections", "mrope_sections" },
    { "rope.freq_base", "rope.global.freq_base" },
    { "rope.freq_base_swa", "rope.local.freq_base" },
    { "rope.freq_base_swa", "rope.freq_base_local" },
    { "rope.scaling.factor", "rope.scale_linear" },
    { "rope.scaling.type", "rope.type" },
    { "rope.scaling.yarn_beta_fast", "rope.scaling.beta_fast" },
    { "rope.scaling.yarn_beta_slow", "rope.scaling.beta_slow" },
    { "rope.scaling.yarn_ext_factor", "rope.scaling.extrapolation_factor" },
    { "rope.scaling.yarn_log_multiplier", "rope.scaling.mscale_all_dim" },
};

/* The first files of Ollama's converter have the keys of the text model in a group. */
static const char group[] = "text.";

const char *gguf_prefix(const struct gguf *g)
{
    struct err ignored = ERR_INIT;
    const char *arch = "";

    gguf_string(g, "general.architecture", &arch, NULL, &ignored);
    return arch;
}

const char *gguf_usual_suffix(const char *other)
{
    bool is_grouped = strncmp(other, group, sizeof group - 1) == 0;

    if (is_grouped)
        other += sizeof group - 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i].other, other) == 0)
            return names[i].usual;
    return is_grouped ? other : NULL;
}

static const struct gguf_value *find(const struct gguf *g, const char *prefix, const char *in,
                                     const char *suffix, char *buf, size_t n)
{
    snprintf(buf, n, "%s.%s%s", prefix, in, suffix);
    return gguf_find(g, buf);
}

const struct gguf_value *gguf_find_suffix(const struct gguf *g, const char *prefix,
                                          const char *suffix, char *buf, size_t n)
{
    const char *const groups[] = { "", group };
    const struct gguf_value *v;

    for (size_t k = 0; k < 2; k++) {
        v = find(g, prefix, groups[k], suffix, buf, n);
        for (size_t i = 0; v == NULL && i < sizeof names / sizeof names[0]; i++)
            if (strcmp(names[i].usual, suffix) == 0)
                v = find(g, prefix, groups[k], names[i].other, buf, n);
        if (v != NULL)
            return v;
    }
    return find(g, prefix, "", suffix, buf, n);
}

bool gguf_is_ollama_rope(const struct gguf *g, const char *prefix)
{
    char key[128];

    return find(g, prefix, "", "rope.freq_base", key, sizeof key) == NULL ||
           find(g, prefix, "", "rope.local.freq_base", key, sizeof key) != NULL;
}

static void note_absent(struct absent_list *a, const char *suffix)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->suffix[i], suffix) == 0)
            return;
    if (a->n < MAX_ABSENT)
        a->suffix[a->n++] = suffix;
}

const struct gguf_value *lookup_find(struct gguf_lookup *l, const char *suffix)
{
    const struct gguf_value *v =
        gguf_find_suffix(l->g, l->prefix, suffix, l->key, sizeof l->key);

    if (v == NULL && l->absent != NULL)
        note_absent(l->absent, suffix);
    return v;
}

void lookup_fail(struct gguf_lookup *l)
{
    const struct gguf_value *v = gguf_find(l->g, l->key);

    /* The offset of a well-formed value does not help. */
    err_at(l->e, NULL, v != NULL && l->e->code != ERR_UNSUPPORTED ? v->offset : ERR_NO_OFFSET,
           l->key);
    l->failed = true;
}

void lookup_missing(struct gguf_lookup *l)
{
    err_set(
        l->e, ERR_FORMAT,
        "the key is missing; no value may stand for it, so convert the model again, or fetch "
        "a file that llama.cpp's converter made");
    lookup_fail(l);
}

static void check_range(struct gguf_lookup *l, int64_t v, int64_t min, int64_t max)
{
    if (v >= min && v <= max)
        return;
    err_set(l->e, ERR_FORMAT, "is %lld; expected %lld to %lld", (long long)v, (long long)min,
            (long long)max);
    lookup_fail(l);
}

/* Returns the value of a key that is absent, or refuses it if that is NaN. */
static double take_absent(struct gguf_lookup *l, const char *suffix, double min, double absent)
{
    if (isnan(absent)) {
        lookup_missing(l);
        return min;
    }
    defaults_note(l->defaults, suffix, absent);
    return absent;
}

int64_t lookup_int(struct gguf_lookup *l, const char *suffix, int64_t min, int64_t max,
                   int64_t absent)
{
    int64_t v = min;
    int found;

    if (l->failed)
        return min;
    lookup_find(l, suffix);
    found = gguf_int(l->g, l->key, &v, l->e);
    if (found < 0) {
        l->failed = true;
        return min;
    }
    if (found == 0 || (v == 0 && min > 0 && absent != GGUF_NEEDED))
        return (int64_t)take_absent(l, suffix, (double)min,
                                    absent == GGUF_NEEDED ? (double)NAN : (double)absent);
    check_range(l, v, min, max);
    return l->failed ? min : v;
}

double lookup_float(struct gguf_lookup *l, const char *suffix, double min, double max,
                    double absent)
{
    double v = min;
    int found;

    if (l->failed)
        return min;
    lookup_find(l, suffix);
    found = gguf_float(l->g, l->key, &v, l->e);
    if (found < 0) {
        l->failed = true;
        return min;
    }
    if (found == 0)
        return take_absent(l, suffix, min, absent);
    if (!(v >= min && v <= max)) {
        err_set(l->e, ERR_FORMAT, "is %g; expected %g to %g", v, min, max);
        lookup_fail(l);
    }
    return l->failed ? min : v;
}

double lookup_scaling(struct gguf_lookup *l, const char *suffix, double min, double max,
                      double absent)
{
    struct err ignored = ERR_INIT;
    double v = 1;

    lookup_find(l, suffix);
    if (l->failed || gguf_float(l->g, l->key, &v, &ignored) != 1 || v != 0)
        return lookup_float(l, suffix, min, max, absent);
    return take_absent(l, suffix, min, absent);
}

bool lookup_bool(struct gguf_lookup *l, const char *suffix, bool absent)
{
    const struct gguf_value *v;
    struct err ignored = ERR_INIT;
    bool truth = absent;
    int64_t n;

    if (l->failed)
        return absent;
    v = lookup_find(l, suffix);
    if (v != NULL && gguf_int(l->g, l->key, &n, &ignored) == 1 && (n == 0 || n == 1))
        return n == 1; /* some converters write numbers */
    if (gguf_bool(l->g, l->key, &truth, l->e) < 0)
        l->failed = true;
    if (v == NULL)
        defaults_note(l->defaults, suffix, absent);
    return l->failed ? absent : truth;
}

const char *lookup_text(struct gguf_lookup *l, const char *suffix)
{
    const char *v = NULL;

    if (l->failed)
        return NULL;
    lookup_find(l, suffix);
    if (gguf_string(l->g, l->key, &v, NULL, l->e) < 0)
        l->failed = true;
    return l->failed || v == NULL || v[0] == '\0' ? NULL : v;
}

void lookup_per_layer(struct gguf_lookup *l, const char *suffix, uint32_t n_layer,
                      uint32_t n_all, int64_t min, int64_t max, int64_t absent, int64_t *out)
{
    const struct gguf_value *v = lookup_find(l, suffix);

    if (l->failed)
        return;
    if (v == NULL || v->type != GGUF_ARRAY) {
        int64_t one = lookup_int(l, suffix, min, max, absent);

        for (uint32_t i = 0; i < n_layer; i++)
            out[i] = one;
        return;
    }
    if (v->count != n_layer && v->count != n_all) {
        err_set(l->e, ERR_FORMAT, "has %llu values for %u layers", (unsigned long long)v->count,
                n_layer);
        lookup_fail(l);
        return;
    }
    for (uint32_t i = 0; i < n_layer && !l->failed; i++) {
        if (!gguf_elem_int(v, i, &out[i])) {
            err_set(l->e, ERR_FORMAT, "is an array of %s, not of integers",
                    gguf_type_name(v->elem));
            lookup_fail(l);
        } else {
            check_range(l, out[i], min, max);
        }
    }
}
