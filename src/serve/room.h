/*
 * room.h - the memory that all requests and answers of a server may hold together.
 *
 * It is a part of the plan (mw_options.caller_bytes), so it must never be exceeded.  No client
 * loses its request or its answer because others do not read theirs:
 *
 *   - Requests have a part of their own.  One that does not fit it is refused.
 *   - An answer begins once the memory for one is free in the part of answers, and has it until
 *     it is over.  Until then the request waits.
 *   - An answer that is over holds only the bytes that its client has not read.  If the next one
 *     cannot begin, clients that had the time of a request to read theirs are cut.
 *
 * Streams that wait need none of it: what they say fits the allowance of their connection
 * (WEB_OUT_BYTES).
 */
#ifndef MEMWALL_SRC_SERVE_ROOM_H
#define MEMWALL_SRC_SERVE_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct room {
    uint64_t used, most;
};

struct rooms {
    struct room requests, answers;
    uint64_t answer; /* bytes for one that is being made */
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
