/*
 * context_full.h - a full context: say so, and offer ways to continue.
 */
#ifndef MEMWALL_UI_TALK_CONTEXT_FULL_H
#define MEMWALL_UI_TALK_CONTEXT_FULL_H

#include "ui/talk/talk.h"

/* For talk_front.context_full: say that the context is full. */
void context_full_say(struct talk *t);
/* Show the ways to continue. */
void context_full_offer(struct talk *t);

#endif
