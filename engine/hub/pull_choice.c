#include "config.h"

#include "engine/hub/pull_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/format/split_name.h"

#define INDEX_FILE "model.safetensors.index.json"
#define MIXTURE    "UD-" /* begins the label of a mixture of types, and may be left out */

/* Files of a snapshot besides the weights; only the first is needed. */
static const char *const snapshot_files[] = { "config.json",
                                              "generation_config.json",
                                              "tokenizer.json",
                                              "tokenizer_config.json",
                                              "special_tokens_map.json",
                                              "added_tokens.json",
                                              "vocab.json",
                                              "merges.txt",
                                              "tokenizer.model",
                                              "chat_template.jinja",
                                              "chat_template.json",
                                              INDEX_FILE };

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

static struct pull_choice *add_choice(struct pull_choices *c, uint32_t n_file, struct err *e)
{
    struct pull_choice *larger = realloc(c->all, (c->n + 1) * sizeof *larger);
    struct pull_choice *new;

    if (larger != NULL) {
        c->all = larger;
        new = &c->all[c->n];
        memset(new, 0, sizeof *new);
        new->files = calloc(n_file, sizeof *new->files);
        if (new->files != NULL) {
            c->n++;
            return new;
        }
    }
    err_memory(e, "a list of %u models", c->n + 1);
    return NULL;
}

static void add_file(struct pull_choice *c, const struct pull_list *l, uint32_t file)
{
    c->files[c->n_file++] = file;
    c->bytes += l->files[file].size;
}

/* ---- GGUF ---- */

static int add_gguf(struct pull_choices *c, const struct pull_list *l, uint32_t file,
                    struct err *e)
{
    const char *name = l->files[file].name;
    struct split_name split;
    bool is_split = split_name_parse(name, &split);
    uint32_t n_part = is_split ? split.count : 1;
    char part[CACHE_MAX_FILE + 1];
    struct pull_choice *new;

    if (n_part == 0 || n_part > l->n) {
        c->n_broken++;
        return 0;
    }
    new = add_choice(c, n_part, e);
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
            c->n_broken++;
            return 0;
        }
        add_file(new, l, other);
    }
    return 0;
}

/* ---- snapshots ---- */

static bool is_weights(const char *name, bool has_index)
{
    unsigned number, count;
    int end = 0;

    if (!has_index)
        return strcmp(name, "model.safetensors") == 0;
    return sscanf(name, "model-%5u-of-%5u.safetensors%n", &number, &count, &end) == 2 &&
           end > 0 && name[end] == '\0';
}

static int add_snapshot(struct pull_choices *c, const struct pull_list *l, struct err *e)
{
    bool has_index = find_file(l, INDEX_FILE) != UINT32_MAX;
    uint32_t n_extra = sizeof snapshot_files / sizeof snapshot_files[0], n_weights = 0;
    struct pull_choice *new;

    for (uint32_t i = 0; i < l->n; i++)
        n_weights += is_weights(l->files[i].name, has_index);
    if (n_weights == 0 || find_file(l, snapshot_files[0]) == UINT32_MAX)
        return 0;
    new = add_choice(c, n_weights + n_extra, e);
    if (new == NULL)
        return -1;
    new->is_snapshot = true;
    snprintf(new->label, sizeof new->label, "safetensors");
    for (uint32_t i = 0; i < n_extra; i++) {
        uint32_t file = find_file(l, snapshot_files[i]);

        if (file != UINT32_MAX)
            add_file(new, l, file);
    }
    for (uint32_t i = 0; i < l->n; i++)
        if (is_weights(l->files[i].name, has_index))
            add_file(new, l, i);
    return 0;
}

static int by_size(const void *a, const void *b)
{
    const struct pull_choice *x = a, *y = b;

    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

int pull_choices_make(struct pull_choices *out, const struct pull_list *l, struct err *e)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const char *slash = strrchr(l->files[i].name, '/');

        if (find_is_model_file(slash != NULL ? slash + 1 : l->files[i].name) &&
            add_gguf(out, l, i, e) != 0)
            return -1;
    }
    if (add_snapshot(out, l, e) != 0)
        return -1;
    if (out->n > 0)
        qsort(out->all, out->n, sizeof *out->all, by_size);
    return 0;
}

void pull_choices_free(struct pull_choices *c)
{
    for (uint32_t i = 0; i < c->n; i++)
        free(c->all[i].files);
    free(c->all);
    memset(c, 0, sizeof *c);
}

static bool is_file_of(const struct pull_choice *c, const struct pull_list *l, const char *text)
{
    for (uint32_t i = 0; i < c->n_file && !c->is_snapshot; i++) {
        const char *name = l->files[c->files[i]].name;
        size_t n = strlen(name) - strlen(".gguf");

        if (strcmp(name, text) == 0 || (strncmp(name, text, n) == 0 && text[n] == '\0'))
            return true;
    }
    return false;
}

/* Count the choices whose label is `before` and the text, and store the first. */
static uint32_t match_label(const struct pull_choices *c, const char *text, const char *before,
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

uint32_t pull_choices_match(const struct pull_choices *c, const struct pull_list *l,
                            const char *text, uint32_t *first)
{
    uint32_t n;

    for (uint32_t i = 0; i < c->n; i++)
        if (is_file_of(&c->all[i], l, text)) {
            *first = i;
            return 1;
        }
    n = match_label(c, text, "", first);
    return n > 0 ? n : match_label(c, text, MIXTURE, first);
}
