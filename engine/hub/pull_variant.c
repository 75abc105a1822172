#include "config.h"

#include "engine/hub/pull_variant.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/format/split_name.h"

#define MAX_FOLDERS 64    /* with snapshots, whose indices are read */
#define MIXTURE     "UD-" /* begins the label of a mixture of types, and may be left out */

/* Files of a snapshot besides the weights; only the first is needed to plan it. */
static const char *const snapshot_files[] = { SNAPSHOT_CONFIG,
                                              SNAPSHOT_TOKENIZER,
                                              "generation_config.json",
                                              "tokenizer_config.json",
                                              "special_tokens_map.json",
                                              "added_tokens.json",
                                              "vocab.json",
                                              "merges.txt",
                                              "tokenizer.model",
                                              "chat_template.jinja",
                                              "chat_template.json" };
static int by_name(const void *key, const void *file)
{
    return strcasecmp(key, ((const struct pull_file *)file)->name);
}

/* Returns the index of the file, or UINT32_MAX. */
static uint32_t find_file(const struct pull_list *l, const char *name)
{
    const struct pull_file *f =
        l->n > 0 ? bsearch(name, l->files, l->n, sizeof *f, by_name) : NULL;

    return f != NULL && strcmp(f->name, name) == 0 ? (uint32_t)(f - l->files) : UINT32_MAX;
}

static struct pull_variant *add_variant(struct pull_variants *c, uint32_t n_file, struct err *e)
{
    struct pull_variant *larger = realloc(c->all, (c->n + 1) * sizeof *larger);
    struct pull_variant *new;

    if (larger != NULL) {
        c->all = larger;
        new = &c->all[c->n];
        memset(new, 0, sizeof *new);
        new->head = new->left_head = UINT32_MAX;
        new->files = calloc(n_file, sizeof *new->files);
        if (new->files != NULL) {
            c->n++;
            return new;
        }
    }
    err_memory(e, "a list of %u models", c->n + 1);
    return NULL;
}

static void add_file(struct pull_variant *c, const struct pull_list *l, uint32_t file)
{
    c->files[c->n_file++] = file;
    c->bytes += l->files[file].size;
}

/* Note a model that cannot be opened, and why. */
static int add_broken(struct pull_variants *c, struct err *e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int add_broken(struct pull_variants *c, struct err *e, const char *fmt, ...)
{
    int n = 0;
    va_list ap;

    va_start(ap, fmt);
    if (c->n_broken < PULL_BROKEN)
        n = vasprintf(&c->broken[c->n_broken], fmt, ap);
    va_end(ap);
    if (n < 0) {
        c->broken[c->n_broken] = NULL;
        return err_memory(e, "a list of %u models", c->n);
    }
    c->n_broken++;
    return 0;
}

/* ---- GGUF ---- */

/* Is file `i` the first one of a split set that is there, without being its first part? */
static bool begins_without_first(const struct pull_list *l, uint32_t i,
                                 struct split_name *split)
{
    const char *name = l->files[i].name;
    struct split_name before;

    if (!split_name_parse(name, split) || split->number < 2 || split->number > split->count)
        return false;
    /* The list is sorted, so the parts of a set follow each other. */
    return i == 0 || !split_name_parse(l->files[i - 1].name, &before) ||
           before.prefix != split->prefix || before.count != split->count ||
           before.number < 1 || strncmp(l->files[i - 1].name, name, split->prefix) != 0;
}

static int add_gguf(struct pull_variants *c, const struct pull_list *l, uint32_t file,
                    struct err *e)
{
    const char *name = l->files[file].name;
    struct split_name split;
    bool is_split = split_name_parse(name, &split);
    uint32_t n_part = is_split ? split.count : 1;
    char part[CACHE_MAX_FILE + 1];
    struct pull_variant *new;

    if (n_part == 0)
        return add_broken(c, e, "\"%s\" is a part of a set of 0 files", name);
    new = add_variant(c, n_part < l->n ? n_part : l->n, e);
    if (new == NULL)
        return -1;
    new->n_stem = find_stem(name, new->label);
    add_file(new, l, file);
    for (uint32_t i = 2; i <= n_part; i++) {
        uint32_t other;

        split_name_write(part, sizeof part, name, &split, i);
        other = find_file(l, part);
        if (other == UINT32_MAX) {
            free(new->files);
            c->n--;
            return add_broken(c, e, "a split set lacks \"%s\"", part);
        }
        add_file(new, l, other);
    }
    return 0;
}

/* The name and the kind of the last file with a doubtful name.  Files that differ in their
 * weight type only are of one kind, so one header is read for all of them. */
struct doubt {
    const char *name;
    size_t n_stem;
    bool is_model;
};

static int look_into(struct pull_variants *c, const struct pull_list *l,
                     const struct pull_look *look, uint32_t file, struct doubt *last,
                     struct err *e)
{
    const char *name = l->files[file].name;
    char label[FIND_LABEL];
    size_t n = find_stem(name, label);
    struct err why = ERR_INIT;

    if (last->name != NULL && n == last->n_stem && strncmp(name, last->name, n) == 0)
        return 0;
    *last = (struct doubt){ .name = name, .n_stem = n };
    if (look->is_model(look->ctx, file, &last->is_model, &why) == 0)
        return 0;
    last->is_model = false;
    c->doubt = why;
    if (why.code != ERR_CANCELLED)
        return 0;
    *e = why;
    return -1;
}

static int add_ggufs(struct pull_variants *c, const struct pull_list *l,
                     const struct pull_look *look, struct err *e)
{
    struct doubt doubt = { .name = NULL };
    struct split_name split;
    char part[CACHE_MAX_FILE + 1];

    for (uint32_t i = 0; i < l->n; i++) {
        const char *name = l->files[i].name, *slash = strrchr(name, '/');
        const char *base = slash != NULL ? slash + 1 : name;
        int rc = 0;

        if (begins_without_first(l, i, &split)) {
            split_name_write(part, sizeof part, name, &split, 1);
            rc = add_broken(c, e, "a split set lacks \"%s\"", part);
        }
        if (!find_is_model_file(base))
            continue;
        if (find_is_doubtful(base) && look_into(c, l, look, i, &doubt, e) != 0)
            return -1;
        if (!find_is_doubtful(base) || doubt.is_model)
            rc = add_gguf(c, l, i, e);
        if (rc != 0)
            return -1;
    }
    return 0;
}

/* Is the GGUF file a draft head by its name, in the folder of the model? */
static bool is_head_for(const struct pull_list *l, uint32_t file, const struct pull_variant *v)
{
    const char *model = l->files[v->files[0]].name, *slash = strrchr(model, '/');
    size_t n = slash != NULL ? (size_t)(slash - model) + 1 : 0;
    const struct pull_file *f = &l->files[file];
    char label[FIND_LABEL];
    size_t stem = find_stem(f->name, label);

    /* A model may have such a name, too: its other weight types are not its heads. */
    if (stem == v->n_stem && strncmp(f->name, model, stem) == 0)
        return false;
    return strncmp(f->name, model, n) == 0 && strchr(f->name + n, '/') == NULL &&
           find_is_head_name(f->name + n);
}

/* Would --draft auto use it?  One in several files is not fetched, either. */
static bool is_useful_head(const struct pull_file *f, const struct pull_variant *v)
{
    struct split_name split;

    return f->size <= v->bytes / PULL_HEAD_SHARE && !split_name_parse(f->name, &split);
}

static bool is_variant(const struct pull_variants *c, uint32_t file)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->all[i].files[0] == file)
            return true;
    return false;
}

/* Choose the smallest head for each model. */
static void add_heads(struct pull_variants *c, const struct pull_list *l)
{
    for (uint32_t i = 0; i < c->n; i++) {
        struct pull_variant *v = &c->all[i];

        for (uint32_t f = 0; f < l->n; f++) {
            bool is_useful = is_useful_head(&l->files[f], v);
            uint32_t *best = is_useful ? &v->head : &v->left_head;

            if (is_head_for(l, f, v) && (is_useful || !is_variant(c, f)) &&
                (*best == UINT32_MAX || l->files[f].size < l->files[*best].size))
                *best = f;
        }
    }
}

/* ---- snapshots ---- */

struct repository {
    const struct pull_list *list;
    const struct pull_look *look;
    const char *folder; /* of the snapshot, with a slash at its end, in the first n bytes */
    size_t n;
};

/* Returns the index of a file of the snapshot, or UINT32_MAX. */
static uint32_t find_in(const struct repository *r, const char *name)
{
    char path[CACHE_MAX_FILE + 1];

    return snprintf(path, sizeof path, "%.*s%s", (int)r->n, r->folder, name) < (int)sizeof path
               ? find_file(r->list, path)
               : UINT32_MAX;
}

static bool has_file(void *ctx, const char *name)
{
    return find_in(ctx, name) != UINT32_MAX;
}

static int read_index(void *ctx, struct shard_list *s, struct err *e)
{
    const struct repository *r = ctx;

    return r->look->read_index(r->look->ctx, find_in(r, SNAPSHOT_INDEX), s, e);
}

/* Returns the first file that a snapshot with these weights lacks, or NULL. */
static const char *missing_of(struct repository *r, const struct shard_list *weights)
{
    if (!has_file(r, SNAPSHOT_CONFIG))
        return SNAPSHOT_CONFIG;
    for (uint32_t i = 0; i < weights->n; i++)
        if (!has_file(r, weights->names[i]))
            return weights->names[i];
    return NULL;
}

static int add_complete(struct pull_variants *c, struct repository *r,
                        const struct shard_list *weights, struct err *e)
{
    uint32_t n_extra = sizeof snapshot_files / sizeof snapshot_files[0];
    struct pull_variant *new = add_variant(c, weights->n + n_extra + 1, e);

    if (new == NULL)
        return -1;
    new->is_snapshot = true;
    new->has_tokenizer = has_file(r, SNAPSHOT_TOKENIZER);
    if (r->n > 0 && (new->folder = strndup(r->folder, r->n - 1)) == NULL)
        return err_memory(e, "a list of %u models", c->n);
    snprintf(new->label, sizeof new->label, "safetensors");
    for (uint32_t i = 0; i < n_extra; i++)
        if (has_file(r, snapshot_files[i]))
            add_file(new, r->list, find_in(r, snapshot_files[i]));
    if (!has_file(r, SNAPSHOT_SINGLE))
        add_file(new, r->list, find_in(r, SNAPSHOT_INDEX));
    new->first_weights = new->n_file;
    for (uint32_t i = 0; i < weights->n; i++)
        add_file(new, r->list, find_in(r, weights->names[i]));
    return 0;
}

static int add_snapshot(struct pull_variants *c, struct repository *r, struct err *e)
{
    const struct snapshot_place place = { has_file, read_index, r };
    struct shard_list weights = { .n = 0 };
    struct err why = ERR_INIT;
    const char *missing;
    char text[400];
    int rc = 0;

    if (snapshot_weights(&weights, &place, &why) != 0) {
        err_text(&why, text, sizeof text);
        rc = why.code == ERR_FORMAT
                 ? add_broken(c, e, "the snapshot has a bad \"" SNAPSHOT_INDEX "\": %s", text)
                 : -1;
        if (why.code != ERR_FORMAT)
            *e = why;
    } else if (weights.n > 0) {
        missing = missing_of(r, &weights);
        if (missing == NULL)
            rc = add_complete(c, r, &weights, e);
        else
            rc = add_broken(c, e, "the snapshot lacks \"%.*s%s\"", (int)r->n, r->folder,
                            cache_is_name(missing) ? missing : "a file with an unsafe name");
    }
    shard_list_free(&weights);
    return rc;
}

/* Add the snapshots in folders, which have a configuration each.  A model of images consists of
 * several folders, none of which works alone. */
static int add_folders(struct pull_variants *c, const struct pull_list *l,
                       const struct pull_look *look, struct err *e)
{
    static const char config[] = "/" SNAPSHOT_CONFIG;
    uint32_t n_read = 0;

    if (find_file(l, "model_index.json") != UINT32_MAX)
        return 0;
    for (uint32_t i = 0; i < l->n && n_read < MAX_FOLDERS; i++) {
        const char *name = l->files[i].name;
        size_t n = strlen(name), tail = sizeof config - 1;
        struct repository r = { l, look, name, n - tail + 1 };

        if (n <= tail || strcmp(name + n - tail, config) != 0)
            continue;
        n_read++;
        if (add_snapshot(c, &r, e) != 0)
            return -1;
    }
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const struct pull_variant *x = a, *y = b;

    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

int pull_variants_make(struct pull_variants *out, const struct pull_list *l,
                       const struct pull_look *look, struct err *e)
{
    struct repository r = { l, look, "", 0 };

    if (add_ggufs(out, l, look, e) != 0)
        return -1;
    add_heads(out, l);
    if (add_snapshot(out, &r, e) != 0)
        return -1;
    if (out->n == 0 && out->n_broken == 0 && add_folders(out, l, look, e) != 0)
        return -1;
    if (out->n > 0)
        qsort(out->all, out->n, sizeof *out->all, by_size);
    return 0;
}

void pull_variants_free(struct pull_variants *c)
{
    for (uint32_t i = 0; i < c->n; i++) {
        free(c->all[i].files);
        free(c->all[i].folder);
    }
    free(c->all);
    for (uint32_t i = 0; i < PULL_BROKEN; i++)
        free(c->broken[i]);
    memset(c, 0, sizeof *c);
}

static bool is_file_of(const struct pull_variant *c, const struct pull_list *l,
                       const char *text)
{
    for (uint32_t i = 0; i < c->n_file; i++) {
        const char *name = l->files[c->files[i]].name;
        size_t n = strlen(name);

        if (strcmp(name, text) == 0)
            return true;
        if (!c->is_snapshot && strlen(text) == n - strlen(".gguf") &&
            strncmp(name, text, strlen(text)) == 0)
            return true;
    }
    return false;
}

/* Count the variants in the folder, and store the first. */
static uint32_t match_folder(const struct pull_variants *c, const struct pull_list *l,
                             const char *text, uint32_t *first)
{
    size_t len = strlen(text);
    uint32_t n = 0;

    for (uint32_t i = c->n; i-- > 0;) {
        const char *name = l->files[c->all[i].files[0]].name;

        if (strncmp(name, text, len) == 0 && name[len] == '/') {
            *first = i;
            n++;
        }
    }
    return n;
}

/* Count the variants whose label is `before` and the text, and store the first. */
static uint32_t match_label(const struct pull_variants *c, const char *text, const char *before,
                            uint32_t *first)
{
    uint32_t n = 0;

    for (uint32_t i = c->n; i-- > 0;)
        if (strncasecmp(c->all[i].label, before, strlen(before)) == 0 &&
            strcasecmp(c->all[i].label + strlen(before), text) == 0) {
            *first = i;
            n++;
        }
    return n;
}

uint32_t pull_variants_match(const struct pull_variants *c, const struct pull_list *l,
                             const char *text, uint32_t *first)
{
    uint32_t n;

    for (uint32_t i = 0; i < c->n; i++)
        if (is_file_of(&c->all[i], l, text)) {
            *first = i;
            return 1;
        }
    n = match_label(c, text, "", first);
    if (n == 0)
        n = match_label(c, text, MIXTURE, first);
    return n > 0 ? n : match_folder(c, l, text, first);
}
