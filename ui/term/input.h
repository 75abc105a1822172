/*
 * input.h - the line being typed, on the screen.
 *
 * The text of edit.h wrapped by cluster at any column, newlines as they are, control
 * characters shown as ^X, with a prompt before the first row and a blank of the same
 * width before the others.
 */
#ifndef MEMWALL_UI_TERM_INPUT_H
#define MEMWALL_UI_TERM_INPUT_H

#include <stddef.h>

#include "ui/term/canvas.h"

struct input_line {
    const char *prompt; /* clean */
    const char *text;
    size_t cursor; /* byte of text */
};

/* Rows that it takes at this width, and where the cursor stands in them. */
int input_rows(const struct input_line *in, int width, int *cursor_y, int *cursor_x);

/* Draw the rows around the cursor that fit c; *y, *x: the cursor in c. */
void input_draw(const struct input_line *in, const struct canvas *c, int *y, int *x);

/* The byte of text that is drawn at y, x of c (for a click). */
size_t input_at(const struct input_line *in, int height, int width, int y, int x);

#endif
