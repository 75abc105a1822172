/*
 * Models in Ollama's store:
 *
 *     manifests/HOST/NAMESPACE/MODEL/TAG    JSON: the layers of a model, with their digests
 *     blobs/sha256-DIGEST                   a layer; older versions wrote "sha256:DIGEST"
 *
 * Newer versions keep manifests in manifest-v2/, in the same way.  The weights are the layer of
 * type application/vnd.ollama.image.model, a GGUF file.  A model whose weights are one layer
 * for each tensor has none and is left out.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/format/file_open.h"
#include "engine/format/json.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/find.h"

#define LEVELS       4 /* HOST, NAMESPACE, MODEL, TAG */
#define MAX_MANIFEST (256 * KIB)
#define MODEL_LAYER  "application/vnd.ollama.image.model"

struct ollama {
    struct mw_models *m;
    const char *root;
    const char *parts[LEVELS]; /* of the manifest's path */
    unsigned n_entry;
};

/* Copy the digest of the weights to hex.  Returns false if the manifest names none. */
static bool weights_of(const struct json_node *manifest, char hex[72])
{
    const struct json_node *layers = json_get(manifest, "layers");

    if (layers == NULL || layers->kind != JSON_IS_ARRAY)
        return false;
    for (const struct json_node *l = layers->first; l != NULL; l = l->next) {
        const char *type = json_as_string(json_get(l, "mediaType"));
        const char *digest = json_as_string(json_get(l, "digest"));

        if (type == NULL || digest == NULL || strcmp(type, MODEL_LAYER) != 0)
            continue;
        if (strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 71 ||
            !cache_is_digest(digest + 7))
            return false;
        memcpy(hex, digest + 7, 65);
        return true;
    }
    return false;
}

static bool read_manifest(const char *path, char hex[72])
{
    struct err ignored = ERR_INIT;
    struct json_doc *doc = NULL;
    struct model_file f;
    bool found = false;

    if (model_file_open(&f, AT_FDCWD, path, path, &ignored) != 0)
        return false;
    if (f.size <= MAX_MANIFEST && json_read(&doc, f.fd, f.size, &ignored) == 0)
        found = weights_of(json_root(doc), hex);
    json_free(doc);
    model_file_close(&f);
    return found;
}

/* The name as Ollama shows it: its own host and namespace are left out. */
static void name_of(const struct ollama *o, char *buf, size_t n)
{
    const char *host = o->parts[0], *space = o->parts[1];
    bool is_own = strcmp(host, "registry.ollama.ai") == 0 || strcmp(host, "ollama.com") == 0;
    bool is_library = is_own && strcmp(space, "library") == 0;

    snprintf(buf, n, "%s%s%s%s%s:%s", is_own ? "" : host, is_own ? "" : "/",
             is_library ? "" : space, is_library ? "" : "/", o->parts[2], o->parts[3]);
}

static int add_manifest(struct ollama *o, const char *path, struct err *e)
{
    static const char marks[] = { '-', ':' };
    struct find_new new = { .store = MW_STORE_OLLAMA };
    char hex[72], blob[PATH_MAX], name[4 * CACHE_MAX_NAME];

    if (!read_manifest(path, hex))
        return 0;
    name_of(o, name, sizeof name);
    new.name = name;
    new.path = blob;
    for (size_t i = 0; i < sizeof marks; i++)
        if (snprintf(blob, sizeof blob, "%s/blobs/sha256%c%s", o->root, marks[i], hex) <
                PATH_MAX &&
            find_identify_file(blob, &new.id))
            return find_add(o->m, &new, e);
    return 0;
}

static int walk(struct ollama *o, const char *folder, unsigned level, struct err *e)
{
    const struct dirent *entry;
    DIR *dir = opendir(folder);
    int rc = 0;

    while (dir != NULL && rc == 0 && o->n_entry < FIND_MAX_ENTRIES &&
           (entry = readdir(dir)) != NULL) {
        char path[PATH_MAX];

        o->n_entry++;
        if (!cache_is_name(entry->d_name) ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= PATH_MAX)
            continue;
        o->parts[level] = entry->d_name;
        rc = level + 1 < LEVELS ? walk(o, path, level + 1, e) : add_manifest(o, path, e);
    }
    if (dir != NULL)
        closedir(dir);
    return rc;
}

int find_ollama(struct mw_models *m, const char *folder, struct err *e)
{
    static const char *const manifests[] = { "manifest-v2", "manifests" };
    struct ollama o = { .m = m, .root = folder };

    for (size_t i = 0; i < sizeof manifests / sizeof manifests[0]; i++) {
        char path[PATH_MAX];

        if (snprintf(path, sizeof path, "%s/%s", folder, manifests[i]) < PATH_MAX &&
            walk(&o, path, 0, e) != 0)
            return -1;
    }
    return 0;
}
