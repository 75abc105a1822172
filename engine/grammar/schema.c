/*
 * The keywords of a JSON schema.
 *
 * A schema inside another one is read where it is, and its depth is that of the JSON text, which
 * the reader bounds.  A reference names a rule that is written later, once, so references may form
 * circles, and chains of them do not nest.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define TARGETS_MOST 512
#define COUNT_MOST   1000000000
#define WORK_MOST    20000000

/* ---- errors, names, counts ---- */

int schema_wrong(struct schema *s, const char *keyword, enum err_code code, const char *what)
{
    return err_set(s->e, code, "the keyword \"%.60s\" at %.200s %s", keyword, s->path, what);
}

int schema_work(struct schema *s, uint64_t n)
{
    s->work += n;
    return s->work <= WORK_MOST ? 0
                                : err_set(s->e, ERR_UNSUPPORTED,
                                          "the schema takes too much time: it has too many "
                                          "names or values, at %.200s",
                                          s->path);
}

int schema_fits(struct schema *s)
{
    return s->out->used <= MW_GRAMMAR_BYTES
               ? 0
               : err_set(s->e, ERR_UNSUPPORTED,
                         "the schema is too large: its grammar has more than 1 MiB at %.200s",
                         s->path);
}

void schema_raw(struct schema *s, const char *text)
{
    grammar_write(s->out, s->notation, text);
}

void schema_name(struct schema *s, uint32_t rule)
{
    if (rule == SCHEMA_VALUE)
        schema_raw(s, "@-value");
    else if (rule == 0)
        json_print(s->out, "%s", s->name);
    else
        json_print(s->out, "%s-%u", s->name, rule);
}

uint32_t schema_begin(struct schema *s)
{
    schema_name(s, s->n_rule);
    json_raw(s->out, " ::= ", 5);
    return s->n_rule++;
}

int schema_count(struct schema *s, const struct json_node *n, const char *key, uint32_t *out)
{
    const struct json_node *m = json_member(n, key);
    int64_t v;

    if (m == NULL)
        return 0;
    if (!json_as_int(m, &v) || v < 0 || v > COUNT_MOST)
        return schema_wrong(s, key, ERR_ARGUMENT, "is not a whole number from 0 to 1000000000");
    *out = (uint32_t)v;
    return 0;
}

/* ---- keywords ---- */

enum {
    IS_NOTE = 1, /* it describes, and constrains nothing */
    IS_TYPE = 2,
    IS_OBJECT = 4,
    IS_ARRAY = 8,
    IS_STRING = 16,
    IS_VALUES = 32, /* enum, const */
    IS_CHOICE = 64, /* of schemas: nothing may be beside it */
    IS_NUMBER = 128,
    IS_NOT = 256,
};

struct keyword {
    const char *name;
    unsigned use;
};

static const struct keyword keywords[] = {
    { "title", IS_NOTE },
    { "description", IS_NOTE },
    { "default", IS_NOTE },
    { "examples", IS_NOTE },
    { "deprecated", IS_NOTE },
    { "readOnly", IS_NOTE },
    { "writeOnly", IS_NOTE },
    { "$schema", IS_NOTE },
    { "$id", IS_NOTE },
    { "$comment", IS_NOTE },
    { "$defs", IS_NOTE },
    { "definitions", IS_NOTE },
    { "type", IS_TYPE },
    { "properties", IS_OBJECT },
    { "required", IS_OBJECT },
    { "additionalProperties", IS_OBJECT },
    { "items", IS_ARRAY },
    { "prefixItems", IS_ARRAY },
    { "minItems", IS_ARRAY },
    { "maxItems", IS_ARRAY },
    { "uniqueItems", IS_ARRAY },
    { "minLength", IS_STRING },
    { "maxLength", IS_STRING },
    { "format", IS_STRING },
    { "pattern", IS_STRING },
    { "minimum", IS_NUMBER },
    { "maximum", IS_NUMBER },
    { "exclusiveMinimum", IS_NUMBER },
    { "exclusiveMaximum", IS_NUMBER },
    { "multipleOf", IS_NUMBER },
    { "not", IS_NOT },
    { "enum", IS_VALUES },
    { "const", IS_VALUES },
    { "$ref", IS_CHOICE },
    { "anyOf", IS_CHOICE },
    { "oneOf", IS_CHOICE },
    { "allOf", IS_CHOICE },
    { "if", IS_CHOICE },
    { "then", IS_CHOICE },
    { "else", IS_CHOICE },
    { "dependentRequired", IS_CHOICE },
    { "dependentSchemas", IS_CHOICE },
};

/* Returns the kind of a keyword; 0: it is unknown. */
static unsigned use_of(const char *name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (strcmp(keywords[i].name, name) == 0)
            return keywords[i].use;
    return 0;
}

bool schema_is_note(const char *keyword)
{
    return use_of(keyword) == IS_NOTE;
}

/* Returns the kinds of keywords that a schema has; 0 with an error for an unknown one. */
static unsigned uses_of(struct schema *s, const struct json_node *n)
{
    unsigned uses = IS_NOTE;

    for (const struct json_node *m = n->first; m != NULL; m = m->next) {
        if (use_of(m->key) == 0) {
            schema_wrong(s, m->key, ERR_UNSUPPORTED, "is not supported");
            return 0;
        }
        uses |= use_of(m->key);
    }
    return uses;
}

int schema_check_keywords(struct schema *s, const struct json_node *n)
{
    return uses_of(s, n) != 0 ? 0 : -1;
}

/* The keyword beside one that must be alone. */
static int wrong_beside(struct schema *s, const struct json_node *n, const char *alone,
                        unsigned allowed)
{
    char what[120];

    for (const struct json_node *m = n->first; m != NULL; m = m->next)
        if (strcmp(m->key, alone) != 0 && (use_of(m->key) & allowed) == 0) {
            snprintf(what, sizeof what, "is not supported beside \"%s\"", alone);
            return schema_wrong(s, m->key, ERR_UNSUPPORTED, what);
        }
    return 0;
}

/* ---- types ---- */

static const struct type {
    const char *name;
    unsigned bit;
} types[] = {
    { "object", T_OBJECT },   { "array", T_ARRAY },  { "string", T_STRING },
    { "number", T_NUMBER },   { "integer", T_INTEGER }, { "boolean", T_BOOL },
    { "null", T_NULL },
};
#define N_TYPE (sizeof types / sizeof types[0])

static unsigned type_bit(const struct json_node *n)
{
    const char *name = json_as_string(n);

    for (size_t i = 0; name != NULL && i < N_TYPE; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].bit;
    return 0;
}

const char *schema_type_name(unsigned bit)
{
    size_t i = 0;

    while (types[i].bit != bit)
        i++;
    return types[i].name;
}

unsigned schema_types(struct schema *s, const struct json_node *n)
{
    const struct json_node *type = json_member(n, "type");

    return type != NULL ? schema_types_of(s, type) : T_ALL;
}

unsigned schema_types_of(struct schema *s, const struct json_node *type)
{
    unsigned all = 0;

    if (type->kind == JSON_IS_ARRAY && type->n > N_TYPE) { /* each pair of oneOf reads the list */
        schema_wrong(s, "type", ERR_ARGUMENT, "has more than 7 types");
        return 0;
    }
    if (type->kind != JSON_IS_ARRAY)
        all = type_bit(type);
    for (const struct json_node *t = type->kind == JSON_IS_ARRAY ? type->first : NULL;
         t != NULL; t = t->next) {
        unsigned bit = type_bit(t);

        if (bit == 0) {
            all = 0;
            break;
        }
        all |= bit;
    }
    if (all == 0)
        schema_wrong(s, "type", ERR_ARGUMENT, "does not name types of JSON");
    return all;
}

/* ---- values ---- */

bool schema_has_type(const struct json_node *n, unsigned bits)
{
    int64_t v;

    switch (n->kind) {
    case JSON_IS_NULL: return (bits & T_NULL) != 0;
    case JSON_IS_BOOL: return (bits & T_BOOL) != 0;
    case JSON_IS_NUMBER:
        return (bits & T_NUMBER) != 0 || ((bits & T_INTEGER) != 0 && json_as_int(n, &v));
    case JSON_IS_STRING: return (bits & T_STRING) != 0;
    case JSON_IS_OBJECT: return (bits & T_OBJECT) != 0;
    case JSON_IS_ARRAY: return (bits & T_ARRAY) != 0;
    }
    return false;
}

static int write_values(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    const struct json_node *one = json_member(n, "const"), *list = json_member(n, "enum");
    unsigned bits = schema_types(s, n);
    struct schema_not not;
    size_t written = 0;

    if (bits == 0 || schema_not(s, n, &not) != 0)
        return -1;
    if (one != NULL && list != NULL)
        return schema_wrong(s, "const", ERR_UNSUPPORTED, "is not supported beside \"enum\"");
    if (list != NULL && list->kind != JSON_IS_ARRAY)
        return schema_wrong(s, "enum", ERR_ARGUMENT, "is not a list of values");
    *rule = schema_begin(s);
    for (const struct json_node *v = one != NULL ? one : list->first; v != NULL;
         v = one != NULL ? NULL : v->next) {
        if (!schema_has_type(v, bits) || (not.types != 0 && schema_has_type(v, not.types)))
            continue;
        if (schema_work(s, schema_not_work(&not, v)) != 0)
            return -1;
        if (schema_is_out(&not, v))
            continue;
        if (schema_fits(s) != 0)
            return -1;
        if (written++ > 0)
            json_raw(s->out, " | ", 3);
        schema_constant(s, v);
    }
    json_raw(s->out, "\n", 1);
    return written > 0 ? 0
                       : schema_wrong(s, one != NULL ? "const" : "enum", ERR_ARGUMENT,
                                      "has no value of the type");
}

/* ---- references ---- */

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

static int add_target(struct schema *s, const struct json_node *n, uint32_t rule,
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

static int refer(struct schema *s, const struct json_node *n, uint32_t *rule)
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
    return add_target(s, target, *rule, json_as_string(json_member(n, "$ref")));
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
static int refer_merged(struct schema *s, const struct json_node *n, uint32_t *rule)
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
    if (add_target(s, n, *rule, s->path) != 0)
        return -1;
    s->target[s->n_target - 1].key = key;
    s->target[s->n_target - 1].n_key = n_key;
    return 0;
}

/* ---- alternatives ---- */

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

/* A reference leads to the schema that it names. */
static const struct json_node *without_ref(struct schema *s, const struct json_node *n)
{
    const char *ref = json_as_string(json_member(n, "$ref"));
    const struct json_node *target = ref != NULL && ref[0] == '#' ? find(s, ref) : NULL;

    return target != NULL ? target : n;
}

#define ALTERNATIVES_MOST 256

/* With oneOf exactly one alternative must match, so they must exclude each other.  The list has no
 * more than ALTERNATIVES_MOST. */
int schema_check_apart(struct schema *s, const struct json_node *list)
{
    const struct json_node *one[ALTERNATIVES_MOST];
    struct cost cost[ALTERNATIVES_MOST];
    size_t n = 0;

    for (const struct json_node *a = list->first; a != NULL; a = a->next, n++) {
        one[n] = without_ref(s, a);
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

static int choose(struct schema *s, const struct json_node *n, const char *key, uint32_t *rule)
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

/* ---- schemas ---- */

static void write_fixed(struct schema *s, const char *text, uint32_t *rule)
{
    *rule = schema_begin(s);
    schema_raw(s, text);
    json_raw(s->out, "\n", 1);
}

static int of_type(struct schema *s, const struct json_node *n, unsigned bit, uint32_t *rule)
{
    switch (bit) {
    case T_OBJECT: return schema_object(s, n, rule);
    case T_ARRAY: return schema_array(s, n, rule);
    case T_STRING: return schema_string(s, n, rule);
    case T_NUMBER: return schema_number(s, n, rule);
    case T_INTEGER: return schema_integer(s, n, rule);
    case T_BOOL: write_fixed(s, "\"true\" | \"false\"", rule); return 0;
    default: write_fixed(s, "\"null\"", rule); return 0;
    }
}

/* A schema without a type that speaks of members is one of an object, and so on. */
static unsigned meant(unsigned uses, unsigned bits)
{
    unsigned only = ((uses & IS_OBJECT) != 0 ? T_OBJECT : 0) |
                    ((uses & IS_ARRAY) != 0 ? T_ARRAY : 0) |
                    ((uses & IS_STRING) != 0 ? T_STRING : 0) |
                    ((uses & IS_NUMBER) != 0 ? T_NUMBER : 0);

    return (uses & IS_TYPE) == 0 && only != 0 ? only : bits;
}

/* Take out the types of "not".  0 with an error. */
static unsigned without(struct schema *s, const struct schema_not *not, unsigned bits)
{
    bool splits_numbers = (bits & T_NUMBER) != 0 && (not->types & T_INTEGER) != 0 &&
                          (not->types & T_NUMBER) == 0;

    if (splits_numbers || (not->has_number && (bits & (T_NUMBER | T_INTEGER)) != 0)) {
        schema_wrong(s, "not", ERR_UNSUPPORTED, "is not supported for numbers");
        return 0;
    }
    bits &= ~not->types;
    if ((not->types & T_NUMBER) != 0)
        bits &= ~(unsigned)T_INTEGER;
    if (schema_is_out(not, &(struct json_node){ .kind = JSON_IS_NULL }))
        bits &= ~(unsigned)T_NULL;
    if (bits == 0)
        schema_wrong(s, "not", ERR_ARGUMENT, "leaves no type");
    return bits;
}

/* One type, without the values of "not". */
static int some_of_type(struct schema *s, const struct json_node *n, unsigned uses, unsigned bit,
                        const struct schema_not *not, uint32_t *rule)
{
    bool no_true = schema_is_out(not, &(struct json_node){ JSON_IS_BOOL, .truth = true });
    bool no_false = schema_is_out(not, &(struct json_node){ JSON_IS_BOOL, .truth = false });

    if (bit == T_BOOL && no_true && no_false)
        return schema_wrong(s, "not", ERR_UNSUPPORTED, "leaves neither true nor false");
    if (bit == T_BOOL && (no_true || no_false)) {
        write_fixed(s, no_true ? "\"false\"" : "\"true\"", rule);
        return 0;
    }
    if (bit == T_STRING && not->has_text)
        return (uses & IS_STRING) != 0
                   ? schema_wrong(s, "not", ERR_UNSUPPORTED,
                                  "is not supported beside other keywords of texts")
                   : schema_other_texts(s, not, rule);
    return of_type(s, n, bit, rule);
}

static int by_type(struct schema *s, const struct json_node *n, unsigned uses, uint32_t *rule)
{
    unsigned bits = schema_types(s, n);
    uint32_t of[N_TYPE], n_of = 0;
    struct schema_not not;

    if (bits == 0 || schema_not(s, n, &not) != 0)
        return -1;
    if (uses == IS_NOTE) {
        write_fixed(s, "@-value", rule);
        return 0;
    }
    bits = without(s, &not, meant(uses, bits));
    if (bits == 0)
        return -1;
    if ((bits & T_NUMBER) != 0)
        bits &= ~(unsigned)T_INTEGER;
    for (size_t i = 0; i < N_TYPE; i++)
        if ((bits & types[i].bit) != 0 &&
            some_of_type(s, n, uses, types[i].bit, &not, &of[n_of++]) != 0)
            return -1;
    *rule = of[0];
    if (n_of == 1)
        return 0;
    *rule = schema_begin(s);
    for (uint32_t i = 0; i < n_of; i++) {
        json_raw(s->out, " | ", i > 0 ? 3 : 0);
        schema_name(s, of[i]);
    }
    json_raw(s->out, "\n", 1);
    return 0;
}

int schema_value(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    static const char *const choices[] = { "anyOf", "oneOf", "allOf" };
    unsigned uses;
    int recurs;
    bool any;

    if (json_as_bool(n, &any)) {
        if (!any)
            return err_set(s->e, ERR_ARGUMENT, "the schema at %.200s allows no value", s->path);
        write_fixed(s, "@-value", rule);
        return 0;
    }
    if (n->kind != JSON_IS_OBJECT)
        return err_set(s->e, ERR_ARGUMENT, "the schema at %.200s is not an object", s->path);
    uses = uses_of(s, n);
    if (uses == 0 || schema_fits(s) != 0)
        return -1;
    if (schema_is_merged(n)) {
        recurs = schema_may_recur(s, n);
        if (recurs != 0)
            return recurs < 0 ? -1 : refer_merged(s, n, rule);
        return schema_merged(s, n, rule);
    }
    if (json_member(n, "$ref") != NULL)
        return refer(s, n, rule);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (json_member(n, choices[i]) != NULL)
            return choose(s, n, choices[i], rule);
    if ((uses & IS_VALUES) != 0) {
        if (wrong_beside(s, n, json_member(n, "const") != NULL ? "const" : "enum",
                         IS_NOTE | IS_TYPE | IS_VALUES | IS_NOT) != 0)
            return -1;
        return write_values(s, n, rule);
    }
    return by_type(s, n, uses, rule);
}

int schema_member(struct schema *s, const struct json_node *n, const char *key, int64_t i,
                  uint32_t *rule)
{
    const struct json_node *in = i < 0 ? json_member(n, key) : n;
    char path[SCHEMA_PATH];
    int rc;

    memcpy(path, s->path, sizeof path);
    schema_enter(s, key, -1);
    if (i >= 0)
        schema_enter(s, in->key, i);
    if (schema_origin(in) != NULL)
        snprintf(s->path, sizeof s->path, "%s", schema_origin(in));
    rc = schema_value(s, in, rule);
    if (rc == 0)
        memcpy(s->path, path, sizeof path);
    return rc;
}

/* "name-3 ::= name-7" */
static void write_link(struct schema *s, uint32_t from, uint32_t to)
{
    schema_name(s, from);
    json_raw(s->out, " ::= ", 5);
    schema_name(s, to);
    json_raw(s->out, "\n", 1);
}

int mw_grammar_schema(struct json *out, const char *name, enum mw_notation notation,
                      const struct json_node *schema, const struct json_node *root,
                      uint64_t *work, struct err *e)
{
    struct schema s = { .out = out,
                        .name = name,
                        .notation = notation,
                        .root = root,
                        .n_rule = 1,
                        .work = work != NULL ? *work : 0,
                        .path = "#",
                        .e = e };
    int rc = schema_work(&s, 0);

    if (rc == 0)
        rc = add_target(&s, schema, 0, "#");
    for (; rc == 0 && s.n_written < s.n_target; s.n_written++) {
        uint32_t from = s.target[s.n_written].rule, to;

        memcpy(s.path, s.target[s.n_written].path, sizeof s.path);
        rc = s.target[s.n_written].n_key > 0
                 ? schema_merged(&s, s.target[s.n_written].node, &to)
                 : schema_value(&s, s.target[s.n_written].node, &to);
        if (rc == 0)
            write_link(&s, from, to);
    }
    free(s.target);
    schema_free_made(&s);
    if (work != NULL)
        *work = s.work;
    return rc;
}
