/*
 * events.h - the queue of events from the engine thread to the program.
 *
 * Text is appended to an event of text that is still queued, and progress replaces progress. So
 * a slow terminal never slows the engine, and the queue stays short.
 */
#ifndef MEMWALL_ENGINE_SESSION_EVENTS_H
#define MEMWALL_ENGINE_SESSION_EVENTS_H

#include "engine/memwall.h"

struct events;

int events_new(struct events **out, struct err *e);
void events_free(struct events *q);

/* Queue a copy of an event.  Without memory, events that end something (READY, PLAN, DONE,
 * ERROR, and THOUGHT) are still delivered, others may be dropped. */
void events_post(struct events *q, const struct mw_event *event);
/* Queue a piece of the answer.  Returns -1 with *e if it is lost. */
int events_text(struct events *q, const char *text, size_t len, bool is_thinking,
                struct err *e);

bool events_next(struct events *q, struct mw_event *out);
int events_fd(const struct events *q);

#endif
