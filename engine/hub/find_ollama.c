/*
 * Models in Ollama's store:
 *
 *     manifests/HOST/NAMESPACE/MODEL/TAG    JSON: the layers of a model, with their digests
 *     blobs/sha256-DIGEST                   a layer; older versions wrote "sha256:DIGEST"
 *
 * Newer versions keep manifests in manifest-v2/, in the same way.  The weights are the layer of
 * type application/vnd.ollama.image.model, a GGUF file.  A model whose weights are one layer
 * for each tensor has none and is left out.  One whose manifest is damaged or whose weights are
 * gone is listed with the reason.  Other layers are parts beside the weights.
 */
#include "config.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/small_file.h"
#include "engine/base/units.h"
#include "engine/format/json.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/find.h"

#define LEVELS       4 /* HOST, NAMESPACE, MODEL, TAG */
#define MAX_MANIFEST (256 * KIB)
#define LAYER        "application/vnd.ollama.image."

struct ollama {
    struct mw_models *m;
    const char *root;
    const char *parts[LEVELS]; /* of the manifest's path */
    unsigned n_entry;
};

/* Copy a digest in hex.  Returns false if it is not one. */
static bool copy_digest(char out[OLLAMA_DIGEST], const char *digest)
{
    if (digest == NULL || strncmp(digest, "sha256:", 7) != 0 || strlen(digest) != 71 ||
        !cache_is_digest(digest + 7))
        return false;
    memcpy(out, digest + 7, 65);
    return true;
}

static void add_layer(struct ollama_layers *out, const char *kind, const char *digest)
{
    static const struct {
        const char *kind;
        unsigned part; /* 0: changes no answer to a text */
    } kinds[] = {
        { "model", 0 },
        { "license", 0 },
        { "projector", 0 },
        { "adapter", MW_PART_ADAPTER },
        { "messages", MW_PART_MESSAGES },
        { "system", MW_PART_SYSTEM },
        { "params", MW_PART_PARAMS },
        { "template", MW_PART_TEMPLATE },
    };
    unsigned part = MW_PART_OTHER;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            part = kinds[i].part;
    out->parts |= part;
    if (strcmp(kind, "model") == 0 && out->weights[0] == '\0')
        out->is_damaged = !copy_digest(out->weights, digest);
    else if (part == MW_PART_SYSTEM)
        copy_digest(out->system, digest);
    else if (part == MW_PART_PARAMS && out->n_params < OLLAMA_MAX_PARAMS &&
             copy_digest(out->params[out->n_params], digest))
        out->n_params++;
}

bool ollama_read(struct ollama_layers *out, const char *manifest)
{
    const struct json_node *layers;
    struct err ignored = ERR_INIT;
    struct json_doc *doc = NULL;
    size_t len = 0;
    char *text = small_file_read(manifest, MAX_MANIFEST, &len, &ignored);

    *out = (struct ollama_layers){ .is_damaged = text != NULL };
    if (text != NULL && json_parse(&doc, text, len, &ignored) == 0 &&
        (layers = json_get(json_root(doc), "layers")) != NULL &&
        layers->kind == JSON_IS_ARRAY) {
        out->is_damaged = false;
        for (const struct json_node *l = layers->first; l != NULL; l = l->next) {
            const char *type = json_as_string(json_get(l, "mediaType"));

            if (type != NULL && strncmp(type, LAYER, sizeof LAYER - 1) == 0)
                add_layer(out, type + sizeof LAYER - 1, json_as_string(json_get(l, "digest")));
        }
    }
    json_free(doc);
    free(text);
    return out->weights[0] != '\0';
}

bool ollama_has_same_parts(const char *manifest, const char *other)
{
    struct ollama_layers a, b;

    ollama_read(&a, manifest);
    ollama_read(&b, other);
    for (unsigned i = 0; i < OLLAMA_MAX_PARAMS; i++)
        if (strcmp(a.params[i], b.params[i]) != 0)
            return false;
    return ((a.parts ^ b.parts) & ~(unsigned)MW_PART_TEMPLATE) == 0 &&
           strcmp(a.system, b.system) == 0;
}

bool ollama_blob(const char *root, const char *digest, char *path, size_t n)
{
    static const char marks[] = { '-', ':' };

    for (size_t i = 0; i < sizeof marks; i++)
        if ((size_t)snprintf(path, n, "%s/blobs/sha256%c%s", root, marks[i], digest) < n &&
            access(path, F_OK) == 0)
            return true;
    return false;
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
    struct find_new new = { .store = MW_STORE_OLLAMA, .manifest = path };
    char blob[PATH_MAX], name[4 * CACHE_MAX_NAME], broken[120];
    struct ollama_layers layers;

    if (!ollama_read(&layers, path) && !layers.is_damaged)
        return 0;
    name_of(o, name, sizeof name);
    new.name = name;
    new.path = blob;
    new.parts = layers.parts;
    if (!layers.is_damaged && ollama_blob(o->root, layers.weights, blob, sizeof blob) &&
        find_identify_file(blob, &new.id))
        return find_add(o->m, &new, e);
    if (layers.is_damaged)
        snprintf(broken, sizeof broken, "its manifest is damaged; fetch it again with Ollama");
    else
        snprintf(broken, sizeof broken,
                 "its weights, blob sha256-%.12s, are missing; fetch it again with Ollama",
                 layers.weights);
    new.path = path;
    new.broken = broken;
    if (!find_identify_file(path, &new.id))
        return 0;
    new.id.bytes = 0;
    return find_add(o->m, &new, e);
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
