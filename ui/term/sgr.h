/*
 * sgr.h - a filter that sends attributes and colours only where they change.
 *
 * ncurses takes no account of what a cell shows.  To change a colour it sends the background
 * again, to switch bold off it resets everything, and before a blank it sets a colour that
 * nobody sees.  In a theme that paints the background, these sequences (SGR, "select graphic
 * rendition") are two thirds of all bytes.  This filter keeps the look that the bytes ask for
 * and the look that the terminal has.  Before a character it sends the difference.
 *
 *     in    ESC(B ESC[m ESC[38;5;253m ESC[48;5;237m 7 ESC[38;5;110m ESC[48;5;237m >
 *     out   ESC[38;5;253;48;5;237m 7 ESC[38;5;110m >
 *
 * The screen is the same but for the colour of the text in blanks.  Only for terminals that
 * know SGR 22 to 29, 39 and 49, as all with 256 colours do.
 */
#ifndef MEMWALL_UI_TERM_SGR_H
#define MEMWALL_UI_TERM_SGR_H

#include <stdbool.h>
#include <stddef.h>

#define SGR_COLOUR   24 /* bytes, for example "38;2;255;255;255" */
#define SGR_SEQUENCE 128

struct sgr_look {
    unsigned attrs; /* bit n: SGR n, from 1 to 9; bit 0: something this filter does not know */
    char fg[SGR_COLOUR], bg[SGR_COLOUR]; /* parameters; "" is the terminal's default */
};

struct sgr_filter {
    struct sgr_look want, have;
    bool is_shifted;         /* a character set other than ASCII is in use */
    char held[SGR_SEQUENCE]; /* the start of a sequence */
    size_t n_held;
};

typedef void sgr_out(void *ctx, const char *bytes, size_t n);

/* A zeroed filter is ready: the terminal has its default look. */

/* Pass on bytes that ncurses wrote; a sequence may be split between two calls. */
void sgr_pass(struct sgr_filter *f, const char *bytes, size_t n, sgr_out *out, void *ctx);
/* Give the terminal the look that was asked for last, so that others can write to it. */
void sgr_settle(struct sgr_filter *f, sgr_out *out, void *ctx);

#endif
