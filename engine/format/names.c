#include "config.h"

#include "engine/format/names.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/keyed_hash.h"

#define FIRST_CHUNK ((size_t)1 << 10)
#define MOST_CHUNK  ((size_t)64 << 10)

struct pool_chunk {
    struct pool_chunk *next;
    size_t size;
    char bytes[];
};

char *name_pool_copy(struct name_pool *p, const void *bytes, size_t n, struct err *e)
{
    size_t limit = p->limit != 0 ? p->limit : NAME_POOL_LIMIT;
    char *copy;

    if (n >= limit)
        goto full;
    if (p->first == NULL || p->first->size - p->used < n + 1) {
        size_t size = p->total < MOST_CHUNK ? p->total : MOST_CHUNK; /* as much again */
        struct pool_chunk *chunk;

        size = size > FIRST_CHUNK ? size : FIRST_CHUNK;
        size = size > n ? size : n + 1;
        if (p->total + size > limit)
            goto full;
        if (header_room_take(p->room, sizeof *chunk + size, e) != 0)
            return NULL;
        chunk = malloc(sizeof *chunk + size);
        if (chunk == NULL) {
            header_room_give(p->room, sizeof *chunk + size);
            err_memory(e, "the names of a model file");
            return NULL;
        }
        chunk->next = p->first;
        chunk->size = size;
        p->first = chunk;
        p->used = 0;
        p->total += size;
    }
    copy = p->first->bytes + p->used;
    if (n > 0)
        memcpy(copy, bytes, n);
    copy[n] = '\0';
    p->used += n + 1;
    return copy;

full:
    err_set(e, ERR_FORMAT, "names and values of the header need more than %zu MiB",
            limit >> 20);
    return NULL;
}

void name_pool_free(struct name_pool *p)
{
    while (p->first != NULL) {
        struct pool_chunk *next = p->first->next;

        header_room_give(p->room, sizeof *p->first + p->first->size);
        free(p->first);
        p->first = next;
    }
    p->used = p->total = 0;
}

static struct name_slot *slot_of(const struct name_index *x, const char *name)
{
    uint32_t mask = x->n_slot - 1;

    for (uint32_t i = (uint32_t)keyed_hash(hash_key(), name, strlen(name)) & mask;;
         i = (i + 1) & mask) {
        struct name_slot *s = &x->slots[i];

        if (s->name == NULL || strcmp(s->name, name) == 0)
            return s;
    }
}

static int grow(struct name_index *x, struct err *e)
{
    struct name_index wider = { .n_slot = x->n_slot != 0 ? x->n_slot * 2 : 256,
                                .n_name = x->n_name,
                                .room = x->room };

    if (header_room_take(x->room, wider.n_slot * sizeof *wider.slots, e) != 0)
        return -1;
    wider.slots = calloc(wider.n_slot, sizeof *wider.slots);
    if (wider.slots == NULL) {
        header_room_give(x->room, wider.n_slot * sizeof *wider.slots);
        return err_memory(e, "a table of %u names", wider.n_slot);
    }
    for (uint32_t i = 0; i < x->n_slot; i++)
        if (x->slots[i].name != NULL)
            *slot_of(&wider, x->slots[i].name) = x->slots[i];
    name_index_free(x);
    *x = wider;
    return 0;
}

int name_index_add(struct name_index *x, const char *name, uint32_t value, struct err *e)
{
    struct name_slot *s;

    if (x->n_name >= x->n_slot / 2 && grow(x, e) != 0)
        return -1;
    s = slot_of(x, name);
    if (s->name != NULL)
        return 1;
    *s = (struct name_slot){ name, value };
    x->n_name++;
    return 0;
}

int64_t name_index_find(const struct name_index *x, const char *name)
{
    const struct name_slot *s;

    if (x->n_slot == 0)
        return -1;
    s = slot_of(x, name);
    return s->name != NULL ? (int64_t)s->value : -1;
}

void name_index_free(struct name_index *x)
{
    header_room_give(x->room, x->n_slot * sizeof *x->slots);
    free(x->slots);
    *x = (struct name_index){ .room = x->room };
}
