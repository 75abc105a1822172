/*
 * schema_internal.h - from a JSON schema to rules, between the files that do it.
 *
 *     schema.c           keywords, types, references, alternatives
 *     schema_values.c    objects, arrays, texts
 *     schema_texts.c     names and constants in the notations
 *     schema_pattern.c   texts that match a regular expression
 *     schema_unique.c    lists of different values
 *     schema_not.c       values that "not" excludes
 *     schema_numbers.c   numbers between bounds
 *     schema_multiples.c multiples of a number
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
    uint64_t work; /* members and values that were looked at, to find others among them */
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

/* Check that the rules are not too long yet: a part of a schema may be much shorter than its rule.
 * -1 with an error. */
int schema_fits(struct schema *s);

/* Report what is wrong with a keyword of this schema.  Returns -1. */
int schema_wrong(struct schema *s, const char *keyword, enum err_code code, const char *what);

/* The types of a schema as bits, all of them if it names none; 0 with an error.  Does a value have
 * one of them?  Does a keyword constrain nothing? */
unsigned schema_types(struct schema *s, const struct json_node *n);
bool schema_has_type(const struct json_node *v, unsigned types);
bool schema_is_note(const char *keyword);

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

/* ---- schema_pattern.c ---- */

/* keyword: where the pattern comes from. */
int schema_pattern(struct schema *s, const char *keyword, const char *pattern, uint32_t *rule);

/* ---- schema_not.c ---- */

/* Types, or plain values, that a schema leaves out. */
struct schema_not {
    unsigned types; /* 0: none */
    const struct json_node *first; /* NULL: none */
    bool is_one;                   /* there is no other one */
    bool has_text, has_number;
    uint64_t n, n_byte; /* values, and bytes of the numbers among them */
};

/* Read the keyword of a schema, which may lack it. */
int schema_not(struct schema *s, const struct json_node *n, struct schema_not *out);
/* Is a value one of those?  The work that it takes to know: numbers are read as such. */
uint64_t schema_not_work(const struct schema_not *x, const struct json_node *v);
bool schema_is_out(const struct schema_not *x, const struct json_node *v);
/* Texts other than those. */
int schema_other_texts(struct schema *s, const struct schema_not *x, uint32_t *rule);
/* Are two plain values the same?  Objects and lists never are. */
bool schema_same(const struct json_node *a, const struct json_node *b);

/* ---- schema_unique.c ---- */

/* Lists of `min` to `max` different values that `items` lists. */
int schema_unique(struct schema *s, const struct json_node *items, uint32_t min, uint32_t max,
                  uint32_t *rule);


/* ---- schema_numbers.c ---- */

#define NUMBER_DIGITS 16

/* A bound of numbers: its digits before the point, and those after it without zeros at the end. */
struct number_bound {
    int64_t whole;
    char part[NUMBER_DIGITS + 1];
    bool is_negative;
    bool is_open; /* the number itself is outside */
    bool is_free; /* there is no bound */
};

int schema_integer(struct schema *s, const struct json_node *n, uint32_t *rule);
int schema_number(struct schema *s, const struct json_node *n, uint32_t *rule);
int schema_bounds(struct schema *s, const struct json_node *n, struct number_bound *least,
                  struct number_bound *most);
/* Read a number.  -1: it has too many digits. */
int schema_decimal(const char *text, struct number_bound *out);

/* ---- schema_multiples.c ---- */

int schema_multiples(struct schema *s, const struct json_node *n,
                     const struct number_bound *least, const struct number_bound *most,
                     bool is_integer, uint32_t *rule);

#endif
