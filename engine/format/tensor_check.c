/*
 * Checks the tensors of a file against the table of tensors.
 *
 * Tensors that the model needs must exist.  All known tensors must have the shape that follows
 * from the hyper-parameters and a type that fits their use.  The message names the key that
 * disagrees with a shape.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/catalogue_build.h"
#include "engine/format/tensor_table.h"

/* The tensor being checked. */
struct check {
    const struct catalogue *c;
    enum tensor_id id;
    uint32_t layer;
    char name[96];
    struct err *e;
};

static int report(const struct check *k, const struct tensor_info *t)
{
    char field[96];

    catalogue_spell(k->c, k->name, field, sizeof field);
    return err_at(k->e, t != NULL ? k->c->files[t->file].path : k->c->path,
                  t != NULL ? t->offset : ERR_NO_OFFSET, field);
}

/* Write the key that states a size, and those of its keys that the file leaves out. */
static void spell_size(const struct catalogue *c, enum tensor_dim d, char *buf, size_t n)
{
    const enum hparam_word *words = tensor_dim_words(d);
    bool has_missing = false;

    hparam_spell(c, words[0], buf, n);
    for (int i = 0; i < MAX_DIM_WORD && words[i] != WORD_NONE; i++) {
        size_t used = strlen(buf);

        if (!hparam_is_default(c, words[i]))
            continue;
        snprintf(buf + used, n - used, has_missing ? ", " : "; missing: ");
        has_missing = true;
        used = strlen(buf);
        hparam_spell(c, words[i], buf + used, n - used);
    }
}

static int check_shape(const struct check *k, const struct tensor_info *t)
{
    const enum tensor_dim *dims = tensor_spec(k->id)->dims;
    char word[256];

    for (uint32_t i = 0; i < 4; i++) {
        enum tensor_dim d = i < 3 ? dims[i] : DIM_NONE;
        uint64_t expected = tensor_dim(&k->c->hparams, k->layer, d);
        /* One dimension too many is reported with the key of the last one. */
        uint32_t last = i;

        /* The embedding itself sets this dimension; 0: catalogue.c does not take its rows. */
        if (d == DIM_VOCAB && expected == 0) {
            err_set(k->e, ERR_FORMAT, "it has %llu rows; expected 1 to %lld",
                    (unsigned long long)t->ne[i], (long long)MAX_N_VOCAB);
            return report(k, t);
        }
        if (t->ne[i] == expected)
            continue;
        while (last >= 3 || dims[last] == DIM_NONE)
            last--;
        spell_size(k->c, dims[last], word, sizeof word);
        err_set(k->e, ERR_FORMAT,
                "its shape is %llu x %llu x %llu, but dimension %u should be "
                "%llu (%s)",
                (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
                (unsigned long long)t->ne[2], i, (unsigned long long)expected, word);
        return report(k, t);
    }
    return 0;
}

/* The dimensions of such a tensor are its converter's affair; the order of the values is not.
 */
static int check_flat(const struct check *k, const struct tensor_info *t)
{
    const enum tensor_dim *dims = tensor_spec(k->id)->dims;
    uint64_t n = t->ne[0] * tensor_rows(t);
    uint64_t expected = tensor_dim(&k->c->hparams, k->layer, dims[0]) *
                        tensor_dim(&k->c->hparams, k->layer, dims[1]);
    char word[256];

    if (n == expected)
        return 0;
    spell_size(k->c, dims[dims[1] != DIM_NONE], word, sizeof word);
    err_set(k->e, ERR_FORMAT, "it has %llu values; expected %llu (%s)", (unsigned long long)n,
            (unsigned long long)expected, word);
    return report(k, t);
}

static int check_type(const struct check *k, const struct tensor_info *t)
{
    enum tensor_form form = tensor_spec(k->id)->form;
    bool is_vector = form == FORM_VECTOR || form == FORM_FLAT;
    bool is_int = t->type == TYPE_I32 || t->type == TYPE_I64;
    bool is_float = t->type == TYPE_F32 || t->type == TYPE_F16 || t->type == TYPE_BF16;
    bool is_wrong = t->type == TYPE_I8 || t->type == TYPE_I16 || t->type == TYPE_I32 ||
                    t->type == TYPE_I64 || t->type == TYPE_F64 || t->type == TYPE_Q8_1 ||
                    t->type == TYPE_Q8_K;

    if (form == FORM_IDS ? is_int : is_vector ? is_float : !is_wrong)
        return 0;
    err_set(k->e, ERR_UNSUPPORTED, "its type is %s, which %s cannot have",
            tensor_type_info(t->type)->name,
            form == FORM_IDS ? "numbers of experts"
            : is_vector      ? "norms, scales and biases"
                             : "weights");
    return report(k, t);
}

/* Add to an error how the names of the file begin, if no family has such names: wrappers for training
 * and adapters put words before them. */
static void note_names(const struct catalogue *c, struct err *e)
{
    for (uint32_t i = 0; i < c->n_tensor; i++) {
        const char *name = c->tensors[i].name, *layers = strstr(name, "layers.0.");
        size_t used = strlen(e->what);

        if (c->kind != CATALOGUE_SNAPSHOT || layers == NULL || layers == name)
            continue;
        snprintf(e->what + used, sizeof e->what - used,
                 "; names of the file begin with \"%.*s\": merge adapters and save the model without "
                 "wrappers, or fetch the original files",
                 (int)(layers - name < 60 ? layers - name : 60), name);
        return;
    }
}

static int check_tensor(const struct catalogue *c, enum tensor_id id, uint32_t layer,
                        struct err *e)
{
    struct check k = { .c = c, .id = id, .layer = layer, .e = e };
    enum tensor_role role = tensor_role(c, id, layer);
    const struct tensor_info *t;

    if (role == ROLE_NONE || tensor_fused(c, id, layer) != NULL)
        return 0;
    tensor_name(c->hparams.arch, id, layer, k.name, sizeof k.name);
    t = tensor_own(c, id, layer);
    if (t != NULL && tensor_spec(id)->form == FORM_FLAT)
        return check_flat(&k, t) != 0 || check_type(&k, t) != 0 ? -1 : 0;
    if (t != NULL)
        return check_shape(&k, t) != 0 || check_type(&k, t) != 0 ? -1 : 0;
    if (role != ROLE_NEEDED)
        return 0;
    err_set(e, ERR_FORMAT,
            c->n_tensor == 0
                ? "the tensor is missing: the file has no tensors, only a vocabulary"
                : "the tensor is missing");
    note_names(c, e);
    return report(&k, NULL);
}

/* A layer without a matrix for values uses its keys, so both must have the same size. */
static int check_keys_as_values(const struct catalogue *c, uint32_t layer, struct err *e)
{
    const struct layer_hparams *l = &c->hparams.layers[layer];
    struct check k = { .c = c, .id = T_ATTN_V, .layer = layer, .e = e };
    struct tensor_part v;
    char word[96];

    if (l->head_dim_k == l->head_dim_v || !l->attends ||
        tensor_role(c, T_ATTN_V, layer) == ROLE_IDLE || tensor_find(c, T_ATTN_V, layer, &v))
        return 0;
    hparam_spell(c, WORD_HEAD_DIM_V, word, sizeof word);
    err_set(e, ERR_FORMAT,
            "the tensor is missing, and keys of %u cannot serve as values of %u (%s)",
            l->head_dim_k, l->head_dim_v, word);
    tensor_name(c->hparams.arch, T_ATTN_V, layer, k.name, sizeof k.name);
    return report(&k, NULL);
}

/* Report the first of n tensors that the file does not have. */
static int check_all(const struct catalogue *c, const enum tensor_id *ids, int n,
                     uint32_t layer, struct err *e)
{
    for (int i = 0; i < n; i++) {
        struct check k = { .c = c, .id = ids[i], .layer = layer, .e = e };
        struct tensor_part p;

        if (tensor_find(c, ids[i], layer, &p))
            continue;
        tensor_name(c->hparams.arch, ids[i], layer, k.name, sizeof k.name);
        err_set(e, ERR_FORMAT, "the tensor is missing");
        return report(&k, NULL);
    }
    return 0;
}

/* Without its joined projection, a delta net needs the others. */
static int check_projections(const struct catalogue *c, uint32_t layer, struct err *e)
{
    static const enum tensor_id apart[] = { T_DELTA_QKV, T_DELTA_Z };
    struct tensor_part p;

    if (!c->hparams.layers[layer].is_recurrent || !arch_has(c->hparams.arch, TRAIT_DELTA) ||
        tensor_find(c, T_DELTA_QKVZ, layer, &p))
        return 0;
    return check_all(c, apart, 2, layer, e);
}

/* Latent attention has one matrix of queries or two, and one that expands keys and values or
 * one for each. */
static int check_latent(const struct catalogue *c, uint32_t layer, struct err *e)
{
    static const enum tensor_id two[] = { T_Q_A, T_Q_A_NORM, T_Q_B },
                                apart[] = { T_K_B, T_V_B };
    struct tensor_part p;

    if (arch_has(c->hparams.arch, TRAIT_ENTRIES))
        return check_all(c, two, 3, layer, e);
    if (c->hparams.latent.n_latent == 0 || !c->hparams.layers[layer].attends)
        return 0;
    if (!tensor_find(c, T_ATTN_Q, layer, &p) && check_all(c, two, 3, layer, e) != 0)
        return -1;
    return tensor_find(c, T_KV_B, layer, &p) ? 0 : check_all(c, apart, 2, layer, e);
}

/* A nextn head joins embedding and hidden row with one matrix or with two. */
static int check_join(const struct catalogue *c, struct err *e)
{
    static const enum tensor_id one[] = { T_HEAD_JOIN },
                                two[] = { T_HEAD_JOIN_EMBD, T_HEAD_JOIN_HIDDEN };
    struct tensor_part p;

    if (!arch_has(c->hparams.arch, TRAIT_NEXTN))
        return 0;
    return tensor_find(c, T_HEAD_JOIN_EMBD, 0, &p) ? check_all(c, two, 2, 0, e)
                                                   : check_all(c, one, 1, 0, e);
}

int catalogue_check_tensors(const struct catalogue *c, struct err *e)
{
    for (int id = 0; id < T_LAYER; id++)
        if (check_tensor(c, (enum tensor_id)id, 0, e) != 0)
            return -1;
    if (check_join(c, e) != 0)
        return -1;
    for (uint32_t l = 0; l < c->hparams.n_layer; l++) {
        for (int id = T_LAYER; id < T_COUNT; id++)
            if (check_tensor(c, (enum tensor_id)id, l, e) != 0)
                return -1;
        if (check_keys_as_values(c, l, e) != 0 || check_projections(c, l, e) != 0 ||
            check_latent(c, l, e) != 0)
            return -1;
    }
    return 0;
}
