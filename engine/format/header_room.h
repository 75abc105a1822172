/*
 * header_room.h - the memory that the header of a model file takes, and its limit.
 *
 * Tensors, keys and names of headers count in the memory budget.  Each part of format/ that
 * stores them takes room before it allocates and gives it back after it frees.
 */
#ifndef MEMWALL_ENGINE_FORMAT_HEADER_ROOM_H
#define MEMWALL_ENGINE_FORMAT_HEADER_ROOM_H

#include <stdint.h>

#include "engine/base/err.h"

struct header_room {
    uint64_t limit; /* bytes; 0: none */
    uint64_t used;
    uint64_t expected; /* upper bound from the header's counts; 0: not known yet */
};

/* Returns 0, or -1 with *e (ERR_BUDGET) if the limit does not allow it.  room may be NULL. */
int header_room_take(struct header_room *room, uint64_t bytes, struct err *e);
void header_room_give(struct header_room *room, uint64_t bytes);

#endif
