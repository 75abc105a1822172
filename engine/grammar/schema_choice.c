/*
 * Alternatives of a schema: anyOf, and oneOf, whose alternatives must exclude each other.
 */
#include "config.h"

#include <string.h>

#include "engine/grammar/schema_internal.h"

#define ALTERNATIVES_MOST 256

/* Values of a member that an object must have, to tell alternatives apart. */
static const struct json_node *only_value(const struct json_node *n, const char *key)
{
    const struct json_node *required = json_member(n, "required"),
                           *p = json_member(json_member(n, "properties"), key), *values;

    for (const struct json_node *r = required != NULL ? required->first : NULL; r != NULL;
         r = r->next)
        if (r->kind == JSON_IS_STRING && strcmp(r->text, key) == 0 && json_as_string(r) != NULL) {
            values = json_member(p, "const");
            if (values == NULL && json_member(p, "enum") != NULL &&
                json_member(p, "enum")->n == 1)
                values = json_member(p, "enum")->first;
            return values != NULL && values->kind == JSON_IS_STRING ? values : NULL;
        }
    return NULL;
}

/* The cost of a comparison of two alternatives: the members that are_apart() looks at, and for
 * each property of the first one those that only_value() looks at. */
struct cost {
    uint64_t n_property, n_name;
};

static struct cost cost_of(const struct json_node *n)
{
    const struct json_node *required = json_member(n, "required"),
                           *all = json_member(n, "properties");
    uint64_t n_property = all != NULL ? all->n : 0;

    return (struct cost){ n_property,
                          n->n + (required != NULL ? required->n : 0) + n_property + 1 };
}

/* Can no value match both schemas?  Types or a member with one value show it. */
static bool are_apart(struct schema *s, const struct json_node *a, const struct json_node *b)
{
    const struct json_node *all = json_member(a, "properties");
    unsigned x, y;

    if (json_member(a, "type") == NULL || json_member(b, "type") == NULL)
        return false;
    x = schema_types(s, a);
    y = schema_types(s, b);
    x |= (x & T_NUMBER) != 0 ? T_INTEGER : 0;
    y |= (y & T_NUMBER) != 0 ? T_INTEGER : 0;
    if ((x & y) == 0)
        return true;
    if (x != T_OBJECT || y != T_OBJECT)
        return false;
    for (const struct json_node *m = all != NULL ? all->first : NULL; m != NULL; m = m->next) {
        const struct json_node *v = only_value(a, m->key), *w = only_value(b, m->key);

        if (v != NULL && w != NULL && (v->len != w->len || memcmp(v->text, w->text, v->len) != 0))
            return true;
    }
    return false;
}

/* With oneOf exactly one alternative must match, so they must exclude each other.  The list has no
 * more than ALTERNATIVES_MOST. */
int schema_check_apart(struct schema *s, const struct json_node *list)
{
    const struct json_node *one[ALTERNATIVES_MOST];
    struct cost cost[ALTERNATIVES_MOST];
    size_t n = 0;

    for (const struct json_node *a = list->first; a != NULL; a = a->next, n++) {
        one[n] = schema_without_ref(s, a);
        cost[n] = cost_of(one[n]);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = i + 1; k < n; k++) {
            if (schema_work(s, (cost[i].n_property + 1) * (cost[i].n_name + cost[k].n_name)) != 0)
                return -1;
            if (!are_apart(s, one[i], one[k]))
                return schema_wrong(s, "oneOf", ERR_UNSUPPORTED,
                                    "has alternatives that one value may match both; use "
                                    "\"anyOf\", other types, or a required member with a "
                                    "\"const\"");
        }
    return 0;
}

int schema_choose(struct schema *s, const struct json_node *n, const char *key, uint32_t *rule)
{
    const struct json_node *list = json_member(n, key);
    uint32_t of[ALTERNATIVES_MOST], i = 0;

    if (list->kind != JSON_IS_ARRAY || list->n == 0)
        return schema_wrong(s, key, ERR_ARGUMENT, "is not a list of schemas");
    if (list->n > ALTERNATIVES_MOST)
        return schema_wrong(s, key, ERR_UNSUPPORTED, "has more than 256 schemas");
    if (strcmp(key, "oneOf") == 0 && schema_check_apart(s, list) != 0)
        return -1;
    for (const struct json_node *one = list->first; one != NULL; one = one->next, i++)
        if (schema_member(s, one, key, i, &of[i]) != 0)
            return -1;
    *rule = schema_begin(s);
    for (uint32_t k = 0; k < i; k++) {
        json_raw(s->out, " | ", k > 0 ? 3 : 0);
        schema_name(s, of[k]);
    }
    json_raw(s->out, "\n", 1);
    return 0;
}
