/*
 * layout.h - which part of the screen is for what.
 *
 *     ┌──────────────────────┬──────────────┐      ┌──────────────┐
 *     │ chat                 │ dash         │      │ chat         │
 *     │                      │              │      ├──────────────┤
 *     │                      │              │      │ dash (strip) │
 *     ├─ rule ───────────────┴──────────────┤      ├─ rule ───────┤
 *     │ input (grows)                       │      │ input        │
 *     │ status                              │      │ status       │
 *     └─────────────────────────────────────┘      └──────────────┘
 *
 * Wide: the dashboard at the right.  Narrow and tall: below.  Narrow: a strip of three
 * lines, which grows when the person moves the divider.  Small: none.  Arithmetic only.
 */
#ifndef MEMWALL_UI_APP_LAYOUT_H
#define MEMWALL_UI_APP_LAYOUT_H

#include <stdbool.h>

#include "ui/ui.h"

#define LAYOUT_MIN_HEIGHT  3
#define LAYOUT_MIN_WIDTH   16
#define LAYOUT_WIDE        100 /* columns from which the dashboard stands at the right */
#define LAYOUT_STRIP_LINES 3

struct area {
    int y, x, height, width; /* height or width 0: not shown */
};

struct layout {
    int height, width; /* of the screen */
    bool is_too_small;
    bool is_beside; /* the dashboard stands at the right, else below */
    struct area chat, dash, input, status;
    struct area rule;    /* above the input: one line, or none */
    struct area divider; /* between chat and dashboard: one column or line, or none */
};

/* input_rows: what the text typed would take; permille: the dashboard's share, 0: chosen
 * here. */
void layout_make(struct layout *out, int height, int width, enum ui_view view, int permille,
                 int input_rows);

/* The share that puts the divider at y, x: for dragging. */
int layout_permille(const struct layout *l, int y, int x);
/* The share that moves the divider by so many steps; the dashboard grows with positive ones. */
int layout_step(const struct layout *l, int steps);

bool area_holds(const struct area *a, int y, int x);

#endif
