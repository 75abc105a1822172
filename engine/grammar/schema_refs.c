/*
 * References of a schema, and schemas whose parts name others.
 *
 * A reference names a rule that is written later, once, so references may form circles, and chains
 * of them do not nest.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define TARGETS_MOST 512

/* Read "%41" and "~1" of a part of a reference.  false: it is too long. */
static bool read_part(const char *at, size_t n, char *out, size_t room)
{
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned code;
        char c = at[i];

        if (used + 1 == room)
            return false;
        if (c == '%' && i + 2 < n && isxdigit((unsigned char)at[i + 1]) &&
            isxdigit((unsigned char)at[i + 2]) && sscanf(at + i + 1, "%2x", &code) == 1 &&
            code != 0) {
            c = (char)code;
            i += 2;
        }
        if (c == '~' && i + 1 < n && (at[i + 1] == '0' || at[i + 1] == '1'))
            c = at[++i] == '0' ? '~' : '/';
        out[used++] = c;
    }
    out[used] = '\0';
    return true;
}

static const struct json_node *item_of(const struct json_node *list, const char *index)
{
    const struct json_node *n = list->first;
    char *end;
    unsigned long i = strtoul(index, &end, 10);

    if (end == index || *end != '\0' || i >= list->n)
        return NULL;
    while (i-- > 0)
        n = n->next;
    return n;
}

/* The schema that a reference within the schema names; NULL: there is none. */
static const struct json_node *find(struct schema *s, const char *ref)
{
    const struct json_node *n = s->root;
    char part[256];

    for (const char *at = ref + 1; n != NULL && *at != '\0';) {
        size_t len = strcspn(at + 1, "/");

        s->work += n->n;
        if (*at != '/' || !read_part(at + 1, len, part, sizeof part))
            return NULL;
        n = n->kind == JSON_IS_ARRAY ? item_of(n, part) : json_member(n, part);
        at += 1 + len;
    }
    return n;
}

int schema_add_target(struct schema *s, const struct json_node *n, uint32_t rule,
                      const char *path)
{
    struct schema_target *more = realloc(s->target, (s->n_target + 1) * sizeof *more);

    if (more == NULL)
        return err_memory(s->e, "a schema");
    s->target = more;
    more += s->n_target++;
    *more = (struct schema_target){ .node = n, .rule = rule };
    snprintf(more->path, sizeof more->path, "%s", path);
    return 0;
}

const struct json_node *schema_target_of(struct schema *s, const struct json_node *n)
{
    const char *ref = json_as_string(json_member(n, "$ref"));
    const struct json_node *target = NULL;

    if (ref == NULL || ref[0] != '#')
        schema_wrong(s, "$ref", ERR_UNSUPPORTED,
                     "is supported inside the schema only: \"#/$defs/NAME\"");
    else if ((target = find(s, ref)) == NULL)
        schema_wrong(s, "$ref", ERR_ARGUMENT, "names nothing in the schema");
    return target;
}

const struct json_node *schema_without_ref(struct schema *s, const struct json_node *n)
{
    const char *ref = json_as_string(json_member(n, "$ref"));
    const struct json_node *target = ref != NULL && ref[0] == '#' ? find(s, ref) : NULL;

    return target != NULL ? target : n;
}

int schema_refer(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    const struct json_node *target = schema_target_of(s, n);

    if (target == NULL || schema_work(s, s->n_target) != 0)
        return -1;
    for (size_t i = 0; i < s->n_target; i++)
        if (s->target[i].node == target) {
            *rule = s->target[i].rule;
            return 0;
        }
    if (s->n_target == TARGETS_MOST)
        return schema_wrong(s, "$ref", ERR_UNSUPPORTED, "names too many different schemas");
    *rule = s->n_rule++;
    return schema_add_target(s, target, *rule, json_as_string(json_member(n, "$ref")));
}

static int by_address(const void *a, const void *b)
{
    const struct json_node *const *x = a, *const *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Copies of a schema share the first one of its keywords. */
static const struct json_node *address_of(const struct json_node *n)
{
    return n->first != NULL ? n->first : n;
}

/* Find the key of a schema with parts: the schemas of an allOf, without references and in order, or
 * its own address. */
static int find_key(struct schema *s, const struct json_node *n,
                    const struct json_node ***key, size_t *n_key)
{
    const struct json_node *list = n->n == 1 ? json_member(n, "allOf") : NULL;
    bool is_list = list != NULL && list->kind == JSON_IS_ARRAY && list->n > 0;
    size_t n_all = 0;

    *n_key = 0;
    *key = schema_take(s, (is_list ? list->n : 1) * sizeof **key);
    if (*key == NULL)
        return -1;
    if (!is_list)
        (*key)[n_all++] = address_of(n);
    for (const struct json_node *m = is_list ? list->first : NULL; m != NULL; m = m->next) {
        const struct json_node *end = schema_end_of(s, m);

        if (end == NULL)
            return -1;
        (*key)[n_all++] = address_of(end);
    }
    qsort(*key, n_all, sizeof **key, by_address);
    for (size_t i = 0; i < n_all; i++)
        if (*n_key == 0 || (*key)[*n_key - 1] != (*key)[i])
            (*key)[(*n_key)++] = (*key)[i];
    return 0;
}

/* A schema whose parts name others has a rule that is written later, once, like a reference. */
int schema_refer_merged(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    const struct json_node **key;
    size_t n_key;

    if (find_key(s, n, &key, &n_key) != 0 || schema_work(s, s->n_target * n_key) != 0)
        return -1;
    for (size_t i = 0; i < s->n_target; i++)
        if (s->target[i].n_key == n_key &&
            memcmp(s->target[i].key, key, n_key * sizeof *key) == 0) {
            *rule = s->target[i].rule;
            return 0;
        }
    if (s->n_target == TARGETS_MOST)
        return schema_wrong(s, "$ref", ERR_UNSUPPORTED,
                            "is in too many different schemas that must be merged");
    *rule = s->n_rule++;
    if (schema_add_target(s, n, *rule, s->path) != 0)
        return -1;
    s->target[s->n_target - 1].key = key;
    s->target[s->n_target - 1].n_key = n_key;
    return 0;
}
