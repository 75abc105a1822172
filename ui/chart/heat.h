/*
 * heat.h - a table of numbers as a picture: layers x tokens, or layers x experts.
 *
 * Eight levels go from light to dark (on dark screens from dark to light), so the order is seen
 * without colours and on paper.  Cells without a value stay empty.
 */
#ifndef MEMWALL_UI_CHART_HEAT_H
#define MEMWALL_UI_CHART_HEAT_H

#include <stddef.h>
#include <stdio.h>

#include "ui/chart/chart.h"

struct heat {
    const char *id; /* as in struct chart */
    const char *title, *about;
    struct chart_axis row, column;  /* the labels; units of the numbers of rows and columns */
    double first_row, first_column; /* the numbers of the first ones */
    size_t n_row, n_column;
    const float *value;      /* [n_row][n_column], row 0 at the top; NAN: none; none below 0 */
    struct chart_axis scale; /* what a value is: label, symbol, unit */
};

/* Write an <svg> element as chart_svg() does.  A table with more columns or rows than fit is
 * shown by the means of neighbours. */
void heat_svg(const struct heat *h, int width, int height, FILE *to);

#endif
