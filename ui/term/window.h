/*
 * window.h - sequences for the window around the screen: its title, and messages of the desktop.
 *
 * A terminal prints sequences that it does not know, or drops them.  Those with ESC ] are sent
 * only to terminals whose names are known to take or drop all of them.  Text in them has no
 * control characters.
 *
 *     ESC [22;0t   push the title          ESC ]2;TEXT BEL             set it
 *     ESC [23;0t   pop it                  ESC ]9;TEXT BEL             a message: iTerm2, ConEmu
 *                                          ESC ]777;notify;T;TEXT BEL  urxvt, foot, VTE, WezTerm
 *                                          ESC ]99;...;TEXT ESC \      kitty
 */
#ifndef MEMWALL_UI_TERM_WINDOW_H
#define MEMWALL_UI_TERM_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/options/appearance.h"

/* Does a terminal of this name (TERM) take these sequences, or drop them? */
bool window_is_known(const char *term);

#define WINDOW_PUSH "\033[22;0t"
#define WINDOW_POP  "\033]2;\a\033[23;0t" /* without a stack, at least the text goes */

/* Write the sequence that sets the title.  ascii: other characters become '?'.  Returns buf. */
char *window_title(char *buf, size_t n, const char *text, bool ascii);

/* The way of messages that this terminal takes, from the environment; UI_NOTIFY_OFF: none. */
enum ui_notify window_way(enum ui_notify wish);

/* Write the sequence of a message in this way; "" for UI_NOTIFY_OFF.  Inside tmux it is wrapped
 * for the terminal outside.  Returns buf. */
char *window_message(char *buf, size_t n, enum ui_notify way, const char *title,
                     const char *text, bool ascii);

#endif
