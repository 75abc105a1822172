/*
 * chart.h - the description of a chart, drawn as SVG or in a terminal.
 *
 *     tok/s
 *       8 |                    .---o      o measured, with bars of its spread
 *       4 |        ___.---o---'           - predicted
 *       0 |--o----'         :             : a mark
 *          0     1 GiB     2 GiB
 *              memory budget
 *
 * Series differ by line and marker as well as by colour: measured ones have solid lines and
 * filled markers, predicted ones dashed lines and open markers, and ones to compare against
 * dotted lines and crosses.
 *
 * The caller owns everything a description points to.  Texts are UTF-8 and need not be clean.
 */
#ifndef MEMWALL_UI_CHART_CHART_H
#define MEMWALL_UI_CHART_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ui/chart/ticks.h"
#include "ui/options/appearance.h"
#include "ui/term/canvas.h"

struct chart_axis {
    const char *label;  /* "memory budget"; NULL: none */
    const char *symbol; /* written after the label, such as "tok/s"; NULL: none */
    enum chart_unit unit;
    bool is_log;             /* points at or below 0 are left out */
    bool from_zero;          /* a linear axis includes 0 */
    const char *const *name; /* CHART_NAMES: [n_name], at most TICKS_MAX */
    int n_name;
};

enum chart_style { CHART_MEASURED, CHART_PREDICTED, CHART_AGAINST };

/* y NAN is a gap in the line.  low and high are the ends of a bar of the spread; NAN: no bar.
 */
struct chart_point {
    double x, y, low, high;
};

struct chart_series {
    const char *name;
    enum chart_style style;
    const struct chart_point *point; /* [n], in the order of the line */
    size_t n;
    bool is_stepped; /* a value holds until the next point */
};

/* A line across the chart: at x from bottom to top, or if is_level is set, at height `at`. */
struct chart_mark {
    double at;
    const char *label; /* "nothing is read per token" */
    bool is_level;
};

#define CHART_SERIES_MAX 8

struct chart {
    const char *id; /* of this chart in a page; begins with a letter, then letters and digits */
    const char *title;
    const char *about; /* a sentence for those who cannot see the chart; NULL: none */
    struct chart_axis x, y;
    const struct chart_series *series; /* [n_series], at most CHART_SERIES_MAX */
    size_t n_series;
    const struct chart_mark *mark; /* [n_mark] */
    size_t n_mark;
};

/* Choose the ticks of both axes, with about that many steps.  Returns false if no point can be
 * shown. */
bool chart_ticks(const struct chart *c, int want_x, int want_y, struct ticks *x,
                 struct ticks *y);

/* Write the value as text with its unit: "1.5 GiB", "3.2 tok/s", or its name.  Returns buf. */
#define CHART_VALUE 48
char *chart_value(char buf[CHART_VALUE], const struct chart_axis *axis, double value,
                  double step);

/*
 * Write an <svg> element of width x height units.  It works in a file of its own and inside an
 * HTML page, follows prefers-color-scheme, and prints in dark on white.  It has a title and a
 * description that includes the range of each series.  The caller checks `to` for errors.
 */
void chart_svg(const struct chart *c, int width, int height, FILE *to);

/* Draw on a canvas of at least 24 x 8 cells; smaller ones stay as they are.  Returns 0, or -1
 * with *e (ERR_MEMORY). */
int chart_draw(const struct canvas *canvas, const struct chart *c, enum ui_graph graph,
               struct err *e);

struct chart_look {
    int width, height; /* in cells */
    enum ui_graph graph;
    bool ascii;
    bool color; /* write ANSI colours */
};

/* Print the chart as lines of text in the encoding of the locale.  Returns 0, or -1 with *e. */
int chart_print(const struct chart *c, const struct chart_look *look, FILE *to, struct err *e);

#endif
