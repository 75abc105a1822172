/*
 * advice.h - the command that follows the advice of a verdict.
 */
#ifndef MEMWALL_UI_TALK_ADVICE_H
#define MEMWALL_UI_TALK_ADVICE_H

#include "ui/talk/talk.h"

/* Write the command, "/memory 1240M"; "" if no command follows the advice.  Returns buf. */
char *advice_command(const struct talk *t, const struct mw_sample *s, char *buf, size_t n);

#endif
