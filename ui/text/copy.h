/*
 * copy.h - copies text to the clipboard, in one of three ways.
 *
 *     OSC 52          a sequence that the caller writes to the terminal
 *     tmux            it ignores OSC 52 from programs by default; text is piped to
 *                     `tmux load-buffer -w -`
 *     a file          for text that is too long, or without OSC 52 and tmux
 *
 * The clipboard is never read.
 */
#ifndef MEMWALL_UI_TEXT_COPY_H
#define MEMWALL_UI_TEXT_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"

#define COPY_MAX_OSC52 75000 /* longest sequence in bytes that terminals accept */

enum copy_way { COPY_OSC52, COPY_TMUX, COPY_FILE };

/* in_tmux: $TMUX is set.  dumb: the terminal would print the sequence. */
enum copy_way copy_choose(size_t n, bool in_tmux, bool dumb);

/* Returns ESC ] 52 ; c ; base64 BEL, for free(), with its length in *len; NULL if out of
 * memory. */
char *copy_osc52(const char *text, size_t n, size_t *len);

/* Pass text to tmux and wait until it has read it.  tmux does not get the terminal.  Returns
 * -1 with *e if tmux is missing or refuses. */
int copy_tmux(const char *text, size_t n, struct err *e);

/* Write text to path (mode 0600), completely or not at all. */
int copy_file(const char *path, const char *text, size_t n, struct err *e);

#endif
