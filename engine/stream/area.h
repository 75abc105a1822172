/*
 * area.h - an address range of which a growing and shrinking part is memory.
 *
 *     base                     held                      reserved
 *      |  memory (huge pages)    |  only addresses          |
 *
 * The range is reserved once, so nothing in it ever moves.  area_hold() makes its beginning
 * usable, or gives the end back, so that the kernel's charge falls at once.  An area that ends
 * inside a huge page then holds the beginning of it in new small pages, without its content.
 * Huge pages are requested only where a complete one is inside the held part, so none is
 * charged for less.  Direct reads gain most from them, because a request has a limited number
 * of segments: reads of 4 MiB reached 0.95 GB/s into small pages and 2.25 GB/s into huge ones.
 * So the sizes of areas that are read to again and again are whole_huge_pages() of
 * base/units.h.
 */
#ifndef MEMWALL_ENGINE_STREAM_AREA_H
#define MEMWALL_ENGINE_STREAM_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"

struct area {
    const char *name; /* of the plan item, for messages; static storage */
    unsigned char *base;
    uint64_t reserved;
    uint64_t held;
    void *mapping; /* what munmap() gets; base is inside */
    uint64_t mapping_bytes;
};

/* Reserve addresses for `bytes` bytes; with 0 the area is empty. */
int area_reserve(struct area *a, const char *name, uint64_t bytes, struct err *e);

/* How much keeps its content if all but `bytes` is given back.  A huge page loses all of it,
 * since a part of it would stay charged in full. */
uint64_t area_kept(const struct area *a, uint64_t bytes);

/*
 * Hold the first `bytes` bytes, at most those reserved.  New memory is zero, and touched only
 * if `touch` is set.  Memory after area_kept(bytes) is new if the area gets smaller.
 * Returns 0, or -1 with *e and nothing changed.  Only an area that gets smaller may hold no
 * more than area_kept(bytes) after an error.
 */
int area_hold(struct area *a, uint64_t bytes, bool touch, struct err *e);

/* How much of the held part the kernel has in memory. */
uint64_t area_resident(const struct area *a);

/* Safe on a zeroed struct. */
void area_unmap(struct area *a);

#endif
