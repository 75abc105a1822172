/*
 * tiny_vocab.h - write tokenizer.json files of a few hundred bytes to some KB, in a folder of
 * their own.
 */
#ifndef MEMWALL_TESTS_LIB_TINY_VOCAB_H
#define MEMWALL_TESTS_LIB_TINY_VOCAB_H

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/text/tokenizer.h"

/* Parts of a tokenizer.json as JSON; NULL: the plain one. */
struct tiny {
    bool byte_level;
    const char *texts;         /* further entries of the vocabulary: "\"a\",\"b\"" */
    const char *merges;        /* merges: "\"a b\",[\"c\",\"d\"]" */
    const char *added;         /* objects for added_tokens */
    const char *normalizer;    /* the normalizer; with byte fallback: space to U+2581 */
    const char *pre_tokenizer; /* the pre-tokenizer; with byte level: the pattern of GPT-2 */
    const char *model;         /* further members of the model: "\"ignore_merges\":true" */
    const char *config;        /* tokenizer_config.json */
    const char *template;      /* chat_template.jinja */
};

/* Ids 0 to 255 are the bytes.  The texts follow in their order, then the added tokens. */
#define TINY_FIRST 256

/* Returns the text of the file; the caller frees it. */
char *tiny_json(const struct tiny *t);

/* Open a folder with these files as a model that has only a vocabulary. tiny_close removes the
 * folder. */
struct catalogue *tiny_open(const struct tiny *t);
struct catalogue *tiny_open_text(const char *tokenizer_json, size_t len, const struct tiny *t);
void tiny_close(struct catalogue *c);

#endif
