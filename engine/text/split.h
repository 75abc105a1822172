/*
 * split.h - split text with the published pre-tokenizer patterns, using PCRE2.
 *
 * Byte-level vocabularies, and others that were saved again, cut text into words, numbers, runs of punctuation and runs of
 * white space before any merge.  Each pattern is a list of regular expressions.  The first
 * one cuts the text, the next one cuts each of the pieces, and so on.  The text between two
 * matches is a piece, too.
 */
#ifndef MEMWALL_ENGINE_TEXT_SPLIT_H
#define MEMWALL_ENGINE_TEXT_SPLIT_H

#include <stddef.h>

#include "engine/base/err.h"

/* Approximate size of a split and its machine code, counted with the tokenizer. */
#define SPLIT_BYTES ((size_t)128 << 10)

struct split;

/* How pieces and the words of a text are related. */
enum words {
    WORDS_CUT,    /* a piece ends before the next word */
    WORDS_JOINED, /* words that a space separates are one piece, which punctuation ends */
    WORDS_KEPT,   /* pieces ignore words */
};

/* names are the patterns of vocab_info, joined by "+".  Any thread may use a split. */
int split_new(struct split **out, const char *names, struct err *e);
/* Several patterns cut words if one of them does. */
enum words split_words(const struct split *s);
void split_free(struct split *s);

/* Receives each piece in order.  Returns -1 to stop. */
typedef int split_piece(void *ctx, const char *text, size_t len, struct err *e);

/* text must be valid UTF-8. */
int split_text(const struct split *s, const char *text, size_t len, split_piece *piece,
               void *ctx, struct err *e);

#endif
