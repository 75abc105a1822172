/*
 * pty_screen.h - run a program on a pseudo-terminal and look at its screen.
 *
 * The terminal is libvterm in this process: it gets the bytes that the program writes, and its
 * answers go back to the program.  A test waits until the screen shows something, never for a
 * time.  Every wait is bounded, and fails with a print of the screen.
 *
 * If the program brackets its frames (--sync-frames), a test sees complete frames only, and
 * sees
 * each of them, even if it looks late.  So it cannot miss a text that is shown for a moment.
 */
#ifndef MEMWALL_TESTS_PTY_SCREEN_H
#define MEMWALL_TESTS_PTY_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys as xterm sends them. */
#define ESC       "\033"
#define ENTER     "\r"
#define TAB       "\t"
#define UP        "\033[A"
#define DOWN      "\033[B"
#define RIGHT     "\033[C"
#define LEFT      "\033[D"
#define HOME      "\033[H"
#define END       "\033[F"
#define PAGE_UP   "\033[5~"
#define PAGE_DOWN "\033[6~"

struct pty_screen;

struct pty_start {
    int rows, cols;
    const char *term;        /* TERM; NULL: xterm-256color */
    const char *const *env;  /* "NAME=value", or "NAME" to unset it, then NULL; may be NULL */
    const char *const *argv; /* argv[0] is a path; ends with NULL */
};

struct pty_screen *pty_new(const struct pty_start *o);
/* Answer OSC 11 with this colour, such as "rgb:ffff/ffff/ffff"; without it, do not answer. */
void pty_set_background(struct pty_screen *s, const char *colour);
/* Kill the program if it still runs, and free everything. */
void pty_free(struct pty_screen *s);

/* Type these bytes.  Takes earlier output first, so that the screen is as the user saw it.  ESC
 * at the end is the key Esc, whatever is sent next. */
void pty_send(struct pty_screen *s, const char *bytes);
void pty_send_n(struct pty_screen *s, const char *bytes, size_t n);
/* Change the size.  Takes earlier output first, too. */
void pty_resize(struct pty_screen *s, int rows, int cols);
void pty_signal(struct pty_screen *s, int sig);
/* Send a signal to the foreground process group. */
void pty_signal_foreground(struct pty_screen *s, int sig);
/* Close the terminal, like a window that is closed. */
void pty_hang_up(struct pty_screen *s);

/* Show the next frame of the output, or all output if it has no frames.  Returns whether there
 * was any. */
bool pty_take(struct pty_screen *s, int timeout_ms);

/* Wait until a row shows text, or until no row shows it. */
bool pty_sees(struct pty_screen *s, const char *text);
bool pty_loses(struct pty_screen *s, const char *text);
/* The same for row y; negative y counts from below, -1 is the last row. */
bool pty_sees_at(struct pty_screen *s, int y, const char *text);
bool pty_loses_at(struct pty_screen *s, int y, const char *text);
/* Wait until the program has ended.  Returns its exit status, 128 + its signal, or -1 if it
 * still runs. */
int pty_end(struct pty_screen *s);
/* Wait until the program is stopped (Ctrl-Z).  Returns whether it is. */
bool pty_stops(struct pty_screen *s);

/* Returns row y without blanks at its end; valid until the next call. */
const char *pty_row(struct pty_screen *s, int y);
bool pty_shows(struct pty_screen *s, const char *text); /* right now */
/* Returns the row that shows text right now, or -1. */
int pty_find(struct pty_screen *s, const char *text);
int pty_rows(const struct pty_screen *s);
int pty_cols(const struct pty_screen *s);
void pty_cursor(const struct pty_screen *s, int *y, int *x);
bool pty_is_alternate(const struct pty_screen *s);
/* Returns whether bracketed paste, the mouse, focus or synchronized output is still
 * requested. */
bool pty_has_modes(const struct pty_screen *s);
/* Returns all rows, each with a newline; the caller frees the text. */
char *pty_text(struct pty_screen *s);
/* The same, with colours and attributes of the cells after each row. */
char *pty_cells(struct pty_screen *s);
void pty_print(struct pty_screen *s);

/* Returns all bytes taken so far, and their number in *n. */
uint64_t pty_bytes(const struct pty_screen *s);
const char *pty_raw(const struct pty_screen *s, size_t *n);
/* Returns whether the kernel edits lines, as a shell leaves the terminal. */
bool pty_is_cooked(const struct pty_screen *s);

#endif
