/*
 * The rules of objects, arrays and texts.
 *
 * The members of an object come in the order of the schema.  Rule f-i is for members i and later,
 * if none was written; a-i is the same after one, so a comma comes first:
 *
 *     o   ::= "{" space o-f1 space "}"
 *     o-f1 ::= o-m1 o-a2 | o-f2        member 1 may be left out
 *     o-a1 ::= ("," space o-m1)? o-a2
 *     o-f2 ::= o-m2 o-a3               member 2 must be there
 *     o-a2 ::= "," space o-m2 o-a3
 *
 * Two rules for each member, whatever may be left out.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/grammar/schema_internal.h"

#define MEMBERS_MOST 1024

/* ---- objects ---- */

/* A member is the last one of its name, as readers of JSON have it. */
static bool is_last(const struct json_node *all, const struct json_node *m)
{
    return json_member(all, m->key) == m;
}

static bool is_required(const struct json_node *required, const char *key)
{
    for (const struct json_node *r = required != NULL ? required->first : NULL; r != NULL;
         r = r->next)
        if (json_as_string(r) != NULL && strcmp(r->text, key) == 0)
            return true;
    return false;
}

/* "o-m1 ::= "\"key\"" json-colon value" */
static void write_member(struct schema *s, uint32_t object, size_t i, const char *key,
                         uint32_t value)
{
    schema_name(s, object);
    json_print(s->out, "-m%zu ::= ", i);
    schema_key(s, key);
    schema_raw(s, " @-colon ");
    schema_name(s, value);
    schema_raw(s, "\n");
}

static void write_step(struct schema *s, uint32_t object, size_t i, bool must)
{
    schema_name(s, object);
    json_print(s->out, "-f%zu ::= ", i);
    schema_name(s, object);
    json_print(s->out, "-m%zu ", i);
    schema_name(s, object);
    json_print(s->out, "-a%zu", i + 1);
    if (!must) {
        schema_raw(s, " | ");
        schema_name(s, object);
        json_print(s->out, "-f%zu", i + 1);
    }
    schema_raw(s, "\n");
    schema_name(s, object);
    json_print(s->out, "-a%zu ::= ", i);
    schema_raw(s, must ? "\",\" @-space " : "(\",\" @-space ");
    schema_name(s, object);
    json_print(s->out, "-m%zu%s ", i, must ? "" : ")?");
    schema_name(s, object);
    json_print(s->out, "-a%zu\n", i + 1);
}

static void write_end(struct schema *s, uint32_t object, size_t n)
{
    for (int after = 0; after < 2; after++) {
        schema_name(s, object);
        json_print(s->out, "-%c%zu ::= \"\"\n", after ? 'a' : 'f', n);
    }
}

/* An object whose members are not named: any names, and values of one kind. */
static int write_map(struct schema *s, const struct json_node *n, uint32_t object)
{
    const struct json_node *more = json_member(n, "additionalProperties");
    uint32_t value = SCHEMA_VALUE;
    bool is_allowed = true;

    if (more != NULL && json_as_bool(more, &is_allowed))
        more = NULL;
    if (more != NULL && schema_member(s, n, "additionalProperties", -1, &value) != 0)
        return -1;
    schema_name(s, object);
    if (!is_allowed) {
        schema_raw(s, " ::= \"{\" @-space \"}\"\n");
        return 0;
    }
    schema_raw(s, " ::= \"{\" @-space (");
    schema_name(s, object);
    schema_raw(s, "-m (\",\" @-space ");
    schema_name(s, object);
    schema_raw(s, "-m)* @-space)? \"}\"\n");
    schema_name(s, object);
    schema_raw(s, "-m ::= @-name @-colon ");
    schema_name(s, value);
    schema_raw(s, "\n");
    return 0;
}

/* Members that are required, but not described. */
static int add_others(struct schema *s, const struct json_node *n, uint32_t object, size_t *i)
{
    const struct json_node *more = json_member(n, "additionalProperties"),
                           *required = json_member(n, "required"),
                           *all = json_member(n, "properties");
    uint32_t value = SCHEMA_VALUE;
    bool is_allowed = true;

    if (more != NULL && json_as_bool(more, &is_allowed))
        more = NULL;
    for (const struct json_node *r = required != NULL ? required->first : NULL; r != NULL;
         r = r->next) {
        bool is_again = false;

        for (const struct json_node *o = required->first; o != r; o = o->next)
            is_again = is_again || strcmp(o->text, r->text) == 0;
        if (is_again || json_member(all, r->text) != NULL)
            continue;
        if (!is_allowed)
            return schema_wrong(s, "required", ERR_ARGUMENT,
                                "names a member that additionalProperties forbids");
        if (*i == MEMBERS_MOST)
            return schema_wrong(s, "required", ERR_UNSUPPORTED, "has too many members");
        if (more != NULL && value == SCHEMA_VALUE &&
            schema_member(s, n, "additionalProperties", -1, &value) != 0)
            return -1;
        ++*i;
        write_member(s, object, *i, r->text, value);
        write_step(s, object, *i, true);
    }
    return 0;
}

int schema_names(struct schema *s, const char *keyword, const struct json_node *list)
{
    size_t i = 0;

    if (list == NULL)
        return 0;
    if (list->kind != JSON_IS_ARRAY)
        return schema_wrong(s, keyword, ERR_ARGUMENT, "is not a list of names");
    for (const struct json_node *r = list->first; r != NULL; r = r->next, i++)
        if (json_as_string(r) == NULL)
            return schema_wrong(s, keyword, ERR_ARGUMENT, "is not a list of names");
    return i <= MEMBERS_MOST ? 0 : schema_wrong(s, keyword, ERR_UNSUPPORTED,
                                                "has too many members");
}

int schema_object(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    const struct json_node *all = json_member(n, "properties"),
                           *required = json_member(n, "required");
    uint32_t object = *rule = s->n_rule++;
    bool is_allowed;
    size_t i = 0;

    if (all != NULL && all->kind != JSON_IS_OBJECT)
        return schema_wrong(s, "properties", ERR_ARGUMENT, "is not an object");
    if (all != NULL && all->n > MEMBERS_MOST)
        return schema_wrong(s, "properties", ERR_UNSUPPORTED, "has too many members");
    if (schema_names(s, "required", required) != 0)
        return -1;
    if (schema_work(s, (uint64_t)(all != NULL ? all->n : 0) *
                           ((all != NULL ? all->n : 0) + (required != NULL ? required->n : 0)) +
                       (required != NULL ? (uint64_t)required->n * required->n : 0)) != 0)
        return -1;
    if ((all == NULL || all->n == 0) && (required == NULL || required->n == 0))
        return write_map(s, n, object);
    for (const struct json_node *m = all != NULL ? all->first : NULL; m != NULL; m = m->next) {
        uint32_t value;

        /* A member that may have no value may be left out. */
        if (!is_last(all, m) ||
            (json_as_bool(m, &is_allowed) && !is_allowed && !is_required(required, m->key)))
            continue;
        if (schema_member(s, m, "properties", 0, &value) != 0)
            return -1;
        i++;
        write_member(s, object, i, m->key, value);
        write_step(s, object, i, is_required(required, m->key));
    }
    if (add_others(s, n, object, &i) != 0)
        return -1;
    write_end(s, object, i + 1);
    schema_name(s, object);
    schema_raw(s, " ::= \"{\" @-space ");
    schema_name(s, object);
    schema_raw(s, "-f1 @-space \"}\"\n");
    return 0;
}

/* ---- arrays ---- */

/* The items after those that have schemas of their own. */
struct rest {
    uint32_t value, min, max;
};

static void write_comma(struct schema *s, size_t i)
{
    if (i > 0)
        schema_raw(s, " \",\" @-space");
}

static void write_count(struct schema *s, uint32_t min, uint32_t max)
{
    if (max == UINT32_MAX)
        json_print(s->out, "{%u,}", min);
    else
        json_print(s->out, "{%u,%u}", min, max);
}

/* n items were written. */
static void write_rest(struct schema *s, const struct rest *r, size_t n)
{
    uint32_t less = n == 0;

    if (r->max == 0)
        return;
    if (n == 0) {
        schema_raw(s, r->min == 0 ? " (" : " ");
        schema_name(s, r->value);
    }
    schema_raw(s, " (\",\" @-space ");
    schema_name(s, r->value);
    schema_raw(s, ")");
    write_count(s, r->min > less ? r->min - less : 0,
                r->max == UINT32_MAX ? r->max : r->max - less);
    schema_raw(s, n == 0 && r->min == 0 ? " @-space)?" : " @-space");
}

int schema_array(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    const struct json_node *first = json_member(n, "prefixItems"),
                           *items = json_member(n, "items");
    struct rest rest = { SCHEMA_VALUE, 0, UINT32_MAX };
    uint32_t own[64], n_own = 0;
    bool is_allowed = true, is_unique = false;

    if (schema_count(s, n, "minItems", &rest.min) != 0 ||
        schema_count(s, n, "maxItems", &rest.max) != 0)
        return -1;
    if (rest.max < rest.min)
        return schema_wrong(s, "maxItems", ERR_ARGUMENT, "is smaller than minItems");
    if (first != NULL && first->kind != JSON_IS_ARRAY)
        return schema_wrong(s, "prefixItems", ERR_ARGUMENT, "is not a list of schemas");
    if (first != NULL && first->n > sizeof own / sizeof own[0])
        return schema_wrong(s, "prefixItems", ERR_UNSUPPORTED, "has more than 64 items");
    for (const struct json_node *i = first != NULL ? first->first : NULL;
         i != NULL && n_own < rest.max; i = i->next, n_own++)
        if (schema_member(s, i, "prefixItems", n_own, &own[n_own]) != 0)
            return -1;
    if (json_member(n, "uniqueItems") != NULL &&
        !json_as_bool(json_member(n, "uniqueItems"), &is_unique))
        return schema_wrong(s, "uniqueItems", ERR_ARGUMENT, "is not true or false");
    if (is_unique && rest.max > 1 && first != NULL)
        return schema_wrong(s, "uniqueItems", ERR_UNSUPPORTED,
                            "is not supported together with \"prefixItems\"");
    if (items != NULL && json_as_bool(items, &is_allowed))
        items = NULL;
    if (is_unique && is_allowed && rest.max > 1)
        return schema_unique(s, items, rest.min, rest.max, rule);
    if (items != NULL && schema_member(s, n, "items", -1, &rest.value) != 0)
        return -1;
    rest.min -= rest.min < n_own ? rest.min : n_own;
    rest.max = !is_allowed ? 0 : rest.max == UINT32_MAX ? rest.max : rest.max - n_own;
    if (rest.min > rest.max)
        return schema_wrong(s, "minItems", ERR_ARGUMENT, "asks for items that are not allowed");
    /* Without a schema for them, no more items come than must. */
    if (first != NULL && items == NULL)
        rest.max = rest.min;
    *rule = schema_begin(s);
    schema_raw(s, "\"[\" @-space");
    for (uint32_t i = 0; i < n_own; i++) {
        write_comma(s, i);
        schema_raw(s, " ");
        schema_name(s, own[i]);
    }
    write_rest(s, &rest, n_own);
    schema_raw(s, rest.max == 0 && n_own > 0 ? " @-space \"]\"\n" : " \"]\"\n");
    return 0;
}

/* ---- texts ---- */

/* Formats as rules, or as patterns. */
struct format {
    const char *name, *rule, *pattern;
};

#define DATE                                                                                   \
    "[0-9]{4} \"-\" (\"0\" [1-9] | \"1\" [0-2]) \"-\" "                                         \
    "(\"0\" [1-9] | [12] [0-9] | \"3\" [01])"
#define TIME                                                                                   \
    "([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9] \":\" [0-5] [0-9] (\".\" [0-9]{1,6})? "      \
    "(\"Z\" | [-+] ([01] [0-9] | \"2\" [0-3]) \":\" [0-5] [0-9])"
#define BYTE "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define HOST "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?){0,3}"
#define URI_CHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"

static const struct format formats[] = {
    { "date", DATE, NULL },
    { "time", TIME, NULL },
    { "date-time", DATE " \"T\" " TIME, NULL },
    { "uuid", "@-hex{8} \"-\" @-hex{4} \"-\" @-hex{4} \"-\" @-hex{4} \"-\" @-hex{12}", NULL },
    { "ipv4", NULL, "^(" BYTE "\\.){3}" BYTE "$" },
    { "ipv6", NULL, "^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$" },
    { "hostname", NULL, "^" HOST "$" },
    { "email", NULL, "^[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,31})?@" HOST "$" },
    { "uri", NULL,
      "^[a-z][a-z0-9+.-]{0,15}://" HOST "(:[1-9][0-9]{0,3})?(/" URI_CHAR "*)*"
      "(\\?(" URI_CHAR "|[/?])*)?(#(" URI_CHAR "|[/?])*)?$" },
};

static int write_format(struct schema *s, const struct json_node *format, uint32_t *rule)
{
    const char *name = json_as_string(format);
    size_t i = 0;

    if (name == NULL)
        return schema_wrong(s, "format", ERR_ARGUMENT, "is not a text");
    while (i < sizeof formats / sizeof formats[0] && strcmp(formats[i].name, name) != 0)
        i++;
    if (i == sizeof formats / sizeof formats[0])
        return schema_wrong(s, "format", ERR_UNSUPPORTED,
                            "is supported for date, time, date-time, uuid, ipv4, ipv6, hostname, "
                            "email and uri only");
    if (formats[i].pattern != NULL)
        return schema_pattern(s, "format", formats[i].pattern, rule);
    *rule = schema_begin(s);
    schema_quote(s);
    schema_raw(s, formats[i].rule);
    schema_quote(s);
    schema_raw(s, "\n");
    return 0;
}

/* Only one of these can be satisfied at a time. */
static int check_alone(struct schema *s, const struct json_node *n, const char *key)
{
    static const char *const others[] = { "format", "pattern", "minLength", "maxLength" };
    char what[80];

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(key, others[i]) != 0 && json_member(n, others[i]) != NULL) {
            snprintf(what, sizeof what, "is not supported together with \"%s\"", others[i]);
            return schema_wrong(s, key, ERR_UNSUPPORTED, what);
        }
    return 0;
}

int schema_string(struct schema *s, const struct json_node *n, uint32_t *rule)
{
    const struct json_node *format = json_member(n, "format"),
                           *pattern = json_member(n, "pattern");
    uint32_t min = 0, max = UINT32_MAX;

    if (schema_count(s, n, "minLength", &min) != 0 || schema_count(s, n, "maxLength", &max) != 0)
        return -1;
    if (max < min)
        return schema_wrong(s, "maxLength", ERR_ARGUMENT, "is smaller than minLength");
    if (pattern != NULL && json_as_string(pattern) == NULL)
        return schema_wrong(s, "pattern", ERR_ARGUMENT, "is not a text");
    if ((format != NULL && check_alone(s, n, "format") != 0) ||
        (pattern != NULL && check_alone(s, n, "pattern") != 0))
        return -1;
    if (format != NULL)
        return write_format(s, format, rule);
    if (pattern != NULL)
        return schema_pattern(s, "pattern", pattern->text, rule);
    *rule = schema_begin(s);
    if (min == 0 && max == UINT32_MAX) {
        schema_raw(s, "@-string\n");
        return 0;
    }
    schema_quote(s);
    schema_raw(s, "@-char");
    write_count(s, min, max);
    schema_quote(s);
    schema_raw(s, "\n");
    return 0;
}
