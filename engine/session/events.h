/*
 * events.h - what the engine thread tells the program: a queue and a descriptor to poll.
 *
 * Text that nobody has taken yet grows in its event, progress replaces progress: a slow
 * terminal never slows the engine, and the queue stays short.
 */
#ifndef MEMWALL_ENGINE_SESSION_EVENTS_H
#define MEMWALL_ENGINE_SESSION_EVENTS_H

#include "engine/memwall.h"

struct events;

int events_new(struct events **out, struct err *e);
void events_free(struct events *q);

/* Posting copies.  When memory is out, events that end something (READY, PLAN, DONE, ERROR)
 * still come, others may be dropped. */
void events_post(struct events *q, const struct mw_event *event);
/* A piece of the answer; -1 with *e: it is lost. */
int events_text(struct events *q, const char *text, size_t len, bool is_thinking,
                struct err *e);

bool events_next(struct events *q, struct mw_event *out);
int events_fd(const struct events *q);

#endif
