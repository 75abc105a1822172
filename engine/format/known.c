/* See known.h. */
#include "config.h"

#include "engine/format/known.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/visible.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/file_open.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/json.h"
#include "engine/format/snapshot.h"
#include "engine/format/tensor_table.h"

#define KNOWN_VERSION 1

/* --- the data file --- */

static int fail(struct err *e, const char *field, const char *what)
{
    err_set(e, ERR_FORMAT, "%s", what);
    return err_at(e, NULL, ERR_NO_OFFSET, field);
}

static int read_count(const struct json_node *tokenizer, const char *key, int64_t max,
                      uint32_t *out, struct err *e)
{
    int64_t v;

    if (!json_as_int(json_get(tokenizer, key), &v) || v < 0 || v > max)
        return fail(e, key, "is not a count of a tokenizer");
    *out = (uint32_t)v;
    return 0;
}

static int read_tokenizer(const struct json_node *n, struct vocab_info *v, struct err *e)
{
    static const char *const models[] = { [VOCAB_BPE_CHARS] = "bpe-characters",
                                          [VOCAB_SCORES] = "scores",
                                          [VOCAB_BPE_BYTES] = "bpe-bytes" };
    const char *model = json_as_string(json_get(n, "model"));
    size_t kind = 0, n_kind = sizeof models / sizeof models[0];
    uint32_t bytes;

    *v = (struct vocab_info){ .bos = -1, .eos = -1, .unk = -1, .pad = -1 };
    while (kind < n_kind && (model == NULL || strcmp(model, models[kind]) != 0))
        kind++;
    if (kind == n_kind)
        return fail(e, "tokenizer", "names no tokenizer of this file");
    v->model = (enum vocab_model)kind;
    json_as_bool(json_get(n, "ignore_merges"), &v->ignore_merges);
    if (read_count(n, "merges", VOCAB_MAX_MERGE, &v->n_merge, e) != 0 ||
        read_count(n, "characters", VOCAB_MAX_TOKEN, &v->n_char, e) != 0 ||
        read_count(n, "added", VOCAB_MAX_TOKEN, &v->n_added, e) != 0 ||
        read_count(n, "text_bytes", (int64_t)VOCAB_MAX_TEXT_BYTES, &bytes, e) != 0)
        return -1;
    v->text_bytes = bytes;
    return 0;
}

static int read_types(const struct json_node *list, struct known_model *m, struct err *e)
{
    const struct json_node *n;

    for (n = list != NULL ? list->first : NULL; n != NULL && m->n_type < KNOWN_TYPES;
         n = n->next) {
        const char *label = json_as_string(n);

        if (label == NULL || known_label(m, label) == NULL)
            return fail(e, "types", "names an unknown weight type");
        m->types[m->n_type++] = known_label(m, label);
    }
    return m->n_type > 0 ? 0 : fail(e, "types", "is empty");
}

static bool read_type(const struct json_node *n, enum tensor_type *out)
{
    const char *name = json_as_string(n);

    for (uint32_t t = 0; name != NULL && t < TYPE_COUNT; t++)
        if (tensor_type_info(t)->is_computed && strcmp(tensor_type_info(t)->name, name) == 0) {
            *out = (enum tensor_type)t;
            return true;
        }
    return false;
}

/* Reads {"UD-Q4_K_XL": {"matrix": "Q8_0", "inner": "Q4_K", "down": "Q5_1", "table": "IQ4_NL"}}.
 */
static int read_mixes(const struct json_node *list, struct known_model *m, struct err *e)
{
    const struct json_node *n;

    for (n = list != NULL ? list->first : NULL; n != NULL && m->n_mix < KNOWN_MIXES;
         n = n->next) {
        struct known_mix *mix = &m->mix[m->n_mix++];

        mix->label = n->key;
        if (!read_type(json_get(n, "matrix"), &mix->matrix) ||
            !read_type(json_get(n, "inner"), &mix->inner) ||
            !read_type(json_get(n, "down"), &mix->down) ||
            !read_type(json_get(n, "table"), &mix->table))
            return fail(e, "mixes", "names an unknown weight type");
    }
    return 0;
}

static int read_model(const struct json_node *root, const struct json_node *n,
                      struct known_model *m, struct err *e)
{
    const struct json_node *types = json_get(n, "types");
    const char *tokenizer = json_as_string(json_get(n, "tokenizer"));

    m->name = json_as_string(json_get(n, "name"));
    m->config = json_get(n, "config");
    if (m->name == NULL || m->config == NULL || tokenizer == NULL)
        return fail(e, "models", "an entry lacks its name, config or tokenizer");
    return read_mixes(json_get(n, "mixes"), m, e) != 0 ||
                   read_types(types != NULL ? types : json_get(root, "types"), m, e) != 0
               ? -1
               : read_tokenizer(json_get(json_get(root, "tokenizers"), tokenizer), &m->vocab,
                                e);
}

static int read_list(struct mw_known *list, struct err *e)
{
    const struct json_node *root = json_root(list->doc), *n = json_get(root, "models");
    int64_t version = 0;

    if (!json_as_int(json_get(root, "version"), &version) || version != KNOWN_VERSION)
        return fail(e, "version", "is not 1");
    for (n = n != NULL ? n->first : NULL; n != NULL && list->n < KNOWN_MOST; n = n->next)
        if (read_model(root, n, &list->model[list->n++], e) != 0)
            return -1;
    return 0;
}

int known_open(struct mw_known **out, const char *path, struct err *e)
{
    struct mw_known *list = calloc(1, sizeof *list);
    struct model_file f;
    int rc;

    *out = NULL;
    if (list == NULL)
        return err_memory(e, "the known models");
    rc = model_file_open(&f, AT_FDCWD, path, path, e);
    if (rc == 0) {
        rc = json_read(&list->doc, f.fd, f.size, e);
        model_file_close(&f);
    }
    if (rc == 0)
        rc = read_list(list, e);
    if (rc == 0) {
        *out = list;
        return 0;
    }
    known_close(list);
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}

void known_close(struct mw_known *list)
{
    if (list == NULL)
        return;
    json_free(list->doc);
    free(list);
}

/* --- the catalogue --- */

/* Does the file that converters write have this tensor, although the model does not need it? */
static bool is_usual(const struct catalogue *c, enum tensor_id id)
{
    switch (id) {
    case T_OUT_SCALE: return true;
    /* Models with one tensor for gate and up have one for q, k and v, too. */
    case T_ATTN_QKV: return arch_has(c->hparams.arch, TRAIT_FUSED_GATE_UP);
    case T_EXPERTS_GATE_BIAS:
    case T_EXPERTS_UP_BIAS:
    case T_DELTA_QKV:
    case T_DELTA_Z: return true;
    case T_EXPERTS_GATE_UP: return c->hparams.arch->experts == EXPERTS_BESIDE;
    /* Latent attention: queries by two matrices if they have a rank, and one for each of keys and
     * values. */
    case T_Q_A:
    case T_Q_A_NORM:
    case T_Q_B: return c->hparams.latent.n_query > 0;
    case T_ATTN_Q: return c->hparams.latent.n_latent > 0 && c->hparams.latent.n_query == 0;
    case T_K_B:
    case T_V_B: return true;
    case T_CHOICE_BIAS: return c->hparams.router_score != SCORE_SOFTMAX;
    /* Muse Glimmer's snapshots have none; they are the factor of queries, and ones. */
    case T_ATTN_Q_NORM:
    case T_ATTN_K_NORM: return arch_has(c->hparams.arch, TRAIT_UNIT_NORMS);
    default: return false;
    }
}

static int add_tensor(struct catalogue *c, enum tensor_id id, uint32_t layer, struct err *e)
{
    const struct tensor_spec *s = tensor_spec(id);
    enum tensor_role role = tensor_role(c, id, layer);
    struct tensor_info t = { .n_dims = 1, .is_text = true };
    char name[96];

    if (role == ROLE_NONE || tensor_fused(c, id, layer) != NULL ||
        (role == ROLE_OPTIONAL && !is_usual(c, id)) ||
        /* Files have the keys and values of layers that share others', and the first layer
         * shows which tensors these are. */
        (role == ROLE_IDLE && tensor_role(c, id, 0) != ROLE_NEEDED))
        return 0;
    for (uint32_t i = 0; i < 4; i++) {
        t.ne[i] = tensor_dim(&c->hparams, layer, i < 3 ? s->dims[i] : DIM_NONE);
        if (i < 3 && s->dims[i] != DIM_NONE)
            t.n_dims = i + 1;
    }
    tensor_name(c->hparams.arch, id, layer, name, sizeof name);
    t.name = name;
    return catalogue_add_tensor(c, &t, e);
}

static int add_tensors(struct catalogue *c, struct err *e)
{
    for (int id = 0; id < T_LAYER; id++)
        if (add_tensor(c, (enum tensor_id)id, 0, e) != 0)
            return -1;
    for (uint32_t l = 0; l < c->hparams.n_layer; l++)
        for (int id = T_LAYER; id < T_COUNT; id++)
            if (add_tensor(c, (enum tensor_id)id, l, e) != 0)
                return -1;
    return 0;
}

static int add_file(struct catalogue *c, const char *name, struct err *e)
{
    struct model_file f = { .path = strdup(name), .fd = -1 };

    if (f.path == NULL)
        return err_memory(e, "a file's name");
    if (catalogue_add_file(c, &f, e) >= 0)
        return 0;
    model_file_close(&f);
    return -1;
}

static int make(struct catalogue *c, const struct known_model *m, const char *label,
                struct err *e)
{
    int64_t n_vocab;

    c->kind = CATALOGUE_SNAPSHOT;
    c->is_known = true;
    c->hparams.arch = snapshot_arch(m->config, e);
    if (c->hparams.arch == NULL || hparams_from_trees(c, m->config, NULL, e) != 0)
        return -1;
    if (!json_as_int(json_get(m->config, "vocab_size"), &n_vocab) || n_vocab < 1 ||
        n_vocab > MAX_N_VOCAB)
        return fail(e, "vocab_size", "is not a number of tokens");
    c->hparams.n_vocab = (uint32_t)n_vocab;
    visible_line(c->hparams.name, sizeof c->hparams.name, m->name, strlen(m->name));
    if (add_file(c, m->name, e) != 0 || add_tensors(c, e) != 0 ||
        known_set_types(c, m, label, e) != 0)
        return -1;
    return catalogue_finish(c, e);
}

int known_catalogue(struct catalogue **out, const struct known_model *m, const char *label,
                    struct header_room *room, struct err *e)
{
    struct catalogue *c = catalogue_new(m->name, room, e);

    *out = NULL;
    if (c == NULL)
        return -1;
    if (make(c, m, label, e) == 0) {
        *out = c;
        return 0;
    }
    catalogue_close(c);
    return err_at(e, m->name, ERR_NO_OFFSET, NULL);
}
