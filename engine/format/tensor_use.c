/*
 * Which tensors of a file a model reads.  Every tensor belongs to one of four kinds: part of
 * the text model; idle (a known leftover that no model reads); outside the text model
 * (towers of other modalities, drafting heads); or unknown.  The description of a model
 * reports the values that it reads of each tensor; a tensor of the first or the last kind
 * that is not read completely is an error, since the answers would be wrong.
 */
#include "config.h"

#include "engine/format/tensor_use.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"

/* Suffixes of layer tensors that any of the architectures reads. */
static const char *const layer_names[] = {
    "attn_norm.weight",
    "attn_q.weight",
    "attn_q.bias",
    "attn_k.weight",
    "attn_k.bias",
    "attn_v.weight",
    "attn_v.bias",
    "attn_qkv.weight",
    "attn_qkv.bias",
    "attn_q_norm.weight",
    "attn_k_norm.weight",
    "attn_output.weight",
    "attn_output.bias",
    "post_attention_norm.weight",
    "ffn_norm.weight",
    "ffn_gate.weight",
    "ffn_gate.bias",
    "ffn_up.weight",
    "ffn_up.bias",
    "ffn_down.weight",
    "ffn_down.bias",
    "post_ffw_norm.weight",
    "layer_output_scale.weight",
    "inp_gate.weight",
    "proj.weight",
    "post_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_inp.scale",
    "ffn_down_exps.scale",
    "ffn_gate_up_exps.weight",
    "ffn_down_exps.weight",
    "ffn_gate_exps.weight",
    "ffn_up_exps.weight",
    "pre_ffw_norm_2.weight",
    "post_ffw_norm_1.weight",
    "post_ffw_norm_2.weight",
};

static const char *const model_names[] = {
    "token_embd.weight",           "output_norm.weight",          "output.weight",
    "rope_freqs.weight",           "rope_factors_long.weight",    "rope_factors_short.weight",
    "per_layer_token_embd.weight", "per_layer_model_proj.weight", "per_layer_proj_norm.weight",
};

const char *layer_suffix(const char *name, uint32_t n_layer, uint32_t *layer)
{
    const char *p = name + 4;
    uint32_t n = 0;

    if (strncmp(name, "blk.", 4) != 0 || *p < '0' || *p > '9' || (p[0] == '0' && p[1] != '.'))
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        n = n * 10 + (uint32_t)(*p - '0');
        if (n >= MAX_LAYER)
            return NULL;
    }
    if (*p != '.' || (n_layer != 0 && n >= n_layer))
        return NULL;
    if (layer != NULL)
        *layer = n;
    return p + 1;
}

/* Layer tensors of published files that no model reads. */
static const char *const idle_names[] = {
    "attn_rot_embd.weight", /* frequencies in the first GGUF files; computed from the base */
};

/* The same in snapshots, by the end of their names. */
static const char *const idle_tails[] = {
    ".rotary_emb.inv_freq", /* buffers that transformers saved until version 4.31 */
};

/* Layers that read the keys and values of another layer keep their own in published files of
 * Gemma 4 E2B and E4B. */
static const char *const shared_names[] = {
    "attn_k.weight", "attn_k.bias",     "attn_k_norm.weight", "attn_v.weight",
    "attn_v.bias",   "attn_qkv.weight", "attn_qkv.bias", /* their k and v rows */
};

/* Beginnings of names outside the text model.  GGUF files made by Ollama hold the towers, and
 * so do snapshots of multimodal models, with "model." in front or without it. */
static const char *const outside_gguf[] = { "v.", "a.", "mm.", "mtp.", "nextn." };
static const char *const outside_snapshot[] = {
    "vision_tower.", "vision_embedder.", "embed_vision.",          "audio_tower.",
    "embed_audio.",  "vision_model.",    "multi_modal_projector.", "mtp.",
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static bool is_listed(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

static bool begins(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(name, list[i], strlen(list[i])) == 0)
            return true;
    return false;
}

static bool ends(const char *name, const char *const *list, size_t n)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < n; i++) {
        size_t m = strlen(list[i]);

        if (len >= m && strcmp(name + len - m, list[i]) == 0)
            return true;
    }
    return false;
}

static bool is_outside(const struct catalogue *c, const char *name)
{
    if (c->kind == CATALOGUE_GGUF)
        return begins(name, outside_gguf, COUNT(outside_gguf));
    if (strncmp(name, "model.", 6) == 0)
        name += 6;
    return begins(name, outside_snapshot, COUNT(outside_snapshot));
}

enum tensor_kind catalogue_tensor_kind(const struct catalogue *c, const struct tensor_info *t)
{
    const struct hparams *h = &c->hparams;
    uint32_t layer = 0;
    const char *suffix = layer_suffix(t->name, h->n_layer, &layer);

    if (suffix == NULL) {
        if (is_listed(t->name, model_names, COUNT(model_names)))
            return TENSOR_TEXT;
        if (is_outside(c, t->name))
            return TENSOR_OUTSIDE;
        return ends(t->name, idle_tails, COUNT(idle_tails)) ? TENSOR_IDLE : TENSOR_UNKNOWN;
    }
    if (layer >= h->n_layer - h->n_layer_kv_shared &&
        is_listed(suffix, shared_names, COUNT(shared_names)))
        return TENSOR_IDLE;
    if (is_listed(suffix, idle_names, COUNT(idle_names)))
        return TENSOR_IDLE;
    return is_listed(suffix, layer_names, COUNT(layer_names)) ? TENSOR_TEXT : TENSOR_UNKNOWN;
}

void catalogue_mark_text(struct catalogue *c)
{
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        struct tensor_info *t = &c->tensors[i];
        enum tensor_kind kind = catalogue_tensor_kind(c, t);

        t->is_text = kind == TENSOR_TEXT || kind == TENSOR_IDLE;
        if (kind == TENSOR_OUTSIDE) {
            c->n_tensor_other++;
            c->bytes_other += t->bytes;
        }
    }
}

/* Factors of the frequencies are read when a model is opened, not by its description. */
static bool is_read_at_opening(const struct rope_hparams *r, const char *name)
{
    if (r->n_factor == 0)
        return false;
    return strcmp(name, "rope_freqs.weight") == 0 ? r->scaling != ROPE_LONGROPE
                                                  : strncmp(name, "rope_factors_", 13) == 0;
}

int catalogue_check_use(const struct catalogue *c, const uint64_t *n_read, struct err *e)
{
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        const struct tensor_info *t = &c->tensors[i];
        enum tensor_kind kind = catalogue_tensor_kind(c, t);
        uint64_t n = t->ne[0] * tensor_rows(t);
        char field[96];

        if (kind == TENSOR_IDLE || kind == TENSOR_OUTSIDE || n_read[i] >= n ||
            is_read_at_opening(&c->hparams.rope, t->name))
            continue;
        if (n_read[i] == 0)
            err_set(e, ERR_UNSUPPORTED,
                    "memwall's %s models do not use this tensor, so the answers would be wrong",
                    c->hparams.arch->name);
        else
            err_set(e, ERR_UNSUPPORTED,
                    "memwall's %s models use %llu of its %llu values, so the answers would be "
                    "wrong",
                    c->hparams.arch->name, (unsigned long long)n_read[i], (unsigned long long)n);
        catalogue_spell(c, t->name, field, sizeof field);
        return err_at(e, c->files[t->file].path, ERR_NO_OFFSET, field);
    }
    return 0;
}
