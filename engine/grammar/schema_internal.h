/*
 * schema_internal.h - from a JSON schema to rules, between the files that do it.
 *
 *     schema.c           keywords, types, references, alternatives
 *     schema_values.c    objects, arrays, texts
 *     schema_texts.c     names and constants in the notations
 *     schema_numbers.c   whole numbers between bounds
 */
#ifndef MEMWALL_ENGINE_GRAMMAR_SCHEMA_INTERNAL_H
#define MEMWALL_ENGINE_GRAMMAR_SCHEMA_INTERNAL_H

#include "engine/base/json_write.h"
#include "engine/format/json.h"
#include "engine/grammar/grammar.h"

#define SCHEMA_PATH 512

struct schema {
    struct json *out;
    const char *name; /* of the rules */
    enum mw_notation notation;
    const struct json_node *root;
    uint32_t n_rule;
    /* Definitions that references name.  The rules of those from n_written on are not written. */
    struct schema_target {
        const struct json_node *node;
        uint32_t rule;
        char path[SCHEMA_PATH];
    } *target;
    size_t n_target, n_written;
    uint64_t work; /* members that were looked at, to find names among them */
    char path[SCHEMA_PATH]; /* of the schema that is read: "#/properties/a" */
    struct err *e;
};

#define SCHEMA_VALUE UINT32_MAX /* the rule of any JSON value */

/* Write the rules of a schema, the first of which is number *rule. */
int schema_value(struct schema *s, const struct json_node *n, uint32_t *rule);
/* The same for the member `key` of a schema, or item i of such a list; NULL: any value. */
int schema_member(struct schema *s, const struct json_node *n, const char *key, int64_t i,
                  uint32_t *rule);

/* Write a part of a rule, in which @ stands for the prefix of the notation: "@-space". */
void schema_raw(struct schema *s, const char *text);
void grammar_write(struct json *out, enum mw_notation notation, const char *text);

/* Begin a new rule: "name-3 ::= ".  Write the name of a rule. */
uint32_t schema_begin(struct schema *s);
void schema_name(struct schema *s, uint32_t rule);

/* Count work that grows with the square of a schema.  -1 with an error if it is too much. */
int schema_work(struct schema *s, uint64_t n);

/* Report what is wrong with a keyword of this schema.  Returns -1. */
int schema_wrong(struct schema *s, const char *keyword, enum err_code code, const char *what);

/* Read a count; *out stays if there is none. */
int schema_count(struct schema *s, const struct json_node *n, const char *key, uint32_t *out);

/* ---- schema_values.c ---- */

int schema_object(struct schema *s, const struct json_node *n, uint32_t *rule);
int schema_array(struct schema *s, const struct json_node *n, uint32_t *rule);
int schema_string(struct schema *s, const struct json_node *n, uint32_t *rule);

/* ---- schema_texts.c ---- */

/* Write a value, the name of a member, or what opens and closes a text. */
void schema_constant(struct schema *s, const struct json_node *n);
void schema_key(struct schema *s, const char *key);
void schema_quote(struct schema *s);

/* ---- schema_numbers.c ---- */

int schema_integer(struct schema *s, const struct json_node *n, uint32_t *rule);

#endif
