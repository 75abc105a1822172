/*
 * term.h - opens the terminal, draws on it, and restores it on every exit.
 *
 * A process has one terminal, used by one thread.  It is /dev/tty instead of descriptors 0 to
 * 2, so that a prompt can be piped in and library output does not spoil the screen: while the
 * screen is up, descriptors 1 and 2 go to the log.  Signals are blocked and read from a
 * descriptor; signals that end the program restore the terminal first.
 *
 *     term_new      locale, /dev/tty, signals     (still the ordinary screen, without echo)
 *     term_start    newterm, modes                (the alternate screen)
 *     term_suspend / term_resume, term_run        (out and in again)
 *     term_free     everything as it was before term_new
 */
#ifndef MEMWALL_UI_TERM_TERM_H
#define MEMWALL_UI_TERM_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/memwall.h"
#include "ui/look/theme.h"
#include "ui/options/appearance.h"
#include "ui/term/canvas.h"
#include "ui/term/keys.h"

struct term;

struct term_options {
    const struct ui_options *ui;
    const char *log_path;   /* NULL: output printed while the screen is up is lost */
    const char *config_dir; /* of the user's themes; must outlive the terminal; may be NULL */
};

/* Returns -1 with *e; ERR_UNSUPPORTED: only plain mode works on this terminal. */
int term_new(struct term **out, const struct term_options *o, struct err *e);
/* Show the screen.  Asks the terminal for its background, at most 200 ms long; keys gets what
 * was typed meanwhile. */
int term_start(struct term *t, struct keys *keys, struct err *e);
/* Drop what was typed and not read, so that a shell does not run it. */
void term_drop_typed(struct term *t);
void term_free(struct term *t); /* t may be NULL */

FILE *term_in(struct term *t);
/* Returns the number of bytes typed before the screen was up; in them Enter is a line feed. */
size_t term_typed_ahead(const struct term *t);
int term_fd(const struct term *t);
int term_signal_fd(const struct term *t);
/* Returns the next pending signal, or 0. */
int term_signal(struct term *t);
/* Do what sig asks for if it is a new size, a stop or a continuation; everything must be drawn
 * again then.  Returns false if it is another signal. */
bool term_obey(struct term *t, int sig);
/* Read what was typed.  Returns false if the terminal is gone. */
bool term_read(struct term *t, struct keys *k);

bool term_is_ascii(const struct term *t);
enum ui_graph term_graph(const struct term *t); /* best characters for curves */
/* Change the theme; everything must be drawn again.  Returns -1 with *e if there is none. */
int term_set_theme(struct term *t, const char *name, struct err *e);
const char *term_theme(const struct term *t); /* its name */
/* Take a unit of input that may report the background late, or has it changed.  Returns whether
 * the colours are others now. */
bool term_take_reply(struct term *t, const struct key *key);

/* Returns the whole screen.  Draw, then call term_frame. */
struct canvas term_canvas(struct term *t);
/* Show the drawing, with the cursor at y, x (hidden if y is negative).  is_large: many lines
 * changed, so the terminal should show them in one frame. */
void term_frame(struct term *t, int y, int x, bool is_large);
/* Is the terminal larger than CANVAS_MAX_CELLS? */
bool term_is_cut(const struct term *t);
void term_redraw(struct term *t);
/* Send all cells of n rows with the next frame, without clearing the screen first. */
void term_redraw_rows(struct term *t, int y, int n);

/* Leave the screen and stop the process.  Returns after SIGCONT, with the screen restored. */
void term_stop(struct term *t);
/* Run a program (argv[0] from PATH) on the terminal.  Returns its exit status, or -1. */
int term_run(struct term *t, char *const argv[], struct err *e);

void term_set_mouse(struct term *t, bool on);
/* Set the title of the window.  "": leave it, or restore the one before.  It is sent only if it
 * is another, and not to terminals that might print it. */
void term_set_title(struct term *t, const char *text);
/* Send bytes that neither draw nor move the cursor (OSC 52). */
void term_send(struct term *t, const char *bytes, size_t n);

struct term_counts {
    uint64_t frames, bytes; /* sent to the terminal */
};
struct term_counts term_counts(const struct term *t);

#endif
