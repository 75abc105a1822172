/*
 * added.h - finds added tokens (control tokens, user tokens) in a raw text.
 *
 * Leftmost, then longest.  The texts stand sorted, so a match is found by narrowing a
 * range byte by byte; a table of the first two bytes lets nearly every place of an
 * ordinary text pass with one look.
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
    uint64_t *starts; /* 65536 bits: a token begins with these two bytes */
};

size_t added_bytes(uint32_t n);

/* Room for n tokens from the arena; then added_put each, then added_sort. */
int added_start(struct added *x, struct arena *a, uint32_t n, struct err *e);
void added_put(struct added *x, uint32_t id);
void added_sort(struct added *x, const struct tokenizer *t);

/* The first match in text[from..len): its place and length, or false. */
bool added_find(const struct added *x, const struct tokenizer *t, const char *text, size_t from,
                size_t len, size_t *at, size_t *n, uint32_t *id);

/* The token with exactly this text, or -1. */
int64_t added_exact(const struct added *x, const struct tokenizer *t, const char *text,
                    size_t len);

#endif
