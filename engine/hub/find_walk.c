/* Models in folders of files: see find.h. */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/small_file.h"
#include "engine/format/file_open.h"
#include "engine/format/json.h"
#include "engine/format/snapshot_index.h"
#include "engine/format/split_name.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/find.h"
#include "engine/hub/gguf_walk.h"

#define KIND_BYTES   16384 /* of a header; general.type is near its beginning */
#define CONFIG_BYTES ((size_t)256 << 10) /* of config.json */

bool find_ends_in(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);

    return n > m && strcasecmp(s + n - m, tail) == 0;
}

/* Add a file to an identity; the first one gives device and inode. */
static bool add_file(struct find_id *id, const char *path)
{
    struct stat st;
    int64_t mtime_ns, ctime_ns;

    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (id->ino == 0) {
        id->dev = (uint64_t)st.st_dev;
        id->ino = (uint64_t)st.st_ino;
    }
    mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (mtime_ns > id->mtime_ns)
        id->mtime_ns = mtime_ns;
    ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    if (ctime_ns > id->ctime_ns)
        id->ctime_ns = ctime_ns;
    id->bytes += (uint64_t)st.st_size;
    return true;
}

/* A set with missing files is listed, too.  Opening it reports the first missing one. */
static void add_split_files(struct find_id *id, const char *path, const struct split_name *s)
{
    char other[PATH_MAX];

    for (uint32_t i = 2; i <= s->count; i++) {
        split_name_write(other, sizeof other, path, s, i);
        if (!add_file(id, other))
            return;
    }
}

/* The file of a snapshot in the folder ctx; false if its path is too long. */
static bool path_in(const char *folder, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

static bool has_file(void *ctx, const char *name)
{
    char path[PATH_MAX];

    return path_in(ctx, name, path) && model_file_is_there(AT_FDCWD, path);
}

static int read_index(void *ctx, struct shard_list *s, struct err *e)
{
    char path[PATH_MAX];
    struct model_file f;
    int rc;

    if (!path_in(ctx, SNAPSHOT_INDEX, path) ||
        model_file_open(&f, AT_FDCWD, path, path, e) != 0)
        return -1;
    rc = snapshot_index_read(s, f.fd, f.size, e);
    model_file_close(&f);
    return rc;
}

/*
 * The weights of a snapshot, and config.json, which is where the identity comes from.  A
 * snapshot with a broken index or a missing file is listed, too.  Opening it reports what is
 * wrong.
 */
static bool identify_snapshot(char *folder, struct find_id *id)
{
    const struct snapshot_place place = { has_file, read_index, folder };
    char path[PATH_MAX];
    struct shard_list s = { .n = 0 };
    struct err ignored = ERR_INIT;
    uint64_t other_bytes;
    bool has_weights;

    if (!path_in(folder, SNAPSHOT_CONFIG, path) || !add_file(id, path))
        return false;
    has_weights = snapshot_weights(&s, &place, &ignored) != 0 || s.n > 0;
    if (!has_file(folder, SNAPSHOT_SINGLE) && path_in(folder, SNAPSHOT_INDEX, path))
        add_file(id, path);
    if (path_in(folder, SNAPSHOT_TOKENIZER, path)) /* so that one that is repaired counts */
        add_file(id, path);
    other_bytes = id->bytes;
    for (uint32_t i = 0; i < s.n; i++)
        if (path_in(folder, s.names[i], path))
            add_file(id, path);
    id->bytes -= other_bytes;
    shard_list_free(&s);
    return has_weights;
}

bool find_is_head_folder(const char *folder)
{
    char path[PATH_MAX], *text = NULL;
    struct err ignored = ERR_INIT;
    struct json_doc *doc = NULL;
    const char *type;
    bool is_head;
    size_t len;

    if (path_in(folder, SNAPSHOT_CONFIG, path))
        text = small_file_read(path, CONFIG_BYTES, &len, &ignored);
    if (text == NULL || json_parse(&doc, text, len, &ignored) != 0) {
        free(text);
        return false;
    }
    type = json_as_string(json_get(json_root(doc), "model_type"));
    is_head = type != NULL && find_ends_in(type, "_assistant");
    json_free(doc);
    free(text);
    return is_head;
}

bool find_identify_file(const char *path, struct find_id *id)
{
    *id = (struct find_id){ .dev = 0 };
    return add_file(id, path);
}

bool find_identify(const char *path, struct find_id *id)
{
    struct split_name split;
    char folder[PATH_MAX];

    *id = (struct find_id){ .dev = 0 };
    if (strlen(path) >= PATH_MAX - 64)
        return false;
    if (!find_ends_in(path, ".gguf")) {
        snprintf(folder, sizeof folder, "%s", path);
        return identify_snapshot(folder, id);
    }
    if (!add_file(id, path))
        return false;
    if (split_name_parse(path, &split))
        add_split_files(id, path, &split);
    return true;
}

bool find_identify_any(const char *path, struct find_id *id)
{
    return find_identify(path, id) || find_identify_file(path, id);
}

/* ---- folders ---- */

struct walk {
    struct mw_models *m;
    enum mw_store store;
    const char *repo;
    unsigned n_entry, n_folder;
    struct {
        dev_t dev;
        ino_t ino;
    } folders[FIND_MAX_FOLDERS]; /* entered; links can lead back to one */
};

/* Is it the first visit to this folder? */
static bool enter(struct walk *w, const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode) || w->n_folder == FIND_MAX_FOLDERS)
        return false;
    for (unsigned i = 0; i < w->n_folder; i++)
        if (w->folders[i].ino == st.st_ino && w->folders[i].dev == st.st_dev)
            return false;
    w->folders[w->n_folder].dev = st.st_dev;
    w->folders[w->n_folder++].ino = st.st_ino;
    return true;
}

static bool contains(const char *name, const char *part)
{
    return strcasestr(name, part) != NULL;
}

bool find_is_model_file(const char *name)
{
    struct split_name split;

    return find_ends_in(name, ".gguf") &&
           (!split_name_parse(name, &split) || split.number == 1);
}

bool find_is_doubtful(const char *name)
{
    return contains(name, "mmproj") || contains(name, "imatrix") || contains(name, "assistant");
}

/* Does the header of the file say that it is a model? */
static bool has_model(const char *path)
{
    unsigned char head[KIND_BYTES];
    struct err ignored = ERR_INIT;
    struct model_file f;
    ssize_t n;

    if (model_file_open(&f, AT_FDCWD, path, path, &ignored) != 0)
        return false;
    n = pread(f.fd, head, sizeof head, 0);
    model_file_close(&f);
    return n > 0 && gguf_walk_is_model(head, (uint64_t)n);
}

/* Is a GGUF file of the hub's cache, or the configuration of a snapshot in it, a link whose file is
 * missing?  Stores the identity of the link. */
static bool is_broken_link(const char *path, struct find_id *id)
{
    char file[PATH_MAX];
    struct stat st;

    if (find_ends_in(path, ".gguf"))
        snprintf(file, sizeof file, "%s", path);
    else if (!path_in(path, SNAPSHOT_CONFIG, file))
        return false;
    if (stat(file, &st) == 0 || errno != ENOENT || lstat(file, &st) != 0)
        return false;
    *id = (struct find_id){ .dev = (uint64_t)st.st_dev, .ino = (uint64_t)st.st_ino };
    return true;
}

/* path is below the first folder as rel. */
static int add_model(struct walk *w, const char *path, const char *rel, struct err *e)
{
    struct find_new new = { .store = w->store, .path = path };
    char name[CACHE_MAX_FILE + 1], label[FIND_LABEL] = "", *whole = NULL;
    const char *base;
    int rc;

    if (w->repo != NULL && is_broken_link(path, &new.id))
        new.broken = "only a link to a missing file is here; fetch it again";
    else if (!find_identify(path, &new.id) ||
             (!find_ends_in(path, ".gguf") && find_is_head_folder(path)))
        return 0;
    if (rel[0] == '\0' && w->repo == NULL) {
        whole = realpath(path, NULL);
        rel = whole != NULL ? strrchr(whole, '/') + 1 : "";
    }
    base = find_ends_in(rel, ".gguf") && w->repo == NULL && strchr(rel, '/') != NULL
               ? strrchr(rel, '/') + 1
               : rel;
    if (find_ends_in(rel, ".gguf")) {
        size_t n = find_stem(base, label);

        snprintf(name, sizeof name, "%.*s%s%s", (int)n, base, label[0] != '\0' ? ":" : "",
                 label);
    } else {
        snprintf(name, sizeof name, "%s", base);
    }
    new.name = name;
    new.label = label;
    new.parts = find_parts(path);
    new.file = w->repo != NULL ? rel : NULL;
    rc = w->repo != NULL || cache_is_file(name) ? find_add(w->m, &new, e) : 0;
    free(whole);
    return rc;
}

static bool may_be_folder(const struct dirent *entry)
{
    return entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
}

static int walk_folder(struct walk *w, const char *path, const char *rel, unsigned depth,
                       struct err *e)
{
    const struct dirent *entry;
    int rc = 0;
    DIR *dir;

    if (!enter(w, path))
        return 0;
    if (add_model(w, path, rel, e) != 0)
        return -1;
    dir = opendir(path);
    while (dir != NULL && rc == 0 && w->n_entry < FIND_MAX_ENTRIES &&
           (entry = readdir(dir)) != NULL) {
        char below[PATH_MAX], below_rel[CACHE_MAX_FILE + 1];

        w->n_entry++;
        if (!cache_is_name(entry->d_name) ||
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name) >= PATH_MAX ||
            snprintf(below_rel, sizeof below_rel, "%s%s%s", rel, rel[0] != '\0' ? "/" : "",
                     entry->d_name) > CACHE_MAX_FILE)
            continue;
        if (find_is_model_file(entry->d_name))
            rc = find_is_doubtful(entry->d_name) && !has_model(below)
                     ? 0
                     : add_model(w, below, below_rel, e);
        else if (depth > 0 && may_be_folder(entry))
            rc = walk_folder(w, below, below_rel, depth - 1, e);
    }
    if (dir != NULL)
        closedir(dir);
    return rc;
}

int find_walk(struct mw_models *m, enum mw_store store, const char *folder, const char *repo,
              unsigned depth, struct err *e)
{
    struct walk *w = calloc(1, sizeof *w);
    int rc;

    if (w == NULL)
        return err_memory(e, "the folders of models");
    w->m = m;
    w->store = store;
    w->repo = repo;
    rc = walk_folder(w, folder, "", depth, e);
    free(w);
    return rc;
}
