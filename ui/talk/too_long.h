/*
 * too_long.h - a message that does not fit the context, before it is sent.
 *
 * If it were sent, the engine would refuse it, and it would stay in the conversation and keep
 * all later messages from being answered.
 */
#ifndef MEMWALL_UI_TALK_TOO_LONG_H
#define MEMWALL_UI_TALK_TOO_LONG_H

#include "ui/talk/talk.h"

/* Is it known that text, with the attached files or without them, does not fit? */
bool too_long_is(struct talk *t, const char *text, bool with_files, struct mw_cost *out);

/* Offer what would make it fit: a longer context, which then sends it, smaller keys and values,
 * or the beginning of a file.  If nothing is chosen, text goes back into the line.  NULL: a
 * file was attached, and nothing is sent yet. */
void too_long_offer(struct talk *t, const char *text, const struct mw_cost *cost);

#endif
