/*
 * vocab_added.h - tokens that were added to a vocabulary: the entries of added_tokens in
 * tokenizer.json, and of added_tokens_decoder in tokenizer_config.json.
 */
#ifndef MEMWALL_ENGINE_FORMAT_VOCAB_ADDED_H
#define MEMWALL_ENGINE_FORMAT_VOCAB_ADDED_H

#include <stdbool.h>

#include "engine/format/json.h"
#include "engine/format/names.h"

struct json_added {
    uint32_t id; /* UINT32_MAX: none seen yet */
    bool special, lstrip, rstrip, normalized, single_word;
    const char *text; /* NULL: none seen yet */
    size_t len;
};

/* Start from { 0 }. */
struct added_list {
    struct json_added *all;
    uint32_t n, cap;
    char key[16]; /* of the last entry, the field being read */
    struct name_pool texts;
};

/* Begin an entry; note a field of it; read the value of this field. */
int added_new(struct added_list *l, struct err *e);
void added_key(struct added_list *l, const char *text, size_t len);
int added_value(struct added_list *l, enum json_event event, const char *text, size_t len,
                struct err *e);
void added_free(struct added_list *l);

/* Parse an integer.  Returns false for anything else. */
bool added_id(const char *text, size_t len, uint32_t *id);

#endif
