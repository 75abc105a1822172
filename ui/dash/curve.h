/*
 * curve.h - draws a history as a filled curve, newest value at the right edge.
 *
 *     braille   two values per cell, four levels per row
 *     block     one value per cell, eight levels per row
 *     ascii     one value per cell, three levels per row
 *
 * Gaps stay empty; values are not interpolated.
 */
#ifndef MEMWALL_UI_DASH_CURVE_H
#define MEMWALL_UI_DASH_CURVE_H

#include "ui/dash/state.h"
#include "ui/term/canvas.h"

/* Returns the number of values that width cells show. */
uint32_t curve_values(enum ui_graph graph, int width);

/* Draw the newest values of h into c; top is the value at the upper edge. */
void curve_draw(const struct canvas *c, enum ui_graph graph, const struct past *h, float top,
                struct ui_style style);

/* Draw n values (curve_values of them, oldest first), starting at column 0. */
void curve_draw_values(const struct canvas *c, enum ui_graph graph, const float *value,
                       uint32_t n, float top, struct ui_style style);

/* Draw n values (as above) that never fall as a line that is one dot thick. */
void curve_line(const struct canvas *c, enum ui_graph graph, const float *value, uint32_t n,
                float top, struct ui_style style);

/* Returns the upper edge of a curve with this largest value: 1, 1.5, 2, 3, 4, 5 or 7.5 times a
 * power of ten. */
float curve_top(float max);

/* Returns the largest of the values that curve_with_scale shows in width cells; 0: none. */
float curve_max(const struct dash *d, const struct past *h, int width);

/* Draw a curve with its scale at the right: 6 columns for "top" and "0".  Values are divided by
 * unit; unit 0 shows bytes as 64K, 5M or 10G. */
void curve_with_scale(const struct canvas *c, const struct dash *d, const struct past *h,
                      double unit, struct ui_style style);

#endif
