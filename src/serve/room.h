/*
 * room.h - the memory that all requests and answers of a server may hold together.
 *
 * It is a part of the plan (mw_options.caller_bytes), so it must never be exceeded.
 */
#ifndef MEMWALL_SRC_SERVE_ROOM_H
#define MEMWALL_SRC_SERVE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct room {
    uint64_t used, most;
};

/* Take bytes; false if they do not fit. */
static inline bool room_take(struct room *r, uint64_t bytes)
{
    if (bytes > r->most - r->used)
        return false;
    r->used += bytes;
    return true;
}

static inline void room_give(struct room *r, uint64_t bytes)
{
    r->used -= bytes;
}

#endif
