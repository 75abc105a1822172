/*
 * widget.h - what every widget of the dashboard is.
 *
 * To add one: a file with its functions and a constant of this struct, a row in the table
 * of widgets.c.  A widget draws into whatever it is given, at least min_height x min_width;
 * its first line is its head (widget_head).
 */
#ifndef MEMWALL_UI_DASH_WIDGET_H
#define MEMWALL_UI_DASH_WIDGET_H

#include "ui/dash/figure.h"
#include "ui/dash/state.h"
#include "ui/term/canvas.h"

struct dash_widget {
    const char *name;
    int min_width, min_height;
    int importance; /* who gets room first: 0 before 1 */
    bool is_tall;   /* shares its column with few others where there are two */
    bool stretches; /* has a use for any height; takes what is left */
    /* NULL, or: lines that it needs now on top of min_height. */
    int (*wants)(const struct dash *d);
    /* The next height above this one that it would gain by, for this width; 0: none. */
    int (*step)(const struct dash *d, int width, int height);
    void (*draw)(const struct dash *d, const struct canvas *c);
    /* NULL, or: a click at y, x of a canvas of this size. */
    bool (*click)(struct dash *d, int height, int width, int y, int x);
};

extern const struct dash_widget dash_verdict_widget, dash_speed_widget, dash_memory_widget,
    dash_layers_widget, dash_kv_widget, dash_cache_widget;

/* In the order in which they stand below each other; NULL at the end. */
extern const struct dash_widget *const dash_widgets[];

/* "name ──────────── figure" in row 0. */
void widget_head(const struct canvas *c, const char *name, const char *figure);

/* Label and value at x; returns the column behind them and a blank pair.  role is that of
 * the value. */
int widget_pair(const struct canvas *c, int y, int x, const char *label, const char *value,
                enum ui_role role);

/* The stacked bar of the memory meter, across all of row y. */
void memory_bar(const struct dash *d, const struct canvas *c, int y);

/* The dashboard in three lines. */
void strip_draw(const struct dash *d, const struct canvas *c);

#endif
