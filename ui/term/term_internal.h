/*
 * term_internal.h - the state of the terminal, between the files that use it.
 *
 *     term.c           open and close, modes, frames
 *     term_curses.c    the screen of ncurses
 *     term_theme.c     the theme and the background
 *     term_leave.c     leave the screen, and take it again
 */
#ifndef MEMWALL_UI_TERM_TERM_INTERNAL_H
#define MEMWALL_UI_TERM_TERM_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <curses.h>
#include <termios.h>

#include "ui/term/background.h"
#include "ui/term/catch.h"
#include "ui/term/ink.h"
#include "ui/term/term.h"

struct term {
    int fd, signal_fd;
    FILE *in, *out;
    struct termios modes; /* before term_new */
    sigset_t mask;        /* before term_new */
    size_t typed_ahead;
    int kept[2]; /* copies of descriptors 1 and 2; -1: not redirected */
    char log_path[400];
    SCREEN *screen;
    bool is_up;        /* the alternate screen is shown */
    char title[160];   /* of the window; "": the one before */
    bool pushed_title; /* and the one before is on the terminal's stack */
    bool is_cut;       /* the terminal is larger than CANVAS_MAX_CELLS */
    bool is_ascii, wants_mouse, syncs;
    enum ui_color_wish color;
    const char *config_dir;
    struct theme theme;
    enum background background;
    struct ink *ink;
    struct canvas_target *target;
    struct catch catch;
    struct term_counts counts;
};

/* ---- term.c ---- */

/* As term_send(), up to the NUL. */
void term_send_text(struct term *t, const char *s);

/* Enter the alternate screen, which ncurses does before it draws.  The modes of the keyboard
 * belong to this screen. */
void term_show_screen(struct term *t);

/* Leave the alternate screen, or clear the last row of a terminal that has none. */
void term_end_screen(struct term *t);

/* Switch the modes of the screen on and off.  After SIGSTOP, which a program cannot catch, the
 * mode of the keyboard is still pushed: the first of the two pops it. */
void term_modes_on(struct term *t);
void term_modes_off(struct term *t);

/* Read the size again and redraw everything. */
void term_resized(struct term *t);

/* ---- term_curses.c ---- */

/* Set only LC_CTYPE, always to UTF-8: LC_ALL could change the decimal point in files.  readline
 * reads the environment and sets LC_CTYPE again, so the environment must agree.  Returns whether
 * the terminal shows UTF-8. */
bool term_choose_locale(const struct ui_options *ui, const char *name);

/* Get the size of the terminal, reduced to CANVAS_MAX_CELLS. */
void term_measure(struct term *t, int *rows, int *cols);

/* Returns NULL if terminfo has no entry for the terminal.  Over ssh from a newer terminal it may
 * be missing: a similar one is used then. */
SCREEN *term_new_screen(struct term *t);

/* Start the colours that the screen has, or none if they are not expected. */
enum ui_colors term_choose_colors(const struct term *t);

/* ---- term_theme.c ---- */

/* Find a theme for the background.  Returns -1 with *e, and the theme stays as it is. */
int term_find_theme(struct term *t, const char *name, struct err *e);

/* Give the theme to the screen, which must be drawn again. */
void term_use_theme(struct term *t);

/* Ask the terminal for its background; keys gets what was typed meanwhile. */
void term_ask_background(struct term *t, struct keys *keys);

#endif
