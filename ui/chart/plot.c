/*
 * Charts in cells of a terminal.
 *
 * A cell of the plot has dots: 2 x 4 in braille, 2 x 2 in quadrant blocks, one in ASCII.  Lines
 * set dots, so lines of several series meet in one cell; markers and texts take whole cells.
 */
#include "config.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ui/chart/chart.h"

#define LEAST_WIDTH  24
#define LEAST_HEIGHT 8
#define COUNT(a)     (sizeof(a) / sizeof((a)[0]))

static const enum ui_role roles[CHART_SERIES_MAX] = {
    ROLE_GRAPH, ROLE_GRAPH_2, ROLE_GOOD, ROLE_WARN, ROLE_ACCENT, ROLE_LINK, ROLE_USER, ROLE_BAD,
};

struct raster {
    const struct chart *c;
    struct canvas canvas, plot; /* plot: the cells between the axes */
    enum ui_graph graph;
    int across, down; /* dots of a cell */
    struct ticks x, y;
    uint8_t *dots;  /* [plot.height][plot.width]; bit down * column + row from the top */
    uint8_t *owner; /* the last series with a dot in the cell */
};

static double dot_x(const struct raster *r, double value)
{
    return ticks_place(&r->x, value) * (r->plot.width * r->across - 1);
}

static double dot_y(const struct raster *r, double value)
{
    return (1 - ticks_place(&r->y, value)) * (r->plot.height * r->down - 1);
}

static void set_dot(struct raster *r, int x, int y, size_t series)
{
    int column = x / r->across, row = y / r->down;
    size_t cell = (size_t)row * (size_t)r->plot.width + (size_t)column;

    if (x < 0 || y < 0 || column >= r->plot.width || row >= r->plot.height)
        return;
    r->dots[cell] |= (uint8_t)(1U << (x % r->across * r->down + y % r->down));
    r->owner[cell] = (uint8_t)series;
}

/* Does dot i of a line of this style show? */
static bool shows(enum chart_style style, int across, int i)
{
    switch (style) {
    case CHART_PREDICTED: return i % (3 * across) < 2 * across - across / 2;
    case CHART_AGAINST: return i % (2 * across) == 0;
    case CHART_MEASURED: break;
    }
    return true;
}

/* A line between two points.  *n counts its dots, for the pattern. */
static void segment(struct raster *r, size_t s, double x0, double y0, double x1, double y1,
                    int *n)
{
    int steps = (int)fmax(fabs(x1 - x0), fabs(y1 - y0)) + 1;

    for (int i = 0; i <= steps; i++) {
        double at = (double)i / steps;

        if (shows(r->c->series[s].style, r->across, (*n)++))
            set_dot(r, (int)lround(x0 + (x1 - x0) * at), (int)lround(y0 + (y1 - y0) * at), s);
    }
}

static void trace(struct raster *r, size_t s)
{
    const struct chart_series *l = &r->c->series[s];
    double last_x = NAN, last_y = NAN;
    int n = 0;

    for (size_t i = 0; i < l->n; i++) {
        double x = dot_x(r, l->point[i].x), y = dot_y(r, l->point[i].y);
        bool is_shown = isfinite(x) && isfinite(y);

        if (is_shown && isfinite(last_x)) {
            if (l->is_stepped)
                segment(r, s, last_x, last_y, x, last_y, &n);
            segment(r, s, l->is_stepped ? x : last_x, last_y, x, y, &n);
        } else if (is_shown) {
            set_dot(r, (int)lround(x), (int)lround(y), s);
        }
        last_x = is_shown ? x : NAN;
        last_y = y;
        if (isfinite(l->point[i].low) && isfinite(l->point[i].high) && is_shown)
            for (int d = (int)lround(dot_y(r, l->point[i].high));
                 d <= (int)lround(dot_y(r, l->point[i].low)); d++)
                set_dot(r, (int)lround(x), d, s);
    }
}

static wchar_t glyph(const struct raster *r, uint8_t dots, enum chart_style style)
{
    static const uint8_t braille[] = { 0x01, 0x02, 0x04, 0x40, 0x08, 0x10, 0x20, 0x80 };
    /* upper left 1, lower left 2, upper right 4, lower right 8 */
    static const wchar_t quadrants[] = L" ▘▖▌▝▀▞▛▗▚▄▙▐▜▟█";
    static const wchar_t ascii[] = {
        [CHART_MEASURED] = L'*', [CHART_PREDICTED] = L'-', [CHART_AGAINST] = L'.'
    };
    unsigned all = 0;

    switch (r->graph) {
    case UI_GRAPH_BRAILLE:
        for (size_t i = 0; i < COUNT(braille); i++)
            all |= (dots >> i & 1) != 0 ? braille[i] : 0U;
        return (wchar_t)(0x2800 + all);
    case UI_GRAPH_BLOCK: return quadrants[dots & 15];
    case UI_GRAPH_ASCII:
    case UI_GRAPH_AUTO: break;
    }
    return ascii[style];
}

static wchar_t marker(const struct raster *r, size_t s)
{
    static const wchar_t filled[] = L"●■▲◆", open[] = L"○□△◇", ascii[] = L"ox+#@%&$";
    enum chart_style style = r->c->series[s].style;

    if (canvas_is_ascii(&r->canvas))
        return ascii[s];
    return style == CHART_AGAINST ? L'×' : (style == CHART_PREDICTED ? open : filled)[s % 4];
}

static struct ui_style style_for(size_t s)
{
    return style_of(roles[s]);
}

static void draw_lines(struct raster *r)
{
    for (int y = 0; y < r->plot.height; y++)
        for (int x = 0; x < r->plot.width; x++) {
            size_t cell = (size_t)y * (size_t)r->plot.width + (size_t)x;

            if (r->dots[cell] != 0)
                canvas_cell(&r->plot, y, x, style_for(r->owner[cell]),
                            glyph(r, r->dots[cell], r->c->series[r->owner[cell]].style));
        }
}

/* Markers of a series whose points are far enough apart. */
static void draw_markers(const struct raster *r, size_t s)
{
    const struct chart_series *l = &r->c->series[s];

    if (l->n > (size_t)r->plot.width / 3)
        return;
    for (size_t i = 0; i < l->n; i++) {
        double x = dot_x(r, l->point[i].x), y = dot_y(r, l->point[i].y);

        if (isfinite(x) && isfinite(y))
            canvas_cell(&r->plot, (int)lround(y) / r->down, (int)lround(x) / r->across,
                        style_for(s), marker(r, s));
    }
}

/* --- around the plot --- */

static int columns_of(const char *text)
{
    return cluster_width(text, strlen(text));
}

static char *tick(char buf[CHART_VALUE], const struct chart_axis *axis, const struct ticks *t,
                  int i)
{
    struct chart_axis bare = *axis;

    bare.symbol = NULL;
    return chart_value(buf, &bare, t->at[i], t->step);
}

static int widest_tick(const struct chart_axis *axis, const struct ticks *t)
{
    char text[CHART_VALUE];
    int widest = 0;

    for (int i = 0; i < t->n; i++) {
        int width = columns_of(tick(text, axis, t, i));

        widest = width > widest ? width : widest;
    }
    return widest;
}

static void draw_y_axis(const struct raster *r)
{
    struct ui_style dim = style_of(ROLE_DIM), border = style_of(ROLE_BORDER);
    int x = r->plot.x - r->canvas.x - 1, last = -1;

    canvas_vline(&r->canvas, r->plot.y - r->canvas.y, x, r->plot.height, border);
    for (int i = r->y.n - 1; i >= 0; i--) {
        int y = (int)lround(dot_y(r, r->y.at[i])) / r->down + r->plot.y - r->canvas.y;
        char text[CHART_VALUE];

        if (y != last)
            canvas_right(&r->canvas, y, x - 1, dim, tick(text, &r->c->y, &r->y, i));
        last = y;
    }
}

static void draw_x_axis(const struct raster *r)
{
    struct ui_style dim = style_of(ROLE_DIM), border = style_of(ROLE_BORDER);
    int left = r->plot.x - r->canvas.x, y = r->plot.y - r->canvas.y + r->plot.height, end = 0;
    bool ascii = canvas_is_ascii(&r->canvas);

    canvas_cell(&r->canvas, y, left - 1, border, ascii ? L'+' : L'└');
    canvas_hline(&r->canvas, y, left, r->plot.width, border);
    for (int i = 0; i < r->x.n; i++) {
        char text[CHART_VALUE];
        int x = left + (int)lround(dot_x(r, r->x.at[i])) / r->across, width, from;

        width = columns_of(tick(text, &r->c->x, &r->x, i));
        from = x - width / 2;
        if (from + width > r->canvas.width)
            from = r->canvas.width - width;
        canvas_cell(&r->canvas, y, x, border, ascii ? L'+' : L'┴');
        if (from < end)
            continue;
        canvas_text(&r->canvas, y + 1, from, dim, text);
        end = from + width + 1;
    }
}

static int put_axis_name(const struct canvas *c, int y, int x, const struct chart_axis *axis)
{
    struct ui_style dim = style_of(ROLE_DIM);
    int at = x;

    if (axis->label != NULL)
        at += canvas_text(c, y, at, dim, axis->label);
    if (axis->symbol != NULL)
        at += canvas_printf(c, y, at, dim, axis->label != NULL ? " (%s)" : "%s", axis->symbol);
    return at - x;
}

/* The lines of marks are drawn before the series, their labels after them. */
static void draw_mark_line(const struct raster *r, const struct chart_mark *m)
{
    struct ui_style style = style_of(ROLE_LIMIT);
    bool ascii = canvas_is_ascii(&r->canvas);
    double x = dot_x(r, m->at), y = dot_y(r, m->at);

    if (m->is_level && isfinite(y))
        canvas_repeat(&r->plot, (int)lround(y) / r->down, 0, r->plot.width, style,
                      ascii ? L'-' : L'╌');
    if (!m->is_level && isfinite(x))
        for (int at = 0; at < r->plot.height; at++)
            canvas_cell(&r->plot, at, (int)lround(x) / r->across, style, ascii ? L':' : L'┊');
}

/* n is the number of labels above, of marks at an x. */
static void draw_mark_label(const struct raster *r, const struct chart_mark *m, int n)
{
    struct ui_style style = style_of(ROLE_LIMIT);
    double x = dot_x(r, m->at), y = dot_y(r, m->at);

    if (m->is_level && isfinite(y)) {
        int row = (int)lround(y) / r->down;

        canvas_right(&r->plot, row > 0 ? row - 1 : row + 1, r->plot.width, style, m->label);
    } else if (!m->is_level && isfinite(x)) {
        int column = (int)lround(x) / r->across;

        if (column + 2 + columns_of(m->label) <= r->plot.width)
            canvas_text(&r->plot, n, column + 2, style, m->label);
        else
            canvas_right(&r->plot, n, column - 1, style, m->label);
    }
}

/* Returns the lines that the legend takes; draws it from row top on if top >= 0. */
static int legend(const struct raster *r, int top)
{
    int x = 0, lines = 1;

    for (size_t s = 0; s < r->c->n_series; s++) {
        int width = 4 + columns_of(r->c->series[s].name) + 3;

        if (x > 0 && x + width > r->canvas.width) {
            x = 0;
            lines++;
        }
        if (top >= 0) {
            const wchar_t stroke =
                glyph(r, r->graph == UI_GRAPH_BRAILLE ? 0x22 : 5, r->c->series[s].style);
            int y = top + lines - 1;

            canvas_cell(&r->canvas, y, x, style_for(s), stroke);
            canvas_cell(&r->canvas, y, x + 1, style_for(s), marker(r, s));
            if (r->c->series[s].style == CHART_MEASURED)
                canvas_cell(&r->canvas, y, x + 2, style_for(s), stroke);
            canvas_text(&r->canvas, y, x + 4, style_of(ROLE_TEXT), r->c->series[s].name);
        }
        x += width;
    }
    return lines;
}

/* Divide the canvas: title, name of the y axis, plot, x axis with its texts, legend. */
static bool arrange(struct raster *r)
{
    int below = 3 + legend(r, -1), left, height = r->canvas.height - 2 - below;

    if (height < 3 || !chart_ticks(r->c, r->canvas.width > 48 ? r->canvas.width / 16 : 3,
                                   height > 8 ? height / 4 : 2, &r->x, &r->y))
        return false;
    left = widest_tick(&r->c->y, &r->y) + 2;
    r->plot = canvas_sub(&r->canvas, 2, left, height, r->canvas.width - left - 1);
    return r->plot.width >= 8;
}

/* The first series is drawn last, over the others. */
static void draw_inside(struct raster *r)
{
    size_t n = r->c->n_series < CHART_SERIES_MAX ? r->c->n_series : CHART_SERIES_MAX;

    for (size_t i = 0; i < r->c->n_mark; i++)
        draw_mark_line(r, &r->c->mark[i]);
    for (size_t s = n; s-- > 0;)
        trace(r, s);
    draw_lines(r);
    for (size_t s = n; s-- > 0;)
        draw_markers(r, s);
    for (size_t i = 0, above = 0; i < r->c->n_mark; i++) {
        draw_mark_label(r, &r->c->mark[i], (int)above);
        above += !r->c->mark[i].is_level;
    }
}

int chart_draw(const struct canvas *canvas, const struct chart *c, enum ui_graph graph,
               struct err *e)
{
    struct raster r = { .c = c, .canvas = *canvas, .graph = graph, .across = 1, .down = 1 };
    size_t cells;

    if (canvas->width < LEAST_WIDTH || canvas->height < LEAST_HEIGHT)
        return 0;
    if (canvas_is_ascii(canvas))
        r.graph = UI_GRAPH_ASCII;
    else if (graph == UI_GRAPH_AUTO)
        r.graph = UI_GRAPH_BRAILLE;
    if (r.graph == UI_GRAPH_BRAILLE || r.graph == UI_GRAPH_BLOCK) {
        r.across = 2;
        r.down = r.graph == UI_GRAPH_BRAILLE ? 4 : 2;
    }
    canvas_text(canvas, 0, 0, style_with(ROLE_HEADING, UI_BOLD), c->title);
    if (!arrange(&r)) {
        canvas_text(canvas, 2, 0, style_of(ROLE_DIM), "There is nothing to draw.");
        return 0;
    }
    cells = (size_t)r.plot.width * (size_t)r.plot.height;
    r.dots = calloc(2, cells);
    if (r.dots == NULL)
        return err_memory(e, "a chart of %d x %d cells", canvas->width, canvas->height);
    r.owner = r.dots + cells;
    put_axis_name(canvas, 1, 0, &c->y);
    draw_inside(&r);
    draw_y_axis(&r);
    draw_x_axis(&r);
    put_axis_name(canvas, 2 + r.plot.height + 2, r.plot.x - canvas->x, &c->x);
    legend(&r, 2 + r.plot.height + 3);
    free(r.dots);
    return 0;
}

/* --- as lines of text --- */

static const char *color_of(uint8_t role)
{
    static const char *const colors[CHART_SERIES_MAX] = { "36", "33", "32", "35",
                                                          "34", "96", "93", "31" };

    for (size_t i = 0; i < COUNT(colors); i++)
        if (roles[i] == role)
            return colors[i];
    return role == ROLE_DIM || role == ROLE_BORDER || role == ROLE_LIMIT ? "2"
           : role == ROLE_HEADING                                        ? "1"
                                                                         : "";
}

static int blank_end(const struct canvas_target *t, int y, int width)
{
    wchar_t text[CLUSTER_CHARS + 1];
    struct ui_style style;

    while (width > 0) {
        canvas_peek(t, y, width - 1, text, &style);
        if (text[0] != L' ' && text[0] != 0)
            break;
        width--;
    }
    return width;
}

static void print_colored(const struct canvas_target *t, const struct chart_look *look,
                          FILE *to)
{
    for (int y = 0; y < look->height; y++) {
        const char *color = "";
        int end = blank_end(t, y, look->width);

        for (int x = 0; x < end; x++) {
            wchar_t text[CLUSTER_CHARS + 1];
            struct ui_style style;
            const char *want;

            canvas_peek(t, y, x, text, &style);
            want = text[0] == L' ' ? color : color_of(style.role);
            if (strcmp(color, want) != 0)
                fprintf(to, "\033[0%s%sm", want[0] != '\0' ? ";" : "", want);
            color = want;
            fprintf(to, "%ls", text);
        }
        fputs(color[0] != '\0' ? "\033[0m\n" : "\n", to);
    }
}

int chart_print(const struct chart *c, const struct chart_look *look, FILE *to, struct err *e)
{
    struct canvas_target *t = canvas_on_grid(look->height, look->width, look->ascii, e);
    struct canvas canvas;
    int rc;

    if (t == NULL)
        return -1;
    canvas = canvas_of(t);
    rc = chart_draw(&canvas, c, look->graph, e);
    if (rc == 0 && look->color)
        print_colored(t, look, to);
    else if (rc == 0)
        canvas_write_text(t, to);
    canvas_target_free(t);
    return rc;
}
