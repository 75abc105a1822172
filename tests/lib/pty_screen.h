/*
 * pty_screen.h - a program on a pseudo-terminal, and what its screen shows.
 *
 * The terminal is libvterm in this process: what the program writes is fed to it, what it
 * answers goes back.  A test waits for what the screen is to show, never for a time; the
 * waits are bounded and fail with the screen printed.  Frames that the program brackets
 * (--sync-frames) are looked at when they are whole, and one after the other, however late
 * the test is: what is shown for a moment is seen.
 */
#ifndef MEMWALL_TESTS_PTY_SCREEN_H
#define MEMWALL_TESTS_PTY_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pty_screen;

struct pty_start {
    int rows, cols;
    const char *term;        /* TERM; NULL: xterm-256color */
    const char *const *env;  /* "NAME=value" or "NAME" (unset), ended by NULL; may be NULL */
    const char *const *argv; /* argv[0] is a path; ended by NULL */
};

struct pty_screen *pty_new(const struct pty_start *o);
/* Kills the program if it is still there. */
void pty_free(struct pty_screen *s);

/* Takes earlier output first, so that the screen is as the user saw it. */
void pty_send(struct pty_screen *s, const char *bytes);
void pty_send_n(struct pty_screen *s, const char *bytes, size_t n);
void pty_resize(struct pty_screen *s, int rows, int cols);
void pty_signal(struct pty_screen *s, int sig);
/* To the group that has the terminal. */
void pty_signal_foreground(struct pty_screen *s, int sig);
/* As a window that is closed. */
void pty_hang_up(struct pty_screen *s);

/* Take the next frame of what the program has written, or all where it has no frames; true:
 * it wrote something. */
bool pty_take(struct pty_screen *s, int timeout_ms);

/* Wait until the screen shows text somewhere in a row / no longer shows it. */
bool pty_sees(struct pty_screen *s, const char *text);
bool pty_loses(struct pty_screen *s, const char *text);
/* Until row y (negative: from below, -1 is the last) shows text / does not. */
bool pty_sees_at(struct pty_screen *s, int y, const char *text);
bool pty_loses_at(struct pty_screen *s, int y, const char *text);
/* Until the program has ended: its exit status, or 128 + signal; -1: it goes on. */
int pty_end(struct pty_screen *s);
/* Did it stop (Ctrl-Z)?  Waits for that. */
bool pty_stops(struct pty_screen *s);

/* Row y without blanks at its end, until the next call. */
const char *pty_row(struct pty_screen *s, int y);
bool pty_shows(struct pty_screen *s, const char *text); /* now */
/* The row that shows text now, or -1. */
int pty_find(struct pty_screen *s, const char *text);
int pty_rows(const struct pty_screen *s);
int pty_cols(const struct pty_screen *s);
void pty_cursor(const struct pty_screen *s, int *y, int *x);
bool pty_is_alternate(const struct pty_screen *s);
/* Is bracketed paste, the mouse, focus or synchronized output still asked for? */
bool pty_has_modes(const struct pty_screen *s);
/* All rows, each ended by a newline, for free(). */
char *pty_text(struct pty_screen *s);
/* The same with colours and attributes of the cells after each row. */
char *pty_cells(struct pty_screen *s);
void pty_print(struct pty_screen *s);

/* All bytes taken so far, and how many. */
uint64_t pty_bytes(const struct pty_screen *s);
const char *pty_raw(const struct pty_screen *s, size_t *n);
/* Do the terminal's modes say that lines are edited by the kernel (as a shell left it)? */
bool pty_is_cooked(const struct pty_screen *s);

#endif
