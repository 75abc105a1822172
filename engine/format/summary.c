#include "config.h"

#include "engine/format/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/catalogue.h"
#include "engine/format/tensor_table.h"
#include "engine/format/tensor_use.h"
#include "engine/format/value_rules.h"

_Static_assert(SUMMARY_MAX_LAYER == MAX_LAYER, "a layer has a row");
_Static_assert(SUMMARY_MAX_TYPE >= TYPE_COUNT, "a type has a row");

const char *summary_use_name(enum summary_use u)
{
    static const char *const names[] = {
        [SUMMARY_LAYER] = "layer",       [SUMMARY_EXPERT] = "expert",
        [SUMMARY_HEAD] = "head",         [SUMMARY_LOOKUP] = "lookup",
        [SUMMARY_RESIDENT] = "resident", [SUMMARY_UNREAD] = "unread",
        [SUMMARY_OTHER] = "other",       [SUMMARY_UNKNOWN] = "unknown",
    };

    return names[u];
}

const char *summary_layer_kind(const struct summary_layer *l)
{
    if (l->is_recurrent)
        return "recurrent";
    return !l->attends ? "none" : l->is_sliding ? "sliding" : "global";
}

static bool is_tied(const struct catalogue *c)
{
    const struct tensor_info *head = catalogue_find(c, "output.weight");

    return head == NULL || !head->is_text;
}

static enum summary_use use_of_form(enum tensor_form form)
{
    switch (form) {
    case FORM_VECTOR:
    case FORM_FLAT:
    case FORM_ROUTER:
    case FORM_IDS: return SUMMARY_RESIDENT;
    case FORM_MATRIX: return SUMMARY_LAYER;
    case FORM_EXPERTS: return SUMMARY_EXPERT;
    case FORM_LOOKUP: return SUMMARY_LOOKUP;
    case FORM_HEAD: return SUMMARY_HEAD;
    }
    return SUMMARY_LAYER;
}

static enum summary_use use_of(const struct catalogue *c, const struct tensor_info *t,
                               int32_t *layer)
{
    uint32_t n = 0;
    bool in_layer = layer_suffix(t->name, c->hparams.n_layer, &n) != NULL;
    enum tensor_id id;

    *layer = in_layer ? (int32_t)n : -1;
    if (c->hparams.n_layer == 0)
        return SUMMARY_OTHER;
    switch (catalogue_tensor_kind(c, t)) {
    case TENSOR_OUTSIDE: return SUMMARY_OTHER;
    case TENSOR_UNKNOWN: return SUMMARY_UNKNOWN;
    case TENSOR_IDLE: return SUMMARY_UNREAD;
    case TENSOR_TEXT: break;
    }
    id = tensor_id_of(c->hparams.arch, t->name, c->hparams.n_layer, &n);
    return tensor_role(c, id, n) == ROLE_NONE ? SUMMARY_UNREAD
                                              : use_of_form(tensor_spec(id)->form);
}

void summary_tensor_at(const struct catalogue *c, uint32_t i, struct summary_tensor *out)
{
    const struct tensor_info *t = &c->tensors[i];

    *out = (struct summary_tensor){ .name = t->name,
                                    .type = tensor_type_info(t->type)->name,
                                    .file = c->files[t->file].path,
                                    .n_dims = t->n_dims,
                                    .offset = t->offset,
                                    .bytes = t->bytes };
    memcpy(out->ne, t->ne, sizeof out->ne);
    out->use = use_of(c, t, &out->layer);
}

/* Converters add tables of rope factors; they do not count as parameters. */
static uint64_t params_of(const struct tensor_info *t)
{
    if (strncmp(t->name, "rope_f", 6) == 0)
        return 0;
    return t->ne[0] * tensor_rows(t);
}

static void add_table(struct summary *s, const struct catalogue *c, const struct tensor_info *t)
{
    struct summary_table *table = &s->tables[s->n_table++];

    *table = (struct summary_table){
        .name = t->name,
        .type = tensor_type_info(t->type)->name,
        .bytes = t->bytes,
        .row_bytes = tensor_row_bytes(t->type, t->ne[0]),
        .n_param = params_of(t),
        .n_row = 1,
        .is_head = t->name[0] == 't' && is_tied(c),
    };
    if (c->hparams.ngram.n_token > 0 && t->name[0] == 'p')
        table->n_row = ngram_rows(&c->hparams.ngram);
    s->lookup_row_bytes += table->n_row * table->row_bytes;
    s->n_param_embd += table->n_param;
    if (table->is_head) {
        s->n_param_active += table->n_param;
        s->head_bytes += t->bytes;
        s->hot_bytes += t->bytes;
    }
}

/* Adds a tensor that the model reads: its parameters, and the bytes that a token reads. */
static void add_used(struct summary *s, const struct catalogue *c, const struct tensor_info *t,
                     enum summary_use use, int32_t number)
{
    struct summary_layer *layer = number >= 0 ? &s->layers[number] : NULL;
    uint64_t n = params_of(t), hot = t->bytes, active = n;

    s->n_param += n;
    s->resident_bytes += tensor_scales_bytes(t);
    if (use == SUMMARY_LOOKUP) {
        add_table(s, c, t);
        return;
    }
    if (use == SUMMARY_EXPERT) {
        hot = t->bytes / s->n_expert * s->n_expert_used;
        active = n / s->n_expert * s->n_expert_used;
    }
    s->n_param_active += active;
    if (layer != NULL)
        layer->n_param += n;
    if (use == SUMMARY_RESIDENT) {
        s->resident_bytes += t->bytes;
        return;
    }
    if (use == SUMMARY_HEAD) {
        s->head_bytes += t->bytes;
        s->n_param_embd += n;
    }
    s->hot_bytes += hot;
    if (layer != NULL) {
        layer->bytes += t->bytes;
        layer->hot_bytes += hot;
    }
}

static void add_tensor(struct summary *s, struct summary_type *types, const struct catalogue *c,
                       const struct tensor_info *t)
{
    bool bare = c->hparams.n_layer == 0;
    int32_t layer;
    enum summary_use use = use_of(c, t, &layer);

    if (!bare && use == SUMMARY_OTHER) {
        s->n_other++;
        s->other_bytes += t->bytes;
        return;
    }
    if (!bare && use == SUMMARY_UNKNOWN) {
        s->n_unknown++;
        s->unknown_bytes += t->bytes;
        return;
    }
    types[t->type].n_tensor++;
    types[t->type].bytes += t->bytes;
    types[t->type].n_param += params_of(t);
    if (bare) {
        s->n_param += params_of(t);
    } else if (use == SUMMARY_UNREAD) {
        s->n_unread++;
        s->unread_bytes += t->bytes;
        s->unread_params += params_of(t);
    } else {
        add_used(s, c, t, use, layer);
    }
}

/* Whether the value of a position is a part of its key. */
static bool keys_are_values(const struct hparams *h)
{
    return h->latent.n_latent > 0 || arch_has(h->arch, TRAIT_ENTRIES);
}

static void describe_layers(struct summary *s, const struct hparams *h)
{
    uint32_t first = h->n_layer - h->n_layer_kv_shared;
    int32_t last[2] = { -1, -1 }; /* last owner of KV, by kind */
    const struct delta_hparams *d = &h->delta;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        const struct layer_hparams *from = &h->layers[i];
        struct summary_layer *layer = &s->layers[i];

        layer->is_sliding = from->is_sliding;
        layer->is_recurrent = from->is_recurrent;
        layer->attends = from->attends;
        layer->n_head = from->n_head;
        layer->n_head_kv = from->n_head_kv;
        layer->head_dim_k = from->head_dim_k;
        layer->head_dim_v = from->head_dim_v;
        layer->n_ff = from->n_ff;
        if (from->is_recurrent)
            s->recurrent_values += (uint64_t)d->n_head_v * d->head_dim_v * d->head_dim_k +
                                   (uint64_t)(d->conv_width - 1) * d->n_channel;
        if (!from->attends) {
            layer->n_head = from->is_recurrent ? d->n_head_v : 0;
            layer->n_head_kv = from->is_recurrent ? d->n_head_k : 0;
            layer->head_dim_k = from->is_recurrent ? d->head_dim_k : 0;
            layer->head_dim_v = from->is_recurrent ? d->head_dim_v : 0;
            layer->kv_from = (int32_t)i;
            continue;
        }
        if (i < first) {
            last[from->is_sliding] = (int32_t)i;
            layer->kv_values =
                (uint64_t)from->n_head_kv *
                ((uint64_t)from->head_dim_k + (keys_are_values(h) ? 0 : from->head_dim_v));
            if (from->is_sliding)
                s->kv_sliding_values += layer->kv_values;
            else
                s->kv_global_values += layer->kv_values;
        }
        layer->kv_from = last[from->is_sliding];
    }
}

/* Index keys of models whose layers with them are marked, and entries. */
static void describe_pools(struct summary *s, const struct hparams *h)
{
    for (uint32_t i = 0; i < h->n_layer; i++) {
        const struct layer_hparams *from = &h->layers[i];

        if (from->has_index) {
            s->index_values += h->index.head_dim;
            s->recurrent_values += hparams_open_pool(h, h->index.head_dim, h->index.block);
        }
        if (from->ratio > 0) {
            s->entry_values += (from->head_dim_k + from->ratio - 1) / from->ratio;
            s->recurrent_values += hparams_open_pool(h, from->head_dim_k, from->ratio);
        }
    }
}

static const char *recurrence_of(const struct arch *a)
{
    return arch_has(a, TRAIT_MAMBA)        ? "Mamba-2"
           : arch_has(a, TRAIT_SHORT_CONV) ? "short convolutions"
           : arch_has(a, TRAIT_KDA)        ? "Kimi's delta attention"
                                           : "gated delta nets";
}

/* Fills in the parts that only some models have. */
static void describe_parts(struct summary *s, const struct hparams *h)
{
    const struct index_hparams *x = &h->index;
    const struct ngram_hparams *g = &h->ngram;
    uint64_t n_attend = 0;

    for (uint32_t i = 0; i < h->n_layer; i++) {
        n_attend += h->layers[i].attends;
        s->n_recurrent += h->layers[i].is_recurrent;
    }
    if (s->n_recurrent > 0)
        s->recurrence = recurrence_of(h->arch);
    if (h->latent.n_latent > 0)
        s->latent_values = h->latent.n_latent + h->latent.n_rot;
    s->n_stream = h->n_stream > 0 ? h->n_stream : 1;
    if (x->n_head > 0) {
        s->index_block = x->block;
        s->index_tokens = x->block * x->n_block;
    }
    if (h->arch != NULL && arch_has(h->arch, TRAIT_INDEX)) {
        s->index_values = n_attend * x->head_dim;
        s->recurrent_values += s->index_values * (x->block - 1);
    }
    describe_pools(s, h);
    if (g->n_token > 0) {
        s->n_ngram = g->n_token;
        s->ngram_layer = g->layer;
        s->recurrent_values +=
            g->n_token - 1 +
            (uint64_t)(g->conv_width - 1) * g->n_token * tensor_dim(h, 0, DIM_STREAMS);
    }
}

static int by_bytes(const void *a, const void *b)
{
    const struct summary_type *x = a, *y = b;

    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

void summary_make(struct summary *s, const struct catalogue *c)
{
    struct summary_type types[SUMMARY_MAX_TYPE] = { { 0 } };
    const struct hparams *h = &c->hparams;

    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", h->name);
    if (h->arch != NULL)
        snprintf(s->arch, sizeof s->arch, "%s", h->arch->name);
    s->is_snapshot = c->kind == CATALOGUE_SNAPSHOT;
    s->n_file = c->n_file;
    s->n_tensor = c->n_tensor;
    for (uint32_t i = 0; i < c->n_file; i++)
        s->file_bytes += c->files[i].size;
    s->n_layer = h->n_layer;
    s->n_embd = h->n_embd;
    s->n_vocab = h->n_vocab;
    s->n_ctx_train = h->n_ctx_train;
    s->n_swa = h->n_swa;
    s->n_expert = h->n_expert;
    s->n_expert_used = h->n_expert_used;
    describe_layers(s, h);
    describe_parts(s, h);
    s->n_default = c->defaults.n;
    memcpy(s->defaults, c->defaults.v, sizeof s->defaults);
    if (h->n_layer > 0)
        s->n_unknown_key = gguf_unknown_keys(c, s->unknown_keys, sizeof s->unknown_keys);
    for (uint32_t i = 0; i < c->n_tensor; i++)
        add_tensor(s, types, c, &c->tensors[i]);
    for (uint32_t i = 0; i < TYPE_COUNT; i++) {
        if (types[i].n_tensor == 0)
            continue;
        types[i].name = tensor_type_info(i)->name;
        s->types[s->n_type++] = types[i];
    }
    qsort(s->types, s->n_type, sizeof s->types[0], by_bytes);
}
