/*
 * Translates tensor names of snapshots to canonical ones (those of GGUF) and back.  Both are in
 * the table of tensors.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/format/catalogue_build.h"
#include "engine/format/snapshot.h"
#include "engine/format/tensor_table.h"

/* Beginnings of names, in the order in which they are tried. */
static const char *const prefixes[] = {
    "model.language_model.", "language_model.model.", "language_model.", "model.", "",
};

/* Returns the name of a row in snapshots of architecture a; NULL if they do not have it. */
static const char *name_in(const struct arch *a, enum tensor_id id)
{
    const struct tensor_spec *s = tensor_spec(id);

    if (!arch_has(a, s->traits))
        return NULL;
    return s->plain != NULL && !arch_has(a, TRAIT_POST_NORMS) ? s->plain : s->snapshot;
}

/* Parses "layers.N." and returns the rest of the name, or NULL. */
static const char *skip_layer(const char *name, uint32_t *layer)
{
    const char *p = name + 7;

    *layer = 0;
    if (strncmp(name, "layers.", 7) != 0 || *p < '0' || *p > '9' ||
        (p[0] == '0' && p[1] != '.'))
        return NULL;
    for (; *p >= '0' && *p <= '9' && *layer < MAX_LAYER; p++)
        *layer = *layer * 10 + (uint32_t)(*p - '0');
    return *layer < MAX_LAYER && *p == '.' ? p + 1 : NULL;
}

/* Translates a name without its prefix. */
static bool translate(const struct arch *a, const char *name, char *buf, size_t n)
{
    uint32_t layer;
    const char *suffix = skip_layer(name, &layer);

    for (int i = suffix != NULL ? T_LAYER : 0; i < (suffix != NULL ? T_COUNT : T_OUTPUT); i++) {
        const char *known = name_in(a, (enum tensor_id)i);

        if (known == NULL || strcmp(known, suffix != NULL ? suffix : name) != 0)
            continue;
        tensor_name((enum tensor_id)i, layer, buf, n);
        return true;
    }
    return false;
}

bool snapshot_to_canonical(const struct arch *a, const char *name, char *buf, size_t n,
                           char *prefix)
{
    const char *head = tensor_spec(T_OUTPUT)->snapshot;

    if (strcmp(name, head) == 0 ||
        (strncmp(name, "language_model.", 15) == 0 && strcmp(name + 15, head) == 0)) {
        tensor_name(T_OUTPUT, 0, buf, n);
        return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t len = strlen(prefixes[i]);

        if (strncmp(name, prefixes[i], len) == 0 && translate(a, name + len, buf, n)) {
            snprintf(prefix, 40, "%s", prefixes[i]);
            return true;
        }
    }
    return false;
}

void snapshot_from_canonical(const struct arch *a, const char *prefix, const char *canonical,
                             char *buf, size_t n)
{
    uint32_t layer;
    enum tensor_id id = tensor_id_of(a, canonical, 0, &layer);
    const char *name = id != T_COUNT ? name_in(a, id) : NULL;

    if (name == NULL)
        snprintf(buf, n, "%s", canonical);
    else if (id == T_OUTPUT)
        snprintf(buf, n, "%s", name);
    else if (id < T_LAYER)
        snprintf(buf, n, "%s%s", prefix, name);
    else
        snprintf(buf, n, "%slayers.%u.%s", prefix, layer, name);
}

void catalogue_spell(const struct catalogue *c, const char *canonical, char *buf, size_t n)
{
    if (c->kind == CATALOGUE_SNAPSHOT)
        snapshot_from_canonical(c->hparams.arch, c->index->prefix, canonical, buf, n);
    else
        snprintf(buf, n, "%s", canonical);
}
