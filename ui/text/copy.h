/*
 * copy.h - how text leaves for the clipboard, in three ways.
 *
 *     OSC 52          bytes for the terminal (the caller writes them): "sent to the terminal"
 *     tmux            it ignores OSC 52 of programs by default; text goes to
 *                     `tmux load-buffer -w -` on a pipe: "copied to tmux"
 *     a file          when the text is too long for both or nothing else is there
 *
 * Nothing is ever read from the clipboard.
 */
#ifndef MEMWALL_UI_TEXT_COPY_H
#define MEMWALL_UI_TEXT_COPY_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"

#define COPY_MAX_OSC52 75000 /* bytes of the sequence that terminals take */

enum copy_way { COPY_OSC52, COPY_TMUX, COPY_FILE };

/* in_tmux: $TMUX is set.  dumb: the terminal is one that would show the bytes. */
enum copy_way copy_choose(size_t n, bool in_tmux, bool dumb);

/* The sequence ESC ] 52 ; c ; base64 BEL for malloc, length in *len; NULL: no memory. */
char *copy_osc52(const char *text, size_t n, size_t *len);

/* Give text to tmux.  Returns when tmux has taken it; its standard input, output and
 * error are not the terminal.  -1 with *e when it is not there or refuses. */
int copy_tmux(const char *text, size_t n, struct err *e);

/* Write text to path (0600, whole or not at all). */
int copy_file(const char *path, const char *text, size_t n, struct err *e);

#endif
