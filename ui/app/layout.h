/*
 * layout.h - divides the screen into panes.
 *
 *     ╭─ chat ─────────────────╮╭─ dash ───────╮      chat
 *     │                        ││              │
 *     │                        ││              │      ─ dash (strip) ─
 *     ╰─ rule ─────────────────╯╰──────────────╯      ─ rule ─────────
 *     input (grows)                                   input
 *     status                                          status
 *
 * On a wide screen the dashboard is at the right, and the chat has a frame like the boxes of
 * the dashboard.  On a narrow and tall one the dashboard is below the chat.  On other narrow
 * screens it is a strip of four lines, which grows when the person moves the divider.  A small
 * screen has no dashboard.
 *
 * The divider is the right side of the frame, or the upper line of the dashboard below the
 * chat.  The lower line of the frame is the rule.  Boxes of the dashboard end in the same line,
 * and a hint in the rule may cover them.  Arithmetic only.
 */
#ifndef MEMWALL_UI_APP_LAYOUT_H
#define MEMWALL_UI_APP_LAYOUT_H

#include <stdbool.h>

#include "ui/ui.h"

#define LAYOUT_MIN_HEIGHT  3
#define LAYOUT_MIN_WIDTH   16
#define LAYOUT_WIDE        100 /* columns from which the dashboard is at the right */
#define LAYOUT_STRIP_LINES 4   /* with the divider */

struct area {
    int y, x, height, width; /* height or width 0: not shown */
};

struct layout {
    int height, width; /* of the screen */
    bool is_too_small;
    bool is_beside; /* the dashboard is at the right, else below */
    struct area chat, dash, input, status;
    struct area frame;   /* around the chat, or none */
    struct area rule;    /* above the input: one line, or none */
    struct area divider; /* one column or line, or none */
};

/* Divide a screen.  input_rows: rows that the typed text needs; permille: the dashboard's
 * share, 0 for the default. */
void layout_make(struct layout *out, int height, int width, enum ui_view view, int permille,
                 int input_rows);

/* Returns the share that puts the divider at y, x, for dragging. */
int layout_permille(const struct layout *l, int y, int x);
/* Returns the share that moves the divider by this many steps; positive steps make the
 * dashboard larger. */
int layout_step(const struct layout *l, int steps);

bool area_holds(const struct area *a, int y, int x);

#endif
