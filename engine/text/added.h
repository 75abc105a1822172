/*
 * added.h - find added tokens (control tokens, user tokens) in raw text.
 *
 * The leftmost match wins, then the longest.  The token texts are sorted, so the search
 * narrows a range byte by byte.  A bitmap of the first two bytes rejects nearly every
 * position of ordinary text with one lookup.
 */
#ifndef MEMWALL_ENGINE_TEXT_ADDED_H
#define MEMWALL_ENGINE_TEXT_ADDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"

struct tokenizer;

struct added {
    uint32_t *id; /* [n], sorted by text */
    uint32_t n;
    uint64_t *starts; /* 65536 bits: set if a token begins with these two bytes */
};

#define ADDED_START_BYTES (65536 / 8) /* of starts */
size_t added_bytes(uint32_t n);

/* Allocate space for n tokens from the arena.  Call added_put for each, then added_sort. */
int added_start(struct added *x, struct arena *a, uint32_t n, struct err *e);
void added_put(struct added *x, uint32_t id);
void added_sort(struct added *x, const struct tokenizer *t);

/* Find the first match in text[from..len).  Returns false if there is none. */
bool added_find(const struct added *x, const struct tokenizer *t, const char *text, size_t from,
                size_t len, size_t *at, size_t *n, uint32_t *id);

/* Returns the token with exactly this text, or -1. */
int64_t added_exact(const struct added *x, const struct tokenizer *t, const char *text,
                    size_t len);

#endif
