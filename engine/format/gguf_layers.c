/* The attention of layers from GGUF keys: windows, heads, latent attention. */
#include "config.h"

#include "engine/format/arch.h"
#include "engine/format/gguf_hparams.h"
#include "engine/format/hparams_fill.h"

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

void gguf_windows(struct gguf_lookup *l, struct hparams *h)
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
        defaults_note(l->defaults, "attention.sliding_window_pattern", a->window_period);
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
    case WINDOW_EVEN:
    case WINDOW_USED:
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
 * v, in the keys that later files use for what is stored.  Ollama's first files of GLM-4.7-Flash
 * have both, with the names exchanged. */
static void read_latent(struct gguf_lookup *l, struct hparams *h, int64_t k, int64_t v)
{
    struct latent_hparams *m = &h->latent;
    int64_t n_head_k, n_value, n_stored;

    m->n_latent = (uint32_t)lookup_int(l, "attention.kv_lora_rank", 1, MAX_LATENT, GGUF_NEEDED);
    m->n_query = (uint32_t)lookup_int(l, "attention.q_lora_rank", 1, MAX_N_EMBD, 0);
    defaults_drop(l->defaults, "attention.q_lora_rank"); /* its tensors say so, too */
    n_value = lookup_int(l, "attention.value_length_mla", 1, MAX_HEAD_DIM, v);
    m->n_rot = (uint32_t)lookup_int(l, "rope.dimension_count",
                                    arch_may_not_rotate(h->arch) ? 0 : 2, MAX_HEAD_DIM,
                                    GGUF_NEEDED);
    n_head_k = lookup_int(l, "attention.key_length_mla", 1, MAX_HEAD_DIM, k);
    if (l->failed)
        return;
    n_stored = (int64_t)m->n_latent + m->n_rot;
    if (n_head_k == n_stored && n_value == m->n_latent && k != n_stored) {
        n_head_k = k;
        n_value = v;
    }
    m->n_value = (uint32_t)n_value;
    if (n_head_k <= m->n_rot) {
        err_set(l->e, ERR_FORMAT, "is %lld, but %u dimensions of a head rotate",
                (long long)n_head_k, m->n_rot);
        lookup_fail(l);
        return;
    }
    m->n_nope = (uint32_t)n_head_k - m->n_rot;
    hparams_latent(h);
}

void gguf_heads(struct gguf_lookup *l, struct hparams *h)
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
