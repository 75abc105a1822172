/* See heat.h. */
#include "config.h"

#include "ui/chart/heat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ui/chart/markup.h"
#include "ui/chart/svg.h"

#define LEFT        56
#define TOP         48
#define BELOW       92 /* ticks, name of the axis, and the scale */
#define MAX_COLUMNS 120
#define MAX_ROWS    96
#define SHARED      16
#define FAR_ABOVE   2

/* A heat map whose cells are means of the table's. */
struct grid {
    const struct heat *h;
    FILE *to;
    size_t n_row, n_column;
    double cell_width, cell_height;
    double high; /* from here on, cells have the last level */
    double largest;
};

/* The mean of the table's values in a cell, or NAN. */
static double mean(const struct grid *g, size_t row, size_t column)
{
    const struct heat *h = g->h;
    double sum = 0;
    size_t n = 0;

    for (size_t r = row * h->n_row / g->n_row; r < (row + 1) * h->n_row / g->n_row; r++)
        for (size_t c = column * h->n_column / g->n_column;
             c < (column + 1) * h->n_column / g->n_column; c++) {
            double v = (double)h->value[r * h->n_column + c];

            if (!isfinite(v) || v < 0)
                continue;
            sum += v;
            n++;
        }
    return n > 0 ? sum / (double)n : NAN;
}

static int level(const struct grid *g, double value)
{
    if (isnan(value))
        return -1;
    return g->high > 0 ? (int)fmin(SVG_HEAT_LEVELS - 1, value / g->high * SVG_HEAT_LEVELS) : 0;
}

/* Append the cells of one level to the path: neighbours in a row are one rectangle. */
static void row_of_level(const struct grid *g, size_t row, int want)
{
    for (size_t c = 0, n; c < g->n_column; c += n) {
        n = 1;
        if (level(g, mean(g, row, c)) != want)
            continue;
        while (c + n < g->n_column && level(g, mean(g, row, c + n)) == want)
            n++;
        fprintf(g->to, "M%.1f %.1fh%.1fv%.1fh%.1fz", LEFT + (double)c * g->cell_width,
                TOP + (double)row * g->cell_height, (double)n * g->cell_width, g->cell_height,
                -(double)n * g->cell_width);
    }
}

static void cells(const struct grid *g)
{
    for (int l = 0; l < SVG_HEAT_LEVELS; l++) {
        fprintf(g->to, "<path class=\"h%d\" d=\"", l);
        for (size_t r = 0; r < g->n_row; r++)
            row_of_level(g, r, l);
        fputs("\"/>\n", g->to);
    }
}

static void label(const struct grid *g, double x, double y, const char *anchor,
                  const char *text)
{
    fprintf(g->to, "<text x=\"%.1f\" y=\"%.1f\" class=\"d\" text-anchor=\"%s\">", x, y, anchor);
    markup_text(g->to, text);
    fputs("</text>\n", g->to);
}

static void tick_of(const struct chart_axis *axis, double value, char buf[CHART_VALUE])
{
    struct chart_axis bare = *axis;

    bare.symbol = NULL;
    chart_value(buf, &bare, value, 1);
}

/* A number beside the middle of its row or column, where the table has that number. */
static void ticks(const struct grid *g)
{
    const struct heat *h = g->h;
    double width = g->cell_width * (double)g->n_column,
           tall = g->cell_height * (double)g->n_row;
    struct ticks t;
    char text[CHART_VALUE];

    ticks_linear(h->first_row, h->first_row + (double)h->n_row, h->row.unit, 6, &t);
    for (int i = 0; i < t.n; i++) {
        double at = (t.at[i] - h->first_row + 0.5) / (double)h->n_row;

        if (at < 0 || at > 1 || t.at[i] != floor(t.at[i]))
            continue;
        tick_of(&h->row, t.at[i], text);
        label(g, LEFT - 8, TOP + at * tall + 4, "end", text);
    }
    ticks_linear(h->first_column, h->first_column + (double)h->n_column, h->column.unit, 8, &t);
    for (int i = 0; i < t.n; i++) {
        double at = (t.at[i] - h->first_column + 0.5) / (double)h->n_column;

        if (at < 0 || at > 1 || t.at[i] != floor(t.at[i]))
            continue;
        tick_of(&h->column, t.at[i], text);
        label(g, LEFT + at * width, TOP + tall + 18, "middle", text);
    }
    label(g, LEFT + width / 2, TOP + tall + 38, "middle",
          h->column.label != NULL ? h->column.label : "");
    label(g, 12, TOP - 10, "start", h->row.label != NULL ? h->row.label : "");
}

/* The eight levels with the values at both ends. */
static void scale(const struct grid *g, int height)
{
    char text[CHART_VALUE + 16];
    double y = height - 22;

    label(g, LEFT, y + 11, "end", "0 ");
    for (int l = 0; l < SVG_HEAT_LEVELS; l++)
        fprintf(g->to, "<path class=\"h%d\" d=\"M%d %.1fh24v14h-24z\"/>\n", l, LEFT + 24 * l,
                y);
    chart_value(text, &g->h->scale, g->high, 0);
    if (g->high < g->largest)
        strcat(text, " and more");
    label(g, LEFT + 24 * SVG_HEAT_LEVELS + 8, y + 11, "start", text);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/*
 * Find the largest mean and its place, and the end of the scale.  A few cells far above all
 * others, such as those of a first pass, would make the rest look the same.  They share the
 * last level if they are at most one in SHARED.
 */
static void find_high(struct grid *g, size_t *row, size_t *column)
{
    double *all = calloc(g->n_row * g->n_column, sizeof *all);
    size_t n = 0;

    for (size_t r = 0; r < g->n_row; r++)
        for (size_t c = 0; c < g->n_column; c++) {
            double v = mean(g, r, c);

            if (all != NULL && v >= 0)
                all[n++] = v;
            if (v > g->largest) {
                g->largest = v;
                *row = r * g->h->n_row / g->n_row;
                *column = c * g->h->n_column / g->n_column;
            }
        }
    g->high = g->largest;
    if (n > SHARED) {
        qsort(all, n, sizeof *all, compare);
        if (all[n - 1 - n / SHARED] * FAR_ABOVE < g->largest && all[n - 1 - n / SHARED] > 0)
            g->high = all[n - 1 - n / SHARED];
    }
    free(all);
}

void heat_svg(const struct heat *h, int width, int height, FILE *to)
{
    struct grid g = { .h = h, .to = to };
    size_t row = 0, column = 0;
    char text[CHART_VALUE];

    svg_open(to, h->id, h->title, width, height);
    if (h->about != NULL)
        markup_printf(to, "%s ", h->about);
    if (h->n_row > 0 && h->n_column > 0) {
        g.n_row = h->n_row < MAX_ROWS ? h->n_row : MAX_ROWS;
        g.n_column = h->n_column < MAX_COLUMNS ? h->n_column : MAX_COLUMNS;
        g.cell_width = (double)(width - LEFT - 20) / (double)g.n_column;
        g.cell_height = (double)(height - TOP - BELOW) / (double)g.n_row;
        find_high(&g, &row, &column);
        markup_printf(to, "%zu x %zu cells; the highest is %s at %s %.0f, %s %.0f.", h->n_row,
                      h->n_column, chart_value(text, &h->scale, g.largest, 0),
                      h->row.label != NULL ? h->row.label : "row", h->first_row + (double)row,
                      h->column.label != NULL ? h->column.label : "column",
                      h->first_column + (double)column);
    }
    svg_begin(to, h->title, width, height);
    if (g.n_row > 0) {
        cells(&g);
        ticks(&g);
        scale(&g, height);
    } else {
        svg_text(to, 12, height / 2.0, width - 24, "d", "There is nothing to draw.");
    }
    fputs("</svg>\n", to);
}
