/*
 * status.h - the status bar, the last line of the screen.
 *
 * It shows the state, the model and its type, the budget and how much of it is used, the type
 * of keys and values, the context used and left, tokens per second, what limits them, and the
 * limit of --disk-rate.  Narrow screens get shorter wordings, and then fewer of them; from 80
 * columns on, the model is always named.  Changes of options that are not in force yet are at
 * the right end.  Predictions are marked with "~".
 */
#ifndef MEMWALL_UI_APP_STATUS_H
#define MEMWALL_UI_APP_STATUS_H

#include "ui/talk/talk.h"
#include "ui/term/canvas.h"

/* The state in words: "ready", "reading prompt", "loading 13 %".  Returns buf. */
char *status_state(const struct talk *t, const struct mw_sample *s, char *buf, size_t n);

/* Tokens per second that were measured, as the bar shows them; 0: none yet. */
double status_rate(const struct talk *t, const struct mw_sample *s);

void status_draw(const struct canvas *c, const struct talk *t, const struct mw_sample *s,
                 const char *mode);

#endif
