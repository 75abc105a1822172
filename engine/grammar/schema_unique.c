/*
 * Lists of different values.  Only values that the schema lists can be told apart by a grammar: a
 * rule for each set of those that came says which may follow.
 *
 *     a, b        "[" u0 "]"      u0 ::= "" | a u1 | b u2
 *                                 u1 ::= "" | "," b u3     u2 ::= "" | "," a u3     u3 ::= ""
 */
#include "config.h"

#include <string.h>

#include "engine/grammar/schema_internal.h"

#define VALUES_MOST 8
#define VALUE_BYTES 256 /* of each: it is in many rules */

/* The different values of a list that have one of the types.  -1: they are too many, or not plain
 * values. */
static int take_values(const struct json_node *list, unsigned types,
                       const struct json_node *out[VALUES_MOST])
{
    int n = 0;

    for (const struct json_node *v = list->first; v != NULL; v = v->next) {
        int i = 0;

        if (v->kind == JSON_IS_OBJECT || v->kind == JSON_IS_ARRAY ||
            v->len > VALUE_BYTES)
            return -1;
        while (i < n && !schema_same(out[i], v))
            i++;
        if (i < n || !schema_has_type(v, types))
            continue;
        if (n == VALUES_MOST)
            return -1;
        out[n++] = v;
    }
    return n;
}

/* The values that may come after those of a set. */
static void write_set(struct schema *s, uint32_t rule, const struct json_node *const *value,
                      unsigned n, unsigned set, uint32_t min, uint32_t max)
{
    unsigned n_set = (unsigned)__builtin_popcount(set);
    const char *bar = "";

    schema_name(s, rule);
    json_print(s->out, "-u%u ::= ", set);
    if (n_set >= min) {
        schema_raw(s, "\"\"");
        bar = " | ";
    }
    for (unsigned i = 0; i < n && n_set < max; i++) {
        if ((set >> i & 1) != 0)
            continue;
        schema_raw(s, bar);
        schema_raw(s, set != 0 ? "\",\" @-space " : "");
        schema_constant(s, value[i]);
        schema_raw(s, " ");
        schema_name(s, rule);
        json_print(s->out, "-u%u", set | 1u << i);
        bar = " | ";
    }
    schema_raw(s, "\n");
}

int schema_unique(struct schema *s, const struct json_node *items, uint32_t min, uint32_t max,
                  uint32_t *rule)
{
    const struct json_node *list = json_member(items, "enum"), *value[VALUES_MOST];
    unsigned n_member = 0, types;
    int n = -1;

    for (const struct json_node *m = items != NULL ? items->first : NULL; m != NULL; m = m->next)
        n_member += strcmp(m->key, "title") != 0 && strcmp(m->key, "description") != 0 &&
                    strcmp(m->key, "type") != 0;
    if (list != NULL && list->kind == JSON_IS_ARRAY && n_member == 1) {
        types = schema_types(s, items);
        /* Each value is compared with those that were taken, as a number of so many digits. */
        if (types == 0 || schema_work(s, (uint64_t)list->n * VALUES_MOST * VALUE_BYTES) != 0)
            return -1;
        n = take_values(list, types, value);
    }
    if (n < 0)
        return schema_wrong(s, "uniqueItems", ERR_UNSUPPORTED,
                            "is supported for items that are an \"enum\" of up to 8 short texts, "
                            "numbers and the like only");
    if (min > (unsigned)n)
        return schema_wrong(s, "minItems", ERR_ARGUMENT, "asks for more items than there are");
    *rule = schema_begin(s);
    schema_raw(s, "\"[\" @-space ");
    schema_name(s, *rule);
    schema_raw(s, "-u0 @-space \"]\"\n");
    for (unsigned set = 0; set < 1u << n; set++) {
        if (schema_fits(s) != 0)
            return -1;
        if ((unsigned)__builtin_popcount(set) <= max)
            write_set(s, *rule, value, (unsigned)n, set, min, max);
    }
    return 0;
}
