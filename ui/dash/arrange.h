/*
 * arrange.h - divides the dashboard among its widgets.
 *
 *     up to 4 lines      a strip (no widgets)
 *     below 100 columns  one column
 *     from 100 columns   two columns
 *
 * In a column, widgets get their smallest height in the order of importance.  Then they grow
 * in the same order, one step at a time.  Remaining lines become blank lines between widgets,
 * and after that go to widgets that stretch.  Arithmetic only.
 */
#ifndef MEMWALL_UI_DASH_ARRANGE_H
#define MEMWALL_UI_DASH_ARRANGE_H

#include "ui/dash/widget.h"

#define ARRANGE_MAX   8
#define ARRANGE_STRIP 4   /* maximum height of the strip */
#define ARRANGE_LEAST 30  /* narrower dashboards are a strip */
#define ARRANGE_TWO   100 /* minimum width for two columns */
#define ARRANGE_SPARE 14  /* free lines below the layers that other widgets need */

struct place {
    const struct dash_widget *widget;
    int y, x, height, width;
};

/* Place widgets (at most ARRANGE_MAX, NULL at the end), listed from top to bottom.  Returns the
 * number of places; 0: the strip. */
int arrange(struct place out[ARRANGE_MAX], const struct dash_widget *const widgets[],
            const struct dash *d, int height, int width);

#endif
