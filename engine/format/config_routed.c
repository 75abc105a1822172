/* The experts of EXPERTS_ROUTED from config.json, by the words of the architecture's mixture.
 */
#include "config.h"

#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/config_layers.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/mixture.h"

/* A number, or a list of one per layer that must all be the same. */
static int64_t same_int(struct config_lookup *l, const char *key, int64_t min, int64_t max,
                        int64_t absent)
{
    const struct json_node *list = json_get(l->node, key), *n;
    int64_t first = 0, v = 0;

    if (list == NULL || list->kind != JSON_IS_ARRAY)
        return config_int(l, key, min, max, absent);
    for (n = list->first; n != NULL && !l->failed; n = n->next) {
        bool is_number = json_as_int(n, &v);

        if (n == list->first)
            first = v;
        if (is_number && v == first && v >= min && v <= max)
            continue;
        err_set(l->e, ERR_UNSUPPORTED,
                "is a list of different numbers, which is not supported");
        config_fail(l, key);
    }
    return l->failed || list->n == 0 ? min : first;
}

static int64_t field_int(struct config_lookup *l, const char *key, int64_t min, int64_t max,
                         int64_t absent)
{
    return key != NULL ? same_int(l, key, min, max, absent) : absent;
}

/* A list of layers that have none. */
static void read_dense_list(struct config_lookup *l, struct hparams *h)
{
    static const char key[] = "mlp_only_layers";
    const struct json_node *list = json_get(l->node, key), *n;
    int64_t layer;

    if (list == NULL || l->failed)
        return;
    n = list->kind == JSON_IS_ARRAY ? list->first : NULL;
    for (; n != NULL && json_as_int(n, &layer) && layer >= 0 && layer < h->n_layer; n = n->next)
        h->layers[layer].has_experts = false;
    if (n == NULL && list->kind == JSON_IS_ARRAY)
        return;
    err_set(l->e, ERR_FORMAT, "is not a list of layers from 0 to %u", h->n_layer - 1);
    config_fail(l, key);
}

/* Reads which layers have experts: a list of words, or which layers have none. */
static void place(struct config_lookup *l, struct hparams *h, const struct mixture *m)
{
    const struct json_node *list = json_get(l->node, "mlp_layer_types"), *n;
    const char *interval =
        m->config.interval != NULL ? m->config.interval : "decoder_sparse_step";
    uint32_t i = 0;

    if (arch_has(h->arch, TRAIT_ONE_BLOCK))
        return; /* known by now */
    if (list == NULL || list->kind != JSON_IS_ARRAY || list->n != h->n_layer) {
        int64_t n_dense = field_int(l, m->config.n_dense, 0, MAX_LAYER, m->n_dense);
        int64_t last = field_int(l, m->config.last, -1, MAX_LAYER, -1);

        hparams_place_experts(h, n_dense, field_int(l, interval, 1, MAX_LAYER, 1));
        for (int64_t k = last + 1; last >= 0 && k < h->n_layer; k++)
            h->layers[k].has_experts = false;
        if (m->config.last != NULL) /* its tensors say so, too */
            defaults_drop(l->defaults, m->config.last);
        if (m->config.interval == NULL) /* few configurations have it */
            defaults_drop(l->defaults, interval);
        read_dense_list(l, h);
        return;
    }
    for (n = list->first; n != NULL; n = n->next, i++) {
        const char *word = json_as_string(n);

        h->layers[i].has_experts = word != NULL && strcmp(word, "sparse") == 0;
    }
}

static void read_score(struct config_lookup *l, struct hparams *h, const struct mixture *m)
{
    const char *word = m->config.score != NULL ? config_string(l, m->config.score) : NULL;
    const char *method = config_string(l, "topk_method");

    h->router_score = m->score;
    if (word != NULL && strcmp(word, "softmax") == 0)
        h->router_score = SCORE_SOFTMAX;
    else if (word != NULL && strcmp(word, "sigmoid") == 0)
        h->router_score = SCORE_SIGMOID;
    else if (word != NULL && strcmp(word, "sqrtsoftplus") == 0)
        h->router_score = SCORE_SQRT_SOFTPLUS;
    else if (word != NULL) {
        err_set(l->e, ERR_UNSUPPORTED, "router scores \"%.40s\" are not supported", word);
        config_fail(l, m->config.score);
    }
    h->groups_by_max = h->router_score == SCORE_SOFTMAX;
    if (method != NULL && strcmp(method, "greedy") == 0)
        h->n_expert_group = h->n_expert_group_used = 1;
}

/* Refuses weights of experts that the architecture's models always divide by their sum. */
static void check_norm(struct config_lookup *l, const struct hparams *h)
{
    static const char key[] = "norm_topk_prob";

    if (h->arch->mixture->config.is_normed != NULL || config_bool(l, key, true) || l->failed)
        return;
    err_set(l->e, ERR_UNSUPPORTED, "is false, which is not supported for %s", h->arch->name);
    config_fail(l, key);
}

void config_routed(struct config_lookup *l, struct hparams *h)
{
    const struct mixture *m = h->arch->mixture;
    const struct mixture_fields *f = &m->config;
    bool may_be_dense = arch_recurs(h->arch);
    bool has_some = false;
    int64_t shared;

    if (arch_has(h->arch, TRAIT_ONE_BLOCK)) {
        may_be_dense = true;
        for (uint32_t i = 0; i < h->n_layer; i++)
            may_be_dense &= !h->layers[i].has_experts;
        if (may_be_dense)
            return;
    }
    h->n_expert = (uint32_t)config_int(l, f->n_expert, may_be_dense ? 0 : 1, 65535,
                                       may_be_dense ? 0 : CONFIG_NEEDED);
    shared = field_int(l, f->n_ff_shared, 0, MAX_N_FF, 0);
    if (m->is_fused && h->n_expert == 0) /* Granite: the dense branch has this width */
        for (uint32_t i = 0; i < h->n_layer; i++)
            h->layers[i].n_ff = shared > 0 ? (uint32_t)shared : h->layers[i].n_ff;
    if (l->failed || h->n_expert == 0)
        return;
    h->n_expert_used = (uint32_t)same_int(l, f->n_used, 1, h->n_expert, CONFIG_NEEDED);
    h->n_ff_expert =
        (uint32_t)field_int(l, f->n_ff, 1, MAX_N_FF, l->failed ? 1 : h->layers[0].n_ff);
    if (!l->failed && arch_has(h->arch, TRAIT_ONE_BLOCK))
        h->n_expert_in = (uint32_t)config_int(l, "moe_latent_size", 0, h->n_embd, 0);
    if (h->n_ff_expert == 0)
        h->n_ff_expert =
            (uint32_t)config_int(l, "intermediate_size", 1, MAX_N_FF, CONFIG_NEEDED);
    if (shared == 0)
        shared = h->n_ff_expert * field_int(l, f->n_shared, 0, 1024, 0);
    if (!l->failed && shared > MAX_N_FF) {
        err_set(l->e, ERR_FORMAT, "makes the shared expert %lld wide; expected up to %lld",
                (long long)shared, (long long)MAX_N_FF);
        config_fail(l, f->n_shared);
    }
    place(l, h, m);
    h->n_expert_group = (uint32_t)field_int(l, f->n_group, 1, MAX_EXPERT_GROUP, 1);
    h->n_expert_group_used = (uint32_t)field_int(l, f->n_group_used, 1, h->n_expert_group, 1);
    check_norm(l, h);
    h->keeps_expert_weights =
        !(f->is_normed != NULL ? config_bool(l, f->is_normed, m->is_normed) : m->is_normed);
    if (f->is_normed != NULL && json_get(l->node, f->is_normed) == NULL)
        defaults_note(l->defaults, f->is_normed, m->is_normed);
    h->expert_factor =
        f->scale != NULL ? (float)config_float(l, f->scale, 1e-6, m->scale) : (float)m->scale;
    h->expert_guard = (float)m->guard;
    read_score(l, h, m);
    for (uint32_t i = 0; i < h->n_layer; i++) {
        has_some |= h->layers[i].has_experts;
        if (h->layers[i].has_experts)
            h->layers[i].n_ff = (uint32_t)shared;
    }
    if (!has_some)
        h->n_expert = 0;
}
