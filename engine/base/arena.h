/*
 * arena.h - the memory of one plan item, as one mapping.
 *
 *     base                used                              size
 *      |  piece | piece |  |            free                 |
 *
 * An arena is mapped once, carved from the front and unmapped as a whole; pieces
 * are never freed alone.  Each arena is an anonymous mapping, so unmapping it really
 * lowers the charge.  It has no lock: one thread carves.
 *
 * Under AddressSanitizer a poisoned gap of ARENA_GAP bytes follows each piece.
 * arena_size() includes the gap, so code that computes sizes must add up pieces with
 * arena_size().
 */
#ifndef MEMWALL_ENGINE_BASE_ARENA_H
#define MEMWALL_ENGINE_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"

#define ARENA_ALIGN 64 /* every piece starts on a cache line */

struct arena {
    const char *name; /* of the plan item, for messages; static storage */
    unsigned char *base;
    size_t used;
    size_t size; /* bytes mapped, whole pages */
};

/* Returns the bytes that a piece of n bytes takes from an arena: rounded up, plus the gap. */
size_t arena_size(size_t n);

/*
 * Map size bytes, rounded up to whole pages.  With touch, all pages are touched, so a
 * lack of memory shows now and not in the middle of an answer.  An arena of size 0 has no
 * pieces to give.  Returns 0, or -1 with *e (ERR_MEMORY).
 */
int arena_map(struct arena *a, const char *name, size_t size, bool touch, struct err *e);

/*
 * Carve n bytes, aligned to ARENA_ALIGN and filled with zeros.  Returns NULL with *e
 * (ERR_BUDGET) if the plan was too small.
 */
void *arena_take(struct arena *a, size_t n, struct err *e);

/*
 * Touch a private anonymous mapping from its beginning to its end, in huge pages where complete
 * ones fit, so that it is charged for no more than its size.  A start in a virtual machine
 * spends most of its time here: 64 MiB came at 0.06 GB/s in small pages and at 3.8 GB/s in huge
 * ones.
 */
void memory_touch(void *p, size_t bytes);

/* Read a byte of each page that the kernel has populated.  In some virtual machines the first
 * access of a process to a page takes 9 us more, also after that: the host follows the page tables
 * of the guest only then.  Populating it takes 1.4 us there. */
void memory_enter(const void *p, size_t bytes);

/*
 * Fetch the complete small pages of a private anonymous mapping in one call.  With their first use
 * that takes half as long as a fault for each of them, measured in a virtual machine: 0.6 against
 * 0.3 GB/s.  Without effect before Linux 5.14.
 */
void memory_fetch(void *p, size_t bytes);

/* Touch all of the arena; or give its memory back and keep its pieces, which are then zero. */
void arena_touch(struct arena *a);
void arena_release(struct arena *a);

/* Unmap the arena, which is empty afterwards.  Safe on a zeroed struct. */
void arena_unmap(struct arena *a);

#endif
