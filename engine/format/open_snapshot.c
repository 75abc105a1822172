/*
 * Opens the folder of a snapshot: config.json names the architecture, then the tensors of
 * model.safetensors, or of the files that its index lists, are added under their canonical
 * names.  A folder or file that is something else is reported with a hint at what it is.
 */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/visible.h"
#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/file_open.h"
#include "engine/format/foreign_files.h"
#include "engine/format/hparams_fill.h"
#include "engine/format/reader.h"
#include "engine/format/safetensors.h"
#include "engine/format/snapshot.h"
#include "engine/format/snapshot_index.h"
#include "engine/format/tensor_table.h"

#define MAX_CONFIG ((uint64_t)1 << 20) /* of a configuration that may have Python's numbers */

static bool ends_in(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n >= m && strcmp(s + n - m, tail) == 0;
}

static bool folder_is(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool snapshot_is(const char *path)
{
    return folder_is(path) || ends_in(path, ".safetensors") ||
           ends_in(path, ".safetensors.index.json");
}

/* Returns "folder/name", malloc'ed, or NULL with *e. */
static char *join(const char *folder, const char *name, struct err *e)
{
    size_t n = strlen(folder);
    const char *slash = n > 0 && folder[n - 1] == '/' ? "" : "/";
    char *path = NULL;

    if (asprintf(&path, "%s%s%s", folder, slash, name) < 0) {
        err_memory(e, "a file's name");
        return NULL;
    }
    return path;
}

/* Returns the folder that a path means, itself or its parent, malloc'ed. */
static char *folder_of(const char *path)
{
    char *folder = strdup(path), *slash;

    if (folder == NULL || folder_is(path))
        return folder;
    slash = strrchr(folder, '/');
    if (slash == NULL)
        strcpy(folder, ".");
    else
        slash[slash == folder] = '\0';
    return folder;
}

static bool exists(const struct catalogue *c, const char *name)
{
    return model_file_is_there(c->dir_fd, name);
}

static int open_in_folder(const struct catalogue *c, struct model_file *f, const char *name,
                          struct err *e)
{
    char *shown = join(c->index->folder, name, e);
    int rc = shown != NULL ? model_file_open(f, c->dir_fd, name, shown, e) : -1;

    free(shown);
    return rc;
}

/* Reports a file that is needed. */
static void missing_file(const struct catalogue *c, const char *name, const char *hint,
                         struct err *e)
{
    char *path = join(c->index->folder, name, e);

    if (path == NULL)
        return;
    err_set(e, ERR_FORMAT, "the file is missing; %s", hint);
    err_at(e, path, ERR_NO_OFFSET, NULL);
    free(path);
}

/*
 * Replace numbers of Python that JSON does not have, outside of strings.  One without an end
 * becomes null, which counts as absent.  One that is not a number becomes a text, so it is refused
 * where a number is needed.
 */
static void replace_python_numbers(char *text, size_t n)
{
    static const char *const words[][2] = { { "-Infinity", "null     " },
                                            { "Infinity", "null    " },
                                            { "NaN", "\"?\"" } };
    bool in_string = false;

    for (size_t i = 0; i < n; i++) {
        if (in_string && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            in_string = !in_string;
        for (size_t w = 0; !in_string && w < sizeof words / sizeof words[0]; w++) {
            size_t len = strlen(words[w][0]);

            if (n - i < len || memcmp(text + i, words[w][0], len) != 0)
                continue;
            memcpy(text + i, words[w][1], len);
            i += len - 1;
            break;
        }
    }
}

/* Read a configuration. */
static int read_config(const struct model_file *f, struct json_doc **out, struct err *e)
{
    struct reader r;
    char *text = NULL;
    int rc = -1;

    if (reader_open(&r, f->fd, f->size, (size_t)f->size, e) != 0)
        return -1;
    text = malloc((size_t)f->size + 1);
    if (text == NULL)
        err_memory(e, "a JSON text");
    else
        rc = reader_copy(&r, text, (size_t)f->size, e);
    reader_close(&r);
    if (rc == 0) {
        replace_python_numbers(text, (size_t)f->size);
        rc = json_parse(out, text, (size_t)f->size, e);
    }
    free(text);
    return rc;
}

int snapshot_json(const struct catalogue *c, const char *name, bool need, struct json_doc **out,
                  struct err *e)
{
    struct model_file f;
    int rc;

    *out = NULL;
    if (!need && !exists(c, name))
        return 0;
    if (open_in_folder(c, &f, name, e) != 0) {
        if (e->sys == ENOENT)
            missing_file(c, name, "fetch it into the folder of the snapshot", e);
        return -1;
    }
    if (f.size > 0 && f.size <= MAX_CONFIG)
        rc = read_config(&f, out, e);
    else
        rc = json_read(out, f.fd, f.size, e);
    if (rc != 0)
        file_not_json(&f, e);
    model_file_close(&f);
    return rc == 0 ? 1 : -1;
}

/* ---- tensors ---- */

struct adding {
    struct catalogue *c;
    uint32_t file;
    bool named; /* translate to canonical names */
};

/* gpt-oss stores experts in columns, unless they are MXFP4. */
static void note_transposed(const struct arch *arch, struct tensor_info *t)
{
    uint64_t n_row = t->ne[0];
    uint32_t layer;
    enum tensor_id id = tensor_id_of(arch, t->name, 0, &layer);

    if (arch->experts != EXPERTS_GPT_OSS || t->n_dims != 3 ||
        (id != T_EXPERTS_GATE_UP && id != T_EXPERTS_DOWN))
        return;
    t->ne[0] = t->ne[1];
    t->ne[1] = n_row;
    t->layout = LAYOUT_TRANSPOSED;
}

/* Convolutions have one input channel per output, which is a dimension of 1.  Norms whose names
 * do not end like those of others store weight - 1, too. */
static void note_delta(const struct arch *arch, struct tensor_info *t)
{
    uint32_t layer;
    enum tensor_id id = tensor_id_of(arch, t->name, 0, &layer);

    t->is_log = id == T_DELTA_DECAY || id == T_MAMBA_DECAY || id == T_KDA_RATE;
    if (id == T_DELTA_NORM || (id == T_OUTPUT_NORM && arch_has(arch, TRAIT_UNIT_NORMS)))
        t->add_one = false;
    if (id == T_NGRAM_KEY_NORM || id == T_NGRAM_QUERY_NORM || id == T_NGRAM_CONV_NORM)
        t->add_one = true;
    if ((id != T_DELTA_CONV && id != T_NGRAM_CONV) || t->n_dims != 3 || t->ne[1] != 1)
        return;
    t->ne[1] = t->ne[2];
    t->ne[2] = 1;
    t->n_dims = 2;
}

/* Ends of the names of scales beside weights, and of weights with another name. */
static const struct {
    const char *tail, *canonical;
} beside_weights[] = {
    { ".weight_scale_inv", SCALES_TAIL },     /* DeepSeek, Qwen, GLM: of 128 x 128 weights */
    { ".weight_scale", SCALES_TAIL },         /* compressed-tensors, ModelOpt */
    { ".scale", SCALES_TAIL },                /* DeepSeek V4 */
    { ".weight_scale_2", SCALE_TAIL },        /* ModelOpt */
    { ".weight_global_scale", DIVISOR_TAIL }, /* compressed-tensors */
    { ".weight_packed", ".weight" },
};

/* The same for names in that table. */
static bool beside_to_canonical(const struct arch *arch, const char *name, char *buf, size_t n,
                                char *prefix)
{
    char weights[SAFETENSORS_MAX_NAME + 8];

    for (size_t i = 0; i < sizeof beside_weights / sizeof beside_weights[0]; i++) {
        const char *tail = beside_weights[i].tail;
        size_t used;

        if (!ends_in(name, tail))
            continue;
        snprintf(weights, sizeof weights, "%.*s.weight", (int)(strlen(name) - strlen(tail)), name);
        if (!snapshot_to_canonical(arch, weights, buf, n, prefix) || !ends_in(buf, ".weight"))
            continue;
        used = strlen(buf) - strlen(".weight");
        snprintf(buf + used, n - used, "%s", beside_weights[i].canonical);
        return true;
    }
    return false;
}

static int add_entry(void *ctx, const struct safetensors_entry *s, struct err *e)
{
    struct adding *a = ctx;
    struct catalogue *c = a->c;
    const struct arch *arch = c->hparams.arch;
    char canonical[SAFETENSORS_MAX_NAME + 1];
    size_t n = strlen(s->name);
    struct tensor_info t = { .name = s->name,
                             .type = s->type,
                             .n_dims = s->n_dims,
                             .file = a->file,
                             .offset = s->offset,
                             .bytes = s->bytes,
                             .is_text = true };

    memcpy(t.ne, s->ne, sizeof t.ne);
    if (a->named && s->has_type &&
        beside_to_canonical(arch, s->name, canonical, sizeof canonical, c->index->prefix))
        t.name = canonical;
    else if (a->named &&
             snapshot_to_canonical(arch, s->name, canonical, sizeof canonical, c->index->prefix)) {
        if (!s->has_type)
            return err_set(e, ERR_UNSUPPORTED, "dtype %s is not supported", s->dtype);
        t.add_one = arch_has(arch, TRAIT_NORM_ADD_ONE) && n >= 11 &&
                    strcmp(s->name + n - 11, "norm.weight") == 0;
        t.name = canonical;
        note_transposed(arch, &t);
        note_delta(arch, &t);
    }
    return catalogue_add_tensor(c, &t, e);
}

static int add_file(struct catalogue *c, struct model_file *f, bool named, struct err *e)
{
    struct adding a = { .c = c, .named = named };
    int64_t file = file_check_ended(f, e) == 0 ? catalogue_add_file(c, f, e) : -1;
    const char *says;

    if (file < 0) {
        model_file_close(f);
        return -1;
    }
    a.file = (uint32_t)file;
    f = &c->files[a.file];
    if (safetensors_read(f->fd, f->size, add_entry, &a, e) == 0)
        return 0;
    says = strcmp(e->field, "header") == 0 ? file_says(f) : NULL;
    if (says != NULL && strncmp(says, "a safetensors", 13) != 0) {
        err_set(e, ERR_FORMAT, "is not a safetensors file but %s", says);
        err_at(e, NULL, 0, "header");
    }
    return err_at(e, f->path, ERR_NO_OFFSET, NULL);
}

static bool has_file(void *ctx, const char *name)
{
    return exists(ctx, name);
}

static int read_index(void *ctx, struct shard_list *s, struct err *e)
{
    const struct catalogue *c = ctx;
    struct model_file f;
    int rc;

    if (open_in_folder(c, &f, SNAPSHOT_INDEX, e) != 0)
        return -1;
    rc = snapshot_index_read(s, f.fd, f.size, e);
    if (rc != 0)
        file_not_json(&f, e);
    model_file_close(&f);
    return rc;
}

static int add_shards(struct catalogue *c, const struct shard_list *s, bool named,
                      struct err *e)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct model_file f;

        if (open_in_folder(c, &f, s->names[i], e) != 0) {
            if (e->sys == ENOENT)
                missing_file(c, s->names[i],
                             "the index names it, so fetch it into the folder of the others",
                             e);
            return -1;
        }
        if (add_file(c, &f, named, e) != 0)
            return -1;
    }
    return 0;
}

/* Returns the first kind that a file of the folder has; *file is its name.  NULL: none. */
static const struct foreign_kind *kind_of(const struct catalogue *c, char *file, size_t n)
{
    const struct foreign_kind *found = NULL, *kind;
    DIR *folder = opendir(c->index->folder);
    const struct dirent *entry;
    uint32_t best = UINT32_MAX;

    while (folder != NULL && (entry = readdir(folder)) != NULL)
        for (uint32_t k = 0; k < best && (kind = foreign_file_kind(k)) != NULL; k++)
            if (foreign_file_is(kind, entry->d_name)) {
                visible_line(file, n, entry->d_name, strlen(entry->d_name));
                found = kind;
                best = k;
            }
    if (folder != NULL)
        closedir(folder);
    return found;
}

/* Reports a folder without weights, and what it holds instead. */
static int no_weights(const struct catalogue *c, struct err *e)
{
    char file[64] = "";
    const struct foreign_kind *kind = kind_of(c, file, sizeof file);

    if (kind == NULL)
        return err_set(e, ERR_FORMAT,
                       "the folder has neither " SNAPSHOT_SINGLE " nor " SNAPSHOT_INDEX);
    return err_set(e, ERR_FORMAT,
                   "the folder has neither " SNAPSHOT_SINGLE " nor " SNAPSHOT_INDEX
                   "; it holds %s (%s): %s",
                   kind->is, file, kind->hint);
}

static int add_weights(struct catalogue *c, bool named, struct err *e)
{
    struct header_room *room = c->index->room;
    struct shard_list s = { .pool.room = room, .index.room = room };
    const struct snapshot_place place = { has_file, read_index, c };
    int rc = snapshot_weights(&s, &place, e);

    if (rc == 0)
        rc = s.n > 0 ? add_shards(c, &s, named, e) : no_weights(c, e);
    shard_list_free(&s);
    return rc;
}

static int open_folder(struct catalogue *c, struct err *e)
{
    c->index->folder = folder_of(c->path);
    if (c->index->folder == NULL)
        return err_memory(e, "a file's name");
    c->dir_fd = open(c->index->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->dir_fd >= 0)
        return 0;
    err_sys(e, "cannot open the folder");
    return err_at(e, c->index->folder, ERR_NO_OFFSET, NULL);
}

/* Reports a folder that is not a snapshot.  Users may mean a GGUF file in it. */
static int no_snapshot(const struct catalogue *c, struct err *e)
{
    DIR *folder = opendir(c->index->folder);
    const struct foreign_kind *kind;
    const struct dirent *entry;
    char gguf[128] = "";
    struct stat unused;

    while (folder != NULL && gguf[0] == '\0' && (entry = readdir(folder)) != NULL)
        if (ends_in(entry->d_name, ".gguf"))
            visible_line(gguf, sizeof gguf, entry->d_name, strlen(entry->d_name));
    if (folder != NULL)
        closedir(folder);
    if (exists(c, "snapshots") && exists(c, "blobs"))
        return err_set(e, ERR_FORMAT,
                       "this is a repository in the hub's cache, and none of its snapshots "
                       "has a model%s",
                       model_file_unended(c->dir_fd, &unused) ? ": its download has not ended; fetch it again" : "");
    if (gguf[0] == '\0' && (exists(c, SNAPSHOT_SINGLE) || exists(c, SNAPSHOT_INDEX)))
        return err_set(e, ERR_FORMAT,
                       "the folder has weights, but no config.json, so the model is unknown; "
                       "fetch config.json into it");
    if (gguf[0] == '\0') {
        kind = kind_of(c, gguf, sizeof gguf);
        if (kind != NULL)
            return err_set(
                e, ERR_FORMAT,
                "the folder is not a snapshot (no config.json); it holds %s (%.60s): "
                "%s",
                kind->is, gguf, kind->hint);
        return err_set(e, ERR_FORMAT, "the folder is not a snapshot: it has no config.json");
    }
    return err_set(e, ERR_FORMAT,
                   "the folder is not a snapshot (no config.json), but has GGUF files; name "
                   "one of them, such as \"%s\"",
                   gguf);
}

/* Refuses a file that belongs to a snapshot's folder but is not its model. */
static int check_named(const struct catalogue *c, struct err *e)
{
    const struct foreign_kind *kind;

    if (folder_is(c->path))
        return 0;
    for (uint32_t k = 0; (kind = foreign_file_kind(k)) != NULL; k++)
        if (strncmp(kind->pattern, "adapter_", 8) == 0 && foreign_file_is(kind, c->path)) {
            err_set(e, ERR_UNSUPPORTED, "the file is %s; %s", kind->is, kind->hint);
            return err_at(e, c->path, ERR_NO_OFFSET, NULL);
        }
    return 0;
}

/* Reports a path without a config.json. */
static int no_config(struct catalogue *c, struct err *e)
{
    struct model_file f;

    if (exists(c, "adapter_config.json"))
        return no_weights(c, e);
    if (!ends_in(c->path, ".safetensors") || folder_is(c->path))
        return no_snapshot(c, e);
    /* Open the file first: one that is not safetensors is reported as such. */
    if (model_file_open(&f, AT_FDCWD, c->path, c->path, e) != 0 ||
        add_file(c, &f, false, e) != 0)
        return -1;
    return err_set(
        e, ERR_FORMAT,
        "these are weights without a config.json in the same folder, so the model is unknown; "
        "fetch config.json into it");
}

/* Store the identity of config.json before it is read: with a change from now on, it is another
 * one. */
static void note_config(struct catalogue *c)
{
    struct err ignored = ERR_INIT; /* reading it reports why */
    struct model_file f;

    if (open_in_folder(c, &f, "config.json", &ignored) != 0)
        return;
    (void)model_file_now(&f, &c->config);
    model_file_close(&f);
}

int open_snapshot(struct catalogue *c, bool bare, struct err *e)
{
    struct json_doc *config = NULL;
    struct err why = ERR_INIT;
    int rc;

    c->kind = CATALOGUE_SNAPSHOT;
    if ((!bare && check_named(c, e) != 0) || open_folder(c, e) != 0)
        return -1;
    if (!bare && !exists(c, "config.json"))
        return no_config(c, e);
    note_config(c);
    rc = snapshot_json(c, "config.json", !bare, &config, e);
    if (rc < 0 && !bare)
        return -1;
    if (rc == 1 && c->trunk != NULL)
        c->hparams.arch = arch_assistant_by_snapshot(
            json_as_string(json_get(json_root(config), "model_type")));
    if (rc == 1 && c->hparams.arch == NULL)
        c->hparams.arch = snapshot_arch(json_root(config), &why);
    json_free(config);
    if (c->hparams.arch == NULL && !bare) {
        char *path = join(c->index->folder, "config.json", e);

        *e = why;
        err_at(e, path, ERR_NO_OFFSET, NULL);
        free(path);
        return -1;
    }
    return add_weights(c, c->hparams.arch != NULL, e);
}

int open_safetensors(struct catalogue *c, struct err *e)
{
    struct model_file f;

    c->kind = CATALOGUE_SNAPSHOT;
    if (open_folder(c, e) != 0)
        return -1;
    if (model_file_open(&f, AT_FDCWD, c->path, c->path, e) != 0)
        return -1;
    return add_file(c, &f, false, e);
}
