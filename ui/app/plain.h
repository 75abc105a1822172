/*
 * plain.h - the chat line by line: for screen readers, serial lines, TERM=dumb.
 *
 * Nothing is drawn over and nothing is coloured; what is printed stays.  Lines come from
 * standard input in whatever mode the terminal has.
 */
#ifndef MEMWALL_UI_APP_PLAIN_H
#define MEMWALL_UI_APP_PLAIN_H

#include "ui/ui.h"

/* As ui_chat. */
int plain_chat(const struct ui_chat_options *o, struct err *e);

#endif
