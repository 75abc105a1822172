/*
 * box.h - boxes that share lines, with titles in their borders, for panes and panels.  A box of
 * its own is canvas_box().
 *
 *     ╭─ speed ─────────────────────── 3.12 tok/s ─╮  BOX_TOP, a title and a figure
 *     │                                            │  sides
 *     ├─ memory ──────────── 1.98 GiB of 2.00 GiB ─┤  BOX_JOINT: a line of two boxes
 *     │                                            │
 *     ╰────────────────────────────────────────────╯  BOX_BOTTOM
 *
 * A border takes one cell on each side, and a wide box has a blank column inside of it.
 */
#ifndef MEMWALL_UI_TERM_BOX_H
#define MEMWALL_UI_TERM_BOX_H

#include "ui/term/canvas.h"

enum box_line { BOX_TOP, BOX_JOINT, BOX_BOTTOM };

/* Returns the columns that border and blank take at each side of a box of this width. */
int box_inset(int width);

/* Draw a line or the sides of a box along the edges of c. */
void box_line(const struct canvas *c, int y, enum box_line line, enum ui_role border);
void box_sides(const struct canvas *c, int y, int height, enum ui_role border);
/* Draw a title over the line in row 0 of c.  The columns of c are those inside the box.  A
 * figure that does not fit is not drawn. */
void box_title(const struct canvas *c, const char *title, const char *figure,
               struct ui_style figure_style);

#endif
