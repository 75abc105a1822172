/*
 * header_room.h - how much memory the header of a model file takes, and may take.
 *
 * The header's tensors, keys and names count in the memory budget.  Each part of format/ that
 * keeps them takes room before it allocates and gives it back when it frees.
 */
#ifndef MEMWALL_ENGINE_FORMAT_HEADER_ROOM_H
#define MEMWALL_ENGINE_FORMAT_HEADER_ROOM_H

#include <stdint.h>

#include "engine/base/err.h"

struct header_room {
    uint64_t limit; /* bytes; 0: none */
    uint64_t used;
    uint64_t expected; /* the most that the counts in the header lead to; 0: not known yet */
};

/* Returns 0, or -1 with *e (ERR_BUDGET) if the limit does not allow it.  room may be NULL. */
int header_room_take(struct header_room *room, uint64_t bytes, struct err *e);
void header_room_give(struct header_room *room, uint64_t bytes);

#endif
