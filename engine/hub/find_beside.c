/*
 * Parts of a model beside its weights: see models.h.
 *
 * Ollama keeps a system message (a text) and parameters (a JSON object) in blobs.  Both are
 * hostile: they are small, or not read.  An adapter is a file in the folder of the weights, or a
 * blob; it changes the weights, so it cannot be a default.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/small_file.h"
#include "engine/base/units.h"
#include "engine/base/utf8.h"
#include "engine/format/json.h"
#include "engine/format/snapshot_index.h"
#include "engine/hub/find.h"

#define MAX_BLOB  (64 * KIB) /* of a system message or of parameters */
#define MAX_PARAM 64
#define LEVELS    5 /* of folders between a manifest and the store */

char *mw_parts_text(unsigned parts, char *buf, size_t n)
{
    static const char *const words[] = { "adapter",    "messages", "unknown layer",
                                         "system message", "parameters", "template" };
    size_t used = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0] && used < n; i++)
        if ((parts >> i & 1) != 0)
            used += (size_t)snprintf(buf + used, n - used, "%s%s", used > 0 ? ", " : "",
                                     words[i]);
    return buf;
}

/* Whether the folder of a model, the first n bytes of its path, has a file of this name. */
static bool folder_has(const char *path, int n, const char *name)
{
    char file[PATH_MAX];

    return snprintf(file, sizeof file, "%.*s%s%s", n, path, n > 0 || path[0] == '/' ? "/" : "",
                    name) < PATH_MAX &&
           access(file, F_OK) == 0;
}

unsigned find_parts(const char *path)
{
    static const char *const files[] = { "adapter_config.json", "adapter_model.safetensors",
                                         "adapter_model.bin" };
    const char *slash = strrchr(path, '/');
    bool is_gguf = find_ends_in(path, ".gguf");
    bool is_file =
        is_gguf || find_ends_in(path, ".safetensors") || find_ends_in(path, ".json");
    int n = !is_file ? (int)strlen(path) : slash != NULL ? (int)(slash - path) : 0;

    /* An adapter without a model beside it is refused when it is opened. */
    if (!is_gguf && !folder_has(path, n, SNAPSHOT_SINGLE) && !folder_has(path, n, SNAPSHOT_INDEX))
        return 0;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (is_file && strcmp(slash != NULL ? slash + 1 : path, files[i]) == 0)
            return 0;
        if (folder_has(path, n, files[i]))
            return MW_PART_ADAPTER;
    }
    return 0;
}

void mw_beside_free(struct mw_beside *b)
{
    if (b == NULL)
        return;
    for (size_t i = 0; i < b->n_param; i++) {
        free((char *)(uintptr_t)b->param[i].name);
        free((char *)(uintptr_t)b->param[i].value);
    }
    free(b->param);
    free((char *)(uintptr_t)b->system);
    free((char *)(uintptr_t)b->name);
    free(b);
}

/* Add a parameter with one value.  Returns false if the value is of no use. */
static bool add_param(struct mw_beside *b, const char *name, const struct json_node *value)
{
    struct mw_beside_param *p = &b->param[b->n_param];
    const char *text = value->text;
    char number[24];
    int64_t i;

    if (value->kind == JSON_IS_BOOL)
        text = value->truth ? "true" : "false";
    else if (json_as_int(value, &i)) /* 40.0 is 40 */
        snprintf(number, sizeof number, "%lld", (long long)i), text = number;
    else if (value->kind == JSON_IS_STRING)
        text = json_as_string(value);
    else if (value->kind != JSON_IS_NUMBER)
        return false;
    if (text == NULL || b->n_param == MAX_PARAM)
        return false;
    p->name = strdup(name);
    p->value = strdup(text);
    if (p->name != NULL && p->value != NULL) {
        b->n_param++;
        return true;
    }
    free((char *)(uintptr_t)p->name);
    free((char *)(uintptr_t)p->value);
    return false;
}

/* Read a JSON object of parameters.  Returns false if a part of it could not be read. */
static bool read_params(struct mw_beside *b, const char *path)
{
    struct err ignored = ERR_INIT;
    struct json_doc *doc = NULL;
    const struct json_node *root;
    size_t len = 0;
    char *text = small_file_read(path, MAX_BLOB, &len, &ignored);
    bool ok = text != NULL && json_parse(&doc, text, len, &ignored) == 0;

    root = ok ? json_root(doc) : NULL;
    ok = root != NULL && root->kind == JSON_IS_OBJECT;
    for (const struct json_node *n = ok ? root->first : NULL; n != NULL; n = n->next) {
        if (n->kind != JSON_IS_ARRAY)
            ok = add_param(b, n->key, n) && ok;
        else
            for (const struct json_node *item = n->first; item != NULL; item = item->next)
                ok = add_param(b, n->key, item) && ok;
    }
    json_free(doc);
    free(text);
    return ok;
}

static bool read_system(struct mw_beside *b, const char *path)
{
    struct err ignored = ERR_INIT;
    size_t len = 0;
    char *text = small_file_read(path, MAX_BLOB, &len, &ignored);

    if (text == NULL || strlen(text) != len || !utf8_is_valid(text, len)) {
        free(text);
        return false;
    }
    b->system = text;
    return true;
}

static void read_ollama(struct mw_beside *b, const char *manifest)
{
    struct ollama_layers layers;
    char root[PATH_MAX], blob[PATH_MAX];
    bool ok;

    if (snprintf(root, sizeof root, "%s", manifest) >= PATH_MAX ||
        !ollama_read(&layers, manifest))
        return;
    for (int i = 0; i < LEVELS && strrchr(root, '/') != NULL; i++)
        *strrchr(root, '/') = '\0';
    if (layers.system[0] != '\0' && ollama_blob(root, layers.system, blob, sizeof blob) &&
        read_system(b, blob))
        b->parts &= ~(unsigned)MW_PART_SYSTEM;
    ok = layers.n_params > 0;
    for (unsigned i = 0; i < layers.n_params; i++)
        ok = ollama_blob(root, layers.params[i], blob, sizeof blob) && read_params(b, blob) && ok;
    if (ok)
        b->parts &= ~(unsigned)MW_PART_PARAMS;
}

int mw_beside_read(struct mw_beside **out, const struct mw_found *f, struct err *e)
{
    struct mw_beside *b = calloc(1, sizeof *b);

    *out = NULL;
    if (b == NULL || (b->param = calloc(MAX_PARAM, sizeof *b->param)) == NULL ||
        (f->name != NULL && (b->name = strdup(f->name)) == NULL)) {
        mw_beside_free(b);
        return err_memory(e, "the parts of a model");
    }
    b->parts = f->parts;
    if (f->manifest != NULL)
        read_ollama(b, f->manifest);
    *out = b;
    return 0;
}
