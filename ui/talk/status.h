/*
 * status.h - the last line: what must always be seen.
 *
 * Tokens of context used and left, the budget and what it holds, tokens a second, and what
 * binds; in as many words as there is room for.
 */
#ifndef MEMWALL_UI_TALK_STATUS_H
#define MEMWALL_UI_TALK_STATUS_H

#include "ui/talk/talk.h"
#include "ui/term/canvas.h"

void status_draw(const struct canvas *c, const struct talk *t, const struct mw_sample *s,
                 const char *mode);

/* The same in one line of text, for plain mode and tests; returns buf. */
char *status_text(char *buf, size_t n, const struct talk *t, const struct mw_sample *s,
                  int level);
#define STATUS_LEVELS 4 /* 0: the longest */

#endif
