/* The attention of layers from config.json: windows, heads, and widths of feed-forward
 * networks. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/config_layers.h"
#include "engine/format/config_lookup.h"
#include "engine/format/hparams_fill.h"

/* Whether layer_types calls attention so that chooses positions. */
static bool is_index_word(const struct arch *a, const char *word)
{
    return (arch_has(a, TRAIT_INDEX) && strcmp(word, "indexed_attention") == 0) ||
           (arch_has(a, TRAIT_SCORED) && strcmp(word, "deepseek_sparse_attention") == 0);
}

/* Reads layer_types.  Returns whether the file has it.  EXAONE 4.5 lists a layer that only
 * drafts. */
static bool read_layer_types(struct config_lookup *l, struct hparams *h)
{
    const struct json_node *list = json_get(l->node, "layer_types"), *n;
    uint32_t i = 0, n_more = h->n_layer_draft > 0 ? h->n_layer_draft : 1;

    if (list == NULL)
        return false;
    if (!arch_has(h->arch, TRAIT_DRAFT))
        n_more = 0;
    if (list->kind != JSON_IS_ARRAY || list->n < h->n_layer || list->n > h->n_layer + n_more) {
        err_set(l->e, ERR_FORMAT, "has %u entries for %u layers", list->n, h->n_layer);
        config_fail(l, "layer_types");
        return true;
    }
    for (n = list->first; i < h->n_layer && !l->failed; n = n->next, i++) {
        const char *type = json_as_string(n);

        if (type != NULL && strcmp(type, "sliding_attention") == 0) {
            h->layers[i].is_sliding = true;
        } else if (type != NULL && is_index_word(h->arch, type)) {
            continue;
        } else if (type == NULL ||
                   (strcmp(type, "full_attention") != 0 && !config_kind(h, i, type))) {
            err_set(l->e, ERR_UNSUPPORTED, "attention \"%.60s\" is not supported",
                    type != NULL ? type : "");
            config_fail(l, "layer_types");
        }
    }
    return true;
}

/* Chooses the layers with a window by the architecture's rule, for files without
 * layer_types. */
static void slide_by_rule(struct config_lookup *l, struct hparams *h)
{
    const struct arch *a = h->arch;
    int64_t from = 0, end, period = a->window_period;

    switch (a->window) {
    case WINDOW_PERIOD_FIRST:
        for (uint32_t i = 0; i < h->n_layer; i++)
            h->layers[i].is_sliding = i % period != 0;
        return;
    case WINDOW_PERIOD:
    case WINDOW_PERIOD_OR_LAST:
        if (arch_has(a, TRAIT_PERIOD_FIELD))
            period = config_int(l, "sliding_window_pattern", 1, MAX_LAYER, period);
        if (json_get(l->node, "sliding_window_pattern") == NULL)
            defaults_note(l->defaults, "layer_types, every n-th global", (double)period);
        hparams_slide(h, period);
        if (a->window == WINDOW_PERIOD_OR_LAST)
            h->layers[h->n_layer - 1].is_sliding = false;
        return;
    case WINDOW_UPPER: from = config_int(l, "max_window_layers", 0, INT32_MAX, 28); break;
    case WINDOW_EVEN:
        end = config_int(l, "max_window_layers", 0, INT32_MAX, 28);
        for (uint32_t i = 0; i < h->n_layer; i++)
            h->layers[i].is_sliding = i % 2 == 0 && i < end;
        return;
    case WINDOW_LISTED:
        err_set(l->e, ERR_FORMAT, "is missing, and sliding_window is set");
        config_fail(l, "layer_types");
        return;
    case WINDOW_ALL:
    case WINDOW_USED:
    case WINDOW_ALL_GGUF: break;
    }
    for (uint32_t i = 0; i < h->n_layer; i++)
        h->layers[i].is_sliding = i >= from;
}

/* Whether a stated window is not used unless use_sliding_window says so. */
static bool is_off_unless_used(enum window_rule rule)
{
    return rule == WINDOW_UPPER || rule == WINDOW_EVEN || rule == WINDOW_USED ||
           rule == WINDOW_LISTED;
}

void config_windows(struct config_lookup *l, struct hparams *h)
{
    enum window_rule rule = h->arch->window;
    bool stated = json_member(l->node, "sliding_window") != NULL;
    bool has_types;
    int64_t window =
        config_int(l, "sliding_window", 0, MAX_N_CTX, stated ? 0 : h->arch->absent.n_swa);

    /* Where it is optional, a window may be stated and not used. */
    if (!h->arch->gguf.needs_window &&
        !config_bool(l, "use_sliding_window", !is_off_unless_used(rule)))
        window = 0;
    h->n_swa = (uint32_t)window;
    if (stated)
        defaults_drop(l->defaults, "sliding_window"); /* null is a statement, too */
    if (l->failed)
        return;
    if (rule == WINDOW_ALL_GGUF && window > 0 && window < h->n_ctx_train) {
        err_set(l->e, ERR_UNSUPPORTED, "is %lld, but transformers' %s models have no window",
                (long long)window, h->arch->name);
        config_fail(l, "sliding_window");
        return;
    }
    has_types = read_layer_types(l, h);
    if (!has_types && arch_has(h->arch, TRAIT_DELTA))
        hparams_recur(h, config_int(l, "full_attention_interval", 1, MAX_LAYER, 4));
    for (uint32_t i = 0; i < h->n_layer && window == 0; i++)
        h->layers[i].is_sliding = false;
    if (window == 0 || l->failed)
        return;
    if (!has_types)
        slide_by_rule(l, h);
    for (uint32_t i = 0; i < h->n_layer; i++) {
        if (h->layers[i].is_sliding ||
            (rule != WINDOW_ALL && rule != WINDOW_USED && rule != WINDOW_ALL_GGUF))
            continue;
        err_set(l->e, ERR_UNSUPPORTED,
                "layer %u has no window, but every layer of this architecture must have one",
                i);
        config_fail(l, "layer_types");
        return;
    }
}

/* Refuses settings of a single layer other than the sizes that are read. */
static void refuse_members(struct config_lookup *l)
{
    const struct json_node *n =
        l->node != NULL && l->node->kind == JSON_IS_OBJECT ? l->node->first : NULL;

    for (; n != NULL && !l->failed; n = n->next) {
        if (strcmp(n->key, "head_dim") == 0 || strcmp(n->key, "num_key_value_heads") == 0 ||
            strcmp(n->key, "layer_type") == 0)
            continue;
        err_set(l->e, ERR_UNSUPPORTED, "\"%.40s\" of a single layer is not supported", n->key);
        config_fail(l, "per_layer_config");
    }
}

/* Reads the heads of layers that differ by kind. */
static void read_heads_by_kind(struct config_lookup *l, struct hparams *h)
{
    int64_t dim = h->layers[0].head_dim_k;
    int64_t global_dim = config_int(l, "global_head_dim", 1, MAX_HEAD_DIM, 512);
    int64_t kv = h->layers[0].n_head_kv;
    int64_t global_kv = config_int(l, "num_global_key_value_heads", 1, MAX_N_HEAD, kv);
    const struct json_node *own = json_get(l->node, "per_layer_config");

    for (uint32_t i = 0; i < h->n_layer && !l->failed; i++) {
        struct layer_hparams *layer = &h->layers[i];
        struct config_lookup one = { .e = l->e };
        char index[16];

        snprintf(index, sizeof index, "%u", i);
        one.node = json_get(own, index);
        refuse_members(&one);
        layer->head_dim_k = (uint32_t)config_int(&one, "head_dim", 1, MAX_HEAD_DIM,
                                                 layer->is_sliding ? dim : global_dim);
        layer->head_dim_v = layer->head_dim_k;
        layer->n_head_kv = (uint32_t)config_int(&one, "num_key_value_heads", 1, MAX_N_HEAD,
                                                layer->is_sliding ? kv : global_kv);
        l->failed = l->failed || one.failed;
    }
}

/* Layers that share KV may have a feed-forward of twice the width. */
static void widen_shared(struct config_lookup *l, struct hparams *h)
{
    if (!config_bool(l, "use_double_wide_mlp", false))
        return;
    for (uint32_t i = h->n_layer - h->n_layer_kv_shared; i < h->n_layer; i++)
        h->layers[i].n_ff *= 2;
}

/* Heads of queries, one number per layer. */
static void read_heads_list(struct config_lookup *l, struct hparams *h)
{
    static const char key[] = "num_attention_heads_per_layer";
    const struct json_node *list = json_get(l->node, key), *n;
    uint32_t i = 0;
    int64_t heads;

    if (list == NULL || l->failed)
        return;
    if (list->kind == JSON_IS_ARRAY && list->n == h->n_layer)
        for (n = list->first;
             n != NULL && json_as_int(n, &heads) && heads >= 1 && heads <= MAX_N_HEAD;
             n = n->next)
            h->layers[i++].n_head = (uint32_t)heads;
    if (i == h->n_layer)
        return;
    err_set(l->e, ERR_FORMAT, "is not a list of %u numbers of heads", h->n_layer);
    config_fail(l, key);
}

/* The width that LFM2 computes from the one that it states. */
static int64_t adjusted_ff(struct config_lookup *l, const char *key, int64_t ff)
{
    int64_t unit = config_int(l, "block_multiple_of", 1, MAX_N_FF, 256);
    double by = config_float(l, "block_ffn_dim_multiplier", 1e-6, 1);

    if (l->failed || !config_bool(l, "block_auto_adjust_ff_dim", true))
        return ff;
    by *= (double)(2 * ff / 3);
    if (by >= 1 && by <= (double)(MAX_N_FF - unit))
        return ((int64_t)by + unit - 1) / unit * unit;
    err_set(l->e, ERR_FORMAT, "makes %s %g; expected 1 to %lld", key, by,
            (long long)(MAX_N_FF - unit));
    config_fail(l, "block_ffn_dim_multiplier");
    return ff;
}

/* The size of a head.  That of latent attention is in other fields; this one has the values that
 * rotate there, which may be none. */
static int64_t head_dim(struct config_lookup *l, const struct hparams *h, int64_t heads)
{
    const struct arch_defaults *d = &h->arch->absent;
    bool is_latent = arch_has(h->arch, TRAIT_LATENT);
    int64_t absent = d->head_dim != 0 ? d->head_dim : h->n_embd / heads, dim;

    if (arch_has(h->arch, TRAIT_ONE_BLOCK)) /* the name in Nemotron's first configurations */
        absent = config_int(l, "attention_head_dim", 1, MAX_HEAD_DIM, absent);
    defaults_drop(l->defaults, "attention_head_dim");
    dim = config_int(l, "head_dim", is_latent ? 0 : 1, MAX_HEAD_DIM, absent);
    return dim == 0 && is_latent ? 1 : dim;
}

/* The width of dense feed-forward networks. */
static int64_t ff_width(struct config_lookup *l, const struct hparams *h)
{
    static const char own[] = "block_ff_dim"; /* of LFM2; it wins in transformers, too */
    enum expert_rule rule = arch_experts(h->arch, false);
    bool is_dense = rule == EXPERTS_NONE || rule == EXPERTS_BESIDE;
    bool is_adjusted =
        arch_has(h->arch, TRAIT_SHORT_CONV) && !arch_has(h->arch, TRAIT_ROUTED);
    const char *key =
        is_adjusted && json_get(l->node, own) != NULL ? own : "intermediate_size";
    int64_t ff = config_int(l, key, 1, MAX_N_FF, is_dense ? CONFIG_NEEDED : 1);

    return is_adjusted ? adjusted_ff(l, key, ff) : ff;
}

/* Reads whether the gates of a layer are for heads or for values: a word, or true for heads. */
static void read_gate(struct config_lookup *l, struct layer_hparams *layer, const char *key,
                      const struct json_node *n)
{
    const char *word = json_as_string(n);
    bool is_on = false;

    if (l->failed)
        return;
    layer->gates_values = word != NULL && (strcmp(word, "per-element") == 0 ||
                                           strcmp(word, "per_element") == 0);
    if (layer->gates_values || (json_as_bool(n, &is_on) && is_on) ||
        (word != NULL && (strcmp(word, "per-head") == 0 || strcmp(word, "per_head") == 0)))
        return;
    err_set(l->e, ERR_UNSUPPORTED,
            "is not \"per-head\" or \"per-element\", the gates that memwall computes");
    config_fail(l, key);
}

static void read_gates(struct config_lookup *l, struct hparams *h)
{
    const struct json_node *all = json_get(l->node, "gating");
    const struct json_node *each = json_get(l->node, "gating_types"), *n;
    bool is_list = each != NULL && each->kind == JSON_IS_ARRAY && each->n == h->n_layer;
    uint32_t i = 0;

    for (n = is_list ? each->first : NULL; n != NULL; n = n->next)
        read_gate(l, &h->layers[i++], "gating_types", n);
    for (; all != NULL && i < h->n_layer; i++)
        read_gate(l, &h->layers[i], "gating", all);
}

void config_attention(struct config_lookup *l, struct hparams *h)
{
    const struct arch_defaults *d = &h->arch->absent;
    int64_t heads = config_int(l, "num_attention_heads", 1, MAX_N_HEAD,
                               d->n_head != 0 ? d->n_head : CONFIG_NEEDED);
    int64_t kv = config_int(l, "num_key_value_heads", 1, MAX_N_HEAD,
                            d->n_head_kv != 0 ? d->n_head_kv : heads);
    int64_t dim = head_dim(l, h, heads);
    int64_t ff = ff_width(l, h);

    if (!l->failed && dim == 0) {
        err_set(l->e, ERR_FORMAT,
                "is missing, and hidden_size is smaller than the number of heads");
        config_fail(l, "head_dim");
    }
    for (uint32_t i = 0; i < h->n_layer; i++) {
        struct layer_hparams *layer = &h->layers[i];

        layer->n_head = (uint32_t)heads;
        layer->n_head_kv = (uint32_t)kv;
        layer->head_dim_k = layer->head_dim_v = (uint32_t)dim;
        layer->n_ff = (uint32_t)ff;
        if (arch_has(h->arch, TRAIT_ONE_BLOCK) && (layer->is_recurrent || layer->attends))
            layer->n_ff = 0;
    }
    read_heads_list(l, h);
    if (h->arch->gate == GATE_SOFTPLUS)
        read_gates(l, h);
    if (arch_has(h->arch, TRAIT_HEADS_BY_KIND) && !l->failed)
        read_heads_by_kind(l, h);
    if (arch_has(h->arch, TRAIT_SHARED_KV) && !l->failed)
        widen_shared(l, h);
}
