/*
 * advice.h - the command that follows the advice of a verdict.
 */
#ifndef MEMWALL_UI_TALK_ADVICE_H
#define MEMWALL_UI_TALK_ADVICE_H

#include "ui/talk/talk.h"

/* Write the command, "/memory 1240M"; "" if no command follows the advice.  buf has the one that
 * was advised before, or "": a size near it stays.  Returns buf. */
char *advice_command(const struct talk *t, const struct mw_sample *s, char *buf, size_t n);

/* Returns the tokens per second that the plan predicts with the command, as the sheet that the
 * command shows; 0: not known, no faster than now, or not a command for the budget. */
double advice_rate(struct talk *t, const char *command);

#endif
