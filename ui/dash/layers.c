/*
 * The layers of the last pass, each with its times as a bar and, in a wide column, as figures
 * below their headings.
 *
 *   layers ● pinned ◐ part ○ on disk ── ms: ┃read ▒wait █compute
 *    7 s ◐ ▒▒▒▒▒▒▒▒▒▒▒▒▒┃██                    12     9      2.1
 *   >8 s …                                 running
 *   !9 G …                                 slowest
 *   head ○ ▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒███┃              44    40       12
 *
 * With more space, a waterfall between the bars and the figures shows how long each layer waited
 * for the disk, one column for each token.
 *
 *    7 s ◐ ▒▒▒▒▒▒▒▒┃██  ▒▓▒░▓▒▒▒▓▒            12     9      2.1
 *   >8 s ●  ██          ▒▓▒░▓▒                ‐      ‐      2.1
 *
 * With less space columns get narrower and have one figure, the time of the layer.  With still
 * less, a row has four layers or eight, with a waterfall.  With little space it shows a strip with
 * one cell per layer.  The row of the head explains both.
 *
 *   layers ┃ read ▒ wait █ compute
 *    7 s ◐ ▒▒▒▒▒┃██  11  8 G ○ ▒▒▒▒▒▒┃█  13
 *   head ○ ▒▒▒▒▒▒▒▒▒┃█   52 ms   ●◐○ pinned
 *
 *   layers ┃ read ▒ wait █ compute   ▼       ms
 *   > 4- 7 ◐ ▒▒▒▒▒┃██   ⣿⢿⡇⠀⠃⣿⣷⢿⡇⠀⠃⣿⣷        35
 *
 * Reading goes on beside the rest, so it is a mark on the bar.  Kinds: s sliding, G global, in
 * brackets if the layer uses the KV entries of another layer.  The bar of the head has its own
 * scale, since the head is as large as several layers.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/dash/curve.h"
#include "ui/dash/waterfall.h"
#include "ui/dash/widget.h"
#include "ui/words/cluster.h"

#define COLUMN_MIN 16                    /* width of a column with its gap */
#define COLUMN_WIDE 30                   /* of one whose bars show more than a waterfall */
#define FIGURES    22                    /* width: the headings and a blank on both sides */
#define NAMED      38                    /* width: a blank and three figures with their names */
#define CIRCLES    11                    /* width: their meaning and a blank */
#define UNIT       (TOTAL + 4 + CIRCLES) /* width: a time with its unit, and the circles */
#define TOTAL      4 /* width: a blank and three digits; only slow layers need the fourth */
#define BAR_MIN    5
#define BAR_SHORT  20
#define BAR_HEAD   12 /* of the head, beside figures with names */
#define INSPECT    4  /* lines about the inspected layer */
#define WEIGHTS_WIDE 43 /* of its line with weights, pinned and kv */
#define KV_WIDE      11
#define RATE_WIDE    13 /* "at 5.06 MB/s" */
#define TIMES_WIDE   43
#define FALL_ROOM  32 /* width of bars and a waterfall, with a gap on both sides of it */
#define FALL_TIGHT 28 /* the same beside three figures */
#define GROUP      4  /* layers in a row with several, or twice as many */
#define GROUP_MOST 8
#define GROUP_HEAD 43 /* columns of the head of the widget with everything that it explains */
#define GROUP_FALL 13 /* columns that a waterfall beside that should have */
#define GROUP_WIDE (9 + 1 + FALL_ROOM + TOTAL) /* width for that */

/* ---- one layer ---- */

static const char *kind_mark(const struct mw_sample_layer *l)
{
    static const char *const marks[] = { " s ", " G ", "(s)", "(G)", " r ", " I ", " f ", "   " };

    return l->kind <= MW_LAYER_HEAD ? marks[l->kind] : " ? ";
}

static double pinned_share(const struct mw_sample_layer *l)
{
    return l->bytes > 0 ? (double)l->pinned_bytes / (double)l->bytes : 0;
}

/* Returns the glyph for pinned, partly pinned or streamed. */
static wchar_t pin_glyph(const struct mw_sample_layer *l, bool ascii)
{
    double share = pinned_share(l);

    if (share >= 0.995)
        return ascii ? L'#' : L'\u25cf';
    if (share > 0.005)
        return ascii ? L'+' : L'\u25d0';
    return ascii ? L'.' : L'\u25cb';
}

static enum ui_role pin_role(const struct mw_sample_layer *l)
{
    return pinned_share(l) > 0.005 ? ROLE_FILL_PINNED : ROLE_DIM;
}

static bool is_running(const struct dash *d, uint32_t i)
{
    return i == d->now.layer_now && (d->now.state == MW_PREFILL || d->now.state == MW_DECODE);
}

/* Returns the time of reading in nanoseconds; negative if nothing was read. */
static double read_time(const struct mw_sample_layer *l)
{
    return l->read_ns > 0 ? (double)l->read_ns : -1;
}

/* Returns the stall in nanoseconds; negative if it is not measured: the kernel reads mapped
 * weights. */
static double wait_time(const struct dash *d, const struct mw_sample_layer *l)
{
    return mw_run_is_mapped(&d->now.run) ? -1 : (double)l->stall_ns;
}

/* Draw the times; width cells represent top milliseconds.  A layer that was evaluated has at
 * least one cell of bar, which the mark of reading does not hide. */
static void draw_times(const struct canvas *c, int y, int x, int width,
                       const struct mw_sample_layer *l, double top)
{
    bool ascii = canvas_is_ascii(c);
    double scale = top > 0 ? width / top / 1e6 : 0, read_ns = read_time(l);
    double stall_ns = (double)l->stall_ns, both_ns = stall_ns + (double)l->compute_ns;
    int wait = (int)lround(fmin(stall_ns * scale, width));
    int both = (int)lround(fmin(both_ns * scale, width));
    int mark = (int)lround(fmin(read_ns * scale, width)) - 1;

    both = both > width ? width : both < 1 ? 1 : both;
    wait = wait > both ? both : wait;
    mark = mark > width - 1 ? width - 1 : mark < 1 ? 1 : mark;
    canvas_repeat(c, y, x, wait, style_of(ROLE_FILL_WORK), ascii ? L'-' : L'\u2592');
    canvas_repeat(c, y, x + wait, both - wait, style_of(ROLE_GOOD), ascii ? L'#' : L'\u2588');
    /* Its shape says enough: a colour of its own would be a third of a row's bytes. */
    if (read_ns > 0)
        canvas_cell(c, y, x + mark, style_of(mark < wait ? ROLE_FILL_WORK : ROLE_GOOD),
                    ascii ? L'|' : L'\u2503');
}

/* The height of the glyph says the same as its colour. */
static wchar_t heat_glyph(double share, bool ascii)
{
    static const wchar_t digits[] = L"123456789";
    int step = (int)fmax(fmin(share * 8, 7), 0);

    return ascii ? digits[step] : (wchar_t)(0x2581 + step);
}

/* The figures of a row. */
enum figures {
    FIGURE_NONE,
    FIGURE_TOTAL, /* stall and computation */
    FIGURE_THREE, /* reading, stall, computation */
    FIGURE_NAMED, /* the same with their names, for the head only */
    FIGURE_UNIT,  /* the total with its unit, and the circles, for the head only */
};

static int figures_width(enum figures f)
{
    static const int widths[] = {
        [FIGURE_NONE] = 0,      [FIGURE_TOTAL] = TOTAL, [FIGURE_THREE] = FIGURES,
        [FIGURE_NAMED] = NAMED, [FIGURE_UNIT] = UNIT,
    };

    return widths[f];
}

/* Draw the read, stall and compute times at the right end. */
static void draw_three(const struct dash *d, const struct canvas *c, int y,
                       const struct mw_sample_layer *l)
{
    canvas_printf(c, y, c->width - FIGURES + 1, style_of(ROLE_TEXT), "%5s %5s %8s",
                  figure_ms4(read_time(l)).text, figure_ms4(wait_time(d, l)).text,
                  figure_ms4((double)l->compute_ns).text);
}

static void draw_named(const struct dash *d, const struct canvas *c, int y,
                       const struct mw_sample_layer *l)
{
    int x = c->width - NAMED + 1;

    x = widget_pair(c, y, x, "read", figure_ms4(read_time(l)).text, ROLE_TEXT);
    x = widget_pair(c, y, x, "wait", figure_ms4(wait_time(d, l)).text, ROLE_TEXT);
    x = widget_pair(c, y, x, "compute", figure_ms4((double)l->compute_ns).text, ROLE_TEXT);
    canvas_text(c, y, x - 1, style_of(ROLE_DIM), "ms");
}

/* Draw what the circles mean, up to column `end`. */
static void draw_circles(const struct canvas *c, int y, int end)
{
    canvas_blank(c, y, end - CIRCLES + 1, CIRCLES, style_of(ROLE_DIM));
    canvas_right(c, y, end, style_of(ROLE_DIM),
                 canvas_is_ascii(c) ? "#+. pinned" : "\u25cf\u25d0\u25cb pinned");
}

/* Draw what can be known before the first pass, too. */
static void draw_unit(const struct canvas *c, int y, const struct mw_sample_layer *l)
{
    int x = c->width - UNIT + TOTAL;

    if (l->passes > 0) {
        canvas_right(c, y, x, style_of(ROLE_TEXT), figure_ms4(layer_ms(l) * 1e6).text);
        canvas_text(c, y, x + 1, style_of(ROLE_DIM), "ms");
    }
    draw_circles(c, y, c->width);
}

static void draw_figures(const struct dash *d, const struct canvas *c, int y,
                         const struct mw_sample_layer *l, enum figures f)
{
    if (f == FIGURE_UNIT)
        draw_unit(c, y, l);
    else if (l->passes == 0)
        canvas_right(c, y, c->width, style_of(ROLE_DIM), "-");
    else if (f == FIGURE_NAMED)
        draw_named(d, c, y, l);
    else if (f == FIGURE_THREE)
        draw_three(d, c, y, l);
    else if (f == FIGURE_TOTAL)
        canvas_right(c, y, c->width, style_of(ROLE_TEXT), figure_ms4(layer_ms(l) * 1e6).text);
}

/* Returns the columns before the bar of a layer. */
static int label_width(const struct dash *d)
{
    return d->now.n_layer > 100 ? 9 : 8;
}

/* Draw the circle, the bar and the figures of a row.  A waterfall is between the two. */
static void draw_values(const struct dash *d, const struct canvas *c, int y,
                        const struct mw_sample_layer *l, double top, enum figures f,
                        const struct fall *fall)
{
    int x = label_width(d);
    int end = fall->width > 0 ? fall->x - 1 : c->width - figures_width(f);

    canvas_cell(c, y, x - 1, style_of(pin_role(l)), pin_glyph(l, canvas_is_ascii(c)));
    draw_figures(d, c, y, l, f);
    if (l->passes > 0)
        draw_times(c, y, x + 1, end - x - 1, l, top);
}

/* Draw the label of a row.  Only one cell says that a layer runs, since it changes several times
 * per token. */
static void draw_label(const struct canvas *c, int y, const char *label, bool is_slowest,
                       bool runs, bool has_cursor)
{
    unsigned attr = has_cursor ? UI_REVERSE : 0u;

    canvas_text(c, y, 0, style_with(is_slowest ? ROLE_WARN : ROLE_TEXT, attr), label);
    if (runs)
        canvas_cell(c, y, 0, style_with(ROLE_GRAPH_2, attr), L'>');
    else if (is_slowest)
        canvas_cell(c, y, 0, style_with(ROLE_WARN, attr), L'!');
}

/*
 * "> 7 s  ◐ ▒▒▒▒▒██  12   9 2.1": mark, number, kind, pinned, bar, figures.  The running
 * layer has a highlighted '>', the slowest one '!', the inspected one is reversed.
 */
static void draw_layer(const struct dash *d, const struct canvas *c, int y, uint32_t i,
                       double top, enum figures f, const struct fall *fall)
{
    const struct mw_sample_layer *l = &d->now.layer[i];
    char label[16] = "  head ";

    if (i < d->now.n_layer)
        snprintf(label, sizeof label, " %*u %s", label_width(d) - 6, (unsigned)i, kind_mark(l));
    draw_label(c, y, label, (int)i == dash_slowest(d), is_running(d, i), (int)i == d->cursor);
    draw_values(d, c, y, l, top, f, fall);
    if (fall->width > 0)
        fall_row(d, c, y, fall, i, 1);
}

/* ---- several layers in a row ---- */

/* Returns the lines of all rows with n layers and of the head. */
static int group_lines(const struct dash *d, int n)
{
    return ((int)d->now.n_layer + n - 1) / n + 1;
}

/* Returns the layers in a row, beside this number of columns for one layer in each (0: they do
 * not fit); 0: rows with several are not better.  A waterfall is worth more than short bars. */
static uint32_t group_for(const struct dash *d, int columns, int height, int width)
{
    if (d->now.n_layer == 0 || width < GROUP_WIDE ||
        (columns > 0 && width / columns >= COLUMN_WIDE))
        return 0;
    if (group_lines(d, GROUP) <= height)
        return GROUP;
    return columns == 0 && group_lines(d, GROUP_MOST) <= height ? GROUP_MOST : 0;
}

/* Returns the sums of n layers. */
static struct mw_sample_layer sum_of(const struct dash *d, uint32_t first, uint32_t n)
{
    struct mw_sample_layer sum = { 0 };

    for (uint32_t i = first; i < first + n; i++) {
        const struct mw_sample_layer *l = &d->now.layer[i];

        sum.bytes += l->bytes;
        sum.pinned_bytes += l->pinned_bytes;
        sum.read_ns += l->read_ns;
        sum.stall_ns += l->stall_ns;
        sum.compute_ns += l->compute_ns;
        sum.passes += l->passes;
    }
    return sum;
}

static bool is_between(int layer, uint32_t first, uint32_t n)
{
    return layer >= (int)first && layer < (int)(first + n);
}

/* "> 4- 7 ◐ ▒▒▒▒▒██  ⣿⢿⡇⠀⠃  35" */
static void draw_group(const struct dash *d, const struct canvas *c, int y, uint32_t first,
                       uint32_t n, const struct fall *fall)
{
    struct mw_sample_layer sum = sum_of(d, first, n);
    int digits = (label_width(d) - 4) / 2;
    char label[16];
    bool runs = false;

    for (uint32_t i = first; i < first + n; i++)
        runs |= is_running(d, i);
    snprintf(label, sizeof label, " %*u-%*u", digits, (unsigned)first, digits,
             (unsigned)(first + n - 1));
    draw_label(c, y, label, is_between(dash_slowest(d), first, n), runs,
               is_between(d->cursor, first, n));
    draw_values(d, c, y, &sum, d->layers_top_ms * fall->per_row, FIGURE_TOTAL, fall);
    if (fall->width > 0)
        fall_row(d, c, y, fall, first, n);
}

/* ---- the waterfall ---- */

/* Returns where it is in a panel with this many layers in a row. */
static struct fall fall_for(const struct dash *d, enum figures f, int width, uint32_t per_row)
{
    int room = width - label_width(d) - 1 - figures_width(f);
    int most = fall_most(d, per_row);
    struct fall fall = { .per_row = per_row };

    if ((f != FIGURE_THREE && f != FIGURE_TOTAL) ||
        room < (f == FIGURE_THREE ? FALL_TIGHT : FALL_ROOM) || !fall_has_waits(d))
        return fall;
    fall.width = room / 2 - 3 < most ? room / 2 - 3 : most;
    if (per_row > 1 && width - TOTAL - GROUP_HEAD >= GROUP_FALL &&
        fall.width > width - TOTAL - GROUP_HEAD)
        fall.width = width - TOTAL - GROUP_HEAD;
    fall.x = width - figures_width(f) - fall.width;
    return fall;
}

/* ---- bars in columns ---- */

/* Returns the number of columns for the layers without the head. */
static int columns_for(const struct dash *d, int height, int width)
{
    int most = width / COLUMN_MIN, n = (int)d->now.n_layer;

    for (int columns = 1; columns <= most; columns++)
        if ((n + columns - 1) / columns + 1 <= height)
            return columns;
    return 0;
}

static int column_height(const struct dash *d, int columns)
{
    return ((int)d->now.n_layer + columns - 1) / columns;
}

/* Returns the figures of layers in this many columns. */
static enum figures figures_for(const struct dash *d, int columns, int width)
{
    int bar;

    if (columns == 0)
        return FIGURE_NONE;
    bar = width / columns - (columns > 1) - label_width(d) - 1;
    /* Where three figures leave no room for a waterfall, it says more than they do. */
    if (columns == 1 && bar >= FALL_ROOM + TOTAL && bar < BAR_SHORT + FIGURES &&
        fall_has_waits(d))
        return FIGURE_TOTAL;
    return bar >= BAR_MIN + FIGURES ? FIGURE_THREE
           : bar >= BAR_MIN + TOTAL ? FIGURE_TOTAL
                                    : FIGURE_NONE;
}

/* Returns those of the head. */
static enum figures figures_of_head(const struct dash *d, enum figures layers, int width,
                                    bool needs_circles)
{
    int bar = width - label_width(d) - 1;

    if (layers == FIGURE_THREE)
        return layers;
    if (!needs_circles && bar >= BAR_HEAD + NAMED)
        return FIGURE_NAMED;
    return bar >= BAR_MIN + UNIT ? FIGURE_UNIT : FIGURE_TOTAL;
}

static void draw_bars(const struct dash *d, const struct canvas *c, int columns,
                      enum figures head)
{
    int high = column_height(d, columns), wide = c->width / columns;
    double top = d->layers_top_ms;
    enum figures f = figures_for(d, columns, c->width);
    struct canvas row = canvas_sub(c, high, 0, 1, c->width);
    double top_of_head = fmax(layer_longest_ms(&d->now.layer[d->now.n_layer]), top);
    struct fall fall = columns == 1 ? fall_for(d, f, c->width, 1) : (struct fall){ 0 };

    for (uint32_t i = 0; i < d->now.n_layer; i++) {
        int column = (int)i / high;
        int gap = column + 1 < columns ? 1 : 0;
        struct canvas cell =
            canvas_sub(c, (int)i % high, column * wide, 1,
                       (column + 1 < columns ? wide : c->width - column * wide) - gap);

        draw_layer(d, &cell, 0, i, top, f, &fall);
    }
    draw_layer(d, &row, 0, d->now.n_layer, top_of_head, head, &fall);
}

static void draw_groups(const struct dash *d, const struct canvas *c, uint32_t per_row)
{
    struct fall fall = fall_for(d, FIGURE_TOTAL, c->width, per_row);
    double top = d->layers_top_ms * per_row;
    uint32_t n = d->now.n_layer;
    int y = 0;

    for (uint32_t i = 0; i < n; i += per_row)
        draw_group(d, c, y++, i, i + per_row < n ? per_row : n - i, &fall);
    draw_layer(d, c, y, n, fmax(layer_longest_ms(&d->now.layer[n]), top), FIGURE_TOTAL, &fall);
}

/* ---- the strip ---- */

/* Cells per layer, and rows of layers. */
static int strip_cell(int n, int width)
{
    int cell = n > 0 ? width / n : 1;

    return cell < 1 ? 1 : cell > 3 ? 3 : cell;
}

static int strip_rows(int n, int width)
{
    int wide = width / strip_cell(n, width);

    return wide > 0 ? (n + wide - 1) / wide : 1;
}

static void draw_heat(const struct dash *d, const struct canvas *c, uint32_t i, double top)
{
    const struct mw_sample_layer *l = &d->now.layer[i];
    double share = top > 0 ? layer_ms(l) / top : 0;
    unsigned attr = (is_running(d, i) ? UI_BOLD | UI_UNDERLINE : 0u) |
                    ((int)i == d->cursor ? UI_REVERSE : 0u);

    if (l->passes == 0)
        canvas_repeat(c, 0, 0, c->width, style_with(ROLE_DIM, attr),
                      canvas_is_ascii(c) ? L'-' : L'\u00b7');
    else
        canvas_repeat(c, 0, 0, c->width, style_with(ui_ramp(share), attr),
                      heat_glyph(share, canvas_is_ascii(c)));
}

/* Draw two lines for each row of cells: heat, and pinned layers if it fits.  Returns the lines
 * used. */
static int draw_strip(const struct dash *d, const struct canvas *c)
{
    int n = (int)d->now.n_layer, cell = strip_cell(n, c->width), wide = c->width / cell;
    int rows = strip_rows(n, c->width), lines = c->height >= 2 * rows ? 2 : 1;
    int slowest = dash_slowest(d);
    double top = slowest >= 0 ? layer_ms(&d->now.layer[slowest]) : 0;

    for (int i = 0; i < n && wide > 0; i++) {
        struct canvas heat = canvas_sub(c, i / wide * lines, i % wide * cell, 1, cell);

        draw_heat(d, &heat, (uint32_t)i, top);
        if (lines == 2)
            canvas_cell(c, i / wide * 2 + 1, i % wide * cell,
                        style_of(pin_role(&d->now.layer[i])),
                        pin_glyph(&d->now.layer[i], canvas_is_ascii(c)));
    }
    return rows * lines;
}

static void draw_small(const struct dash *d, const struct canvas *c, enum figures of_head)
{
    uint32_t head = d->now.n_layer;
    double top = fmax(layer_longest_ms(&d->now.layer[head]), d->layers_top_ms);
    struct canvas strip = canvas_sub(c, 0, 0, c->height > 1 ? c->height - 1 : 1, c->width);
    struct canvas row;
    int used = draw_strip(d, &strip);

    row = canvas_sub(c, used, 0, 1, c->width);
    if (row.height > 0)
        draw_layer(d, &row, 0, head, top, of_head, &(struct fall){ 0 });
}

/* ---- the layer under the cursor ---- */

/* While the keys move the cursor of the wall, details of a layer would take its lines. */
static bool inspects(const struct dash *d)
{
    return d->cursor >= 0 && d->panels.chosen != PANEL_WALL;
}

/* Draw a label and a value if both fit.  Returns the column after them and two blanks. */
static int draw_pair(const struct canvas *c, int y, int x, const char *label, const char *value,
                     enum ui_role role)
{
    int wide = (int)(strlen(label) + 1 + strlen(value));

    return x + wide <= c->width ? widget_pair(c, y, x, label, value, role) : x;
}

/* Draw the times, with fewer digits if they do not fit otherwise. */
static void draw_inspected_times(const struct dash *d, const struct canvas *c, int y, int x,
                                 const struct mw_sample_layer *l)
{
    bool is_mapped = mw_run_is_mapped(&d->now.run);
    const double ns[] = { is_mapped ? -1 : fmax(read_time(l), 0), wait_time(d, l),
                          (double)l->compute_ns };
    static const char *const labels[] = { "read", "wait", "compute" };
    static const enum ui_role roles[] = { ROLE_TEXT, ROLE_WARN, ROLE_GOOD };
    bool is_wide = c->width - x >= TIMES_WIDE;

    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
        x = draw_pair(c, y, x, labels[i],
                      is_wide && ns[i] >= 0 ? figure_ms6(numbers_whole(ns[i])).text
                                            : figure_ms4(ns[i]).text,
                      roles[i]);
    if (x + 1 <= c->width)
        canvas_text(c, y, x - 1, style_of(ROLE_DIM), "ms");
}

static void draw_inspected(const struct dash *d, const struct canvas *c)
{
    uint32_t i = (uint32_t)d->cursor;
    const struct mw_sample_layer *l = &d->now.layer[i];
    uint64_t streamed = l->bytes > l->pinned_bytes ? l->bytes - l->pinned_bytes : 0;
    struct mw_os_value reads = { .value = streamed,
                                 .why_not = mw_run_is_mapped(&d->now.run) ? "mapped" : NULL };
    const struct past *h = &d->layer[i];
    struct canvas curve = canvas_sub(c, 3, 0, c->height - 3, c->width);
    double read_ns = read_time(l);
    char text[120];
    int x, y = 2;

    if (i == d->now.n_layer)
        snprintf(text, sizeof text, "output head");
    else
        snprintf(text, sizeof text, "layer %u, %s", (unsigned)i,
                 mw_layer_kind_name((enum mw_layer_kind)l->kind));
    x = canvas_text(c, 0, 0, style_with(ROLE_ACCENT, UI_BOLD), text) + 2;
    if (c->width < WEIGHTS_WIDE) /* at the end of this line */
        draw_pair(c, 0, x < c->width - KV_WIDE ? c->width - KV_WIDE : x, "kv",
                  figure_size8(l->kv_bytes).text, ROLE_TEXT);
    x = draw_pair(c, 1, 0, "weights", figure_size8(l->bytes).text, ROLE_TEXT);
    x = draw_pair(c, 1, x, "pinned", figure_percent5(pinned_share(l)).text, ROLE_TEXT);
    if (c->width >= WEIGHTS_WIDE)
        draw_pair(c, 1, x, "kv", figure_size8(l->kv_bytes).text, ROLE_TEXT);
    if (l->passes == 0)
        return;
    x = draw_pair(c, 2, 0, "reads", figure_os8(reads).text, ROLE_TEXT);
    if (x + RATE_WIDE <= c->width) {
        x = draw_pair(c, 2, x, "at",
                      figure_rate5(read_ns > 0 ? (double)streamed / read_ns * 1e3 : -1).text,
                      ROLE_TEXT);
        x += canvas_text(c, 2, x - 1, style_of(ROLE_DIM), "MB/s") + 1;
    }
    if (c->width - x < TIMES_WIDE) { /* on its own line */
        curve = canvas_sub(c, 4, 0, c->height - 4, c->width);
        y = 3, x = 0;
    }
    draw_inspected_times(d, c, y, x, l);
    if (curve.height > 0 && h->n > 0)
        curve_with_scale(&curve, d, h, 1, style_of(ROLE_GRAPH_2));
}

/* ---- the widget ---- */

#define LEGEND_AT 8 /* after the name */

/* The marks of bars, then those of pinned layers.  Reading has the colour of what it is beside,
 * so no colour here. */
static const struct {
    const char *marks[2], *label; /* marks of UTF-8 and ASCII */
    enum ui_role role;
} legend[] = {
    { { "\u2503", "|" }, "read", ROLE_TEXT },
    { { "\u2592", "-" }, "wait", ROLE_FILL_WORK },
    { { "\u2588", "#" }, "compute", ROLE_GOOD },
    { { "\u25cf", "#" }, "pinned", ROLE_FILL_PINNED },
    { { "\u25d0", "+" }, "part", ROLE_FILL_PINNED },
    { { "\u25cb", "." }, "on disk", ROLE_DIM },
};
#define N_TIMES  3
#define N_LEGEND 6

static int legend_width(int from, int end)
{
    int width = 0;

    for (int i = from; i < end; i++)
        width += (int)strlen(legend[i].label) + 3;
    return width;
}

/* Draw a part of the legend at x, with `gap` blanks after marks. */
static void draw_legend(const struct canvas *c, int x, int from, int end, int gap)
{
    canvas_blank(c, 0, x, legend_width(from, end) - (1 - gap) * (end - from),
                 style_of(ROLE_DIM));
    for (int i = from; i < end; i++) {
        x += canvas_text(c, 0, x, style_of(legend[i].role),
                         legend[i].marks[canvas_is_ascii(c)]) +
             gap;
        x += canvas_text(c, 0, x, style_of(ROLE_DIM), legend[i].label) + 1;
    }
}

/* Draw the headings of three figures above them. */
static void draw_headings(const struct canvas *c)
{
    int x = c->width - FIGURES + 1;

    canvas_blank(c, 0, x - 5, FIGURES + 4, style_of(ROLE_DIM));
    canvas_text(c, 0, x - 4, style_of(ROLE_DIM), "ms:");
    draw_legend(c, x, 0, N_TIMES, 0);
}

/* Draw the head above bars, a waterfall and one figure. */
static void draw_fall_legend(const struct dash *d, const struct canvas *c,
                             const struct fall *fall)
{
    int end = c->width - TOTAL - fall->width, x = LEGEND_AT;

    widget_head(c, "layers", "");
    if (fall->per_row > 1 && end >= GROUP_HEAD) {
        draw_circles(c, 0, LEGEND_AT + CIRCLES - 1);
        x += CIRCLES;
    }
    if (x + legend_width(0, N_TIMES) - N_TIMES <= end)
        draw_legend(c, x, 0, N_TIMES, 0);
    fall_mark(d, c, 0, fall);
    canvas_blank(c, 0, c->width - TOTAL + 1, TOTAL - 1, style_of(ROLE_DIM));
    canvas_right(c, 0, c->width, style_of(ROLE_DIM), "ms");
}

/* Draw the head of the widget.  Returns whether it explains the circles. */
static bool draw_head(const struct dash *d, const struct canvas *c, int columns)
{
    enum figures f = figures_for(d, columns, c->width);
    struct fall fall = columns == 1 ? fall_for(d, f, c->width, 1) : (struct fall){ 0 };
    int slowest = dash_slowest(d), room, from = 0, end = N_LEGEND;
    bool has_headings = f == FIGURE_THREE;
    char head[64] = "";

    if (fall.width > 0 && !has_headings) {
        draw_fall_legend(d, c, &fall);
        return true;
    }
    if (slowest >= 0 && !has_headings)
        snprintf(
            head, sizeof head, "slowest is %d  %s ms", slowest,
            figure_ms6(d->now.layer[slowest].stall_ns + d->now.layer[slowest].compute_ns).text);
    /* The layer has one digit or two, and the legend must not depend on it. */
    room = c->width - (int)strlen(head) - (slowest < 10) - 4;
    /* Bars need the legend, so the figure gives way. */
    if (columns > 0 && LEGEND_AT + legend_width(0, N_TIMES) > room)
        head[0] = '\0';
    widget_head(c, "layers", head);
    if (has_headings) {
        draw_headings(c);
        room = c->width - FIGURES - 4;
        if (fall.width > 0) {
            room = fall.x - 1;
            fall_mark(d, c, 0, &fall);
        }
        from = N_TIMES;
    } else {
        room = head[0] != '\0' ? room : c->width;
        end = LEGEND_AT + legend_width(0, N_LEGEND) <= room ? N_LEGEND : N_TIMES;
    }
    if (LEGEND_AT + legend_width(from, end) <= room)
        draw_legend(c, LEGEND_AT, from, end, 1);
    else if (has_headings && LEGEND_AT + CIRCLES <= room)
        draw_circles(c, 0, LEGEND_AT + CIRCLES - 1);
    return end == N_LEGEND;
}

/* Returns the lines for the inspected layer; 0 if they do not fit. */
static int inspect_lines(const struct dash *d, int height)
{
    if (!inspects(d) || height < INSPECT + 3)
        return 0;
    return height >= 16 ? INSPECT + 2 : INSPECT;
}

static int layers_wants(const struct dash *d, int width)
{
    (void)width;
    return inspects(d) ? INSPECT : 0;
}

/* The strip. */
static int layers_enough(const struct dash *d, int width)
{
    return 2 + 2 * strip_rows((int)d->now.n_layer, width) + layers_wants(d, width);
}

/* Returns the smaller one of two heights that are above `height`; 0: none. */
static int least_above(int a, int b, int height)
{
    return b <= height || (a > 0 && a < b) ? a : b;
}

/* Heights: the strip, bars in as few columns as possible or several layers in a row, then one. */
static int layers_step(const struct dash *d, int width, int height)
{
    int n = (int)d->now.n_layer, most = width / COLUMN_MIN > 0 ? width / COLUMN_MIN : 1;
    int inspect = inspects(d) ? INSPECT + 2 : 0, best = 0;

    if (n == 0)
        return 0;
    if (height < layers_enough(d, width))
        return layers_enough(d, width);
    for (int columns = most; columns >= 1; columns--) {
        int rows = (n + columns - 1) / columns + 1;

        if (group_for(d, columns, rows, width) == 0)
            best = least_above(best, 1 + rows + inspect, height);
    }
    for (int per = GROUP; width >= GROUP_WIDE && per <= GROUP_MOST; per += GROUP) {
        int rows = group_lines(d, per);

        if (group_for(d, columns_for(d, rows, width), rows, width) == (uint32_t)per)
            best = least_above(best, 1 + rows + inspect, height);
    }
    return best;
}

static void layers_draw(const struct dash *d, const struct canvas *c)
{
    int inspect = inspect_lines(d, c->height), columns;
    struct canvas body = canvas_sub(c, 1, 0, c->height - 1 - inspect, c->width);
    enum figures head, f;
    uint32_t group;

    columns = columns_for(d, body.height, body.width);
    group = group_for(d, columns, body.height, body.width);
    if (group > 0) {
        struct fall fall = fall_for(d, FIGURE_TOTAL, c->width, group);

        draw_fall_legend(d, c, &fall);
        draw_groups(d, &body, group);
    } else {
        f = figures_for(d, columns, c->width);
        head = figures_of_head(d, f, c->width, !draw_head(d, c, columns));
        if (columns == 1 && fall_for(d, f, c->width, 1).width > 0)
            head = f; /* the waterfall goes on */
        if (d->now.n_layer == 0)
            return;
        if (columns > 0)
            draw_bars(d, &body, columns, head);
        else
            draw_small(d, &body, head);
    }
    if (inspect > 0) {
        struct canvas below = canvas_sub(c, c->height - inspect, 0, inspect, c->width);

        draw_inspected(d, &below);
    }
}

/* Returns the layer at y, x of the strip; -1: none. */
static int layer_in_strip(int n, int height, int width, int y, int x)
{
    int cell = strip_cell(n, width), wide = width / cell, rows = strip_rows(n, width);
    int lines = height - 1 >= 2 * rows ? 2 : 1;
    int layer = y / lines * wide + x / cell;

    if (y == rows * lines)
        return n;
    return y < rows * lines && x / cell < wide && layer < n ? layer : -1;
}

/* Returns the layer at y of rows with several: the inspected one, or the first. */
static int layer_in_group(const struct dash *d, int group, int y)
{
    int n = (int)d->now.n_layer, first = y * group;

    if (y == (n + group - 1) / group)
        return n;
    if (first >= n)
        return -1;
    return is_between(d->cursor, (uint32_t)first, (uint32_t)group) ? d->cursor : first;
}

/* Returns the layer that layers_draw drew at y, x; -1: none. */
static int layer_at(const struct dash *d, int height, int width, int y, int x)
{
    int body = height - 1 - inspect_lines(d, height), n = (int)d->now.n_layer;
    int columns = columns_for(d, body, width), high, column, layer, group;

    y--; /* the widget's head */
    if (y < 0 || y >= body || n == 0 || width < COLUMN_MIN)
        return -1;
    group = (int)group_for(d, columns, body, width);
    if (group > 0)
        return layer_in_group(d, group, y);
    if (columns == 0)
        return layer_in_strip(n, body, width, y, x);
    high = column_height(d, columns);
    if (y == high)
        return n;
    column = x / (width / columns);
    column = column < columns ? column : columns - 1;
    layer = column * high + y;
    return y < high && layer < n ? layer : -1;
}

static bool layers_click(struct dash *d, int height, int width, int y, int x)
{
    int layer = layer_at(d, height, width, y, x);

    if (layer < 0)
        return false;
    d->cursor = layer == d->cursor ? -1 : layer;
    return true;
}

const struct dash_widget dash_layers_widget = {
    .name = "layers",
    .is_of_model = true,
    .min_width = 22,
    .min_height = 3,
    .importance = 3,
    .is_tall = true,
    .wants = layers_wants,
    .enough = layers_enough,
    .step = layers_step,
    .draw = layers_draw,
    .click = layers_click,
};
