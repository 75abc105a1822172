/*
 * waterfall.h - how long layers waited for the disk, one column for each token.
 *
 *     ▒▓▒░▓▒▒▒▓▒    a layer in each row: one cell for each token
 *     ⣿⢿⡇⠀⠃         several layers in a row: two tokens in a cell, a dot for a wait of one or two
 *
 * Columns stay where they are, and the newest one is below a mark in the head: if all moved, a
 * token would change most of their cells.
 */
#ifndef MEMWALL_UI_DASH_WATERFALL_H
#define MEMWALL_UI_DASH_WATERFALL_H

#include "ui/dash/state.h"
#include "ui/term/canvas.h"

/* Layers in a row of `width` cells; per_row is that of complete rows, 1 or a multiple of 4. */
struct fall {
    int x, width; /* cells; width 0: there is no waterfall */
    uint32_t per_row;
};

/* Did any layer wait in the last passes? */
bool fall_has_waits(const struct dash *d);
/* Returns the most cells that are of use. */
int fall_most(const struct dash *d, uint32_t per_row);
/* Draw n layers from `first` on in row y. */
void fall_row(const struct dash *d, const struct canvas *c, int y, const struct fall *f,
              uint32_t first, uint32_t n);
/* Mark the column of the newest token in row y. */
void fall_mark(const struct dash *d, const struct canvas *c, int y, const struct fall *f);

#endif
