/*
 * term.h - the terminal: opened, drawn on, given back, whatever happens.
 *
 * One terminal a process, used by one thread.  It is /dev/tty and not descriptors 0 to 2,
 * so that a prompt can be piped in and nothing that a library prints lands in the picture:
 * while the screen is up, 1 and 2 point at the log.  Signals are blocked and read from a
 * descriptor; the ones that kill restore the terminal first.
 *
 *     term_new      locale, /dev/tty, signals     (still the ordinary screen)
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
#include "ui/term/canvas.h"
#include "ui/term/theme.h"
#include "ui/ui.h"

struct term;

struct term_options {
    const struct ui_options *ui;
    const char *log_path; /* NULL: what is printed while the screen is up is lost */
};

/* -1 with *e: ERR_UNSUPPORTED when this terminal cannot be drawn on (plain mode can). */
int term_new(struct term **out, const struct term_options *o, struct err *e);
int term_start(struct term *t, const struct theme *theme, struct err *e);
void term_free(struct term *t); /* t may be NULL */

FILE *term_in(struct term *t);
/* Bytes that were typed before the screen was there: of their line feeds some were Enter. */
size_t term_typed_ahead(const struct term *t);
int term_fd(const struct term *t);
int term_signal_fd(const struct term *t);
/* The next signal that came, or 0. */
int term_signal(struct term *t);

bool term_is_ascii(const struct term *t);
enum ui_colors term_colors(const struct term *t);
enum ui_graph term_graph(const struct term *t); /* what curves are best drawn with */
void term_set_theme(struct term *t, const struct theme *theme);

/* All of the screen.  Draw, then term_frame. */
struct canvas term_canvas(struct term *t);
/* Show what was drawn, with the cursor at y, x (y negative: hidden).  is_large: many lines
 * changed, so that it should appear at once. */
void term_frame(struct term *t, int y, int x, bool is_large);
/* The size may have changed; all is to be drawn again.  Also for Ctrl-L. */
void term_resized(struct term *t);
/* Is the terminal larger than what is drawn on (CANVAS_MAX_CELLS)? */
bool term_is_cut(const struct term *t);
void term_redraw(struct term *t);

/* Leave the screen and stop; returns when the program goes on, the screen being back. */
void term_stop(struct term *t);
/* The screen was left to others without a word (SIGSTOP and back): take it again. */
void term_retake(struct term *t);
/* Run a program (argv[0] by PATH) on the terminal and wait.  Its exit status, or -1. */
int term_run(struct term *t, char *const argv[], struct err *e);

void term_set_mouse(struct term *t, bool on);
/* Bytes for the terminal that draw nothing and move no cursor (OSC 52). */
void term_send(struct term *t, const char *bytes, size_t n);

struct term_counts {
    uint64_t frames, bytes; /* bytes: with count_bytes only, where the kernel counts */
};
struct term_counts term_counts(const struct term *t);

/* Nanoseconds, CLOCK_MONOTONIC. */
uint64_t term_now_ns(void);

#endif
