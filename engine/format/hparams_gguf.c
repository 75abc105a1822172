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
#include "engine/format/gguf_hparams.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/value_rules.h"

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

/* All layers of an assistant read the keys and values of another model. */
static void read_assistant(struct gguf_lookup *l, struct hparams *h)
{
    struct head_hparams *head = &h->head;

    h->n_layer_kv_shared = h->n_layer;
    lookup_int(l, "attention.shared_kv_layers", h->n_layer, h->n_layer, h->n_layer);
    lookup_int(l, "nextn_predict_layers", h->n_layer, h->n_layer, h->n_layer);
    defaults_drop(l->defaults, "attention.shared_kv_layers");
    defaults_drop(l->defaults, "nextn_predict_layers");
    head->n_hidden =
        (uint32_t)lookup_int(l, "embedding_length_out", 1, MAX_N_EMBD, GGUF_NEEDED);
    head->n_embd_in = head->n_hidden;
    if (lookup_find(l, "centroid_top_k") == NULL) /* then all logits are computed */
        return;
    head->n_cluster = (uint32_t)lookup_int(l, "centroid_count", 1, MAX_N_VOCAB, GGUF_NEEDED);
    head->n_cluster_used =
        (uint32_t)lookup_int(l, "centroid_top_k", 1, head->n_cluster, GGUF_NEEDED);
}

/* Nemotron's files call the epsilon of their rms norms that of layer norms. */
static const char *eps_key(struct gguf_lookup *l, const struct arch *a)
{
    bool is_other = arch_has(a, TRAIT_MEAN_NORM) ||
                    (arch_has(a, TRAIT_ONE_BLOCK) &&
                     lookup_find(l, "attention.layer_norm_rms_epsilon") == NULL);

    return is_other ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
}

/* Whether a layer only drafts: it joins an embedding and a hidden row, with one matrix or two. */
static bool only_drafts(const struct catalogue *c, uint32_t layer)
{
    char one[64], two[64];

    snprintf(one, sizeof one, "blk.%u.nextn.eh_proj.weight", layer);
    snprintf(two, sizeof two, "blk.%u.nextn.e_proj.weight", layer);
    return catalogue_find(c, one) != NULL || catalogue_find(c, two) != NULL;
}

/* Reads how many layers only draft.  Files of DeepSeek V4 may state some that they lack, and
 * leave out of block_count those that they have. */
static void read_draft_layers(struct gguf_lookup *l, const struct catalogue *c,
                              struct hparams *h)
{
    uint32_t n = (uint32_t)lookup_int(l, "nextn_predict_layers", 0, h->n_layer - 1, 0);

    if (arch_has(h->arch, TRAIT_DRAFT)) /* its tensors say so, too */
        defaults_drop(l->defaults, "nextn_predict_layers");
    if (!arch_has(h->arch, TRAIT_ENTRIES) || (n > 0 && only_drafts(c, h->n_layer - n))) {
        h->n_layer_draft = n;
        h->n_layer -= n;
        return;
    }
    while (h->n_layer + h->n_layer_draft < MAX_LAYER &&
           only_drafts(c, h->n_layer + h->n_layer_draft))
        h->n_layer_draft++;
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
    if (!l->failed && (h->arch->traits & (TRAIT_DELTA | TRAIT_DRAFT)) != 0)
        read_draft_layers(l, c, h);
    if (!l->failed && arch_has(h->arch, TRAIT_DELTA))
        gguf_delta(l, h);
    else if (!l->failed && arch_recurs(h->arch))
        gguf_recurrent(l, c, h);
    if (!l->failed && arch_has(h->arch, TRAIT_STREAMS))
        gguf_streams(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_HYPER))
        gguf_hyper(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_INDEX))
        gguf_index(l, h);
    if (!l->failed && arch_has(h->arch, TRAIT_SCORED))
        gguf_scored(l, c, h);
    if (!l->failed && arch_has(h->arch, TRAIT_NGRAMS))
        gguf_ngrams(l, h);
    if (l->failed)
        return;
    if (arch_has(h->arch, TRAIT_SHARED_KV))
        h->n_layer_kv_shared =
            (uint32_t)lookup_int(l, "attention.shared_kv_layers", 0, h->n_layer - 1, 0);
    if (arch_has(h->arch, TRAIT_ASSISTANT))
        read_assistant(l, h);
    if (arch_has(h->arch, TRAIT_PER_LAYER_INPUT)) {
        bool has_table = catalogue_find(c, "per_layer_token_embd.weight") != NULL;

        h->n_embd_per_layer =
            (uint32_t)lookup_int(l, "embedding_length_per_layer_input", has_table, MAX_N_EMBD,
                                 has_table ? GGUF_NEEDED : 0);
    }
    gguf_windows(l, h);
    if (!l->failed)
        gguf_heads(l, h);
    for (uint32_t i = 0; h->arch->gate == GATE_SOFTPLUS && i < h->n_layer; i++)
        h->layers[i].gates_values = gguf_rows_of(c, i, "attn_gate.weight") > h->layers[i].n_head;
    if (!l->failed)
        gguf_rope(l, c, h);
    gguf_experts(l, c, h);
    if (!l->failed)
        read_scales(l, h);
    hparams_skip_rope(h, h->arch->ropeless_period);
    if (arch_has(h->arch, TRAIT_MAYBE_NOPE) && !lookup_bool(l, "rope.scaling.finetuned", true))
        for (uint32_t i = 0; i < h->n_layer; i++)
            h->layers[i].is_ropeless = true;
    if (!arch_has(h->arch, TRAIT_MAMBA)) /* files of models with attention only lack it */
        defaults_drop(l->defaults, "rope.scaling.finetuned");
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
        arch_refuse(name, true, e);
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
    struct absent_list absent = { 0 };
    struct gguf_lookup l = { .g = c->gguf,
                             .prefix = gguf_prefix(c->gguf),
                             .defaults = &c->defaults,
                             .absent = &absent,
                             .e = e };
    struct hparams *h = &c->hparams;

    if (c->trunk == NULL && (check_kind(c, e) != 0 || read_arch(h, c->gguf, e) != 0))
        return -1;
    read_name(c);
    read_model(&l, c, h);
    if (l.failed)
        return -1;
    hparams_parts(h);
    if (gguf_check_keys(c, &absent, e) != 0)
        return -1;
    read_generation(&c->generation, c->gguf);
    return 0;
}
