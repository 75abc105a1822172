/*
 * gbnf.h - read a grammar in GBNF, the notation of llama.cpp.
 *
 *     root   ::= object | "null"           alternatives; "root" is the rule to begin with
 *     object ::= "{" (pair ("," pair)*)? "}"
 *     digit  ::= [0-9] [^"\\\x00-\x1f]     sets of characters, also . for any of them
 *     many   ::= digit{1,16} digit* digit+ digit?
 *     call   ::= <|tool_call> <"[ARGS]"> <[42]>   a token by its text or by its id
 *     # a comment
 */
#ifndef MEMWALL_ENGINE_GRAMMAR_GBNF_H
#define MEMWALL_ENGINE_GRAMMAR_GBNF_H

#include "engine/grammar/program.h"

/* Returns the id of the token with this text, or -1: it is not a token but spelled with others. */
typedef int64_t gbnf_token_fn(const void *ctx, const char *text, size_t len);

/*
 * Returns 0 and a complete program, which program_free() frees, or -1 with *e, whose offset is a
 * byte of the text.  find may be NULL, to check a grammar without a vocabulary.
 */
int gbnf_parse(struct program **out, const char *text, size_t len, gbnf_token_fn *find,
               const void *ctx, struct err *e);

#endif
