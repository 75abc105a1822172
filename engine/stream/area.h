/*
 * area.h - address space of which a growing and shrinking part is memory.
 *
 *     base                     held                      reserved
 *      |  memory (huge pages)    |  only addresses          |
 *
 * The whole is reserved once, so that nothing in it ever moves; area_hold() makes a
 * beginning of it usable, or gives the end back so that what the kernel charges falls at
 * once.  Huge pages are asked for, but only where a whole one lies inside what is held:
 * none is ever charged for less.  Direct reads gain most from them: a request has a
 * limited number of segments, and reads of 4 MiB into small pages came at 0.95 GB/s where
 * huge ones gave 2.25.
 */
#ifndef MEMWALL_ENGINE_STREAM_AREA_H
#define MEMWALL_ENGINE_STREAM_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"

struct area {
    const char *name; /* of the plan's row, for messages; static storage */
    unsigned char *base;
    uint64_t reserved;
    uint64_t held;
    void *mapping; /* base rounded down; mapping_bytes to be unmapped */
    uint64_t mapping_bytes;
};

/* Reserve addresses for bytes bytes; 0 is an area that holds nothing. */
int area_reserve(struct area *a, const char *name, uint64_t bytes, struct err *e);

/* How much stays when all but `bytes` is given back: a huge page is not cut, since its
 * memory would stay charged. */
uint64_t area_kept(const struct area *a, uint64_t bytes);

/*
 * Hold the first bytes of it, not more than are reserved.  What is new is zero, and
 * untouched unless `touch` is set; shrinking to area_kept(bytes) or less.
 * Returns 0, or -1 with *e and nothing changed.
 */
int area_hold(struct area *a, uint64_t bytes, bool touch, struct err *e);

/* How much of what is held was touched and is in memory, as the kernel sees it. */
uint64_t area_resident(const struct area *a);

/* Safe on a zeroed struct. */
void area_unmap(struct area *a);

#endif
