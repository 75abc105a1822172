/*
 * Checks that a model uses all tensors that matter.
 *
 * A tensor is part of the text model, idle (a known leftover that no model reads), outside the
 * text model (towers of other modalities, drafting heads), or unknown.  The description of a
 * model counts the values that it reads of each tensor.  A part of the text model or an unknown
 * tensor that is not read completely is an error, because the answers would be wrong.
 */
#include "config.h"

#include "engine/format/tensor_use.h"

#include <stdlib.h>
#include <string.h>

#include "engine/format/catalogue_build.h"
#include "engine/format/ngram_numbers.h"
#include "engine/format/snapshot.h"
#include "engine/format/tensor_table.h"

/* Leftovers in layers of published GGUF files. */
static const char *const idle_names[] = {
    "attn_rot_embd.weight", /* in the first GGUF files; the frequencies follow from the base */
};

/* The same by the end of their names: scales of activations, which are not quantised here. */
static const char *const idle_layer_tails[] = {
    ".input_scale",
};

/* Leftovers in snapshots, by the end of their names. */
static const char *const idle_tails[] = {
    ".rotary_emb.inv_freq", /* buffers that transformers saved until version 4.31 */
    ".input_scale",         /* of activations, keys and values */
    ".input_global_scale",
    ".k_scale",
    ".v_scale",
};

/* The clusters of an assistant's tokens, which are read when it is opened. */
static const char *const order_names[] = { "masked_embd_ordering",
                                           "masked_embedding.token_ordering" };

/* Beginnings of names outside the text model.  GGUF files made by Ollama contain the towers,
 * and so do snapshots of multimodal models, with or without "model." in front. */
static const char *const outside_gguf[] = { "v.",   "a.",     "mm.",
                                            "mtp.", "nextn.", "model.vision_tower." };
static const char *const outside_snapshot[] = {
    "vision_tower.", "vision_embedder.",       "embed_vision.", "audio_tower.", "embed_audio.",
    "vision_model.", "multi_modal_projector.", "mtp.",          "visual.",
    "mtp_",
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

/* Whether "layers.N." of a snapshot is a layer that only drafts, with names of its own. */
static bool is_draft_layer(const struct catalogue *c, const char *name)
{
    unsigned long n;
    char *end;

    if (strncmp(name, "layers.", 7) != 0)
        return false;
    n = strtoul(name + 7, &end, 10);
    return *end == '.' && n >= c->hparams.n_layer &&
           n < (unsigned long)c->hparams.n_layer + c->hparams.n_layer_draft;
}

static bool is_outside(const struct catalogue *c, const char *name)
{
    uint32_t layer;

    if (layer_suffix(name, c->hparams.n_layer + c->hparams.n_layer_draft, &layer) != NULL &&
        layer >= c->hparams.n_layer)
        return true;
    if (c->kind == CATALOGUE_GGUF)
        return begins(name, outside_gguf, COUNT(outside_gguf));
    name = snapshot_inner_name(name);
    if (is_draft_layer(c, name))
        return true;
    return begins(name, outside_snapshot, COUNT(outside_snapshot));
}

enum tensor_kind catalogue_tensor_kind(const struct catalogue *c, const struct tensor_info *t)
{
    const struct hparams *h = &c->hparams;
    uint32_t layer;
    enum tensor_id id = tensor_id_of(h->arch, t->name, h->n_layer, &layer);
    const char *suffix = layer_suffix(t->name, h->n_layer, NULL);

    if (arch_has(h->arch, TRAIT_ASSISTANT) &&
        (is_listed(t->name, order_names, COUNT(order_names)) ||
         (id == T_HEAD_CLUSTERS && !arch_has(h->arch, TRAIT_ORDERED))))
        return TENSOR_IDLE;
    if (id != T_COUNT)
        return tensor_role(c, id, layer) == ROLE_IDLE ? TENSOR_IDLE : TENSOR_TEXT;
    if (suffix != NULL)
        return is_listed(suffix, idle_names, COUNT(idle_names)) ||
                       ends(suffix, idle_layer_tails, COUNT(idle_layer_tails))
                   ? TENSOR_IDLE
                   : TENSOR_UNKNOWN;
    if (is_outside(c, t->name))
        return TENSOR_OUTSIDE;
    if (ngram_numbers_are(t->name)) /* read when the model is opened */
        return h->ngram.n_token > 0 ? TENSOR_IDLE : TENSOR_UNKNOWN;
    return ends(t->name, idle_tails, COUNT(idle_tails)) ? TENSOR_IDLE : TENSOR_UNKNOWN;
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

/* Tables of rope factors are read when a model is opened and are not in its description. */
static bool is_read_at_opening(const struct rope_hparams *r, enum tensor_id id)
{
    if (r->n_factor == 0)
        return false;
    return id == T_ROPE_FREQS ? r->scaling != ROPE_LONGROPE
                              : id == T_ROPE_SHORT || id == T_ROPE_LONG;
}

int catalogue_check_use(const struct catalogue *c, const uint64_t *n_read, struct err *e)
{
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        const struct tensor_info *t = &c->tensors[i];
        enum tensor_kind kind = catalogue_tensor_kind(c, t);
        uint32_t layer;
        enum tensor_id id = tensor_id_of(c->hparams.arch, t->name, c->hparams.n_layer, &layer);
        uint64_t n = tensor_values_read(c, t, id, layer);
        char field[96];

        if (kind == TENSOR_IDLE || kind == TENSOR_OUTSIDE || n_read[i] >= n ||
            is_read_at_opening(&c->hparams.rope, id))
            continue;
        if (n_read[i] == 0)
            err_set(e, ERR_UNSUPPORTED,
                    "memwall's %s models do not use this tensor, so the answers would be wrong",
                    c->hparams.arch->name);
        else
            err_set(e, ERR_UNSUPPORTED,
                    "memwall's %s models use %llu of its %llu values, so the answers would be "
                    "wrong",
                    c->hparams.arch->name, (unsigned long long)n_read[i],
                    (unsigned long long)n);
        catalogue_spell(c, t->name, field, sizeof field);
        return err_at(e, c->files[t->file].path, ERR_NO_OFFSET, field);
    }
    return 0;
}
