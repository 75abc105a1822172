/*
 * names.h - strings that live as long as their owner, and an index of them.
 *
 * A pool stores copies that are freed together.  It does not grow past its limit, so a file
 * with a million long names cannot use more.  An index finds the number that was stored with a
 * name. Its hash is keyed, so no file can be written to make it slow.
 */
#ifndef MEMWALL_ENGINE_FORMAT_NAMES_H
#define MEMWALL_ENGINE_FORMAT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/header_room.h"

struct pool_chunk;

struct name_pool {
    struct pool_chunk *first;
    size_t used;              /* of the first chunk */
    size_t total;             /* bytes taken from the system */
    size_t limit;             /* 0: NAME_POOL_LIMIT */
    struct header_room *room; /* the chunks are taken from it; NULL: not counted */
};

#define NAME_POOL_LIMIT ((size_t)24 << 20)

/* Returns a copy of n bytes with a NUL at its end, or NULL with *e. */
char *name_pool_copy(struct name_pool *p, const void *bytes, size_t n, struct err *e);
void name_pool_free(struct name_pool *p);

struct name_slot {
    const char *name; /* NULL: free */
    uint32_t value;
};

struct name_index {
    struct name_slot *slots;
    uint32_t n_slot; /* a power of two, or 0 */
    uint32_t n_name;
    struct header_room *room; /* as in a pool */
};

/* Add a name, which must outlive the index.  Returns 0, 1 if it exists (nothing changes), or -1
 * with *e. */
int name_index_add(struct name_index *x, const char *name, uint32_t value, struct err *e);

/* Returns the value, or -1 if the name does not exist. */
int64_t name_index_find(const struct name_index *x, const char *name);
void name_index_free(struct name_index *x);

#endif
