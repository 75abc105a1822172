/*
 * Schemas whose parts must be merged before they have rules: allOf, keywords beside anyOf or $ref,
 * if, dependentRequired, dependentSchemas.
 *
 * Such a schema becomes a list of alternatives without these keywords, one for each combination of
 * those of its parts, without the combinations that exclude themselves:
 *
 *     if A then B else C      one of: A and B; not A, and C
 *     dependentRequired a: b  one of: without a; with a and b
 *
 * The schemas of a member are merged at once, so that alternatives without a value are found,
 * unless references in them may form circles.  Those are kept as an allOf, whose rule is written
 * later, once for the same set of schemas.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define ALTERNATIVES_MOST 256
#define DEPTH_MOST        64 /* of parts within parts */
#define REFERENCES_MOST   64 /* one after the other */

size_t schema_enter(struct schema *s, const char *key, int64_t i)
{
    size_t used = strlen(s->path);

    if (key != NULL)
        snprintf(s->path + used, sizeof s->path - used, "/%.60s", key);
    else
        snprintf(s->path + used, sizeof s->path - used, "/%lld", (long long)i);
    return used;
}

static bool is_free(const struct json_node *n)
{
    bool any;

    return (json_as_bool(n, &any) && any) || (n->kind == JSON_IS_OBJECT && n->n == 0);
}

static bool is_false(const struct json_node *n)
{
    bool any;

    return json_as_bool(n, &any) && !any;
}

/* ---- circles ---- */

const struct json_node *schema_end_of(struct schema *s, const struct json_node *n)
{
    for (unsigned i = 0; n->kind == JSON_IS_OBJECT && n->n == 1 &&
                         json_member(n, "$ref") != NULL; i++) {
        if (i == REFERENCES_MOST) {
            schema_wrong(s, "$ref", ERR_UNSUPPORTED, "leads through too many references");
            return NULL;
        }
        n = schema_target_of(s, n);
        if (n == NULL)
            return NULL;
    }
    return n;
}

static int part_may_recur(struct schema *s, const struct json_node *n, bool in_ref);

static int some_may_recur(struct schema *s, const struct json_node *list, bool in_ref)
{
    int rc = 0;

    for (const struct json_node *m = list->first; rc == 0 && m != NULL; m = m->next)
        rc = part_may_recur(s, m, in_ref);
    return rc;
}

static int keyword_may_recur(struct schema *s, const struct json_node *n,
                             const struct json_node *m, bool in_ref)
{
    static const char *const lists[] = { "allOf", "anyOf", "oneOf", "dependentSchemas" };
    static const char *const ones[] = { "if", "then", "else", "not" };
    static const char *const inner[] = { "properties", "additionalProperties", "items",
                                         "prefixItems" };

    if (strcmp(m->key, "$ref") == 0) {
        const struct json_node *target = schema_target_of(s, n);

        return target != NULL ? part_may_recur(s, target, true) : -1;
    }
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(m->key, lists[i]) == 0)
            return some_may_recur(s, m, in_ref);
        if (strcmp(m->key, ones[i]) == 0)
            return part_may_recur(s, m, in_ref);
        if (in_ref && strcmp(m->key, inner[i]) == 0)
            return 1;
    }
    return 0;
}

static int part_may_recur(struct schema *s, const struct json_node *n, bool in_ref)
{
    int rc = 0;

    if (s->depth == DEPTH_MOST)
        return 1;
    if (schema_work(s, 1 + n->n) != 0)
        return -1;
    s->depth++;
    for (const struct json_node *m = n->kind == JSON_IS_OBJECT ? n->first : NULL;
         rc == 0 && m != NULL; m = m->next)
        rc = keyword_may_recur(s, n, m, in_ref);
    s->depth--;
    return rc;
}

int schema_may_recur(struct schema *s, const struct json_node *n)
{
    return part_may_recur(s, n, false);
}

/* ---- alternatives ---- */

int schema_product(struct schema *s, struct made *a, const struct json_node *b)
{
    struct made all;

    if (schema_start(s, &all, JSON_IS_ARRAY) != 0)
        return -1;
    for (const struct json_node *x = a->all->first; x != NULL; x = x->next)
        for (const struct json_node *y = b->first; y != NULL; y = y->next) {
            struct json_node *both;

            if (schema_both(s, x, y, &both) != 0)
                return -1;
            if (both == NULL)
                continue;
            if (all.all->n == ALTERNATIVES_MOST)
                return err_set(s->e, ERR_UNSUPPORTED,
                               "the parts of the schema at %.200s have more than %d "
                               "combinations", s->path, ALTERNATIVES_MOST);
            schema_put(&all, NULL, both);
        }
    *a = all;
    return 0;
}

int schema_append(struct schema *s, struct made *to, struct made *more)
{
    for (const struct json_node *n = more->all->first; n != NULL; n = n->next)
        if (schema_add(s, to, NULL, n) != 0)
            return -1;
    return to->all->n <= ALTERNATIVES_MOST
               ? 0
               : err_set(s->e, ERR_UNSUPPORTED,
                         "the schema at %.200s has more than %d alternatives", s->path,
                         ALTERNATIVES_MOST);
}

struct json_node *schema_any(struct schema *s, struct made *list)
{
    struct made any;

    if (list->all->n == 0)
        return schema_make_bool(s, false);
    if (list->all->n == 1)
        return schema_copy(s, list->all->first);
    if (schema_start(s, &any, JSON_IS_OBJECT) != 0)
        return NULL;
    any.all->text = list->all->first->text;
    schema_put(&any, "anyOf", list->all);
    return any.all;
}

/* Flatten a schema that has a path of its own. */
static int flatten_inner(struct schema *s, const struct json_node *n, struct made *out)
{
    char path[SCHEMA_PATH];

    memcpy(path, s->path, sizeof path);
    if (schema_origin(n) != NULL)
        snprintf(s->path, sizeof s->path, "%s", schema_origin(n));
    if (schema_flatten(s, n, out) != 0)
        return -1;
    memcpy(s->path, path, sizeof path);
    return 0;
}

/* A member of the schema, or item i of such a member. */
static int flatten_at(struct schema *s, const struct json_node *n, const char *key, int64_t i,
                      struct made *out)
{
    size_t used = schema_enter(s, key, -1);

    if (n->key != key && (i >= 0 || n->key != NULL))
        schema_enter(s, n->key, i);
    if (flatten_inner(s, n, out) != 0)
        return -1;
    s->path[used] = '\0';
    return 0;
}

static int flatten_list(struct schema *s, const struct json_node *list, struct made *out)
{
    bool is_all = strcmp(list->key, "allOf") == 0;
    int64_t i = 0;

    if (list->kind != JSON_IS_ARRAY || list->n == 0)
        return schema_wrong(s, list->key, ERR_ARGUMENT, "is not a list of schemas");
    if (list->n > ALTERNATIVES_MOST)
        return schema_wrong(s, list->key, ERR_UNSUPPORTED, "has more than 256 schemas");
    if (strcmp(list->key, "oneOf") == 0 && schema_check_apart(s, list) != 0)
        return -1;
    for (const struct json_node *n = list->first; n != NULL; n = n->next, i++) {
        struct made one;

        if (flatten_at(s, n, list->key, i, &one) != 0)
            return -1;
        if (i == 0)
            *out = one;
        else if ((is_all ? schema_product(s, out, one.all) : schema_append(s, out, &one)) != 0)
            return -1;
    }
    return 0;
}

static int flatten_reference(struct schema *s, const struct json_node *n, struct made *out)
{
    const struct json_node *target = schema_target_of(s, n);
    char path[SCHEMA_PATH];

    if (target == NULL)
        return -1;
    memcpy(path, s->path, sizeof path);
    snprintf(s->path, sizeof s->path, "%s", json_as_string(json_member(n, "$ref")));
    if (schema_flatten(s, target, out) != 0)
        return -1;
    memcpy(s->path, path, sizeof path);
    return 0;
}

/* Set *out to the alternatives of a schema and of its member `key`, if it has one. */
static int and_member(struct schema *s, const struct json_node *n, const char *key,
                      struct made *out)
{
    const struct json_node *m = json_member(n, key);
    struct made more;

    if (m == NULL)
        return 0;
    return flatten_at(s, m, m->key, -1, &more) != 0 ? -1 : schema_product(s, out, more.all);
}

static int negate_at(struct schema *s, const struct json_node *n, struct made *out)
{
    size_t used = schema_enter(s, n->key, -1);

    if (schema_negate(s, n, out) != 0)
        return -1;
    s->path[used] = '\0';
    return 0;
}

static int flatten_if(struct schema *s, const struct json_node *n, struct made *out)
{
    const struct json_node *x = json_member(n, "if");
    struct made other;

    if (flatten_at(s, x, x->key, -1, out) != 0 || and_member(s, n, "then", out) != 0 ||
        negate_at(s, x, &other) != 0 || and_member(s, n, "else", &other) != 0)
        return -1;
    return schema_append(s, out, &other);
}

/* ---- members that ask for others ---- */

/* Make alternatives: one without the member `key`, and one that has it and those of `names`. */
static int make_dependent(struct schema *s, const char *key, const struct json_node *names,
                          struct made *without, struct made *with)
{
    struct parts lacks = { .of = { NULL } }, has = { .of = { NULL } };
    struct json_node *no = schema_make_bool(s, false), *n;
    struct made required, members;

    if (no == NULL || schema_start(s, &required, JSON_IS_ARRAY) != 0 ||
        schema_start(s, &members, JSON_IS_OBJECT) != 0 ||
        schema_start(s, without, JSON_IS_ARRAY) != 0 ||
        schema_start(s, with, JSON_IS_ARRAY) != 0 || schema_add_text(s, &required, key) != 0)
        return -1;
    schema_put(&members, key, no);
    for (const struct json_node *r = names != NULL ? names->first : NULL; r != NULL; r = r->next)
        if (schema_add_text(s, &required, r->text) != 0)
            return -1;
    lacks.of[P_PROPERTIES] = members.all;
    has.of[P_REQUIRED] = required.all;
    if (schema_of_parts(s, &lacks, &n) != 0)
        return -1;
    schema_put(without, NULL, n);
    if (schema_of_parts(s, &has, &n) != 0)
        return -1;
    schema_put(with, NULL, n);
    return 0;
}

static int flatten_dependent(struct schema *s, const struct json_node *all, struct made *out)
{
    bool is_names = strcmp(all->key, "dependentRequired") == 0;
    struct json_node *free = schema_make(s, JSON_IS_OBJECT);

    if (all->kind != JSON_IS_OBJECT)
        return schema_wrong(s, all->key, ERR_ARGUMENT, "is not an object");
    if (free == NULL || schema_work(s, (uint64_t)all->n * all->n) != 0 ||
        schema_start(s, out, JSON_IS_ARRAY) != 0)
        return -1;
    schema_put(out, NULL, free);
    for (const struct json_node *m = all->first; m != NULL; m = m->next) {
        struct made without, with, more;

        if (json_member(all, m->key) != m)
            continue;
        if ((is_names && schema_names(s, all->key, m) != 0) ||
            make_dependent(s, m->key, is_names ? m : NULL, &without, &with) != 0)
            return -1;
        if (!is_names && (flatten_at(s, m, all->key, -1, &more) != 0 ||
                          schema_product(s, &with, more.all) != 0))
            return -1;
        if (schema_append(s, &without, &with) != 0 || schema_product(s, out, without.all) != 0)
            return -1;
    }
    return 0;
}

/* ---- a schema ---- */

static int flatten_not(struct schema *s, const struct json_node *n, struct made *out)
{
    return negate_at(s, json_member(n, "not"), out);
}

static int flatten_keyword(struct schema *s, const struct json_node *n,
                           const struct json_node *m, struct made *out)
{
    static const char *const lists[] = { "allOf", "anyOf", "oneOf" };
    static const char *const members[] = { "dependentRequired", "dependentSchemas" };
    struct made more = { .all = NULL };
    int rc = 0;

    for (size_t i = 0; i < 3; i++)
        if (strcmp(m->key, lists[i]) == 0)
            rc = flatten_list(s, m, &more);
    for (size_t i = 0; i < 2; i++)
        if (strcmp(m->key, members[i]) == 0)
            rc = flatten_dependent(s, m, &more);
    if (strcmp(m->key, "$ref") == 0)
        rc = flatten_reference(s, n, &more);
    else if (strcmp(m->key, "if") == 0)
        rc = flatten_if(s, n, &more);
    else if (strcmp(m->key, "not") == 0)
        rc = flatten_not(s, n, &more);
    else if ((strcmp(m->key, "then") == 0 || strcmp(m->key, "else") == 0) &&
             json_member(n, "if") == NULL)
        rc = schema_wrong(s, m->key, ERR_ARGUMENT, "is not beside \"if\"");
    if (rc != 0 || more.all == NULL)
        return rc;
    return schema_product(s, out, more.all);
}

static int flatten_object(struct schema *s, const struct json_node *n, struct made *out)
{
    struct json_node *own;
    struct parts parts;

    if (schema_check_keywords(s, n) != 0 || schema_work(s, 1 + (uint64_t)n->n * n->n) != 0 ||
        schema_parts(s, n, &parts) != 0 || schema_of_parts(s, &parts, &own) != 0)
        return -1;
    if (own == NULL)
        return 0;
    schema_put(out, NULL, own);
    for (const struct json_node *m = n->first; m != NULL; m = m->next)
        if (json_member(n, m->key) == m && flatten_keyword(s, n, m, out) != 0)
            return -1;
    return 0;
}

int schema_descend(struct schema *s)
{
    return s->depth++ < DEPTH_MOST
               ? 0
               : err_set(s->e, ERR_UNSUPPORTED,
                         "the parts of the schema at %.200s contain it, or are too many within "
                         "each other", s->path);
}

int schema_flatten(struct schema *s, const struct json_node *n, struct made *out)
{
    struct json_node *free;
    int rc;

    if (schema_start(s, out, JSON_IS_ARRAY) != 0 || is_false(n))
        return out->all != NULL ? 0 : -1;
    if (is_free(n)) {
        free = schema_make(s, JSON_IS_OBJECT);
        if (free == NULL)
            return -1;
        schema_put(out, NULL, free);
        return 0;
    }
    if (n->kind != JSON_IS_OBJECT)
        return err_set(s->e, ERR_ARGUMENT, "the schema at %.200s is not an object", s->path);
    if (schema_descend(s) != 0)
        return -1;
    rc = flatten_object(s, n, out);
    s->depth--;
    return rc;
}

/* ---- the schemas of one member ---- */

/* Are both the same schema of a text, or references to the same one? */
static bool is_same(const struct json_node *a, const struct json_node *b)
{
    const char *x = json_as_string(json_member(a, "$ref")),
               *y = json_as_string(json_member(b, "$ref"));

    if (a->kind == JSON_IS_OBJECT && a->kind == b->kind && a->first == b->first)
        return true;
    return a->n == 1 && b->n == 1 && x != NULL && y != NULL && strcmp(x, y) == 0;
}

/* Add the schemas of an allOf that was made here, or another schema. */
static int add_parts(struct schema *s, struct made *list, const struct json_node *n)
{
    const struct json_node *all = n->n == 1 ? json_member(n, "allOf") : NULL;

    if (all == NULL || all->kind != JSON_IS_ARRAY)
        return schema_add(s, list, NULL, n);
    for (const struct json_node *m = all->first; m != NULL; m = m->next)
        if (schema_add(s, list, NULL, m) != 0)
            return -1;
    return 0;
}

static int conjoin_later(struct schema *s, const struct json_node *a, const struct json_node *b,
                         struct json_node **out)
{
    struct made all, list;

    if (schema_start(s, &all, JSON_IS_OBJECT) != 0 || schema_start(s, &list, JSON_IS_ARRAY) != 0 ||
        add_parts(s, &list, a) != 0 || add_parts(s, &list, b) != 0)
        return -1;
    schema_put(&all, "allOf", list.all);
    *out = all.all;
    return 0;
}

int schema_conjoin(struct schema *s, const struct json_node *a, const struct json_node *b,
                   struct json_node **out)
{
    char path[SCHEMA_PATH];
    struct made x, y;
    int recurs;

    if (a == NULL || b == NULL || is_free(a) || is_free(b) || is_false(a) || is_false(b) ||
        is_same(a, b)) {
        *out = schema_copy(s, a == NULL           ? b
                              : b == NULL         ? a
                              : is_false(a)       ? a
                              : is_false(b)       ? b
                              : is_free(a) ? b : a);
        return *out != NULL ? 0 : -1;
    }
    recurs = schema_may_recur(s, a);
    if (recurs == 0)
        recurs = schema_may_recur(s, b);
    if (recurs != 0)
        return recurs < 0 ? -1 : conjoin_later(s, a, b, out);
    if (flatten_inner(s, a, &x) != 0 || flatten_inner(s, b, &y) != 0)
        return -1;
    memcpy(path, s->path, sizeof path);
    if (schema_origin(a) != NULL)
        snprintf(s->path, sizeof s->path, "%s", schema_origin(a));
    if (schema_product(s, &x, y.all) != 0)
        return -1;
    memcpy(s->path, path, sizeof path);
    *out = schema_any(s, &x);
    return *out != NULL ? 0 : -1;
}

/* ---- rules ---- */

static bool has_number(const struct json_node *m)
{
    bool is_some = m->kind == JSON_IS_NUMBER;

    for (const struct json_node *v = m->kind == JSON_IS_ARRAY ? m->first : NULL;
         v != NULL && !is_some; v = v->next)
        is_some = v->kind == JSON_IS_NUMBER;
    return is_some;
}

/* Does "not" have keywords other than "type", or "enum" or "const"?  Does it have numbers, which
 * are bounds for numbers of any value? */
static bool excludes_schema(const struct json_node *n)
{
    const struct json_node *x = json_member(n, "not");
    bool has_values = json_member(n, "enum") != NULL || json_member(n, "const") != NULL;
    unsigned n_keyword = 0;

    for (const struct json_node *m = x != NULL && x->kind == JSON_IS_OBJECT ? x->first : NULL;
         m != NULL; m = m->next) {
        if (schema_is_note(m->key))
            continue;
        n_keyword++;
        if (strcmp(m->key, "type") != 0 &&
            ((strcmp(m->key, "enum") != 0 && strcmp(m->key, "const") != 0) ||
             (!has_values && has_number(m))))
            return true;
    }
    return n_keyword > 1;
}

bool schema_is_merged(const struct json_node *n)
{
    static const char *const alone[] = { "$ref", "anyOf", "oneOf", "allOf" };
    static const char *const merged[] = { "if", "then", "else", "dependentRequired",
                                          "dependentSchemas" };
    unsigned n_alone = 0, n_other = 0;

    for (const struct json_node *m = n->first; m != NULL; m = m->next) {
        bool is_alone = false;

        for (size_t i = 0; i < sizeof merged / sizeof merged[0]; i++)
            if (strcmp(m->key, merged[i]) == 0)
                return true;
        for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
            is_alone = is_alone || strcmp(m->key, alone[i]) == 0;
        n_alone += is_alone;
        n_other += !is_alone && !schema_is_note(m->key);
    }
    if (json_member(n, "const") != NULL && json_member(n, "enum") != NULL)
        return true;
    if (json_member(n, "allOf") != NULL && json_member(n, "allOf")->n > 1)
        return true;
    return (n_alone > 0 && n_alone + n_other > 1) || excludes_schema(n);
}

int schema_merged(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    struct json_node *any;
    struct made list;

    if (schema_flatten(s, n, &list) != 0)
        return -1;
    any = schema_any(s, &list);
    if (any == NULL)
        return -1;
    return is_false(any) ? err_set(s->e, ERR_ARGUMENT, "the schema at %.200s allows no value",
                                   s->path)
                         : schema_value(s, any, rule);
}
