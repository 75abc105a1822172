/*
 * arrange.h - which widget gets which part of the dashboard.
 *
 *     up to 4 lines      a strip (no widgets)
 *     below 100 columns  one column
 *     from 100 columns   two columns
 *
 * In a column the most important widgets get their smallest height first; then, in the
 * same order, one step after the other of what they gain by; then come blank lines between
 * them, and what is left goes to those that stretch.
 * Arithmetic only.
 */
#ifndef MEMWALL_UI_DASH_ARRANGE_H
#define MEMWALL_UI_DASH_ARRANGE_H

#include "ui/dash/widget.h"

#define ARRANGE_MAX   8
#define ARRANGE_STRIP 4   /* lines up to which it is a strip */
#define ARRANGE_LEAST 30  /* columns below which it is a strip */
#define ARRANGE_TWO   100 /* columns from which there are two */
#define ARRANGE_SPARE 14  /* lines beside all layers from which others stand with them */

struct place {
    const struct dash_widget *widget;
    int y, x, height, width;
};

/* Returns how many places; 0: the strip. */
int arrange(struct place out[ARRANGE_MAX], const struct dash *d, int height, int width);

#endif
