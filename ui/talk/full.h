/*
 * full.h - the context is full: what can be done, and what was dropped.
 */
#ifndef MEMWALL_UI_TALK_FULL_H
#define MEMWALL_UI_TALK_FULL_H

#include <stddef.h>

#include "ui/talk/talk.h"

/* The answer has ended because the context is full: say so, with choices. */
void full_offer(struct talk *t);

/* The model sees the oldest n messages no more: mark them, and say which in buf. */
void full_dropped(struct talk *t, size_t n, char *buf, size_t room);

#endif
