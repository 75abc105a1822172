/*
 * large.h - figures of three rows, for the one figure that the eye should find first.
 *
 *     ▀▀█  ▀█  █▀█
 *     ▀▀█   █  ▀▀█
 *     ▀▀▀ ▀ ▀  ▀▀▀
 */
#ifndef MEMWALL_UI_DASH_LARGE_H
#define MEMWALL_UI_DASH_LARGE_H

#include "ui/term/canvas.h"

#define LARGE_ROWS  3
#define LARGE_WIDTH 17 /* columns of "~1204", the widest rate */

/* Draw a number of digits, '.', '-' and '~' at y, x.  Returns the column after it and a blank. */
int large_number(const struct canvas *c, int y, int x, struct ui_style style,
                 const char *number);

#endif
