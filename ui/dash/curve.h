/*
 * curve.h - a history as a filled curve, newest value at the right edge.
 *
 *     braille   two values a cell, four levels a row
 *     block     one value a cell, eight levels a row
 *     ascii     one value a cell, three levels a row
 *
 * Gaps stay empty; nothing is drawn between two values.
 */
#ifndef MEMWALL_UI_DASH_CURVE_H
#define MEMWALL_UI_DASH_CURVE_H

#include "ui/dash/state.h"

/* Values that a row of width cells shows. */
uint32_t curve_values(enum ui_graph graph, int width);

/* The newest values of h into all of c; top is the value of the upper edge. */
void curve_draw(const struct canvas *c, enum ui_graph graph, const struct past *h, float top,
                struct ui_style style);

/* One cell's worth: n values (as many as curve_values says, oldest first) at column 0. */
void curve_draw_values(const struct canvas *c, enum ui_graph graph, const float *value,
                       uint32_t n, float top, struct ui_style style);

/* A round number at or above max: 1, 2, 5 times a power of ten. */
float curve_top(float max);

/* A curve with its scale at the right: 6 columns for "top" and "0".  The scale is in units;
 * unit 0: bytes, as 64K, 5M or 10G. */
void curve_with_scale(const struct canvas *c, const struct dash *d, const struct past *h,
                      double unit, struct ui_style style);

#endif
