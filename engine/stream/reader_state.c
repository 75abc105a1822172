/* The table of stream_internal.h. */
#include "config.h"

#include <assert.h>

#include "engine/stream/stream_internal.h"

/* READER_NONE: the event cannot happen in this state. */
static const enum reader_state state_after[READER_STATES][READER_EVENTS] = {
    [READER_STARTING] = {
        [EVENT_OPENED] = READER_WALKING,
        [EVENT_BROKEN] = READER_DEAD,
    },
    [READER_WALKING] = {
        [EVENT_READ_FAILED] = READER_FAILED,
        [EVENT_PASS] = READER_WALKING,
        [EVENT_HOLD] = READER_HOLDING,
        [EVENT_BROKEN] = READER_DEAD,
        [EVENT_CLOSE] = READER_QUITTING,
    },
    [READER_HOLDING] = {
        [EVENT_READ_FAILED] = READER_HOLDING,
        [EVENT_RELEASE] = READER_WALKING,
        [EVENT_RING_GONE] = READER_RING_LOST,
        [EVENT_BROKEN] = READER_DEAD,
    },
    [READER_FAILED] = {
        [EVENT_READ_FAILED] = READER_FAILED,
        [EVENT_PASS] = READER_WALKING,
        [EVENT_HOLD] = READER_HOLDING,
        [EVENT_BROKEN] = READER_DEAD,
        [EVENT_CLOSE] = READER_QUITTING,
    },
    [READER_RING_LOST] = {
        [EVENT_PASS] = READER_RING_LOST,
        [EVENT_HOLD] = READER_HOLDING,
        [EVENT_RELEASE] = READER_RING_LOST,
        [EVENT_BROKEN] = READER_DEAD,
        [EVENT_CLOSE] = READER_QUITTING,
    },
    [READER_DEAD] = {
        [EVENT_PASS] = READER_DEAD,
        [EVENT_HOLD] = READER_DEAD,
        [EVENT_RELEASE] = READER_DEAD,
        [EVENT_RING_GONE] = READER_DEAD,
        [EVENT_CLOSE] = READER_QUITTING,
    },
    [READER_QUITTING] = {
        [EVENT_READ_FAILED] = READER_QUITTING,
        [EVENT_BROKEN] = READER_QUITTING,
    },
};

void reader_change(struct stream *s, enum reader_event event)
{
    enum reader_state to = state_after[s->state][event];

    assert(to != READER_NONE);
    s->state = to;
}

bool reader_has_failed(const struct stream *s)
{
    switch (s->state) {
    case READER_FAILED:
    case READER_RING_LOST:
    case READER_DEAD: return true;
    case READER_NONE:
    case READER_STARTING:
    case READER_WALKING:
    case READER_HOLDING:
    case READER_QUITTING:
    case READER_STATES: break;
    }
    return false;
}
