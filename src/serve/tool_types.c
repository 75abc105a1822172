/* See tool_types.h. */
#include "config.h"

#include "src/serve/tool_types.h"

#include <string.h>

#include "src/serve/request_field.h"

#define SCHEMAS_MOST 256 /* that are looked at: references may multiply them */
#define DEPTH        16

struct types {
    const struct json_node *root;
    unsigned n_schema;
};

static unsigned types_at(struct types *t, const struct json_node *schema, unsigned depth);

static unsigned type_of_word(const struct json_node *word)
{
    return value_is(word, "string")    ? TOOL_MAY_BE_TEXT
           : value_is(word, "null")    ? TOOL_MAY_BE_NULL
           : value_is(word, "boolean") ? TOOL_MAY_BE_TRUTH
                                       : TOOL_MAY_BE_MORE;
}

static unsigned type_of_value(const struct json_node *v)
{
    switch (v->kind) {
    case JSON_IS_STRING: return TOOL_MAY_BE_TEXT;
    case JSON_IS_NULL: return TOOL_MAY_BE_NULL;
    case JSON_IS_BOOL: return TOOL_MAY_BE_TRUTH;
    case JSON_IS_NUMBER:
    case JSON_IS_OBJECT:
    case JSON_IS_ARRAY: break;
    }
    return TOOL_MAY_BE_MORE;
}

/* The schema that "#/$defs/name" names; NULL: there is none. */
static const struct json_node *target_of(const struct types *t, const char *path)
{
    const struct json_node *n = t->root;

    if (path == NULL || path[0] != '#')
        return NULL;
    for (path++; n != NULL && *path == '/';) {
        size_t len = strcspn(++path, "/");
        const struct json_node *m = n->kind == JSON_IS_OBJECT ? n->first : NULL;

        while (m != NULL && (strlen(m->key) != len || memcmp(m->key, path, len) != 0))
            m = m->next;
        n = m;
        path += len;
    }
    return *path == '\0' ? n : NULL;
}

static unsigned types_of_list(struct types *t, const struct json_node *list, bool is_all,
                              unsigned depth)
{
    unsigned types = is_all ? TOOL_MAY_BE_ANY : 0;

    for (const struct json_node *n = list->first; n != NULL; n = n->next)
        types = is_all ? types & types_at(t, n, depth) : types | types_at(t, n, depth);
    return types;
}

/* The types that one keyword of a schema leaves. */
static unsigned types_of_member(struct types *t, const struct json_node *m, unsigned depth)
{
    bool is_list = m->kind == JSON_IS_ARRAY && m->n > 0;
    unsigned types = 0;

    if (strcmp(m->key, "type") == 0 && is_list) {
        for (const struct json_node *n = m->first; n != NULL; n = n->next)
            types |= type_of_word(n);
        return types;
    }
    if (strcmp(m->key, "type") == 0 && m->kind == JSON_IS_STRING)
        return type_of_word(m);
    if (strcmp(m->key, "const") == 0)
        return type_of_value(m);
    if (strcmp(m->key, "enum") == 0 && is_list) {
        for (const struct json_node *n = m->first; n != NULL; n = n->next)
            types |= type_of_value(n);
        return types;
    }
    if (strcmp(m->key, "$ref") == 0)
        return types_at(t, target_of(t, json_as_string(m)), depth);
    if (is_list && (strcmp(m->key, "anyOf") == 0 || strcmp(m->key, "oneOf") == 0))
        return types_of_list(t, m, false, depth);
    if (is_list && strcmp(m->key, "allOf") == 0)
        return types_of_list(t, m, true, depth);
    return TOOL_MAY_BE_ANY;
}

static unsigned types_at(struct types *t, const struct json_node *schema, unsigned depth)
{
    unsigned types = TOOL_MAY_BE_ANY;

    if (schema == NULL || schema->kind != JSON_IS_OBJECT || depth == DEPTH ||
        t->n_schema == SCHEMAS_MOST)
        return types;
    t->n_schema++;
    for (const struct json_node *m = schema->first; m != NULL; m = m->next)
        types &= types_of_member(t, m, depth + 1);
    return types;
}

unsigned tool_types_of(const struct json_node *schema, const struct json_node *parameters)
{
    struct types t = { .root = parameters };

    return types_at(&t, schema, 0);
}

unsigned tool_parameter_types(const struct json_node *parameters, const char *name, size_t n)
{
    const struct json_node *all = json_get(parameters, "properties");

    for (const struct json_node *p = all != NULL ? all->first : NULL; p != NULL; p = p->next)
        if (p->key != NULL && strlen(p->key) == n && memcmp(p->key, name, n) == 0)
            return tool_types_of(p, parameters);
    return tool_types_of(json_get(parameters, "additionalProperties"), parameters);
}
