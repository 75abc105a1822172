/*
 * split.h - the published pre-tokenizer patterns, run through PCRE2.
 *
 * Byte-level vocabularies cut a text into words, numbers, runs of signs and of white
 * space before anything merges.  Each pattern is a list of regular expressions: the
 * first cuts the text, the next each piece of it, and so on; stretches between matches
 * are pieces too.
 */
#ifndef MEMWALL_ENGINE_TEXT_SPLIT_H
#define MEMWALL_ENGINE_TEXT_SPLIT_H

#include <stddef.h>

#include "engine/base/err.h"

/* The approximate size of a split and its machine code; counted with the tokenizer. */
#define SPLIT_BYTES ((size_t)128 << 10)

struct split;

/* name is vocab_info's pre.  Any thread may use a split. */
int split_new(struct split **out, const char *name, struct err *e);
void split_free(struct split *s);

/* Called for each piece in order; -1 ends the splitting. */
typedef int split_piece(void *ctx, const char *text, size_t len, struct err *e);

/* text is valid UTF-8. */
int split_text(const struct split *s, const char *text, size_t len, split_piece *piece,
               void *ctx, struct err *e);

#endif
