/*
 * names.h - strings that live as long as their owner, and a table to find them.
 *
 * A pool hands out copies that are freed together and refuses to grow past its
 * limit, so that a file of a million long names costs no more than that.  An index
 * finds the number that a name was entered with; its hash is keyed, so that no file can
 * be written to make it slow.
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
    size_t total;             /* bytes asked of the system */
    size_t limit;             /* 0: NAME_POOL_LIMIT */
    struct header_room *room; /* that the chunks are taken from; NULL: none counts them */
};

#define NAME_POOL_LIMIT ((size_t)24 << 20)

/* A copy of n bytes with a NUL behind it, or NULL with *e. */
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
    struct header_room *room; /* as of a pool */
};

/* Enter a name, which must outlive the index.  Returns 0; 1 if it was there already
 * (nothing changed); or -1 with *e. */
int name_index_add(struct name_index *x, const char *name, uint32_t value, struct err *e);

/* Returns the value, or -1 if the name is not there. */
int64_t name_index_find(const struct name_index *x, const char *name);
void name_index_free(struct name_index *x);

#endif
