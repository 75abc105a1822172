/*
 * The values that a schema does not match, as alternatives: one for each keyword that they may
 * miss.
 *
 *     required a, b           an object without a; an object without b
 *     properties a: S         an object that has a, with a value that S does not match
 *     const v                 not v
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define PARTS_MOST   256
#define NUMBERS_MOST 16

static int add_parts(struct schema *s, struct made *out, struct parts *p)
{
    struct json_node *n;

    if (schema_of_parts(s, p, &n) != 0)
        return -1;
    if (n != NULL)
        schema_put(out, NULL, n);
    return out->all->n <= PARTS_MOST
               ? 0
               : err_set(s->e, ERR_UNSUPPORTED,
                         "what the schema at %.200s excludes has more than %d alternatives",
                         s->path, PARTS_MOST);
}

static int other_types(struct schema *s, const struct json_node *type, struct made *out)
{
    unsigned bits = schema_types_of(s, type);
    struct parts p = { .of = { NULL } };

    if (bits == 0)
        return -1;
    if ((bits & (T_INTEGER | T_NUMBER)) == T_INTEGER)
        return schema_wrong(s, "type", ERR_UNSUPPORTED,
                            "is not supported with \"integer\" where other values are asked for");
    bits |= (bits & T_NUMBER) != 0 ? T_INTEGER : 0;
    if (bits == T_ALL)
        return 0;
    p.of[P_TYPE] = schema_make_types(s, T_ALL & ~bits);
    return p.of[P_TYPE] != NULL ? add_parts(s, out, &p) : -1;
}

/* The numbers of a list, or of one value, in order, without those that come again.  -1: they are
 * too many, or have too many digits. */
static int sort_numbers(const struct json_node *values, bool is_one,
                        const struct json_node *out[NUMBERS_MOST])
{
    struct number_bound all[NUMBERS_MOST], v;
    int n = 0;

    for (const struct json_node *m = is_one ? values : values->first; m != NULL;
         m = is_one ? NULL : m->next) {
        int i = n;

        if (m->kind != JSON_IS_NUMBER)
            continue;
        if (n == NUMBERS_MOST || schema_decimal(m->text, &v) != 0)
            return -1;
        while (i > 0 && schema_compare(&v, &all[i - 1]) < 0)
            i--;
        if (i > 0 && schema_compare(&v, &all[i - 1]) == 0)
            continue;
        memmove(&all[i + 1], &all[i], (size_t)(n - i) * sizeof all[0]);
        memmove(&out[i + 1], &out[i], (size_t)(n - i) * sizeof out[0]);
        all[i] = v;
        out[i] = m;
        n++;
    }
    return n;
}

/* Numbers below, between and above some. */
static int other_numbers(struct schema *s, const struct json_node *const *number, int n,
                         struct made *out)
{
    for (int i = 0; i <= n; i++) {
        struct parts p = { .of = { NULL } };

        p.of[P_TYPE] = schema_make_types(s, T_NUMBER);
        p.of[P_OVER] = i > 0 ? number[i - 1] : NULL;
        p.of[P_UNDER] = i < n ? number[i] : NULL;
        if (p.of[P_TYPE] == NULL || add_parts(s, out, &p) != 0)
            return -1;
    }
    return 0;
}

static int other_values(struct schema *s, const struct json_node *m, struct made *out)
{
    bool is_one = strcmp(m->key, "const") == 0;
    const struct json_node *number[NUMBERS_MOST];
    struct parts p = { .of = { NULL } };
    struct made not, list;
    int n;

    if (!is_one && m->kind != JSON_IS_ARRAY)
        return schema_wrong(s, "enum", ERR_ARGUMENT, "is not a list of values");
    if (schema_start(s, &not, JSON_IS_OBJECT) != 0 || schema_start(s, &list, JSON_IS_ARRAY) != 0)
        return -1;
    for (const struct json_node *v = is_one ? m : m->first; v != NULL; v = is_one ? NULL : v->next)
        if (v->kind != JSON_IS_NUMBER && schema_add(s, &list, NULL, v) != 0)
            return -1;
    n = sort_numbers(m, is_one, number);
    if (n < 0)
        return schema_wrong(s, m->key, ERR_UNSUPPORTED,
                            "has more than 16 numbers, or one of more than 16 digits, where other "
                            "values are asked for");
    if (list.all->n > 0) {
        if (schema_add(s, &not, "enum", list.all) != 0)
            return -1;
        p.of[P_NOT] = not.all;
    }
    p.of[P_TYPE] = n > 0 ? schema_make_types(s, T_ALL & ~(T_NUMBER | T_INTEGER)) : NULL;
    if ((n > 0 && p.of[P_TYPE] == NULL) || add_parts(s, out, &p) != 0)
        return -1;
    return n > 0 ? other_numbers(s, number, n, out) : 0;
}

/* An object whose member matches a schema; it has the member unless that allows no value. */
static int add_object(struct schema *s, const char *key, struct json_node *value, bool must,
                      struct made *out)
{
    struct parts p = { .of = { NULL } };
    struct made members, required;

    if (value == NULL || schema_start(s, &members, JSON_IS_OBJECT) != 0 ||
        schema_start(s, &required, JSON_IS_ARRAY) != 0 ||
        (must && schema_add_text(s, &required, key) != 0))
        return -1;
    schema_put(&members, key, value);
    p.of[P_TYPE] = schema_make_types(s, T_OBJECT);
    p.of[P_PROPERTIES] = members.all;
    p.of[P_REQUIRED] = must ? required.all : NULL;
    return p.of[P_TYPE] != NULL ? add_parts(s, out, &p) : -1;
}

static int without_names(struct schema *s, const struct json_node *required, struct made *out)
{
    if (schema_names(s, "required", required) != 0)
        return -1;
    for (const struct json_node *r = required->first; r != NULL; r = r->next)
        if (add_object(s, r->text, schema_make_bool(s, false), false, out) != 0)
            return -1;
    return 0;
}

static int with_other_values(struct schema *s, const struct json_node *all, struct made *out)
{
    size_t used = schema_enter(s, "properties", -1);

    if (all->kind != JSON_IS_OBJECT)
        return schema_wrong(s, "properties", ERR_ARGUMENT, "is not an object");
    if (schema_work(s, (uint64_t)all->n * all->n) != 0)
        return -1;
    for (const struct json_node *m = all->first; m != NULL; m = m->next) {
        size_t inner = schema_enter(s, m->key, -1);
        struct made other;

        if (json_member(all, m->key) == m) {
            if (schema_negate(s, m, &other) != 0 ||
                (other.all->n > 0 &&
                 add_object(s, m->key, schema_any(s, &other), true, out) != 0))
                return -1;
        }
        s->path[inner] = '\0';
    }
    s->path[used] = '\0';
    return 0;
}

/* A number on the other side of a bound. */
static int beyond(struct schema *s, const struct json_node *m, int part, struct made *out)
{
    struct parts p = { .of = { NULL } };

    p.of[P_TYPE] = schema_make_types(s, T_NUMBER);
    p.of[part] = m;
    return p.of[P_TYPE] != NULL ? add_parts(s, out, &p) : -1;
}

/* allOf: what one of them does not match; anyOf: what none of them does. */
static int negate_list(struct schema *s, const struct json_node *list, struct made *out)
{
    size_t used = schema_enter(s, list->key, -1);
    struct made all = { .all = NULL };
    int64_t i = 0;

    if (list->kind != JSON_IS_ARRAY || list->n == 0)
        return schema_wrong(s, list->key, ERR_ARGUMENT, "is not a list of schemas");
    for (const struct json_node *m = list->first; m != NULL; m = m->next, i++) {
        size_t inner = schema_enter(s, NULL, i);
        struct made one;

        if (schema_negate(s, m, &one) != 0)
            return -1;
        s->path[inner] = '\0';
        if (i == 0)
            all = one;
        else if (strcmp(list->key, "anyOf") == 0) {
            if (schema_product(s, &all, one.all) != 0)
                return -1;
        } else if (schema_append(s, &all, &one) != 0) {
            return -1;
        }
    }
    s->path[used] = '\0';
    return schema_append(s, out, &all);
}

static int negate_reference(struct schema *s, const struct json_node *n, struct made *out)
{
    const struct json_node *target = schema_target_of(s, n);
    char path[SCHEMA_PATH];
    struct made other;

    if (target == NULL)
        return -1;
    memcpy(path, s->path, sizeof path);
    snprintf(s->path, sizeof s->path, "%s", json_as_string(json_member(n, "$ref")));
    if (schema_negate(s, target, &other) != 0)
        return -1;
    memcpy(s->path, path, sizeof path);
    return schema_append(s, out, &other);
}

/* "not" within what is excluded: what that matches. */
static int keep(struct schema *s, const struct json_node *m, struct made *out)
{
    size_t used = schema_enter(s, m->key, -1);
    struct made all;

    if (schema_flatten(s, m, &all) != 0)
        return -1;
    s->path[used] = '\0';
    return schema_append(s, out, &all);
}

static int negate_keyword(struct schema *s, const struct json_node *n, const struct json_node *m,
                          struct made *out)
{
    static const struct {
        const char *name;
        int beyond;
    } bounds[] = { { "minimum", P_UNDER },
                   { "maximum", P_OVER },
                   { "exclusiveMinimum", P_MAXIMUM },
                   { "exclusiveMaximum", P_MINIMUM } };

    if (schema_is_note(m->key))
        return 0;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (strcmp(m->key, bounds[i].name) == 0)
            return beyond(s, m, bounds[i].beyond, out);
    if (strcmp(m->key, "type") == 0)
        return other_types(s, m, out);
    if (strcmp(m->key, "const") == 0 || strcmp(m->key, "enum") == 0)
        return other_values(s, m, out);
    if (strcmp(m->key, "required") == 0)
        return without_names(s, m, out);
    if (strcmp(m->key, "properties") == 0)
        return with_other_values(s, m, out);
    if (strcmp(m->key, "allOf") == 0 || strcmp(m->key, "anyOf") == 0)
        return negate_list(s, m, out);
    if (strcmp(m->key, "$ref") == 0)
        return negate_reference(s, n, out);
    if (strcmp(m->key, "not") == 0)
        return keep(s, m, out);
    return schema_wrong(s, m->key, ERR_UNSUPPORTED,
                        "is not supported where other values are asked for, in \"if\" and "
                        "\"not\"");
}

int schema_negate(struct schema *s, const struct json_node *n, struct made *out)
{
    struct json_node *free;
    bool any;

    if (schema_start(s, out, JSON_IS_ARRAY) != 0)
        return -1;
    if (json_as_bool(n, &any)) {
        free = any ? NULL : schema_make(s, JSON_IS_OBJECT);
        if (free != NULL)
            schema_put(out, NULL, free);
        return any || free != NULL ? 0 : -1;
    }
    if (n->kind != JSON_IS_OBJECT)
        return err_set(s->e, ERR_ARGUMENT, "the schema at %.200s is not an object", s->path);
    if (schema_check_keywords(s, n) != 0 || schema_work(s, 1 + (uint64_t)n->n * n->n) != 0 ||
        schema_descend(s) != 0)
        return -1;
    for (const struct json_node *m = n->first; m != NULL; m = m->next)
        if (json_member(n, m->key) == m && negate_keyword(s, n, m, out) != 0)
            return -1;
    s->depth--;
    return 0;
}
