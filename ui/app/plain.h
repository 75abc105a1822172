/*
 * plain.h - the chat line by line, for screen readers, serial lines and TERM=dumb.
 *
 * Plain mode only appends lines, without colours.  It reads lines from standard input and
 * leaves the terminal's modes alone.
 */
#ifndef MEMWALL_UI_APP_PLAIN_H
#define MEMWALL_UI_APP_PLAIN_H

#include "ui/ui.h"

/* The same as ui_chat. */
int plain_chat(const struct ui_chat_options *o, struct err *e);

#endif
