/*
 * status.h - the status bar, the last line of the screen.
 *
 * It shows the tokens of context used and left, the budget and how much of it is used, tokens
 * per second, what limits them, and the limit of --disk-rate.  Narrow screens get a shorter
 * wording.  Changes of options that are not in force yet are at the right end, or alone if both
 * do not fit.
 */
#ifndef MEMWALL_UI_APP_STATUS_H
#define MEMWALL_UI_APP_STATUS_H

#include "ui/talk/talk.h"
#include "ui/term/canvas.h"

void status_draw(const struct canvas *c, const struct talk *t, const struct mw_sample *s,
                 const char *mode);

#endif
