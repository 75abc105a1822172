/*
 * One schema that matches what several match, keyword by keyword.
 *
 * A member that only one of two schemas describes must match what the other one asks of additional
 * members, and so with items.  The result is exact, or an error that names the keyword.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/grammar/schema_internal.h"

#define FIRST_MOST 64

static const char *const names[N_PART] = {
    [P_TYPE] = "type",
    [P_ENUM] = "enum",
    [P_NOT] = "not",
    [P_REQUIRED] = "required",
    [P_PROPERTIES] = "properties",
    [P_MORE] = "additionalProperties",
    [P_ITEMS] = "items",
    [P_FIRST] = "prefixItems",
    [P_MIN_ITEMS] = "minItems",
    [P_MAX_ITEMS] = "maxItems",
    [P_UNIQUE] = "uniqueItems",
    [P_MIN_LENGTH] = "minLength",
    [P_MAX_LENGTH] = "maxLength",
    [P_FORMAT] = "format",
    [P_PATTERN] = "pattern",
    [P_MINIMUM] = "minimum",
    [P_MAXIMUM] = "maximum",
    [P_OVER] = "exclusiveMinimum",
    [P_UNDER] = "exclusiveMaximum",
    [P_MULTIPLE] = "multipleOf",
};

static bool is_false(const struct json_node *n)
{
    bool any;

    return json_as_bool(n, &any) && !any;
}

static uint32_t n_of(const struct json_node *n)
{
    return n != NULL ? n->n : 0;
}

/* ---- values ---- */

/* Are two numbers the same for sure? */
static bool same_number(const struct json_node *a, const struct json_node *b)
{
    struct number_bound v, w;

    return strcmp(a->text, b->text) == 0 ||
           (schema_decimal(a->text, &v) == 0 && schema_decimal(b->text, &w) == 0 &&
            schema_compare(&v, &w) == 0);
}

/* Are two values the same?  1, 0, or -1 with an error. */
static int same(struct schema *s, const struct json_node *a, const struct json_node *b)
{
    const struct json_node *v, *w;
    int rc = 1;

    if (a->kind != b->kind)
        return 0;
    if (schema_work(s, 1 + a->len + b->len + ((uint64_t)a->n + b->n) * ((uint64_t)a->n + b->n)) !=
        0)
        return -1;
    switch (a->kind) {
    case JSON_IS_NULL:
    case JSON_IS_BOOL:
    case JSON_IS_STRING: return schema_same(a, b);
    case JSON_IS_NUMBER: return same_number(a, b);
    case JSON_IS_ARRAY:
        for (v = a->first, w = b->first; rc == 1 && v != NULL && w != NULL;
             v = v->next, w = w->next)
            rc = same(s, v, w);
        return a->n == b->n ? rc : 0;
    case JSON_IS_OBJECT:
        for (v = a->first; rc == 1 && v != NULL; v = v->next)
            rc = json_member(b, v->key) != NULL
                     ? same(s, json_member(a, v->key), json_member(b, v->key))
                     : 0;
        for (v = b->first; rc == 1 && v != NULL; v = v->next)
            rc = json_member(a, v->key) != NULL;
        return rc;
    }
    return 0;
}

/* Is a value in a list?  1, 0, or -1 with an error. */
static int has(struct schema *s, const struct json_node *list, const struct json_node *value)
{
    int rc = 0;

    for (const struct json_node *v = list->first; rc == 0 && v != NULL; v = v->next)
        rc = same(s, v, value);
    return rc;
}

/* Set *out to the values of a that are in b, or that are not. */
static int choose(struct schema *s, const struct json_node *a, const struct json_node *b, int in,
                  const struct json_node **out)
{
    struct made list;

    if (schema_start(s, &list, JSON_IS_ARRAY) != 0)
        return -1;
    for (const struct json_node *v = a->first; v != NULL; v = v->next) {
        int is_in = has(s, b, v);

        if (is_in < 0 || (is_in == in && schema_add(s, &list, NULL, v) != 0))
            return -1;
    }
    *out = list.all;
    return 0;
}

/* The values, or names, of both lists. */
static int unite(struct schema *s, const struct json_node *a, const struct json_node *b,
                 const struct json_node **out)
{
    struct made list;

    if (schema_start(s, &list, JSON_IS_ARRAY) != 0)
        return -1;
    for (const struct json_node *v = a->first; v != NULL; v = v->next)
        if (schema_add(s, &list, NULL, v) != 0)
            return -1;
    for (const struct json_node *v = b->first; v != NULL; v = v->next) {
        int is_in = has(s, a, v);

        if (is_in < 0 || (is_in == 0 && schema_add(s, &list, NULL, v) != 0))
            return -1;
    }
    *out = list.all;
    return 0;
}

/* ---- the keywords of one schema ---- */

/* Add a copy of a schema that is at this path. */
static int add_inner(struct schema *s, struct made *to, const struct json_node *n)
{
    struct json_node *copy = schema_copy(s, n);

    if (copy == NULL)
        return -1;
    if ((n->kind == JSON_IS_OBJECT || n->kind == JSON_IS_BOOL) && n->text == NULL) {
        copy->text = schema_text(s, s->path);
        if (copy->text == NULL)
            return -1;
    }
    schema_put(to, n->key, copy);
    return 0;
}

static int add_inners(struct schema *s, struct made *to, const struct json_node *all)
{
    int64_t i = 0;

    for (const struct json_node *m = all->first; m != NULL; m = m->next, i++) {
        size_t used = strlen(s->path);

        if (m->key != NULL && json_member(all, m->key) != m)
            continue;
        schema_enter(s, m->key, i);
        if (add_inner(s, to, m) != 0)
            return -1;
        s->path[used] = '\0';
    }
    return 0;
}

static int take_inner(struct schema *s, const struct json_node *m, int part,
                      const struct json_node **out)
{
    bool is_one = part == P_MORE || part == P_ITEMS;
    struct made list;
    size_t used;

    if (part == P_PROPERTIES && m->kind != JSON_IS_OBJECT)
        return schema_wrong(s, names[part], ERR_ARGUMENT, "is not an object");
    if (part == P_FIRST && m->kind != JSON_IS_ARRAY)
        return schema_wrong(s, names[part], ERR_ARGUMENT, "is not a list of schemas");
    if (part == P_FIRST && m->n > FIRST_MOST)
        return schema_wrong(s, names[part], ERR_UNSUPPORTED, "has more than 64 items");
    if (schema_work(s, part == P_PROPERTIES ? (uint64_t)m->n * m->n : 1) != 0 ||
        schema_start(s, &list, m->kind) != 0)
        return -1;
    used = schema_enter(s, names[part], -1);
    if ((is_one ? add_inner(s, &list, m) : add_inners(s, &list, m)) != 0)
        return -1;
    s->path[used] = '\0';
    *out = is_one ? list.last : list.all;
    return 0;
}

/* "const" is an enum of one value. */
static int take_values(struct schema *s, const struct json_node *n, struct parts *out)
{
    const struct json_node *one = json_member(n, "const");
    struct made list;

    if (out->of[P_ENUM] != NULL && out->of[P_ENUM]->kind != JSON_IS_ARRAY)
        return schema_wrong(s, "enum", ERR_ARGUMENT, "is not a list of values");
    if (one == NULL)
        return 0;
    if (schema_start(s, &list, JSON_IS_ARRAY) != 0 || schema_add(s, &list, NULL, one) != 0)
        return -1;
    if (out->of[P_ENUM] != NULL)
        return choose(s, list.all, out->of[P_ENUM], 1, &out->of[P_ENUM]);
    out->of[P_ENUM] = list.all;
    return 0;
}

int schema_parts(struct schema *s, const struct json_node *n, struct parts *out)
{
    if (schema_work(s, (uint64_t)N_PART * n->n) != 0)
        return -1;
    *out = (struct parts){ .of = { NULL } };
    for (int i = 0; i < N_PART; i++) {
        const struct json_node *m = i != P_NOT ? json_member(n, names[i]) : NULL;

        if (m == NULL)
            continue;
        out->of[i] = m;
        if ((i == P_PROPERTIES || i == P_MORE || i == P_ITEMS || i == P_FIRST) &&
            take_inner(s, m, i, &out->of[i]) != 0)
            return -1;
    }
    if (schema_names(s, "required", out->of[P_REQUIRED]) != 0)
        return -1;
    return take_values(s, n, out);
}

/* ---- a schema of keywords ---- */

static struct json_node *nodes_of(struct schema *s, const struct parts *p)
{
    struct made n;

    if (schema_start(s, &n, JSON_IS_OBJECT) != 0)
        return NULL;
    n.all->text = schema_text(s, s->path);
    if (n.all->text == NULL)
        return NULL;
    for (int i = 0; i < N_PART; i++)
        if (p->of[i] != NULL && schema_add(s, &n, names[i], p->of[i]) != 0)
            return NULL;
    return n.all;
}

/* Must an object have a member that may have no value?  -1 with an error. */
static int lacks_member(struct schema *s, const struct parts *p)
{
    const struct json_node *required = p->of[P_REQUIRED], *all = p->of[P_PROPERTIES];

    if (schema_work(s, (uint64_t)n_of(required) * n_of(all)) != 0)
        return -1;
    for (const struct json_node *r = required != NULL ? required->first : NULL; r != NULL;
         r = r->next) {
        const struct json_node *m = json_member(all, r->text);

        if (is_false(m != NULL ? m : p->of[P_MORE]))
            return 1;
    }
    return 0;
}

/* Is the least count above the most? */
static bool is_over(const struct json_node *least, const struct json_node *most)
{
    int64_t v, w;

    return json_as_int(least, &v) && json_as_int(most, &w) && v > w;
}

static bool is_out_of_bounds(const struct json_node *least, const struct json_node *most,
                             bool is_open)
{
    struct number_bound v, w;
    int order;

    if (least == NULL || most == NULL || least->kind != JSON_IS_NUMBER ||
        most->kind != JSON_IS_NUMBER || schema_decimal(least->text, &v) != 0 ||
        schema_decimal(most->text, &w) != 0)
        return false;
    order = schema_compare(&v, &w);
    return order > 0 || (order == 0 && is_open);
}

/* A schema that speaks of members, and names no type, is one of an object. */
static unsigned types_of(struct schema *s, const struct parts *p)
{
    const struct json_node *const *of = p->of;
    unsigned only = of[P_REQUIRED] != NULL || of[P_PROPERTIES] != NULL || of[P_MORE] != NULL
                        ? T_OBJECT
                        : 0;

    if (of[P_TYPE] != NULL)
        return schema_types_of(s, of[P_TYPE]);
    for (int i = P_ITEMS; i < N_PART; i++)
        if (of[i] != NULL)
            only |= i <= P_UNIQUE ? T_ARRAY : i <= P_PATTERN ? T_STRING : T_NUMBER | T_INTEGER;
    return only != 0 ? only : T_ALL;
}

/* Does "not" leave out a value that is true, false or null? */
static bool leaves_out(const struct json_node *not, enum json_kind kind, bool truth)
{
    const struct json_node *list = json_member(not, "enum");

    for (const struct json_node *v = list != NULL ? list->first : NULL; v != NULL; v = v->next)
        if (v->kind == kind && v->truth == truth)
            return true;
    return false;
}

/* The types of which no value matches the other keywords.  *rc is set to -1 with an error. */
static unsigned types_without_values(struct schema *s, const struct parts *p, int *rc)
{
    const struct json_node *const *of = p->of;
    int lacks = lacks_member(s, p);
    unsigned bits = lacks != 0 ? T_OBJECT : 0;

    if (lacks < 0)
        *rc = -1;
    if (is_over(of[P_MIN_ITEMS], of[P_MAX_ITEMS]))
        bits |= T_ARRAY;
    if (is_over(of[P_MIN_LENGTH], of[P_MAX_LENGTH]))
        bits |= T_STRING;
    if (is_out_of_bounds(of[P_MINIMUM], of[P_MAXIMUM], false) ||
        is_out_of_bounds(of[P_MINIMUM], of[P_UNDER], true) ||
        is_out_of_bounds(of[P_OVER], of[P_MAXIMUM], true) ||
        is_out_of_bounds(of[P_OVER], of[P_UNDER], true))
        bits |= T_NUMBER | T_INTEGER;
    if (leaves_out(of[P_NOT], JSON_IS_NULL, false))
        bits |= T_NULL;
    if (leaves_out(of[P_NOT], JSON_IS_BOOL, true) && leaves_out(of[P_NOT], JSON_IS_BOOL, false))
        bits |= T_BOOL;
    return bits;
}

/* Is a value outside of the bounds, or lengths, of its type? */
static bool is_outside(const struct parts *p, const struct json_node *v)
{
    const struct json_node *const *of = p->of;
    size_t n_char = 0;
    char text[24];

    if (v->kind == JSON_IS_NUMBER)
        return is_out_of_bounds(of[P_MINIMUM], v, false) ||
               is_out_of_bounds(of[P_OVER], v, true) ||
               is_out_of_bounds(v, of[P_MAXIMUM], false) || is_out_of_bounds(v, of[P_UNDER], true);
    if (v->kind == JSON_IS_STRING) {
        struct json_node n = { .kind = JSON_IS_NUMBER, .text = text };

        for (size_t i = 0; i < v->len; i++)
            n_char += !utf8_is_inside(v->text[i]);
        snprintf(text, sizeof text, "%zu", n_char);
        return is_over(of[P_MIN_LENGTH], &n) || is_over(&n, of[P_MAX_LENGTH]);
    }
    return false;
}

/* Are bounds and lengths such that is_outside() knows them? */
static bool are_clear(const struct parts *p)
{
    struct number_bound v;
    int64_t n;

    for (int i = P_MINIMUM; i <= P_UNDER; i++)
        if (p->of[i] != NULL &&
            (p->of[i]->kind != JSON_IS_NUMBER || schema_decimal(p->of[i]->text, &v) != 0))
            return false;
    for (int i = P_MIN_LENGTH; i <= P_MAX_LENGTH; i++)
        if (p->of[i] != NULL && !json_as_int(p->of[i], &n))
            return false;
    for (const struct json_node *m = p->of[P_ENUM]->first; m != NULL; m = m->next)
        if (m->kind == JSON_IS_NUMBER && schema_decimal(m->text, &v) != 0)
            return false;
    return true;
}

/* The digits of counts and bounds, which are read as numbers each time. */
static uint64_t digits_of(const struct parts *p)
{
    uint64_t n = 0;

    for (int i = P_MIN_ITEMS; i < N_PART; i++)
        n += p->of[i] != NULL && p->of[i]->kind == JSON_IS_NUMBER ? p->of[i]->len : 0;
    return n;
}

/* The values of "enum" that have one of the types, and match bounds and lengths. */
static int keep_values(struct schema *s, struct parts *p, unsigned bits)
{
    bool is_clear;
    struct made list;

    if (schema_work(s, p->of[P_ENUM]->n * (1 + digits_of(p))) != 0 ||
        schema_start(s, &list, JSON_IS_ARRAY) != 0)
        return -1;
    is_clear = are_clear(p);
    for (const struct json_node *v = p->of[P_ENUM]->first; v != NULL; v = v->next) {
        if (schema_work(s, v->len) != 0)
            return -1;
        if (schema_has_type(v, bits) && !(is_clear && is_outside(p, v)) &&
            schema_add(s, &list, NULL, v) != 0)
            return -1;
    }
    p->of[P_ENUM] = list.all;
    for (int i = P_MINIMUM; is_clear && i <= P_UNDER; i++)
        p->of[i] = NULL;
    for (int i = P_MIN_LENGTH; is_clear && i <= P_MAX_LENGTH; i++)
        p->of[i] = NULL;
    if (p->of[P_NOT] == NULL)
        return 0;
    if (choose(s, list.all, json_member(p->of[P_NOT], "enum"), 0, &p->of[P_ENUM]) != 0)
        return -1;
    p->of[P_NOT] = NULL;
    return 0;
}

int schema_of_parts(struct schema *s, struct parts *p, struct json_node **out)
{
    int rc = schema_work(s, 4 * digits_of(p));
    unsigned none = rc == 0 ? types_without_values(s, p, &rc) : 0;
    unsigned bits = rc == 0 ? types_of(s, p) : 0;

    *out = NULL;
    if (bits == 0)
        return -1;
    if ((bits & none) != 0) {
        bits &= ~none;
        p->of[P_TYPE] = schema_make_types(s, bits);
        if (p->of[P_TYPE] == NULL)
            return -1;
    }
    if (p->of[P_ENUM] != NULL && keep_values(s, p, p->of[P_TYPE] != NULL ? bits : T_ALL) != 0)
        return -1;
    if (bits == 0 || (p->of[P_ENUM] != NULL && p->of[P_ENUM]->n == 0))
        return 0;
    *out = nodes_of(s, p);
    return *out != NULL ? 0 : -1;
}

/* ---- two schemas ---- */

/* The same keyword in two schemas. */
struct pair {
    const char *name;
    const struct json_node *a, *b;
};

static int both_types(struct schema *s, const struct pair *x, const struct json_node **out,
                      bool *is_none)
{
    unsigned a = schema_types_of(s, x->a), b = a != 0 ? schema_types_of(s, x->b) : 0;

    if (b == 0)
        return -1;
    a |= (a & T_NUMBER) != 0 ? T_INTEGER : 0;
    b |= (b & T_NUMBER) != 0 ? T_INTEGER : 0;
    *is_none = (a & b) == 0;
    *out = schema_make_types(s, a & b);
    return *out != NULL ? 0 : -1;
}

static int narrower_count(struct schema *s, const struct pair *x, bool is_least,
                          const struct json_node **out)
{
    int64_t v, w;

    if (!json_as_int(x->a, &v) || !json_as_int(x->b, &w))
        return schema_wrong(s, x->name, ERR_ARGUMENT,
                            "is not a whole number from 0 to 1000000000");
    *out = (v > w) == is_least ? x->a : x->b;
    return 0;
}

static int narrower_bound(struct schema *s, const struct pair *x, bool is_least,
                          const struct json_node **out)
{
    struct number_bound v, w;

    if (x->a->kind != JSON_IS_NUMBER || x->b->kind != JSON_IS_NUMBER)
        return schema_wrong(s, x->name, ERR_ARGUMENT, "is not a number");
    if (schema_decimal(x->a->text, &v) != 0 || schema_decimal(x->b->text, &w) != 0)
        return schema_wrong(s, x->name, ERR_UNSUPPORTED,
                            "has more than 16 digits before or after the point");
    *out = (schema_compare(&v, &w) > 0) == is_least ? x->a : x->b;
    return 0;
}

#define STEP_PARTS 1000000

/* A step in millionths; -1: it has other digits, or is not above 0. */
static int64_t step_of(const struct json_node *n)
{
    struct number_bound v;
    int64_t part = 0;
    size_t n_part;

    if (n->kind != JSON_IS_NUMBER || schema_decimal(n->text, &v) != 0 || v.is_negative ||
        v.whole > 1000000000)
        return -1;
    n_part = strlen(v.part);
    if (n_part > 6)
        return -1;
    for (size_t i = 0; i < 6; i++)
        part = part * 10 + (i < n_part ? v.part[i] - '0' : 0);
    part += v.whole * STEP_PARTS;
    return part > 0 ? part : -1;
}

/* Multiples of both steps are those of their least common multiple. */
static int both_steps(struct schema *s, const struct pair *x, const struct json_node **out)
{
    int64_t a = step_of(x->a), b = step_of(x->b), g = a, r = b, all;
    struct json_node *n = schema_make(s, JSON_IS_NUMBER);
    char text[40];

    if (n == NULL)
        return -1;
    if (a < 0 || b < 0)
        return schema_wrong(s, x->name, ERR_UNSUPPORTED,
                            "is not above 0 and at most 1000000000 with 6 digits after the point");
    while (r != 0) {
        int64_t next = g % r;

        g = r;
        r = next;
    }
    if (__builtin_mul_overflow(a / g, b, &all))
        return schema_wrong(s, x->name, ERR_UNSUPPORTED,
                            "has two steps without a small common multiple");
    snprintf(text, sizeof text, "%lld.%06lld", (long long)(all / STEP_PARTS),
             (long long)(all % STEP_PARTS));
    n->text = schema_text(s, text);
    n->len = strlen(text);
    *out = n;
    return n->text != NULL ? 0 : -1;
}

static int both_flags(struct schema *s, const struct pair *x, const struct json_node **out)
{
    bool v, w;

    if (!json_as_bool(x->a, &v) || !json_as_bool(x->b, &w))
        return schema_wrong(s, x->name, ERR_ARGUMENT, "is not true or false");
    *out = v ? x->a : x->b;
    return 0;
}

static int both_texts(struct schema *s, const struct pair *x, const struct json_node **out)
{
    const char *v = json_as_string(x->a), *w = json_as_string(x->b);

    if (v == NULL || w == NULL)
        return schema_wrong(s, x->name, ERR_ARGUMENT, "is not a text");
    if (strcmp(v, w) != 0)
        return schema_wrong(s, x->name, ERR_UNSUPPORTED,
                            "is not supported twice for one text, unless both are the same");
    *out = x->a;
    return 0;
}

/* Values that neither schema allows. */
static int both_nots(struct schema *s, const struct pair *x, const struct json_node **out)
{
    const struct json_node *list;
    struct made n;

    if (unite(s, json_member(x->a, "enum"), json_member(x->b, "enum"), &list) != 0 ||
        schema_start(s, &n, JSON_IS_OBJECT) != 0)
        return -1;
    *out = n.all;
    return schema_add(s, &n, "enum", list);
}

static int both_keywords(struct schema *s, int part, const struct pair *x,
                         const struct json_node **out, bool *is_none)
{
    switch (part) {
    case P_TYPE: return both_types(s, x, out, is_none);
    case P_ENUM: return choose(s, x->a, x->b, 1, out);
    case P_NOT: return both_nots(s, x, out);
    case P_REQUIRED: return unite(s, x->a, x->b, out);
    case P_MIN_ITEMS:
    case P_MIN_LENGTH: return narrower_count(s, x, true, out);
    case P_MAX_ITEMS:
    case P_MAX_LENGTH: return narrower_count(s, x, false, out);
    case P_UNIQUE: return both_flags(s, x, out);
    case P_FORMAT:
    case P_PATTERN: return both_texts(s, x, out);
    case P_MINIMUM:
    case P_OVER: return narrower_bound(s, x, true, out);
    case P_MAXIMUM:
    case P_UNDER: return narrower_bound(s, x, false, out);
    default: return both_steps(s, x, out);
    }
}

/* Add what a schema of a has with that of b, under its key. */
static int add_both(struct schema *s, struct made *to, const char *key, const struct json_node *a,
                    const struct json_node *b)
{
    struct json_node *n;

    if (schema_conjoin(s, a, b, &n) != 0)
        return -1;
    schema_put(to, key, n);
    return 0;
}

/* The schemas of all other members, or items. */
static int both_others(struct schema *s, const struct parts *a, const struct parts *b, int part,
                       struct parts *out)
{
    struct json_node *n;

    if (a->of[part] == NULL && b->of[part] == NULL)
        return 0;
    if (schema_conjoin(s, a->of[part], b->of[part], &n) != 0)
        return -1;
    out->of[part] = n;
    return 0;
}

static int both_members(struct schema *s, const struct parts *a, const struct parts *b,
                        struct parts *out)
{
    const struct json_node *p = a->of[P_PROPERTIES], *q = b->of[P_PROPERTIES];
    struct made list;

    if (both_others(s, a, b, P_MORE, out) != 0)
        return -1;
    if (p == NULL && q == NULL)
        return 0;
    if (schema_work(s, 2 * (uint64_t)n_of(p) * n_of(q)) != 0 ||
        schema_start(s, &list, JSON_IS_OBJECT) != 0)
        return -1;
    for (const struct json_node *m = p != NULL ? p->first : NULL; m != NULL; m = m->next) {
        const struct json_node *o = json_member(q, m->key);

        if (add_both(s, &list, m->key, m, o != NULL ? o : b->of[P_MORE]) != 0)
            return -1;
    }
    for (const struct json_node *m = q != NULL ? q->first : NULL; m != NULL; m = m->next)
        if (json_member(p, m->key) == NULL &&
            add_both(s, &list, m->key, a->of[P_MORE], m) != 0)
            return -1;
    out->of[P_PROPERTIES] = list.all;
    return 0;
}

static int both_items(struct schema *s, const struct parts *a, const struct parts *b,
                      struct parts *out)
{
    const struct json_node *p = a->of[P_FIRST], *q = b->of[P_FIRST];
    struct made list;

    if (both_others(s, a, b, P_ITEMS, out) != 0)
        return -1;
    if (p == NULL && q == NULL)
        return 0;
    if (schema_start(s, &list, JSON_IS_ARRAY) != 0)
        return -1;
    p = p != NULL ? p->first : NULL;
    q = q != NULL ? q->first : NULL;
    while (p != NULL || q != NULL) {
        if (add_both(s, &list, NULL, p != NULL ? p : a->of[P_ITEMS],
                     q != NULL ? q : b->of[P_ITEMS]) != 0)
            return -1;
        p = p != NULL ? p->next : NULL;
        q = q != NULL ? q->next : NULL;
    }
    out->of[P_FIRST] = list.all;
    return 0;
}

int schema_both(struct schema *s, const struct json_node *a, const struct json_node *b,
                struct json_node **out)
{
    struct parts x = { .of = { NULL } }, y = x, z = x;
    bool is_none = false;

    *out = NULL;
    if (a->n == 0 || b->n == 0) {
        *out = schema_copy(s, a->n == 0 ? b : a);
        return *out != NULL ? 0 : -1;
    }
    if (schema_work(s, (uint64_t)N_PART * (a->n + b->n)) != 0)
        return -1;
    for (int i = 0; i < N_PART; i++) {
        x.of[i] = json_member(a, names[i]);
        y.of[i] = json_member(b, names[i]);
    }
    for (int i = 0; i < N_PART; i++) {
        struct pair pair = { names[i], x.of[i], y.of[i] };

        if (i == P_PROPERTIES || i == P_MORE || i == P_ITEMS || i == P_FIRST)
            continue;
        z.of[i] = pair.a != NULL ? pair.a : pair.b;
        if (pair.a != NULL && pair.b != NULL &&
            both_keywords(s, i, &pair, &z.of[i], &is_none) != 0)
            return -1;
        if (is_none)
            return 0;
    }
    if (both_members(s, &x, &y, &z) != 0 || both_items(s, &x, &y, &z) != 0)
        return -1;
    return schema_of_parts(s, &z, out);
}
