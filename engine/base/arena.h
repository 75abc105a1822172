/*
 * arena.h - one mapping of memory that a row of the plan owns.
 *
 *     base                used                              size
 *      |  piece | piece |  |            free                 |
 *
 * Each row of the memory plan is one arena: mapped once, carved from the front,
 * returned whole.  Nothing in it is freed alone.  Anonymous mapping of its own, so
 * that giving it back really lowers what the kernel charges.  Not locked: one
 * thread carves.
 *
 * Under AddressSanitizer each piece is followed by a poisoned gap of ARENA_GAP
 * bytes; arena_size() counts it, so sizing functions add pieces through it.
 */
#ifndef MEMWALL_ENGINE_BASE_ARENA_H
#define MEMWALL_ENGINE_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

#define ARENA_ALIGN 64 /* every piece starts on a cache line */

struct arena {
    const char *name; /* of the plan's row, for messages; static storage */
    unsigned char *base;
    size_t used;
    size_t size; /* bytes mapped, whole pages */
};

/* What a piece of n bytes takes from an arena: rounded up, plus the gap. */
size_t arena_size(size_t n);

/*
 * Map size bytes (rounded up to whole pages) and touch them all if touch is set, so
 * that a refusal comes now and not in the middle of an answer.  size 0 is an
 * arena that gives nothing.  Returns 0, or -1 with *e (ERR_MEMORY).
 */
int arena_map(struct arena *a, const char *name, size_t size, bool touch, struct err *e);

/*
 * Carve n bytes, aligned to ARENA_ALIGN, contents zero on first use.
 * Returns NULL with *e (ERR_BUDGET: the plan was smaller than what is taken).
 */
void *arena_take(struct arena *a, size_t n, struct err *e);

/* Give the mapping back; a becomes empty.  Safe on a zeroed struct. */
void arena_unmap(struct arena *a);

#endif
