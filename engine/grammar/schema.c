/*
 * The keywords of a JSON schema.
 *
 * A schema inside another one is read where it is, and its depth is that of the JSON text, which
 * the reader bounds.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define COUNT_MOST 1000000000
#define WORK_MOST  20000000

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
            return recurs < 0 ? -1 : schema_refer_merged(s, n, rule);
        return schema_merged(s, n, rule);
    }
    if (json_member(n, "$ref") != NULL)
        return schema_refer(s, n, rule);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (json_member(n, choices[i]) != NULL)
            return schema_choose(s, n, choices[i], rule);
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
        rc = schema_add_target(&s, schema, 0, "#");
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
