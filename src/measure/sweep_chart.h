/*
 * sweep_chart.h - the results of a sweep as a chart.
 */
#ifndef MEMWALL_SRC_MEASURE_SWEEP_CHART_H
#define MEMWALL_SRC_MEASURE_SWEEP_CHART_H

#include "src/measure/results.h"
#include "ui/chart/chart.h"

/* A setting that a sweep can change. */
struct sweep_axis {
    const char *name; /* "budget", as --over takes it */
    enum dimension dimension;
    const char *label; /* of the x axis */
    enum chart_unit unit;
};
enum sweep_over { OVER_BUDGET, OVER_CTX, OVER_KV, OVER_THREADS, OVER_BLOCK, N_OVER };
extern const struct sweep_axis sweep_axes[N_OVER];

/* Speed over the axis: measured, predicted, and mapped in a cage if that was measured. */
struct sweep_chart {
    struct chart chart;
    struct chart_series series[3];
    struct chart_mark mark;
    struct chart_point *point; /* of all series */
    char (*name)[24];          /* of values that are words */
    const char **names;
    char title[200];
};

/* Make the chart of r, which must outlive it.  Returns -1 with *e. */
int sweep_chart_open(struct sweep_chart *s, const struct results *r, enum sweep_over over,
                     struct err *e);
void sweep_chart_close(struct sweep_chart *s);

/* Convert an SVG text with rsvg-convert to a PNG file: from and to are open.  Returns -1 with
 * *e. */
int sweep_png(int from, int to, struct err *e);
/* Is rsvg-convert installed? */
bool sweep_can_png(void);

#endif
