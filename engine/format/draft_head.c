#include "config.h"

#include "engine/format/draft_head.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/file_open.h"
#include "engine/format/gguf_lookup.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/reader.h"
#include "engine/format/snapshot.h"
#include "engine/format/tensor_table.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* Names of a nextn head in GGUF files, after "blk.N.", that are not those of a layer. */
static const struct {
    const char *suffix, *canonical;
} nextn_names[] = {
    { "nextn.eh_proj.weight", "nextn.eh_proj.weight" },
    { "nextn.enorm.weight", "nextn.enorm.weight" },
    { "nextn.hnorm.weight", "nextn.hnorm.weight" },
    { "nextn.shared_head_norm.weight", "output_norm.weight" },
    { "nextn.hc_head_norm.weight", "output_hc_norm.weight" },
    { "nextn.hc_head_down.weight", "output_hc_down.weight" },
    { "nextn.hc_head_up.weight", "output_hc_up.weight" },
    { "nextn.embed_tokens.weight", "token_embd.weight" },
    { "nextn.shared_head_head.weight", "output.weight" },
};

/* Before the names of a nextn head in snapshots. */
static const char snapshot_prefix[] = "mtp.";

static const char embd_name[] = "token_embd.weight", output_name[] = "output.weight";

static const char *const order_names[] = { "masked_embd_ordering",
                                           "masked_embedding.token_ordering" };

static int fail_at_word(const struct catalogue *c, enum hparam_word w, struct err *e)
{
    char field[96];

    hparam_spell(c, w, field, sizeof field);
    return err_at(e, c->path, ERR_NO_OFFSET, field);
}

static bool is_of_snapshot(const char *name)
{
    return strncmp(name, snapshot_prefix, strlen(snapshot_prefix)) == 0;
}

bool draft_head_is_in(const struct catalogue *trunk)
{
    if (trunk->kind == CATALOGUE_GGUF)
        return trunk->hparams.n_layer_draft > 0;
    for (uint32_t i = 0; i < trunk->n_tensor; i++)
        if (is_of_snapshot(trunk->tensors[i].name))
            return true;
    return trunk->hparams.n_layer_draft > 0;
}

void draft_head_spell(const struct catalogue *head, const char *canonical, char *buf, size_t n)
{
    uint32_t layer;
    const char *suffix = layer_suffix(canonical, 0, &layer);

    for (size_t i = 0; suffix == NULL && i < COUNT(nextn_names); i++)
        if (strcmp(nextn_names[i].canonical, canonical) == 0 &&
            strcmp(canonical, embd_name) != 0 && strcmp(canonical, output_name) != 0)
            suffix = nextn_names[i].suffix;
    if (suffix != NULL)
        snprintf(buf, n, "blk.%u.%s", head->trunk->hparams.n_layer, suffix);
    else
        snprintf(buf, n, "%s", canonical);
}

/* --- what a head shares with its trunk --- */

/* Add a file of another catalogue.  Returns its index, or -1 with *e. */
static int64_t share_file(struct catalogue *c, const struct model_file *from, struct err *e)
{
    struct model_file f = *from;
    int64_t file = -1;

    f.path = strdup(from->path);
    f.fd = from->fd >= 0 ? fcntl(from->fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (f.path == NULL)
        err_memory(e, "a file's name");
    else if (from->fd >= 0 && f.fd < 0)
        err_sys(e, "cannot open the file again");
    else
        file = catalogue_add_file(c, &f, e);
    if (file < 0)
        model_file_close(&f);
    return file;
}

static int share_files(struct catalogue *c, const struct catalogue *from, struct err *e)
{
    for (uint32_t i = 0; i < from->n_file; i++)
        if (share_file(c, &from->files[i], e) < 0)
            return -1;
    return 0;
}

/* Add a tensor of the trunk under a name, with its file. */
static int share_tensor(struct catalogue *c, const struct tensor_info *t, const char *name,
                        struct err *e)
{
    struct tensor_info info = *t;
    const struct model_file *f = &c->trunk->files[t->file];
    int64_t file = -1;

    for (uint32_t i = 0; i < c->n_file; i++)
        if (c->files[i].dev == f->dev && c->files[i].ino == f->ino)
            file = i;
    if (file < 0)
        file = share_file(c, f, e);
    if (file < 0)
        return -1;
    info.name = name;
    info.file = (uint32_t)file;
    return catalogue_add_tensor(c, &info, e);
}

/* Give the head an architecture of its own. */
static int own_arch(struct catalogue *c, const struct arch *from, struct err *e)
{
    c->head_arch = malloc(sizeof *c->head_arch);
    if (c->head_arch == NULL)
        return err_memory(e, "the architecture of a draft head");
    *c->head_arch = *from;
    c->hparams.arch = c->head_arch;
    return 0;
}

/* --- nextn: one more layer of the trunk --- */

/* Translate the name of a tensor in the trunk's files or in a head's own.  False: it is not one of
 * the head. */
static bool nextn_name(const struct catalogue *c, const char *name, char *buf, size_t n)
{
    uint32_t layer;
    const char *suffix;
    char prefix[40];

    if (c->kind == CATALOGUE_SNAPSHOT)
        return is_of_snapshot(name) &&
               snapshot_to_canonical(c->hparams.arch, name + strlen(snapshot_prefix), buf, n,
                                     prefix);
    suffix = layer_suffix(name, 0, &layer);
    if (suffix == NULL || layer != c->trunk->hparams.n_layer)
        return false;
    for (size_t i = 0; i < COUNT(nextn_names); i++)
        if (strcmp(nextn_names[i].suffix, suffix) == 0) {
            snprintf(buf, n, "%s", nextn_names[i].canonical);
            return true;
        }
    snprintf(buf, n, "blk.0.%s", suffix);
    return true;
}

/* Norms of snapshots hold their weights minus one. */
static bool adds_one(const struct catalogue *c, const char *name)
{
    size_t n = strlen(name);

    return c->kind == CATALOGUE_SNAPSHOT && arch_has(c->hparams.arch, TRAIT_NORM_ADD_ONE) &&
           ((n >= 11 && strcmp(name + n - 11, "norm.weight") == 0) ||
            strstr(name, ".pre_fc_norm_") != NULL);
}

static int add_nextn_tensors(struct catalogue *c, const struct catalogue *from, struct err *e)
{
    for (uint32_t i = 0; i < from->n_tensor; i++) {
        struct tensor_info t = from->tensors[i];
        char name[256];

        if (!nextn_name(c, t.name, name, sizeof name) ||
            (strstr(name, ".indexer.") != NULL && !arch_has(c->hparams.arch, TRAIT_INDEX)))
            continue;
        t.add_one = adds_one(c, t.name);
        t.name = name;
        if (catalogue_add_tensor(c, &t, e) != 0)
            return err_at(e, from->files[t.file].path, t.offset, from->tensors[i].name);
    }
    return 0;
}

/* Add a table that the head does not have: that of its file, or else of the trunk. */
static int add_table(struct catalogue *c, const struct catalogue *from, const char *name,
                     struct err *e)
{
    const struct tensor_info *own = catalogue_find(from, name);

    if (catalogue_find(c, name) != NULL)
        return 0;
    if (own != NULL)
        return catalogue_add_tensor(c, own, e);
    own = catalogue_find(c->trunk, name);
    return own != NULL ? share_tensor(c, own, name, e) : 0;
}

/* Whether the head attends to blocks that its index keys choose.  GGUF files state it for each
 * layer. */
static bool is_indexed(const struct catalogue *c, const struct gguf *g, struct err *e)
{
    struct gguf_lookup l = { .g = g, .e = e };
    const struct gguf_value *v;
    int64_t block;

    if (c->kind == CATALOGUE_SNAPSHOT)
        return true;
    l.prefix = gguf_prefix(g);
    v = lookup_find(&l, "attention.compress_ratios");
    return v == NULL || v->type != GGUF_ARRAY || v->count <= c->trunk->hparams.n_layer ||
           !gguf_elem_int(v, c->trunk->hparams.n_layer, &block) || block != 0;
}

/* The hyper-parameters of the trunk, with one layer of attention. */
static int fill_nextn(struct catalogue *c, const struct gguf *g, struct err *e)
{
    const struct hparams *trunk = &c->trunk->hparams;
    struct hparams *h = &c->hparams;
    uint32_t last = trunk->n_layer;

    *h = *trunk;
    if (own_arch(c, trunk->arch, e) != 0)
        return -1;
    while (last > 0 && (!trunk->layers[last - 1].attends || trunk->layers[last - 1].is_sliding))
        last--;
    if (last == 0) {
        err_set(e, ERR_UNSUPPORTED, "no layer has attention to all positions, as draft heads need");
        return fail_at_word(c, WORD_N_LAYER, e);
    }
    h->layers[0] = trunk->layers[last - 1];
    h->layers[0].is_recurrent = false;
    h->n_layer = 1;
    h->n_layer_draft = 0;
    h->n_layer_kv_shared = 0;
    h->ngram = (struct ngram_hparams){ 0 };
    h->head.n_embd_in = h->n_embd;
    h->head.n_hidden = (h->n_stream > 0 ? h->n_stream : 1) * h->n_embd;
    c->head_arch->traits |= TRAIT_NEXTN;
    c->head_arch->traits &= ~TRAIT_NGRAMS;
    if (arch_has(trunk->arch, TRAIT_INDEX) && !is_indexed(c, g, e)) {
        c->head_arch->traits &= ~TRAIT_INDEX;
        h->index = (struct index_hparams){ 0 };
    }
    return 0;
}

/* Only heads whose arithmetic is that of the trunk's layers are known. */
static int check_family(const struct catalogue *trunk, struct err *e)
{
    if (arch_has(trunk->hparams.arch, TRAIT_DELTA) && trunk->hparams.n_layer_draft <= 1)
        return 0;
    if (arch_has(trunk->hparams.arch, TRAIT_DELTA))
        err_set(e, ERR_UNSUPPORTED, "%u layers that draft are not supported; memwall runs one",
                trunk->hparams.n_layer_draft);
    else
        err_set(e, ERR_UNSUPPORTED, "draft heads of %s models are not supported",
                trunk->hparams.arch->name);
    return err_at(e, trunk->path, ERR_NO_OFFSET,
                  trunk->kind == CATALOGUE_GGUF ? "nextn_predict_layers"
                                                : "num_nextn_predict_layers");
}

static int build_nextn(struct catalogue *c, const struct catalogue *from, struct err *e)
{
    c->kind = from->kind;
    if (check_family(c->trunk, e) != 0 || fill_nextn(c, c->gguf, e) != 0 ||
        share_files(c, from, e) != 0)
        return -1;
    snprintf(c->index->prefix, sizeof c->index->prefix, "%s", snapshot_prefix);
    if (add_nextn_tensors(c, from, e) != 0 || add_table(c, from, embd_name, e) != 0)
        return -1;
    /* A head that has a table of its own and no output matrix multiplies with that table. */
    if (catalogue_find(from, embd_name) == NULL || catalogue_find(from, output_name) != NULL)
        if (add_table(c, from, output_name, e) != 0)
            return -1;
    c->hparams.own_head = catalogue_find(c, output_name) != NULL;
    return catalogue_join_tensors(c, e) == 0 ? catalogue_finish(c, e) : -1;
}

/* A number that a head's own file must state. */
static int want_key(const struct catalogue *side, const char *suffix, int64_t expected,
                    struct err *e)
{
    struct gguf_lookup l = { .g = side->gguf, .prefix = gguf_prefix(side->gguf), .e = e };
    int64_t n = lookup_int(&l, suffix, 0, INT32_MAX, GGUF_NEEDED);

    if (l.failed)
        return err_at(e, side->path, ERR_NO_OFFSET, NULL);
    if (n == expected)
        return 0;
    err_set(e, ERR_FORMAT, "is %lld, but a head of this model has %lld", (long long)n,
            (long long)expected);
    return err_at(e, side->path, ERR_NO_OFFSET, l.key);
}

/* The head of a GGUF file of its own. */
static int open_side(struct catalogue *c, struct catalogue *side, struct err *e)
{
    const struct catalogue *trunk = c->trunk;

    if (trunk->kind != CATALOGUE_GGUF)
        return err_set(e, ERR_UNSUPPORTED,
                       "the file is a draft head of GGUF files, but the model is a snapshot");
    if (want_key(side, "nextn_predict_layers", 1, e) != 0 ||
        want_key(side, "block_count", (int64_t)trunk->hparams.n_layer + 1, e) != 0 ||
        want_key(side, "embedding_length", trunk->hparams.n_embd, e) != 0)
        return -1;
    c->gguf = side->gguf;
    side->gguf = NULL;
    return build_nextn(c, side, e);
}

/* --- assistants --- */

/* Returns the last layer of the trunk that owns keys and values of this kind, and the number of
 * owners before it; NULL: none. */
static const struct layer_hparams *donor_of(const struct hparams *trunk, bool is_sliding,
                                            uint32_t *store)
{
    const struct layer_hparams *donor = NULL;
    uint32_t n = 0;

    for (uint32_t l = 0; l < trunk->n_layer - trunk->n_layer_kv_shared; l++) {
        const struct layer_hparams *layer = &trunk->layers[l];

        if (!layer->attends)
            continue;
        if (layer->is_sliding == is_sliding) {
            donor = layer;
            *store = n;
        }
        n++;
    }
    return donor;
}

uint32_t draft_head_store(const struct catalogue *head, uint32_t l)
{
    uint32_t store = 0;

    (void)donor_of(&head->trunk->hparams, head->hparams.layers[l].is_sliding, &store);
    return store;
}

static int check_donors(const struct catalogue *c, struct err *e)
{
    const struct hparams *h = &c->hparams, *trunk = &c->trunk->hparams;

    for (uint32_t l = 0; l < h->n_layer; l++) {
        const struct layer_hparams *layer = &h->layers[l];
        uint32_t store;
        const struct layer_hparams *donor = donor_of(trunk, layer->is_sliding, &store);

        if (donor != NULL && donor->n_head_kv == layer->n_head_kv &&
            donor->head_dim_k == layer->head_dim_k && donor->head_dim_v == layer->head_dim_v)
            continue;
        err_set(e, ERR_UNSUPPORTED,
                "layer %u has %u KV heads of %u values, and the model has no such keys and "
                "values; the file drafts for another model",
                l, layer->n_head_kv, layer->head_dim_k);
        return fail_at_word(c, WORD_N_HEAD_KV, e);
    }
    if (h->n_swa == trunk->n_swa && h->n_swa > 1)
        return 0;
    err_set(e, ERR_UNSUPPORTED, "is %u, but that of the model is %u", h->n_swa, trunk->n_swa);
    return fail_at_word(c, WORD_N_SWA, e);
}

/* Check what the sizes of tensors do not show: that the assistant is one for this model. */
static int check_pair(const struct catalogue *c, struct err *e)
{
    const struct hparams *h = &c->hparams, *trunk = &c->trunk->hparams;
    const struct tensor_info *own = catalogue_find(c, embd_name),
                             *other = catalogue_find(c->trunk, embd_name);
    size_t n = strlen(trunk->arch->name);

    if (strncmp(h->arch->name, trunk->arch->name, n) != 0 || h->arch->name[n] != '-') {
        err_set(e, ERR_UNSUPPORTED, "the file drafts for another family than %s",
                trunk->arch->name);
        return err_at(e, c->path, ERR_NO_OFFSET, NULL);
    }
    if (h->head.n_hidden != trunk->n_embd) {
        err_set(e, ERR_UNSUPPORTED,
                "is %u, but the model has %u; the file drafts for another model",
                h->head.n_hidden, trunk->n_embd);
        return fail_at_word(c, WORD_N_HIDDEN, e);
    }
    if (own != NULL && other != NULL && tensor_rows(own) != tensor_rows(other)) {
        err_set(e, ERR_UNSUPPORTED, "has %llu tokens, but the model has %llu",
                (unsigned long long)tensor_rows(own), (unsigned long long)tensor_rows(other));
        return err_at(e, c->path, own->offset, embd_name);
    }
    return check_donors(c, e);
}

static const struct tensor_info *find_order(const struct catalogue *c)
{
    const struct tensor_info *t = NULL;

    for (size_t i = 0; t == NULL && i < COUNT(order_names); i++)
        t = catalogue_find(c, order_names[i]);
    return t;
}

/* Read a number for each token.  Returns 0, or -1 with *e without the place. */
static int read_order(struct catalogue *c, const struct tensor_info *t, struct err *e)
{
    const struct model_file *f = &c->files[t->file];
    uint32_t n = c->hparams.n_vocab;
    struct reader r = { 0 };
    bool *is_seen = calloc(n, sizeof *is_seen);
    int rc;

    c->token_order = malloc(n * sizeof *c->token_order);
    if (is_seen == NULL || c->token_order == NULL) {
        free(is_seen);
        return err_memory(e, "the order of %u tokens", n);
    }
    rc = reader_open(&r, f->fd, f->size, 1 << 16, e);
    if (rc == 0)
        reader_seek(&r, t->offset);
    for (uint32_t i = 0; rc == 0 && i < n; i++) {
        int64_t id = 0;
        int32_t narrow;

        rc = t->type == TYPE_I64 ? reader_copy(&r, &id, sizeof id, e)
                                 : reader_copy(&r, &narrow, sizeof narrow, e);
        if (rc == 0 && t->type != TYPE_I64)
            id = narrow;
        if (rc == 0 && (id < 0 || id >= n || is_seen[id]))
            rc = err_set(e, ERR_FORMAT, "value %u is %lld, which is not a token that is left of %u",
                         i, (long long)id, n);
        if (rc == 0) {
            is_seen[id] = true;
            c->token_order[i] = (uint32_t)id;
        }
    }
    reader_close(&r);
    free(is_seen);
    return rc;
}

/* Read the tokens of the clusters. */
static int read_clusters(struct catalogue *c, struct err *e)
{
    const struct head_hparams *h = &c->hparams.head;
    const struct tensor_info *t = find_order(c);

    if (h->n_cluster == 0)
        return 0;
    if (c->hparams.n_vocab % h->n_cluster != 0) {
        err_set(e, ERR_FORMAT, "is %u, which does not divide the %u tokens", h->n_cluster,
                c->hparams.n_vocab);
        return fail_at_word(c, WORD_N_CLUSTER, e);
    }
    if (t == NULL) {
        err_set(e, ERR_FORMAT, "the tensor is missing");
        return err_at(e, c->path, ERR_NO_OFFSET, order_names[c->kind == CATALOGUE_SNAPSHOT]);
    }
    if ((t->type != TYPE_I64 && t->type != TYPE_I32) || t->ne[0] != c->hparams.n_vocab ||
        tensor_rows(t) != 1)
        err_set(e, ERR_FORMAT, "has %llu values of type %s; expected %u of type I64",
                (unsigned long long)(t->ne[0] * tensor_rows(t)),
                tensor_type_info(t->type)->name, c->hparams.n_vocab);
    else if (read_order(c, t, e) == 0)
        return 0;
    return err_at(e, c->files[t->file].path, t->offset, t->name);
}

static int build_assistant(struct catalogue *c, const struct arch *arch, struct err *e)
{
    const struct tensor_info *table = catalogue_find(c->trunk, embd_name);

    if (own_arch(c, arch, e) != 0 ||
        (c->kind == CATALOGUE_GGUF ? hparams_from_gguf(c, e) : hparams_from_config(c, e)) != 0)
        return -1;
    if (c->hparams.head.n_cluster == 0)
        c->head_arch->traits &= ~TRAIT_ORDERED;
    c->hparams.embd_scale = c->trunk->hparams.embd_scale;
    if (check_pair(c, e) != 0)
        return -1;
    if (table != NULL && share_tensor(c, table, "head_embd.weight", e) != 0)
        return -1;
    return catalogue_join_tensors(c, e) == 0 && catalogue_finish(c, e) == 0 ? read_clusters(c, e)
                                                                           : -1;
}

/* --- opening --- */

/* Open the files at c->path, and what kind of head they hold. */
static int open_path(struct catalogue *c, struct err *e)
{
    const struct arch *arch;
    struct catalogue *side;
    int rc;

    if (snapshot_is(c->path)) {
        if (catalogue_open_files(c, e) != 0)
            return -1;
        if (arch_has(c->hparams.arch, TRAIT_ASSISTANT))
            return build_assistant(c, c->hparams.arch, e);
        return err_set(e, ERR_UNSUPPORTED, "the folder is not a draft head");
    }
    side = catalogue_new(c->path, c->index->room, e);
    if (side == NULL || catalogue_open_files(side, e) != 0) {
        catalogue_close(side);
        return -1;
    }
    arch = arch_by_name(gguf_prefix(side->gguf));
    if (arch != NULL && arch == c->trunk->hparams.arch) {
        rc = open_side(c, side, e);
        catalogue_close(side);
        return rc;
    }
    arch = arch_assistant_by_name(gguf_prefix(side->gguf));
    catalogue_close(side);
    if (arch == NULL)
        return err_set(e, ERR_UNSUPPORTED, "the file is not a draft head");
    return catalogue_open_files(c, e) == 0 ? build_assistant(c, arch, e) : -1;
}

/* Not all families have the same tensors in a layer. */
static bool has_first_layer(const struct catalogue *c)
{
    static const char first[] = "blk.0.";

    for (uint32_t i = 0; i < c->n_tensor; i++)
        if (strncmp(c->tensors[i].name, first, sizeof first - 1) == 0)
            return true;
    return false;
}

bool draft_head_is(const struct catalogue *trunk, const char *path)
{
    struct err ignored = ERR_INIT;
    struct catalogue *c = catalogue_new(path, trunk->index->room, &ignored);
    bool is_head = false;

    if (c != NULL && snapshot_is(path)) /* alone, an assistant is refused */
        c->trunk = trunk;
    if (c != NULL && catalogue_open_files(c, &ignored) == 0) {
        if (c->kind == CATALOGUE_SNAPSHOT)
            is_head = arch_has(c->hparams.arch, TRAIT_ASSISTANT);
        else
            is_head = arch_assistant_by_name(gguf_prefix(c->gguf)) != NULL ||
                      (arch_by_name(gguf_prefix(c->gguf)) == trunk->hparams.arch &&
                       !has_first_layer(c));
    }
    catalogue_close(c);
    return is_head;
}

int draft_head_open(struct catalogue **out, const struct catalogue *trunk, const char *path,
                    struct err *e)
{
    struct catalogue *c =
        catalogue_new(path != NULL ? path : trunk->path, trunk->index->room, e);
    int rc;

    *out = NULL;
    if (c == NULL)
        return -1;
    c->trunk = trunk;
    if (path == NULL) {
        c->gguf = trunk->gguf;
        rc = build_nextn(c, trunk, e);
    } else {
        rc = open_path(c, e);
    }
    if (rc == 0) {
        *out = c;
        return 0;
    }
    err_at(e, c->path, ERR_NO_OFFSET, NULL);
    catalogue_close(c);
    return -1;
}
