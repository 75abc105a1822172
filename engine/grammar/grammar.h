/*
 * grammar.h - grammars for answers: check one, and make one of a JSON schema.
 *
 * A grammar is a text in GBNF, the notation of llama.cpp (gbnf.h shows it).  An answer with a
 * grammar (mw_chat_options.grammar) has only tokens with which it is still the beginning of a
 * text of the grammar, and ends only where the grammar may end.
 *
 * Grammars and schemas may come from the network.  All work with them is bounded in time and
 * memory, and one that is too large or too ambiguous is an error.
 */
#ifndef MEMWALL_ENGINE_GRAMMAR_GRAMMAR_H
#define MEMWALL_ENGINE_GRAMMAR_GRAMMAR_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

struct json;
struct json_node;

#define MW_GRAMMAR_BYTES ((size_t)1 << 20) /* a longer one is an error */

/* Check a grammar.  -1 with *e, whose offset is a byte of the text. */
int mw_grammar_check(const char *text, size_t len, struct err *e);

/* How values are written. */
enum mw_notation {
    MW_NOTATION_JSON,
    MW_NOTATION_TAGGED, /* JSON between tags: texts have \u003c in place of "<" */
    MW_NOTATION_BARE,   /* {a:1,b:<|"|>text<|"|>}, without white space: calls of Gemma 4 */
};

/*
 * Write the rule `name` and others whose names begin with it: values that match a schema.
 * They use rules that mw_grammar_values() writes, once for any number of schemas.  References
 * name schemas in root.
 *
 * Every answer matches the schema, but not every JSON text that does can be an answer: the
 * members of an object come in the order of the schema, and white space is limited.  A keyword
 * that is not supported is an error that names it and its place in the schema.
 *
 * work: what earlier schemas of the same request took; the work of this one is added.  A schema
 * that takes too much together with them is an error.  NULL: there are no others.
 */
int mw_grammar_schema(struct json *out, const char *name, enum mw_notation notation,
                      const struct json_node *schema, const struct json_node *root,
                      uint64_t *work, struct err *e);
/* Write the rules of values without a schema: json-object, json-string, json-value, ...; with
 * the other notations, tagged-object or bare-object. */
void mw_grammar_values(struct json *out, enum mw_notation notation);
const char *mw_notation_prefix(enum mw_notation notation); /* "json" */

/* Write a complete grammar of the text of a JSON schema.  -1 with *e. */
int mw_grammar_of_schema(struct json *out, const char *schema, size_t len, struct err *e);

/* Write a text in quotes. */
void mw_grammar_literal(struct json *out, const char *text, size_t len);
/* Write rules name-0, name-1, ...: any text, from name-0, in which a mark does not occur.  The
 * first byte of the mark is not in the rest of it. */
void mw_grammar_without(struct json *out, const char *name, const char *mark);

#endif
