/*
 * Charts as SVG.
 *
 * All colours are in the style sheet of the element, so that one drawing serves light and dark
 * screens and paper.  Several charts in one page repeat the same rules, which does no harm; ids
 * begin with the chart's own.
 */
#include "config.h"

#include "ui/chart/svg.h"

#include <math.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/chart/chart.h"
#include "ui/words/markup.h"

#define FONT        13  /* height of text */
#define CHAR_WIDTH  7.0 /* mean width of a character, to place texts */
#define LINE        18  /* height of a line of text */
#define MANY_POINTS 20  /* above, only some points have markers */

/* The plot inside the picture. */
struct plot {
    const struct chart *c;
    FILE *to;
    struct ticks x, y;
    double left, top, width, height;
};

static double at_x(const struct plot *p, double value)
{
    return p->left + p->width * ticks_place(&p->x, value);
}

static double at_y(const struct plot *p, double value)
{
    return p->top + p->height * (1 - ticks_place(&p->y, value));
}

static double text_width(const char *text)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        n += !utf8_is_inside(*text);
    return (double)n * CHAR_WIDTH;
}

/* The colours of one theme. */
struct colors {
    const char *ink, *dim, *grid, *ground;
    const char *series[CHART_SERIES_MAX];
};

static const struct colors light = {
    "#1f2328",
    "#59636e",
    "#d8dee4",
    "#fff",
    { "#0b6bcb", "#b54708", "#0a7d55", "#a3316f", "#6941c6", "#7a6400", "#0e7490", "#8a4b2a" },
};
static const struct colors dark = {
    "#e6edf3",
    "#9aa6b2",
    "#313943",
    "#12161c",
    { "#64b1ff", "#f79a55", "#4fd1a0", "#f08cc0", "#b79cff", "#e0c341", "#5cc8e0", "#d9a07e" },
};

/* Write plain colours, because many programs that show or convert SVG know no variables. */
static void write_colors(FILE *to, const struct colors *c)
{
    fprintf(to,
            ".mwc text{fill:%s}.mwc .d{fill:%s}.mwc .bg{fill:%s}.mwc .g{stroke:%s}"
            ".mwc .m{stroke:%s}.mwc .o{fill:%s}.mwc .k{stroke:%s}",
            c->ink, c->dim, c->ground, c->grid, c->dim, c->ground, c->ground);
    for (int i = 0; i < CHART_SERIES_MAX; i++)
        fprintf(to, ".mwc .s%d{stroke:%s}.mwc .f%d{fill:%s}", i, c->series[i], i, c->series[i]);
}

void svg_style(FILE *to)
{
    fputs("<style>.mwc{font:13px system-ui,sans-serif;color-scheme:light dark}"
          ".mwc .t{font-weight:600;font-size:15px}.mwc .g{fill:none}"
          ".mwc .m{stroke-dasharray:2 4;fill:none}"
          ".mwc .l{fill:none;stroke-width:2;stroke-linejoin:round}"
          ".mwc .o{stroke-width:2}.mwc .p{stroke-dasharray:7 5}.mwc .a{stroke-dasharray:2 4}"
          ".mwc .k{paint-order:stroke;stroke-width:4px}",
          to);
    write_colors(to, &light);
    fputs("@media screen and (prefers-color-scheme:dark){", to);
    write_colors(to, &dark);
    fputs("}</style>\n", to);
}

void svg_open(FILE *to, const char *id, const char *title, int width, int height)
{
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mwc\" role=\"img\" "
            "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "aria-labelledby=\"%s-title\" aria-describedby=\"%s-desc\">\n"
            "<title id=\"%s-title\">",
            width, height, width, height, id, id, id);
    markup_text(to, title);
    fprintf(to, "</title>\n<desc id=\"%s-desc\">", id);
}

void svg_begin(FILE *to, const char *title, int width, int height)
{
    fputs("</desc>\n", to);
    svg_style(to);
    fprintf(to, "<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", width, height);
    svg_text(to, 12, 22, width - 24, "t", title);
}

void svg_text(FILE *to, double x, double y, double room, const char *class, const char *text)
{
    size_t most = room > CHAR_WIDTH ? (size_t)(room / CHAR_WIDTH) : 1, n = 0, bytes = 0;

    while (text[bytes] != '\0' && n < most) {
        bytes++;
        while (utf8_is_inside(text[bytes]))
            bytes++;
        n++;
    }
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, class);
    markup_text_n(to, text, bytes);
    fprintf(to, "%s</text>\n", text[bytes] != '\0' ? "…" : "");
}

static void anchored(FILE *to, double x, double y, const char *anchor, const char *class,
                     const char *text)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\" text-anchor=\"%s\">", x, y, class,
            anchor);
    markup_text(to, text);
    fputs("</text>\n", to);
}

/* --- words --- */

/* "measured: 4 points, from 0.8 tok/s at 512 MiB to 12 tok/s at 8 GiB." */
static void describe(const struct chart *c, FILE *to)
{
    char low_y[CHART_VALUE], low_x[CHART_VALUE], high_y[CHART_VALUE], high_x[CHART_VALUE];

    for (size_t s = 0; s < c->n_series; s++) {
        const struct chart_series *l = &c->series[s];
        const struct chart_point *low = NULL, *high = NULL;
        size_t n = 0;

        for (size_t i = 0; i < l->n; i++) {
            if (!isfinite(l->point[i].y))
                continue;
            n++;
            low = low == NULL || l->point[i].y < low->y ? &l->point[i] : low;
            high = high == NULL || l->point[i].y > high->y ? &l->point[i] : high;
        }
        markup_text(to, l->name);
        if (n == 0)
            fputs(": no points. ", to);
        else
            markup_printf(
                to, ": %zu point%s, lowest %s at %s, highest %s at %s. ", n, n == 1 ? "" : "s",
                chart_value(low_y, &c->y, low->y, 0), chart_value(low_x, &c->x, low->x, 0),
                chart_value(high_y, &c->y, high->y, 0), chart_value(high_x, &c->x, high->x, 0));
    }
    for (size_t i = 0; i < c->n_mark; i++)
        if (isfinite(c->mark[i].at))
            markup_printf(
                to, "%s: %s. ", c->mark[i].label,
                chart_value(low_x, c->mark[i].is_level ? &c->y : &c->x, c->mark[i].at, 0));
}

/* --- axes --- */

static void axes(const struct plot *p)
{
    double bottom = p->top + p->height, right = p->left + p->width;
    char text[CHART_VALUE];
    struct chart_axis bare;

    for (int i = 0; i < p->y.n; i++) {
        double y = at_y(p, p->y.at[i]);

        bare = p->c->y;
        bare.symbol = NULL;
        fprintf(p->to, "<path class=\"g\" d=\"M%.1f %.1fH%.1f\"/>\n", p->left, y, right);
        anchored(p->to, p->left - 8, y + 4, "end", "d",
                 chart_value(text, &bare, p->y.at[i], p->y.step));
    }
    for (int i = 0; i < p->x.n; i++) {
        double x = at_x(p, p->x.at[i]);

        bare = p->c->x;
        bare.symbol = NULL;
        fprintf(p->to, "<path class=\"g\" d=\"M%.1f %.1fv5\"/>\n", x, bottom);
        anchored(p->to, x, bottom + LINE, "middle", "d",
                 chart_value(text, &bare, p->x.at[i], p->x.step));
    }
}

static void axis_name(FILE *to, const struct chart_axis *axis)
{
    if (axis->label != NULL)
        markup_text(to, axis->label);
    if (axis->symbol != NULL)
        markup_printf(to, axis->label != NULL ? " (%s)" : "%s", axis->symbol);
}

static void axis_names(const struct plot *p)
{
    fprintf(p->to, "<text x=\"12\" y=\"%.1f\" class=\"d\">", p->top - 12);
    axis_name(p->to, &p->c->y);
    fprintf(p->to, "</text>\n<text x=\"%.1f\" y=\"%.1f\" class=\"d\" text-anchor=\"middle\">",
            p->left + p->width / 2, p->top + p->height + 2 * LINE + 2);
    axis_name(p->to, &p->c->x);
    fputs("</text>\n", p->to);
}

/* The lines of marks are below the series, their labels above. */
static void mark_lines(const struct plot *p)
{
    for (size_t i = 0; i < p->c->n_mark; i++) {
        const struct chart_mark *m = &p->c->mark[i];
        double x = at_x(p, m->at), y = at_y(p, m->at);

        if (m->is_level && isfinite(y))
            fprintf(p->to, "<path class=\"m\" d=\"M%.1f %.1fH%.1f\"/>\n", p->left, y,
                    p->left + p->width);
        else if (!m->is_level && isfinite(x))
            fprintf(p->to, "<path class=\"m\" d=\"M%.1f %.1fv%.1f\"/>\n", x, p->top, p->height);
    }
}

/* Labels take turns between three heights, and are on the side of the line where there is more
 * space. */
static void mark_labels(const struct plot *p)
{
    double right = p->left + p->width;
    int n = 0;

    for (size_t i = 0; i < p->c->n_mark; i++) {
        const struct chart_mark *m = &p->c->mark[i];
        double x = at_x(p, m->at), y = at_y(p, m->at);

        if (m->is_level && isfinite(y)) {
            anchored(p->to, right - 4, y > p->top + LINE ? y - 5 : y + FONT + 2, "end", "d k",
                     m->label);
        } else if (!m->is_level && isfinite(x)) {
            bool at_left = x > p->left + p->width / 2;

            anchored(p->to, at_left ? x - 5 : x + 5, p->top + FONT + LINE * (n++ % 3),
                     at_left ? "end" : "start", "d k", m->label);
        }
    }
}

/* --- series --- */

static const char *line_class(enum chart_style style)
{
    return style == CHART_PREDICTED ? " p" : style == CHART_AGAINST ? " a" : "";
}

/* Circle, square, triangle, diamond; a cross for a series to compare against. */
static void marker(FILE *to, size_t s, enum chart_style style, double x, double y)
{
    static const char *const shapes[] = {
        "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
        "M-4-4h8v8h-8z",
        "M0-5.5l5 9h-10z",
        "M0-6l5.5 6l-5.5 6l-5.5-6z",
    };
    const char *shape = style == CHART_AGAINST ? "M-4-4l8 8m0-8l-8 8"
                                               : shapes[s % (sizeof shapes / sizeof shapes[0])];

    fprintf(to, "<path class=\"%s%zu\" transform=\"translate(%.1f %.1f)\" d=\"%s\"",
            style == CHART_MEASURED    ? "f"
            : style == CHART_PREDICTED ? "o s"
                                       : "l s",
            s, x, y, shape);
}

/*
 * The line of a series.  A long one is thinned: of the points in one unit of width, the first,
 * lowest, highest and last are kept, so that no peak is lost.
 */
struct pen {
    const struct plot *p;
    bool is_thin, is_stepped, is_down;
    bool has_point; /* one is collected */
    double x, first, low, high, last;
};

static void pen_to(struct pen *pen, double x, double y)
{
    if (!pen->is_down)
        fprintf(pen->p->to, "M%.1f %.1f", x, y);
    else if (pen->is_stepped)
        fprintf(pen->p->to, "H%.1fV%.1f", x, y);
    else
        fprintf(pen->p->to, "L%.1f %.1f", x, y);
    pen->is_down = true;
}

static void pen_flush(struct pen *pen)
{
    if (!pen->has_point)
        return;
    pen->has_point = false;
    pen_to(pen, pen->x, pen->first);
    if (pen->low < fmin(pen->first, pen->last))
        pen_to(pen, pen->x, pen->low);
    if (pen->high > fmax(pen->first, pen->last))
        pen_to(pen, pen->x, pen->high);
    if (fabs(pen->last - pen->first) > 0)
        pen_to(pen, pen->x, pen->last);
}

static void pen_point(struct pen *pen, double x, double y)
{
    x = pen->is_thin ? floor(x) : x;
    if (!pen->has_point || fabs(x - pen->x) > 0) {
        pen_flush(pen);
        pen->has_point = true;
        pen->x = x;
        pen->first = pen->low = pen->high = y;
    }
    pen->low = fmin(pen->low, y);
    pen->high = fmax(pen->high, y);
    pen->last = y;
}

static void line(const struct plot *p, size_t s)
{
    const struct chart_series *l = &p->c->series[s];
    struct pen pen = { p, (double)l->n > 2 * p->width, l->is_stepped, false, false, 0, 0, 0, 0,
                       0 };

    fprintf(p->to, "<path class=\"l s%zu%s\" d=\"", s, line_class(l->style));
    for (size_t i = 0; i < l->n; i++) {
        double x = at_x(p, l->point[i].x), y = at_y(p, l->point[i].y);

        if (isfinite(x) && isfinite(y)) {
            pen_point(&pen, x, y);
            continue;
        }
        pen_flush(&pen);
        pen.is_down = false;
    }
    pen_flush(&pen);
    fputs("\"/>\n", p->to);
}

static void bar(const struct plot *p, size_t s, const struct chart_point *point)
{
    double x = at_x(p, point->x), low = at_y(p, point->low), high = at_y(p, point->high);

    if (isfinite(x) && isfinite(low) && isfinite(high))
        fprintf(p->to, "<path class=\"l s%zu\" d=\"M%.1f %.1fh8m-4 0V%.1fm-4 0h8\"/>\n", s,
                x - 4, low, high);
}

static void point_title(const struct plot *p, const struct chart_series *l,
                        const struct chart_point *point)
{
    char x[CHART_VALUE], y[CHART_VALUE], low[CHART_VALUE], high[CHART_VALUE];

    fputs("><title>", p->to);
    markup_printf(p->to, "%s, %s: %s", l->name, chart_value(x, &p->c->x, point->x, 0),
                  chart_value(y, &p->c->y, point->y, 0));
    if (isfinite(point->low) && isfinite(point->high))
        markup_printf(p->to, " (%s to %s)", chart_value(low, &p->c->y, point->low, 0),
                      chart_value(high, &p->c->y, point->high, 0));
    fputs("</title></path>\n", p->to);
}

static void points(const struct plot *p, size_t s)
{
    const struct chart_series *l = &p->c->series[s];
    size_t step = l->n > MANY_POINTS ? l->n / 6 : 1;

    for (size_t i = step / 2; i < l->n; i += step) {
        double x = at_x(p, l->point[i].x), y = at_y(p, l->point[i].y);

        if (!isfinite(x) || !isfinite(y))
            continue;
        if (step == 1)
            bar(p, s, &l->point[i]);
        marker(p->to, s, l->style, x, y);
        point_title(p, l, &l->point[i]);
    }
}

/* --- legend --- */

static double legend_width(const char *name)
{
    return 40 + text_width(name) + 20;
}

/* Returns the lines that the legend takes; writes it if to is not NULL. */
static int legend(const struct chart *c, double left, double top, double width, FILE *to)
{
    double x = left;
    int lines = 1;

    for (size_t s = 0; s < c->n_series; s++) {
        const struct chart_series *l = &c->series[s];
        double y;

        if (x > left && x + legend_width(l->name) > left + width) {
            x = left;
            lines++;
        }
        y = top + (lines - 1) * LINE;
        if (to != NULL) {
            fprintf(to, "<path class=\"l s%zu%s\" d=\"M%.1f %.1fh32\"/>\n", s,
                    line_class(l->style), x, y);
            marker(to, s, l->style, x + 16, y);
            fputs("/>\n", to);
            svg_text(to, x + 40, y + 4, left + width - x - 40, "d", l->name);
        }
        x += legend_width(l->name);
    }
    return c->n_series > 0 ? lines : 0;
}

/* --- the whole --- */

static double widest_tick(const struct plot *p)
{
    double widest = 0;

    for (int i = 0; i < p->y.n; i++) {
        struct chart_axis bare = p->c->y;
        char text[CHART_VALUE];

        bare.symbol = NULL;
        widest = fmax(widest, text_width(chart_value(text, &bare, p->y.at[i], p->y.step)));
    }
    return widest;
}

void chart_svg(const struct chart *c, int width, int height, FILE *to)
{
    struct plot p = { .c = c, .to = to, .top = 64 };
    size_t n = c->n_series < CHART_SERIES_MAX ? c->n_series : CHART_SERIES_MAX;
    double legend_top;

    svg_open(to, c->id, c->title, width, height);
    if (c->about != NULL)
        markup_printf(to, "%s ", c->about);
    describe(c, to);
    svg_begin(to, c->title, width, height);
    if (!chart_ticks(c, width / 110 + 2, height / 70 + 1, &p.x, &p.y)) {
        svg_text(to, 12, height / 2.0, width - 24, "d", "There is nothing to draw.");
        fputs("</svg>\n", to);
        return;
    }
    p.left = 24 + widest_tick(&p);
    p.width = width - p.left - 32;
    legend_top = height - LINE * legend(c, 12, 0, width - 24, NULL) + 2;
    p.height = legend_top - 3 * LINE - 2 - p.top;
    axes(&p);
    axis_names(&p);
    mark_lines(&p);
    for (size_t s = n; s-- > 0;) /* the first series is over the others */
        line(&p, s);
    for (size_t s = n; s-- > 0;)
        points(&p, s);
    mark_labels(&p);
    legend(c, 12, legend_top, width - 24, to);
    fputs("</svg>\n", to);
}
