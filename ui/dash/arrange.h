/*
 * arrange.h - divides the dashboard among its widgets.
 *
 *     up to 4 lines      a strip (no widgets)
 *     below 100 columns  one column
 *     from 100 columns   two columns
 *
 * In a column, widgets get their smallest height in the order of importance, and those that the
 * user has resized (panels.h) their size.  Then the others grow in the same order, one step at
 * a time: first until all figures are shown, then for curves and bars.  Remaining lines go to
 * widgets that stretch.
 *
 * Every widget is in a box.  Low columns are one box: widgets share the lines between them.
 * High ones have a box for each widget.  A folded widget is the last row of the box above it.
 * Arithmetic only.
 */
#ifndef MEMWALL_UI_DASH_ARRANGE_H
#define MEMWALL_UI_DASH_ARRANGE_H

#include "ui/dash/widget.h"

#define ARRANGE_MAX   8
#define ARRANGE_STRIP 4   /* maximum height of the strip */
#define ARRANGE_LEAST 32  /* narrower dashboards are a strip */
#define ARRANGE_APART 36  /* minimum height for boxes that share no lines */
#define ARRANGE_HIGH  56  /* the same where all are in one column, which has more of them */
#define ARRANGE_TWO   100 /* minimum width for two columns */
#define ARRANGE_SPARE 9   /* free lines below the layers that other widgets need */

struct place {
    const struct dash_widget *widget;
    int y, x, height, width; /* of the widget's box without its lower border */
    bool joins;              /* its upper border belongs to the box above, too */
    bool is_row;             /* of the box above, without an upper border */
    int bottom;              /* row of the lower border; -1: the next one joins */
};

/* Place widgets (at most ARRANGE_MAX, NULL at the end), listed from top to bottom.  Returns the
 * number of places; 0: the strip. */
int arrange(struct place out[ARRANGE_MAX], const struct dash_widget *const widgets[],
            const struct dash *d, int height, int width);

/* The same for the panels that are shown; none before the first sample. */
int arrange_panels(struct place out[ARRANGE_MAX], const struct dash *d, int height, int width);

#endif
