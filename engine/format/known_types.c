/*
 * The weight types of a file, from its label.  Makers of GGUF files name a file after the type
 * of most of its matrices, and give some of them better ones:
 *
 *     Q4_0, Q4_K   the output head Q6_K, or the token embeddings that serve as one
 *     Q4_K         (Q4_K_M) Q6_K for half of the matrices of values and half of ffn_down
 *     MXFP4        experts MXFP4, everything else Q8_0
 *
 * A data file states the types of other published files.  Vectors and routers are floats.  The
 * projection of per-layer inputs stays BF16.  A row that is not a multiple of a type's block
 * gets Q5_0 for Q4_K and Q8_0 for Q6_K.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "engine/base/units.h"
#include "engine/format/known.h"
#include "engine/format/tensor_table.h"

/* Tensors of a GGUF file are aligned to this, and follow a header: hardly any begins with a
 * page of the file. */
#define DATA_ALIGN 32

static const struct {
    const char *name, *other;
    enum tensor_type type;
} labels[] = {
    { "BF16", NULL, TYPE_BF16 }, { "F16", NULL, TYPE_F16 },     { "F32", NULL, TYPE_F32 },
    { "Q8_0", NULL, TYPE_Q8_0 }, { "Q6_K", NULL, TYPE_Q6_K },   { "Q4_K", "Q4_K_M", TYPE_Q4_K },
    { "Q4_0", NULL, TYPE_Q4_0 }, { "MXFP4", NULL, TYPE_MXFP4 },
};
#define N_LABEL (sizeof labels / sizeof labels[0])

static size_t find_label(const char *label)
{
    size_t i = 0;

    while (i < N_LABEL && strcasecmp(label, labels[i].name) != 0 &&
           (labels[i].other == NULL || strcasecmp(label, labels[i].other) != 0))
        i++;
    return i;
}

static const struct known_mix *find_mix(const struct known_model *m, const char *label)
{
    for (uint32_t i = 0; i < m->n_mix; i++)
        if (strcasecmp(m->mix[i].label, label) == 0)
            return &m->mix[i];
    return NULL;
}

const char *known_label(const struct known_model *m, const char *label)
{
    const struct known_mix *mix = find_mix(m, label);
    size_t i = find_label(label);

    if (mix != NULL)
        return mix->label;
    return i < N_LABEL ? labels[i].name : NULL;
}

void known_labels(const struct known_model *m, char *buf, size_t n)
{
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < N_LABEL && used < n; i++)
        used +=
            (size_t)snprintf(buf + used, n - used, "%s%s", i > 0 ? ", " : "", labels[i].name);
    for (uint32_t i = 0; i < m->n_mix && used < n; i++)
        used += (size_t)snprintf(buf + used, n - used, ", %s", m->mix[i].label);
}

static bool divides(enum tensor_type type, uint64_t n)
{
    return n % tensor_type_info(type)->block_elems == 0;
}

/* The first and the last eighth, and every third between them. */
static bool has_more_bits(uint32_t i, uint32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

/* Counts the layers with a matrix of values so far. */
struct mixture {
    const struct catalogue *c;
    const struct known_mix *mix; /* NULL: by the rule */
    enum tensor_type type;
    uint32_t n_v, i_v;
    bool is_tied;
};

static bool holds_values(enum tensor_id id)
{
    return id == T_ATTN_V || id == T_ATTN_QKV;
}

static bool is_down(enum tensor_id id)
{
    return id == T_FFN_DOWN || id == T_EXPERTS_DOWN || id == T_SHARED_DOWN;
}

static bool is_head(const struct mixture *m, enum tensor_id id)
{
    return id == T_OUTPUT || (m->is_tied && (id == T_TOKEN_EMBD || id == T_PER_LAYER_EMBD));
}

static enum tensor_type stated(const struct known_mix *mix, enum tensor_id id)
{
    if (id == T_NGRAM_EMBD)
        return mix->table;
    if (tensor_spec(id)->form != FORM_EXPERTS)
        return mix->matrix;
    return id == T_EXPERTS_DOWN ? mix->down : mix->inner;
}

static enum tensor_type better(struct mixture *m, enum tensor_id id, uint32_t layer,
                               uint64_t n_row)
{
    bool is_mixed = m->type == TYPE_Q4_K;

    if (m->type == TYPE_MXFP4)
        return tensor_spec(id)->form == FORM_EXPERTS ? TYPE_MXFP4 : TYPE_Q8_0;
    if (is_head(m, id))
        return m->type == TYPE_Q8_0 || !divides(m->type, n_row) ? TYPE_Q8_0 : TYPE_Q6_K;
    if (holds_values(id) && is_mixed && has_more_bits(m->i_v++, m->n_v))
        return TYPE_Q6_K;
    if (is_down(id) && is_mixed && has_more_bits(layer, m->c->hparams.n_layer))
        return TYPE_Q6_K;
    return m->type;
}

static enum tensor_type type_of(struct mixture *m, enum tensor_id id, uint32_t layer,
                                uint64_t n_row)
{
    enum tensor_form form = tensor_spec(id)->form;
    enum tensor_type type;

    if (form == FORM_IDS)
        return TYPE_I32;
    if (form == FORM_VECTOR || form == FORM_FLAT || form == FORM_ROUTER)
        return TYPE_F32;
    if (m->mix == NULL && (m->type == TYPE_BF16 || m->type == TYPE_F16 || m->type == TYPE_F32))
        return m->type;
    if (id == T_PER_LAYER_PROJ)
        return TYPE_BF16;
    type = m->mix != NULL ? stated(m->mix, id) : better(m, id, layer, n_row);
    if (divides(type, n_row))
        return type;
    return type == TYPE_Q4_K ? TYPE_Q5_0 : type == TYPE_Q6_K ? TYPE_Q8_0 : TYPE_F16;
}

int known_set_types(struct catalogue *c, const struct known_model *known, const char *label,
                    struct err *e)
{
    size_t found = find_label(label);
    struct mixture m = { .c = c,
                         .mix = find_mix(known, label),
                         .is_tied = !c->hparams.own_head };
    uint64_t at = DATA_ALIGN;
    uint32_t layer;

    if (found == N_LABEL && m.mix == NULL) {
        char list[320];

        known_labels(known, list, sizeof list);
        return err_set(e, ERR_ARGUMENT,
                       "the weight types of \"%.40s\" files are not known; known are %s", label,
                       list);
    }
    if (m.mix == NULL)
        m.type = labels[found].type;
    for (uint32_t i = 0; i < c->n_tensor; i++)
        m.n_v += holds_values(
            tensor_id_of(c->hparams.arch, c->tensors[i].name, c->hparams.n_layer, &layer));
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        struct tensor_info *t = &c->tensors[i];
        enum tensor_id id = tensor_id_of(c->hparams.arch, t->name, c->hparams.n_layer, &layer);

        t->type = type_of(&m, id, layer, t->ne[0]);
        t->bytes = tensor_row_bytes(t->type, t->ne[0]) * tensor_rows(t);
        t->offset = at;
        at = align_up(at + t->bytes, DATA_ALIGN);
    }
    c->files[0].size = at;
    return 0;
}
