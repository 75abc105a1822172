/*
 * input.h - draws the input line.
 *
 * The text of edit.h is wrapped between clusters at any column.  Newlines break rows, control
 * characters are shown as ^X.  The prompt precedes the first row; the others are indented by
 * its width.
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

/* Returns the number of rows at this width, and the position of the cursor. */
int input_rows(const struct input_line *in, int width, int *cursor_y, int *cursor_x);

/* Draw the rows around the cursor that fit c; *y, *x is the cursor in c. */
void input_draw(const struct input_line *in, const struct canvas *c, int *y, int *x);

/* Returns the byte of text that is drawn at y, x of c (for a click). */
size_t input_at(const struct input_line *in, int height, int width, int y, int x);

#endif
