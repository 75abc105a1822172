/*
 * schema_internal.h - from a JSON schema to rules, between the files that do it.
 *
 *     schema.c           keywords, types, values
 *     schema_refs.c      references
 *     schema_choice.c    alternatives
 *     schema_values.c    objects, arrays, texts
 *     schema_texts.c     names and constants in the notations
 *     schema_pattern.c   texts that match a regular expression
 *     schema_unique.c    lists of different values
 *     schema_not.c       values that "not" excludes
 *     schema_parts.c     one schema of several that must all match
 *     schema_merge.c     alternatives of such schemas: allOf, if, dependentRequired, ...
 *     schema_negate.c    schemas that match what another one does not
 *     schema_made.c      schemas that are in no text
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
        /* For a schema with parts that are merged: n_key addresses that no other one has. */
        const struct json_node **key;
        size_t n_key;
        char path[SCHEMA_PATH];
    } *target;
    size_t n_target, n_written;
    uint64_t work; /* members and values that were looked at, to find others among them */
    unsigned depth; /* of schemas that are merged */
    struct schema_block *block; /* memory of schemas that were made */
    size_t n_taken;             /* bytes of it */
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

enum { T_OBJECT = 1, T_ARRAY = 2, T_STRING = 4, T_NUMBER = 8, T_INTEGER = 16, T_BOOL = 32,
       T_NULL = 64, T_ALL = 127 };

/* The types of a schema as bits, all of them if it names none; 0 with an error.  Does a value have
 * one of them?  Does a keyword constrain nothing? */
unsigned schema_types(struct schema *s, const struct json_node *n);
/* The types that the keyword "type" names, and the name of one type. */
unsigned schema_types_of(struct schema *s, const struct json_node *type);
const char *schema_type_name(unsigned bit);
bool schema_has_type(const struct json_node *v, unsigned types);
bool schema_is_note(const char *keyword);

/* Check that all keywords of a schema are known; -1 with an error. */
int schema_check_keywords(struct schema *s, const struct json_node *n);

/* Read a count; *out stays if there is none. */
int schema_count(struct schema *s, const struct json_node *n, const char *key, uint32_t *out);

/* ---- schema_refs.c ---- */

/* The schema that a reference names; NULL with an error. */
const struct json_node *schema_target_of(struct schema *s, const struct json_node *n);
/* The same, or the schema itself if it has no reference that names one. */
const struct json_node *schema_without_ref(struct schema *s, const struct json_node *n);
/* Let the rules of a schema be written later. */
int schema_add_target(struct schema *s, const struct json_node *n, uint32_t rule,
                      const char *path);
/* Find the rule of a reference, or of a schema whose parts name others. */
int schema_refer(struct schema *s, const struct json_node *n, uint32_t *rule);
int schema_refer_merged(struct schema *s, const struct json_node *n, uint32_t *rule);

/* ---- schema_choice.c ---- */

/* Write the rule of the alternatives of a keyword. */
int schema_choose(struct schema *s, const struct json_node *n, const char *key, uint32_t *rule);
/* Check that the alternatives of oneOf, 256 at most, exclude each other; -1 with an error. */
int schema_check_apart(struct schema *s, const struct json_node *list);

/* ---- schema_values.c ---- */

int schema_object(struct schema *s, const struct json_node *n, uint32_t *rule);
int schema_array(struct schema *s, const struct json_node *n, uint32_t *rule);
int schema_string(struct schema *s, const struct json_node *n, uint32_t *rule);
/* Check a list of names, which may be NULL. */
int schema_names(struct schema *s, const char *keyword, const struct json_node *list);

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

/* ---- schema_made.c ---- */

/*
 * Schemas that merging makes are in memory of the struct schema.  They share what is below them
 * with those that they were made of.  A schema that was made, or that is inside of one, has the
 * path of its origin as its text, for errors.
 */
struct made {
    struct json_node *all, *last; /* an object or array, and its last member */
};

void *schema_take(struct schema *s, size_t n); /* bytes of that memory; NULL with an error */
/* These return NULL, or -1, with an error if there is too much of it. */
struct json_node *schema_make(struct schema *s, enum json_kind kind);
struct json_node *schema_copy(struct schema *s, const struct json_node *n);
const char *schema_text(struct schema *s, const char *text);
int schema_start(struct schema *s, struct made *m, enum json_kind kind);
/* Add a node that is in no other list.  key is NULL in arrays. */
void schema_put(struct made *m, const char *key, struct json_node *n);
/* Add a copy. */
int schema_add(struct schema *s, struct made *m, const char *key, const struct json_node *n);
int schema_add_text(struct schema *s, struct made *m, const char *text);
struct json_node *schema_make_bool(struct schema *s, bool truth);
struct json_node *schema_make_types(struct schema *s, unsigned bits);
/* The path of a schema that has one; NULL: it is where it is in its text. */
const char *schema_origin(const struct json_node *n);
void schema_free_made(struct schema *s);

/* ---- schema_parts.c ---- */

/* The keywords of a schema without alternatives and references. */
enum { P_TYPE, P_ENUM, P_NOT, P_REQUIRED, P_PROPERTIES, P_MORE, P_ITEMS, P_FIRST, P_MIN_ITEMS,
       P_MAX_ITEMS, P_UNIQUE, P_MIN_LENGTH, P_MAX_LENGTH, P_FORMAT, P_PATTERN, P_MINIMUM,
       P_MAXIMUM, P_OVER, P_UNDER, P_MULTIPLE, N_PART };

struct parts {
    const struct json_node *of[N_PART]; /* NULL: it has no such keyword */
};

/* Take the keywords of a schema but for "not" and those of alternatives. */
int schema_parts(struct schema *s, const struct json_node *n, struct parts *out);
/* Make a schema of them; *out is NULL if it matches nothing. */
int schema_of_parts(struct schema *s, struct parts *p, struct json_node **out);
/* Make a schema that matches what two match; *out is NULL if they exclude each other.  Both were
 * made by schema_of_parts(). */
int schema_both(struct schema *s, const struct json_node *a, const struct json_node *b,
                struct json_node **out);

/* ---- schema_merge.c ---- */

/* Must a schema be merged from its parts before there is a rule?  Write its rule. */
bool schema_is_merged(const struct json_node *n);
int schema_merged(struct schema *s, const struct json_node *n, uint32_t *rule);
/* May merging these parts go round in a circle?  -1 with an error. */
int schema_may_recur(struct schema *s, const struct json_node *n);
/* The schema that a chain of references leads to; NULL with an error. */
const struct json_node *schema_end_of(struct schema *s, const struct json_node *n);

/* Make the alternatives of a schema, each of them made of parts. */
int schema_flatten(struct schema *s, const struct json_node *n, struct made *out);
/* Set *a to those that match one of *a and one of b. */
int schema_product(struct schema *s, struct made *a, const struct json_node *b);
/* Add the alternatives of one list to those of another one. */
int schema_append(struct schema *s, struct made *to, struct made *more);
/* Count one more schema within another one; the caller counts it back. */
int schema_descend(struct schema *s);
/* Make one schema of alternatives: false if there are none. */
struct json_node *schema_any(struct schema *s, struct made *list);
/* The schema that both schemas of a member make; NULL stands for one that allows all. */
int schema_conjoin(struct schema *s, const struct json_node *a, const struct json_node *b,
                   struct json_node **out);
/* Put "/key", or "/i" if key is NULL, after the path.  Returns the length that it had. */
size_t schema_enter(struct schema *s, const char *key, int64_t i);

/* ---- schema_negate.c ---- */

/* Make the alternatives of what a schema does not match. */
int schema_negate(struct schema *s, const struct json_node *n, struct made *out);

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
/* Compare two numbers: less than 0, 0, or more.  is_open does not count. */
int schema_compare(const struct number_bound *a, const struct number_bound *b);
/* Read a number.  -1: it has too many digits. */
int schema_decimal(const char *text, struct number_bound *out);

/* ---- schema_multiples.c ---- */

int schema_multiples(struct schema *s, const struct json_node *n,
                     const struct number_bound *least, const struct number_bound *most,
                     bool is_integer, uint32_t *rule);

#endif
