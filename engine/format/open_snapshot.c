#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/format/arch.h"
#include "engine/format/catalogue_build.h"
#include "engine/format/file_open.h"
#include "engine/format/safetensors.h"
#include "engine/format/snapshot.h"

#define SINGLE_FILE    "model.safetensors"
#define INDEX_FILE     "model.safetensors.index.json"
#define MAX_SHARD      4096
#define MAX_SHARD_NAME 255
#define MAX_INDEX      ((uint64_t)64 << 20)

static bool ends_in(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n >= m && strcmp(s + n - m, tail) == 0;
}

bool snapshot_is(const char *path)
{
    struct stat st;

    return (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) || ends_in(path, ".safetensors") ||
           ends_in(path, ".safetensors.index.json");
}

/* "folder/name", malloc'ed; NULL with *e. */
static char *join(const char *folder, const char *name, struct err *e)
{
    size_t n = strlen(folder);
    const char *slash = n > 0 && folder[n - 1] == '/' ? "" : "/";
    char *path = NULL;

    if (asprintf(&path, "%s%s%s", folder, slash, name) < 0) {
        err_set(e, ERR_MEMORY, "no memory for a file's name");
        return NULL;
    }
    return path;
}

/* The folder that a path means: itself, or the one its file lies in; malloc'ed. */
static char *folder_of(const char *path)
{
    struct stat st;
    char *folder = strdup(path), *slash;

    if (folder == NULL || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
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
    return faccessat(c->dir_fd, name, F_OK, 0) == 0;
}

static int open_in_folder(const struct catalogue *c, struct model_file *f, const char *name,
                          struct err *e)
{
    char *shown = join(c->index->folder, name, e);
    int rc = shown != NULL ? model_file_open(f, c->dir_fd, name, shown, e) : -1;

    free(shown);
    return rc;
}

int snapshot_json(const struct catalogue *c, const char *name, bool need, struct json_doc **out,
                  struct err *e)
{
    struct model_file f;
    const char *says;
    int rc;

    *out = NULL;
    if (!need && !exists(c, name))
        return 0;
    if (open_in_folder(c, &f, name, e) != 0)
        return -1;
    rc = json_read(out, f.fd, f.size, e);
    if (rc != 0) {
        says = file_says(&f);
        if (says != NULL && strcmp(says, "a JSON text") != 0)
            err_set(e, ERR_FORMAT, "is no JSON text but %s", says);
        err_at(e, f.path, ERR_NO_OFFSET, NULL);
    }
    model_file_close(&f);
    return rc == 0 ? 1 : -1;
}

/* ---- the names of the shards, from the index ---- */

struct shards {
    const char *names[MAX_SHARD];
    uint32_t n;
    struct name_pool pool;
    struct name_index index;
    bool in_map, has_map;
};

static int shard_fail(struct err *e)
{
    return err_at(e, NULL, ERR_NO_OFFSET, "weight_map");
}

/* A plain file name that ends in .safetensors; nothing that leaves the folder. */
static int add_shard(struct shards *s, const char *text, size_t len, struct err *e)
{
    char name[MAX_SHARD_NAME + 1];

    if (len == 0 || len > MAX_SHARD_NAME || memchr(text, '\0', len) != NULL) {
        err_set(e, ERR_FORMAT, "a file's name is empty, holds a NUL or has over %d bytes",
                MAX_SHARD_NAME);
        return shard_fail(e);
    }
    memcpy(name, text, len);
    name[len] = '\0';
    if (name_index_find(&s->index, name) >= 0)
        return 0;
    for (size_t i = 0; i < len; i++) {
        if (name[i] != '/' && name[i] != '\\' && (unsigned char)name[i] >= 0x20)
            continue;
        err_set(e, ERR_FORMAT, "\"%.200s\" is no file of this folder", name);
        return shard_fail(e);
    }
    if (name[0] == '.' || !ends_in(name, ".safetensors")) {
        err_set(e, ERR_FORMAT, "\"%.200s\" is no name of a safetensors file", name);
        return shard_fail(e);
    }
    if (s->n == MAX_SHARD) {
        err_set(e, ERR_FORMAT, "more than %d files", MAX_SHARD);
        return shard_fail(e);
    }
    s->names[s->n] = name_pool_copy(&s->pool, name, len, e);
    if (s->names[s->n] == NULL || name_index_add(&s->index, s->names[s->n], s->n, e) != 0)
        return -1;
    s->n++;
    return 0;
}

static int on_index(void *ctx, enum json_event event, const char *text, size_t len,
                    unsigned depth, struct err *e)
{
    struct shards *s = ctx;

    if (depth == 1 && event == JSON_KEY) {
        s->in_map = len == 10 && memcmp(text, "weight_map", 10) == 0;
        return 0;
    }
    if (!s->in_map || depth == 0)
        return 0;
    if (depth == 1 && event == JSON_OBJECT) {
        s->has_map = true;
        return 0;
    }
    if (depth == 1 && event == JSON_OBJECT_END)
        return 0;
    if (depth == 2 && event == JSON_KEY)
        return 0;
    if (depth == 2 && event == JSON_STRING)
        return add_shard(s, text, len, e);
    err_set(e, ERR_FORMAT, "is no object of file names");
    return shard_fail(e);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int read_index(const struct catalogue *c, struct shards *s, struct err *e)
{
    struct model_file f;
    int rc;

    if (open_in_folder(c, &f, INDEX_FILE, e) != 0)
        return -1;
    if (f.size > MAX_INDEX)
        rc = err_set(e, ERR_FORMAT, "an index of %llu bytes", (unsigned long long)f.size);
    else
        rc = json_stream(f.fd, f.size, 0, f.size, on_index, s, e);
    if (rc == 0 && (!s->has_map || s->n == 0)) {
        err_set(e, ERR_FORMAT, "names no file");
        rc = shard_fail(e);
    }
    if (rc != 0)
        err_at(e, f.path, ERR_NO_OFFSET, NULL);
    else
        qsort(s->names, s->n, sizeof s->names[0], by_name);
    model_file_close(&f);
    return rc;
}

/* ---- tensors ---- */

struct adding {
    struct catalogue *c;
    uint32_t file;
    bool named; /* translate to canonical names */
};

static int add_entry(void *ctx, const struct safetensors_entry *s, struct err *e)
{
    struct adding *a = ctx;
    struct catalogue *c = a->c;
    enum arch arch = c->hparams.arch;
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
    if (a->named &&
        snapshot_to_canonical(arch, s->name, canonical, sizeof canonical, c->index->prefix)) {
        if (!s->has_type)
            return err_set(e, ERR_UNSUPPORTED, "dtype %s is not one that memwall computes",
                           s->dtype);
        t.add_one = arch_traits(arch)->norm_add_one && n >= 11 &&
                    strcmp(s->name + n - 11, "norm.weight") == 0;
        t.name = canonical;
    }
    return catalogue_add_tensor(c, &t, e);
}

static int add_file(struct catalogue *c, struct model_file *f, bool named, struct err *e)
{
    struct adding a = { .c = c, .named = named };
    int64_t file = catalogue_add_file(c, f, e);
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
        err_set(e, ERR_FORMAT, "no safetensors file but %s", says);
        err_at(e, NULL, 0, "header");
    }
    return err_at(e, f->path, ERR_NO_OFFSET, NULL);
}

static int add_shards(struct catalogue *c, const struct shards *s, bool named, struct err *e)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct model_file f;

        if (open_in_folder(c, &f, s->names[i], e) != 0 || add_file(c, &f, named, e) != 0)
            return -1;
    }
    return 0;
}

/* No weights in the folder: what else is there? */
static int no_weights(const struct catalogue *c, struct err *e)
{
    const char *hint = "";

    if (exists(c, "adapter_model.safetensors") || exists(c, "adapter_config.json"))
        hint = "; it holds an adapter (LoRA), not a model";
    else if (exists(c, "pytorch_model.bin") || exists(c, "pytorch_model.bin.index.json"))
        hint = "; it holds a PyTorch pickle (pytorch_model.bin), which is not read";
    else if (exists(c, "consolidated.safetensors"))
        hint = "; it holds weights in the maker's own form (consolidated.safetensors)";
    return err_set(e, ERR_FORMAT, "the folder has neither " SINGLE_FILE " nor " INDEX_FILE "%s",
                   hint);
}

static int add_weights(struct catalogue *c, bool named, struct err *e)
{
    struct shards *s;
    struct model_file f;
    int rc;

    if (exists(c, SINGLE_FILE) || !exists(c, INDEX_FILE)) {
        if (!exists(c, SINGLE_FILE))
            return no_weights(c, e);
        return open_in_folder(c, &f, SINGLE_FILE, e) == 0 ? add_file(c, &f, named, e) : -1;
    }
    s = calloc(1, sizeof *s);
    if (s == NULL)
        return err_set(e, ERR_MEMORY, "no memory for the names of files");
    rc = read_index(c, s, e);
    if (rc == 0)
        rc = add_shards(c, s, named, e);
    name_index_free(&s->index);
    name_pool_free(&s->pool);
    free(s);
    return rc;
}

static int open_folder(struct catalogue *c, struct err *e)
{
    c->index->folder = folder_of(c->path);
    if (c->index->folder == NULL)
        return err_set(e, ERR_MEMORY, "no memory for a file's name");
    c->dir_fd = open(c->index->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->dir_fd >= 0)
        return 0;
    err_sys(e, "cannot open the folder");
    return err_at(e, c->index->folder, ERR_NO_OFFSET, NULL);
}

int open_snapshot(struct catalogue *c, bool bare, struct err *e)
{
    struct json_doc *config = NULL;
    struct err why = ERR_INIT;
    int arch, rc;

    c->kind = CATALOGUE_SNAPSHOT;
    if (open_folder(c, e) != 0)
        return -1;
    rc = snapshot_json(c, "config.json", !bare, &config, e);
    if (rc < 0 && !bare)
        return -1;
    arch = rc == 1 ? snapshot_arch(json_root(config), &why) : -1;
    json_free(config);
    if (arch < 0 && !bare) {
        char *path = join(c->index->folder, "config.json", e);

        *e = why;
        err_at(e, path, ERR_NO_OFFSET, NULL);
        free(path);
        return -1;
    }
    if (arch >= 0) {
        c->hparams.arch = (enum arch)arch;
        snprintf(c->hparams.arch_name, sizeof c->hparams.arch_name, "%s",
                 arch_traits((enum arch)arch)->name);
    }
    return add_weights(c, arch >= 0, e);
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
