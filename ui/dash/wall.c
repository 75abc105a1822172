/*
 * The wall: tokens per second over the budget, or over the context.
 *
 *     wall ───────────────────── 600 MiB  2.05 tok/s
 *                          :        .--───────     12
 *                          :    .--'
 *               o      x--'
 *         @.---'                                    0
 *     172 MiB 600 MiB                      1.63 GiB
 *     1.12 GiB ~6.8 tok/s, +40 %
 *
 * The line is predicted, and goes through the settings in use (@), which are measured.  Each o
 * was measured with a budget of its own; a small one had other settings beside, too.  The
 * cursor (x) walks along the line.  On few lines the same is one: a low curve, and the figures.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/dash/curve.h"
#include "ui/dash/dash.h"
#include "ui/dash/widget.h"

#define PLOT_LEAST   7 /* lines with a plot: head, four of it, its axis, the text */
#define PLOT_MOST    14
#define SCALE_WIDTH  6
#define VALUES_MOST  1024
#define LINE_LEAST   10 /* columns of the low curve */
#define SAME_FIGURES 0.01
#define MANY_TIMES   10

/* ---- the data ---- */

void dash_set_wall(struct dash *d, const struct mw_wall *w)
{
    d->panels.has_wall = true;
    if (w != NULL)
        d->wall = *w;
    else
        d->wall = (struct mw_wall){ 0 };
}

void dash_set_wall_unknown(struct dash *d)
{
    d->is_wall_unknown = true;
}

bool dash_wall_is_unknown(const struct dash *d)
{
    return d->is_wall_unknown;
}

static uint32_t n_points(const struct dash *d)
{
    return d->wall.n[d->wall_axis];
}

static const struct mw_wall_point *point_at(const struct dash *d, uint64_t at)
{
    int i = mw_wall_nearest(&d->wall, d->wall_axis, at);

    return i < 0 ? NULL : &d->wall.point[d->wall_axis][i];
}

static uint64_t here(const struct dash *d)
{
    return d->wall.here[d->wall_axis];
}

/* Returns the point at the cursor, or that of the settings in use if there is no cursor. */
static const struct mw_wall_point *cursor(const struct dash *d)
{
    uint64_t at = d->wall_at[d->wall_axis];

    return point_at(d, at != 0 ? at : here(d));
}

/* ---- the cursor ---- */

void dash_wall_move(struct dash *d, int by)
{
    const struct mw_wall_point *p = d->wall.point[d->wall_axis], *now = cursor(d);
    int n = (int)n_points(d), i = now == NULL ? 0 : (int)(now - p);

    if (n == 0)
        return;
    /* Points that do not fit are at an end. */
    while (by > 0 && i + 1 < n && p[i + 1].tps > 0)
        i++, by--;
    while (by < 0 && i > 0 && p[i - 1].tps > 0)
        i--, by++;
    d->wall_at[d->wall_axis] = p[i].at;
}

void dash_wall_turn(struct dash *d)
{
    d->wall_axis = d->wall_axis == MW_WALL_BUDGET ? MW_WALL_CTX : MW_WALL_BUDGET;
}

enum mw_wall_axis dash_wall_axis(const struct dash *d)
{
    return d->wall_axis;
}

uint64_t dash_wall_at(const struct dash *d)
{
    return d->wall_at[d->wall_axis];
}

void dash_wall_go(struct dash *d, uint64_t at)
{
    d->wall_at[d->wall_axis] = at;
}

void dash_wall_leave(struct dash *d)
{
    d->wall_at[MW_WALL_BUDGET] = d->wall_at[MW_WALL_CTX] = 0;
}

char *dash_wall_setting(const struct dash *d, char *buf, size_t n)
{
    const struct mw_wall_point *p = cursor(d);
    struct err ignored = ERR_INIT;
    uint64_t bytes;
    char size[24];

    buf[0] = '\0';
    if (p == NULL || p->at == here(d) || !(p->tps > 0))
        return buf;
    units_option(size, sizeof size, p->at);
    if (d->wall_axis == MW_WALL_BUDGET &&
        (units_parse_size(size, 0, &bytes, &ignored) != 0 || bytes != p->at))
        snprintf(buf, n, "memory %llu", (unsigned long long)p->at); /* one that was tried */
    else if (d->wall_axis == MW_WALL_BUDGET)
        snprintf(buf, n, "memory %s", size);
    else
        snprintf(buf, n, "ctx %llu", (unsigned long long)p->at);
    return buf;
}

/* ---- in words ---- */

/* "1.12 GiB" and "32,768", as all panels and sheets write a budget and a context. */
static char *value_text(char *buf, size_t n, enum mw_wall_axis axis, uint64_t at)
{
    if (axis == MW_WALL_BUDGET)
        units_size(buf, n, at);
    else
        numbers_count(buf, n, at);
    return buf;
}

/* "~6.8": two digits, and a mark of doubt. */
static char *predicted_text(char *buf, size_t n, const struct dash *d, double tps)
{
    int digits = tps >= 9.95 ? 0 : tps >= 0.995 ? 1 : 2;
    double unit = tps >= 99.5 ? pow(10, floor(log10(tps)) - 1) : 1;

    snprintf(buf, n, "~%.*f%s", digits,
             round(tps / unit * pow(10, digits)) / pow(10, digits) * unit,
             d->wall.is_doubtful ? "?" : "");
    return buf;
}

/* The rate that is measured with exactly these settings; 0: none. */
static double measured_at(const struct dash *d, uint64_t at)
{
    for (uint32_t i = 0; i < d->wall.n_mark; i++)
        if (d->wall.mark[i].is_same[d->wall_axis] && d->wall.mark[i].at[d->wall_axis] == at)
            return d->wall.mark[i].tps;
    return 0;
}

/* The rate with the settings in use.  The wall is made again when it has changed by a little, and
 * the border of the speed panel follows each token: both show that one. */
static double rate_here(const struct dash *d, const struct mw_wall_point *p)
{
    const struct mw_run *run = &d->now.run;
    bool is_same = run->budget_bytes == d->wall.here[MW_WALL_BUDGET] &&
                   run->ctx == d->wall.here[MW_WALL_CTX];

    return d->wall.is_measured && is_same && d->rates.decode_last > 0 ? d->rates.decode_last
                                                                      : p->tps;
}

/* "600 MiB 2.05 tok/s"; nothing while another budget is in force, until the wall is made again */
static char *here_text(char *buf, size_t n, const struct dash *d)
{
    const struct mw_wall_point *p = point_at(d, here(d));
    char value[24], rate[24];

    buf[0] = '\0';
    if (p == NULL || !(p->tps > 0) ||
        d->now.run.budget_bytes != d->wall.here[MW_WALL_BUDGET])
        return buf;
    if (d->wall.is_measured)
        snprintf(rate, sizeof rate, "%s", figure_trim(figure_rate5(rate_here(d, p)).text));
    else
        predicted_text(rate, sizeof rate, d, p->tps);
    snprintf(buf, n, "%s %s tok/s", value_text(value, sizeof value, d->wall_axis, p->at), rate);
    return buf;
}

/* ", +40 %" */
static char *gain_text(char *buf, size_t n, const struct mw_wall_point *p,
                       const struct mw_wall_point *now)
{
    double by = p->tps / now->tps - 1;

    buf[0] = '\0';
    if (by >= MANY_TIMES - 1)
        snprintf(buf, n, ", %.0f times", by + 1);
    else if (fabs(by) >= SAME_FIGURES)
        snprintf(buf, n, ", %+.0f %%", by * 100);
    return buf;
}

/* ", full ~1.4, KV 96.0 MiB" of a context */
static char *context_text(char *buf, size_t n, const struct dash *d,
                          const struct mw_wall_point *p)
{
    char size[24] = "", full[24] = "", bytes[16], rate[16];
    double full_tps = p->full_tps;

    buf[0] = '\0';
    if (d->wall_axis != MW_WALL_CTX)
        return buf;
    if (p->at == here(d) && d->now.verdict.full_tps > 0) /* newer; the KV panel has it, too */
        full_tps = d->now.verdict.full_tps;
    if (full_tps > 0)
        snprintf(full, sizeof full, ", full %s", predicted_text(rate, sizeof rate, d, full_tps));
    if (p->kv_bytes > 0)
        snprintf(size, sizeof size, ", KV %s", units_size(bytes, sizeof bytes, p->kv_bytes));
    snprintf(buf, n, "%s%s", full, size);
    return buf;
}

/* Returns the first point at which nothing is read for each token; NULL: none does.  The
 * nearest one may be below the budget that this needs. */
static const struct mw_wall_point *enough(const struct dash *d)
{
    const struct mw_wall_point *p = d->wall.point[MW_WALL_BUDGET];

    for (uint32_t i = 0; i < d->wall.n[MW_WALL_BUDGET] && d->wall.nothing_bytes > 0; i++)
        if (p[i].at >= d->wall.nothing_bytes)
            return &p[i];
    return NULL;
}

/* Without a cursor: where the wall ends, or the present context when it is full. */
static char *end_text(char *buf, size_t n, const struct dash *d)
{
    const struct mw_wall_point *now = point_at(d, here(d)), *end;
    char value[24], rate[24], gain[24];
    bool is_end = true;

    snprintf(buf, n, "not predicted: a limit is not measured");
    if (now == NULL || !(now->tps > 0))
        return buf;
    if (d->wall_axis == MW_WALL_CTX) {
        if (context_text(buf, n, d, now)[0] != '\0')
            memmove(buf, buf + 2, strlen(buf + 2) + 1); /* its comma */
        return buf;
    }
    end = enough(d);
    if (end == NULL) {
        end = &d->wall.point[MW_WALL_BUDGET][n_points(d) - 1]; /* this machine gives no more */
        is_end = false;
    }
    if (end->at <= now->at && is_end)
        snprintf(buf, n, "nothing is read from %s on",
                 value_text(value, sizeof value, MW_WALL_BUDGET, end->at));
    else if (end->at <= now->at)
        snprintf(buf, n, "this machine gives no more");
    else
        snprintf(buf, n, "%s %s tok/s%s%s",
                 value_text(value, sizeof value, MW_WALL_BUDGET, end->at),
                 predicted_text(rate, sizeof rate, d, end->tps),
                 gain_text(gain, sizeof gain, end, now),
                 is_end ? ", nothing is read" : ", the most here");
    return buf;
}

/* "1.12 GiB ~6.8 tok/s, +40 %", and what was measured there. */
static char *cursor_text(char *buf, size_t n, const struct dash *d)
{
    const struct mw_wall_point *p = cursor(d), *now = point_at(d, here(d));
    char value[24], rate[24], gain[24], was[40] = "", text[48];
    double measured;

    buf[0] = '\0';
    if (p == NULL || now == NULL || !(p->tps > 0) || !(now->tps > 0))
        return buf;
    if (p == now) {
        snprintf(buf, n, "%s, in use", here_text(text, sizeof text, d));
        return buf;
    }
    measured = measured_at(d, p->at);
    if (measured > 0)
        snprintf(was, sizeof was, ", was %s", figure_trim(figure_rate5(measured).text));
    snprintf(buf, n, "%s %s tok/s%s%s", value_text(value, sizeof value, d->wall_axis, p->at),
             predicted_text(rate, sizeof rate, d, p->tps), gain_text(gain, sizeof gain, p, now),
             was);
    return buf;
}

/* Leave out the last parts of an ASCII text that has more than this many columns. */
static char *drop_parts(char *text, int width)
{
    size_t end = strlen(text);

    for (size_t i = end; i-- > 0 && (int)end > width;)
        if (text[i] == ',' && text[i + 1] == ' ') /* not within a number */
            text[end = i] = '\0';
    return text;
}

/* The figures in at most this many columns.  has_head: those in use are in the head. */
static char *figures(char *buf, size_t n, const struct dash *d, int width, bool has_head)
{
    char more[64];
    size_t len;

    if (has_head && d->wall_at[d->wall_axis] == 0)
        return drop_parts(end_text(buf, n, d), width);
    len = strlen(drop_parts(cursor_text(buf, n, d), width));
    if (len > 0 && (int)(len + strlen(context_text(more, sizeof more, d, cursor(d)))) <= width)
        snprintf(buf + len, n - len, "%s", more);
    return buf;
}

/* ---- the plot ---- */

/* Returns the place of a value on the axis, 0 to 1; contexts double at equal distances. */
static double place(const struct dash *d, uint64_t at)
{
    const struct mw_wall_point *p = d->wall.point[d->wall_axis];
    double low = (double)p[0].at, high = (double)p[n_points(d) - 1].at, value = (double)at;

    if (high <= low)
        return 0;
    value = value < low ? low : value > high ? high : value;
    return d->wall_axis == MW_WALL_CTX ? log(value / low) / log(high / low)
                                       : (value - low) / (high - low);
}

/* Tried settings may be anywhere; the curve has the budgets of interest. */
static bool is_on_axis(const struct dash *d, uint64_t at)
{
    const struct mw_wall_point *p = d->wall.point[d->wall_axis];

    return at >= p[0].at && at <= p[n_points(d) - 1].at;
}

/* The settings in use have their own mark, also with what was measured there before. */
static bool has_mark(const struct dash *d, const struct mw_wall_mark *m)
{
    uint64_t at = m->at[d->wall_axis];

    return is_on_axis(d, at) && at != here(d);
}

static int column(const struct dash *d, uint64_t at, int width)
{
    return (int)lround(place(d, at) * (width - 1));
}

/* Rates at n equal distances, between the points. */
static void fill(const struct dash *d, float *value, uint32_t n, bool is_full)
{
    const struct mw_wall_point *p = d->wall.point[d->wall_axis];
    uint32_t k = 0, last = n_points(d) - 1;

    for (uint32_t i = 0; i < n; i++) {
        double x = n > 1 ? (double)i / (n - 1) : 0, left, right, at;
        double a, b;

        while (k + 1 < last && place(d, p[k + 1].at) <= x)
            k++;
        left = place(d, p[k].at);
        right = place(d, p[k < last ? k + 1 : k].at);
        at = right > left ? (x - left) / (right - left) : 0;
        a = is_full ? p[k].full_tps : p[k].tps;
        b = is_full ? p[k < last ? k + 1 : k].full_tps : p[k < last ? k + 1 : k].tps;
        value[i] = a > 0 && b > 0 ? (float)(a + (b - a) * at) : NAN;
    }
}

/* The upper end of the scale. */
static float top_of(const struct dash *d)
{
    const struct mw_wall_point *p = d->wall.point[d->wall_axis];
    double most = 0;

    for (uint32_t i = 0; i < n_points(d); i++)
        most = fmax(most, p[i].tps);
    for (uint32_t i = 0; i < d->wall.n_mark; i++)
        if (d->wall.mark[i].is_same[d->wall_axis] && has_mark(d, &d->wall.mark[i]))
            most = fmax(most, d->wall.mark[i].tps);
    return curve_top((float)most);
}

static void put_mark(const struct canvas *c, const struct dash *d, uint64_t at, double tps,
                     float top, struct ui_style style, wchar_t mark, wchar_t ascii)
{
    int x = column(d, at, c->width), y;

    if (!(tps > 0) || !(top > 0))
        return;
    y = c->height - 1 - (int)(tps / (double)top * c->height);
    canvas_cell(c,
                y < 0            ? 0
                : y >= c->height ? c->height - 1
                                 : y,
                x, style, canvas_is_ascii(c) || d->graph == UI_GRAPH_ASCII ? ascii : mark);
}

/* Draw the tried settings.  Those that differ only along this axis are drawn last, over the
 * others. */
static void draw_marks(const struct canvas *c, const struct dash *d, float top)
{
    const struct mw_wall_point *p;

    for (int same = 0; same < 2; same++)
        for (uint32_t i = d->wall.n_mark; i-- > 0;) {
            const struct mw_wall_mark *m = &d->wall.mark[i];

            if (m->is_same[d->wall_axis] != (same == 1) || !has_mark(d, m))
                continue;
            if (same == 1)
                put_mark(c, d, m->at[d->wall_axis], m->tps, top,
                         style_with(ROLE_GOOD, m->is_session ? UI_BOLD : 0), L'\u25cf', L'o');
            else
                put_mark(c, d, m->at[d->wall_axis], m->tps, top, style_of(ROLE_DIM), L'\u00b7',
                         L'.');
        }
    p = point_at(d, here(d));
    if (p != NULL)
        put_mark(c, d, p->at, p->tps, top, style_with(ROLE_ACCENT, UI_BOLD), L'\u25c6', L'@');
    if (d->wall_at[d->wall_axis] != 0 && cursor(d) != p)
        put_mark(c, d, cursor(d)->at, cursor(d)->tps, top, style_with(ROLE_WARN, UI_BOLD),
                 L'\u00d7', L'x');
}

static void draw_curve(const struct canvas *c, const struct dash *d, float top)
{
    int width = c->width < VALUES_MOST / 2 ? c->width : VALUES_MOST / 2;
    uint32_t n = curve_values(d->graph, width);
    float value[VALUES_MOST];

    if (d->wall_axis == MW_WALL_CTX) {
        fill(d, value, n, true);
        curve_line(c, d->graph, value, n, top, style_of(ROLE_DIM));
    }
    fill(d, value, n, false);
    curve_line(c, d->graph, value, n, top, style_of(ROLE_GRAPH));
}

static void draw_plot(const struct dash *d, const struct canvas *c)
{
    struct canvas area = canvas_sub(c, 0, 0, c->height, c->width - SCALE_WIDTH);
    uint64_t nothing = d->wall.nothing_bytes;
    float top = top_of(d);
    char text[24];

    if (d->wall_axis == MW_WALL_BUDGET && nothing > d->wall.point[MW_WALL_BUDGET][0].at)
        canvas_vline(&area, 0, column(d, nothing, area.width), area.height,
                     style_of(ROLE_BORDER));
    if (d->wall_at[d->wall_axis] != 0)
        canvas_vline(&area, 0, column(d, cursor(d)->at, area.width), area.height,
                     style_of(ROLE_ACCENT));
    draw_curve(&area, d, top);
    draw_marks(&area, d, top);
    snprintf(text, sizeof text, "%.5g", (double)top);
    canvas_right(c, 0, c->width, style_of(ROLE_DIM), text);
    canvas_right(c, c->height - 1, c->width, style_of(ROLE_DIM), "0");
}

/* Labels below the plot: its ends, and the settings in use between them. */
static void draw_axis(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_wall_point *p = d->wall.point[d->wall_axis];
    int width = c->width - SCALE_WIDTH, left, right, x, wide;
    char low[24], high[24], now[24];

    value_text(low, sizeof low, d->wall_axis, p[0].at);
    value_text(high, sizeof high, d->wall_axis, p[n_points(d) - 1].at);
    left = canvas_text(c, y, 0, style_of(ROLE_DIM), low);
    right = canvas_right(c, y, width, style_of(ROLE_DIM), high);
    value_text(now, sizeof now, d->wall_axis, here(d));
    wide = (int)strlen(now);
    x = column(d, here(d), width) - wide / 2;
    if (x > left && x + wide < right)
        canvas_text(c, y, x, style_with(ROLE_ACCENT, UI_BOLD), now);
    canvas_right(c, y, c->width, style_of(ROLE_DIM), "tok/s");
}

/* ---- one line ---- */

void wall_line(const struct dash *d, const struct canvas *c, int y, bool has_head)
{
    char text[160], low[24];
    struct canvas area;
    int width, x;

    if (n_points(d) == 0) {
        canvas_text(c, y, 0, style_of(ROLE_DIM),
                    !has_head            ? "wall -"
                    : d->is_wall_unknown ? "not known: a server does not report it"
                                         : "not predicted yet");
        return;
    }
    figures(text, sizeof text, d, c->width, has_head);
    width = c->width - cluster_width(text, strlen(text)) - 1;
    value_text(low, sizeof low, d->wall_axis, d->wall.point[d->wall_axis][0].at);
    x = 0;
    if (!has_head && width >= LINE_LEAST + 5) {
        x = canvas_text(c, y, 0, style_of(ROLE_DIM), "wall") + 1;
        width -= x;
    }
    if (width >= LINE_LEAST) {
        float value[VALUES_MOST], top = top_of(d);
        uint32_t n;

        width = width < VALUES_MOST / 2 ? width : VALUES_MOST / 2;
        area = canvas_sub(c, y, x, 1, width);
        n = curve_values(d->graph, width);
        fill(d, value, n, false);
        curve_draw_values(&area, d->graph, value, n, top, style_of(ROLE_GRAPH));
        draw_marks(&area, d, top);
    }
    canvas_right(c, y, c->width, style_of(ROLE_TEXT), text);
}

/* ---- the widget ---- */

static int wall_enough(const struct dash *d, int width)
{
    (void)d;
    (void)width;
    return PLOT_LEAST;
}

static int wall_step(const struct dash *d, int width, int height)
{
    (void)d;
    (void)width;
    return height < PLOT_LEAST ? PLOT_LEAST : height < PLOT_MOST ? height + 1 : 0;
}

static void wall_draw(const struct dash *d, const struct canvas *c)
{
    char text[160];

    here_text(text, sizeof text, d);
    widget_head(c, d->wall_axis == MW_WALL_CTX ? "wall: context" : "wall", text);
    if (c->height < 2)
        return;
    if (n_points(d) == 0 || c->height < PLOT_LEAST - 2) {
        wall_line(d, c, 1, true);
        return;
    }
    struct canvas plot = canvas_sub(c, 1, 0, c->height - 3, c->width);

    draw_plot(d, &plot);
    draw_axis(d, c, c->height - 2);
    figures(text, sizeof text, d, c->width, true);
    canvas_text(c, c->height - 1, 0, style_of(ROLE_TEXT), text);
}

/* Move the cursor to the point nearest to a column of the plot. */
static bool wall_click(struct dash *d, int height, int width, int y, int x)
{
    int plot = width - SCALE_WIDTH, best = 0;
    const struct mw_wall_point *p = d->wall.point[d->wall_axis];

    if (height < PLOT_LEAST - 2 || n_points(d) == 0 || x >= plot || y < 1 || y > height - 3)
        return false;
    for (int i = 0; i < (int)n_points(d); i++)
        if (p[i].tps > 0 && (!(p[best].tps > 0) || abs(column(d, p[i].at, plot) - x) <
                                                       abs(column(d, p[best].at, plot) - x)))
            best = i;
    d->wall_at[d->wall_axis] = p[best].at;
    return p[best].tps > 0;
}

const struct dash_widget dash_wall_widget = {
    .name = "wall",
    .min_width = 24,
    .min_height = 2,
    .importance = 4,
    .is_of_model = true,
    .enough = wall_enough,
    .step = wall_step,
    .draw = wall_draw,
    .click = wall_click,
};
