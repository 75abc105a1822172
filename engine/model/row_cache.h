/*
 * row_cache.h - rows of a lookup table that stay in memory once they were read.
 *
 * A table has a place for each of its rows.  Places are not touched before their row arrives,
 * so the memory in use grows with the text.  The engine's thread alone uses it.
 */
#ifndef MEMWALL_ENGINE_MODEL_ROW_CACHE_H
#define MEMWALL_ENGINE_MODEL_ROW_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/arena.h"

struct row_cache {
    unsigned char *rows; /* NULL: nothing is kept */
    unsigned char *has;  /* a bit per row */
    unsigned char *used; /* a bit per page of the rows */
    uint64_t row_bytes;
    uint64_t held_bytes; /* of the pages that rows are in */
};

/* Returns the bytes that row_cache_init() takes from its arena. */
uint64_t row_cache_bytes(uint64_t n_row, uint64_t row_bytes);
int row_cache_init(struct row_cache *c, struct arena *a, uint64_t n_row, uint64_t row_bytes,
                   struct err *e);

/* Copy a row to dst.  False: it was not read yet. */
bool row_cache_get(const struct row_cache *c, uint32_t row, void *dst);
/* Keep a row that was read; c keeps rows. */
void row_cache_put(struct row_cache *c, uint32_t row, const void *src);

#endif
