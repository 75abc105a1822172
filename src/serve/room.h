/*
 * room.h - the memory that all requests and answers of a server may hold together.
 *
 * It is a part of the plan (mw_options.caller_bytes), so it must never be exceeded.  Requests leave
 * a part of it free, so that clients that send long bodies cannot end the answers of others.
 */
#ifndef MEMWALL_SRC_SERVE_ROOM_H
#define MEMWALL_SRC_SERVE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct room {
    uint64_t used, most;
    uint64_t answers; /* the part that requests leave free */
};

/* Take bytes for an answer; false if they do not fit. */
static inline bool room_take(struct room *r, uint64_t bytes)
{
    if (bytes > r->most - r->used)
        return false;
    r->used += bytes;
    return true;
}

/* The same for a request. */
static inline bool room_admit(struct room *r, uint64_t bytes)
{
    return r->most - r->used >= r->answers && bytes <= r->most - r->used - r->answers &&
           room_take(r, bytes);
}

static inline void room_give(struct room *r, uint64_t bytes)
{
    r->used -= bytes;
}

#endif
