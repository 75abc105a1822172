/*
 * Speed: tokens per second now and over time, progress, CPU time, disk.
 *
 *     speed ──────────────────────────── decode  3.12 tok/s
 *     now   3.12  mean   3.10  prompt    250  first token   8.2 s
 *     answer     112 / 400 tokens ███▎·····      ~2 min left
 *     cpu   98 %  compute ▃▂▂▂  read ▁
 *     disk  8.72 of  9.65 GB/s ███████████████░░  overlap ~23 %
 *     tok/s, each token                                 4
 *     ⣿⣿⣿⣿⣿⣿ …                                          0
 *
 * Until the first answer, rates are the plan's predictions, marked with "~".  Figures that are
 * unknown, zero or as usual have no row: the curves need the space.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/dash/curve.h"
#include "ui/dash/widget.h"
#include "ui/words/disks.h"

#define CURVE_TALL  6  /* minimum height of a curve with another one below */
#define CURVE_LEAST 5  /* its label and four rows */
#define ONE_LINE    59 /* minimum width for all rates on one line */
#define RATE        13 /* width of "prompt    250" */
#define TOKENS_WIDE 50 /* minimum width for the unit of progress */
#define LEAST_SCALE 0.005
#define USUAL_IO    "direct/io_uring"
#define FEW_READS   0.02 /* of the weights of a token: rows of tables alone */

/* Rates, progress, CPU and disk. */
static int speed_enough(const struct dash *d, int width)
{
    return (width >= ONE_LINE ? 5 : 6) + (d->now.io.mirror != MW_MIRROR_NONE);
}

/* Heights: the figures, a curve of four rows, a taller one. */
static int speed_step(const struct dash *d, int width, int height)
{
    int text = speed_enough(d, width);

    if (height < text)
        return height + 1;
    if (height < text + CURVE_LEAST)
        return text + CURVE_LEAST;
    return height < text + CURVE_LEAST + 3 ? height + 1 : 0;
}

/* ---- rates ---- */

static int draw_rate(const struct canvas *c, int y, int x, const char *label, double measured,
                     double predicted)
{
    if (!(measured >= 0) && !(predicted > 0))
        return x;
    return widget_pair(c, y, x, label, figure_rate6(measured, predicted).text,
                       measured >= 0 ? ROLE_TEXT : ROLE_DIM);
}

/* Was the last answer made with an earlier plan? */
static bool is_outdated(const struct mw_sample *s)
{
    return s->state == MW_IDLE && s->n_token_before > 0 && s->n_token == s->n_token_before;
}

static const char *newest_label(const struct dash *d)
{
    return d->now.state == MW_IDLE ? "last" : "now";
}

/* Returns the number of lines. */
static int draw_rates(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_rates *r = &d->rates;
    const struct mw_run *run = &d->now.run;
    bool is_old = is_outdated(&d->now);
    const char *newest = newest_label(d);
    int x = draw_rate(c, y, 0, r->decode_last < 0 ? "next" : newest, r->decode_last,
                      run->predicted_decode);

    x = draw_rate(c, y, x, "mean", is_old ? -1 : r->decode_mean, -1);
    if (x + RATE <= c->width)
        x = draw_rate(c, y, x, "prompt", is_old ? -1 : r->prefill, run->predicted_prefill);
    if (c->width >= ONE_LINE && r->first_s >= 0 && !is_old)
        x = widget_pair(c, y, x, "first token", figure_time7(r->first_s).text, ROLE_TEXT);
    return x > 0;
}

/* The line of the first token, with the rate that does not fit above. */
static void draw_first(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_rates *r = &d->rates;
    int x = widget_pair(c, y, 0, "first token", figure_time7(r->first_s).text, ROLE_TEXT);

    if (r->decode_mean >= 0 && 2 * RATE + (int)strlen(newest_label(d)) - 4 + RATE > c->width &&
        !is_outdated(&d->now))
        draw_rate(c, y, x, "prompt", r->prefill, -1);
}

/* The rate in the border: that of the prompt, or of the newest tokens, as the bar of a token and
 * the wall have it. */
struct figure speed_now(const struct dash *d)
{
    const struct mw_rates *r = &d->rates;
    const struct mw_run *run = &d->now.run;

    if (d->now.state == MW_PREFILL)
        return figure_rate6(r->prefill, run->predicted_prefill);
    return figure_rate6(is_outdated(&d->now) ? -1 : r->decode_last, run->predicted_decode);
}

/* ---- progress ---- */

/* Returns the tokens until the limit of the answer, or the end of the context if that is sooner. */
static uint64_t tokens_left(const struct dash *d)
{
    const struct mw_sample *s = &d->now;
    uint64_t context = s->kv.capacity > s->kv.context ? s->kv.capacity - s->kv.context : 0;
    uint64_t cap = d->n_predict > s->n_decoded ? d->n_predict - s->n_decoded : 0;

    return cap < context ? cap : context;
}

/* Draw "answer     112 / 6,257 tokens ███▎······ ~2:05 m left". */
static void draw_bar(const struct canvas *c, int y, const char *label, const char *of,
                     double share, const char *right)
{
    int x = canvas_text(c, y, 0, style_of(ROLE_DIM), label) + 1, end = c->width;

    x += canvas_text(c, y, x, style_of(ROLE_TEXT), of) + 1;
    if (x + (int)strlen(right) <= c->width)
        end = canvas_right(c, y, c->width, style_of(ROLE_TEXT), right) - 1;
    if (end - x >= 4)
        canvas_bar(c, y, x, end - x, share, style_of(ROLE_GOOD), style_of(ROLE_FILL_FREE));
}

static void draw_tokens(const struct canvas *c, int y, const char *label, uint64_t done,
                        uint64_t all, double left_s)
{
    double share = all > 0 ? (double)done / (double)all : 0;
    char of[64], left[64] = "";

    snprintf(of, sizeof of, "%s / %s%s", figure_count7(done).text,
             figure_trim(figure_count7(all).text), c->width >= TOKENS_WIDE ? " tokens" : "");
    if (left_s >= 0) { /* of a fixed width, so that the bar does not change its size */
        const char *time = figure_trim(figure_left10(left_s).text);

        snprintf(left, sizeof left, "%*s~%s left", 10 - (int)strlen(time), "", time);
    }
    draw_bar(c, y, label, of, share, left);
}

/* Draw how far the weights, the prompt or the answer are.  Returns the number of lines. */
static int draw_progress(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_sample *s = &d->now;
    const struct mw_rates *r = &d->rates;
    double rate = r->decode_mean > 0 ? r->decode_mean : r->decode_last;

    if (s->state == MW_PREFILL) {
        double left =
            r->prefill > 0 ? (double)(s->n_prompt - s->n_prompt_done) / r->prefill : -1;

        draw_tokens(c, y, "prompt", s->n_prompt_done, s->n_prompt, left);
    } else if (r->loading >= 0) {
        char of[64], percent[16];

        snprintf(of, sizeof of, "%s / %s", figure_size8(s->mem.ahead_done_bytes).text,
                 figure_trim(figure_size8(s->mem.ahead_bytes).text));
        snprintf(percent, sizeof percent, "%u %%",
                 (unsigned)(s->mem.ahead_done_bytes * 100 / s->mem.ahead_bytes));
        draw_bar(c, y, "loading", of, r->loading, percent);
    } else if (s->state == MW_DECODE && d->n_predict > 0) {
        double left = rate > 0 ? (double)tokens_left(d) / rate : -1;

        draw_tokens(c, y, "answer", s->n_decoded, s->n_decoded + tokens_left(d), left);
    } else if (s->n_decoded > 0) {
        char of[64];

        snprintf(of, sizeof of, "%s token%s", figure_count7(s->n_decoded).text,
                 s->n_decoded == 1 ? "" : "s");
        widget_pair(c, y, 0, "answer", of, ROLE_TEXT);
    } else {
        return 0;
    }
    return 1;
}

/* Draw "drafts  1.84 tokens a pass, 72 % of 96 accepted, mtp", the last words where there is a
 * place for them; mtp: a draft head made most of them.  Returns the number of lines. */
static int draw_drafts(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_sample *s = &d->now;
    static const char accepted[] = " accepted", by_head[] = ", mtp";
    double share = (double)s->draft.accepted / (double)s->draft.drafted;
    int x = 7;

    if (s->draft.drafted == 0 || s->draft.passes == 0)
        return 0;
    canvas_text(c, y, 0, style_of(ROLE_DIM), "drafts");
    x += canvas_printf(c, y, x, style_of(ROLE_TEXT), "%.2f tokens a pass",
                       1 + (double)s->draft.accepted / (double)s->draft.passes);
    x += canvas_printf(c, y, x, style_of(ROLE_TEXT), ", %.0f %% of %s", 100 * share,
                       figure_trim(figure_count7(s->draft.drafted).text));
    if (x + (int)strlen(accepted) <= c->width)
        x += canvas_printf(c, y, x, style_of(ROLE_TEXT), "%s", accepted);
    if (2 * s->draft.by_head > s->draft.drafted && x + (int)strlen(by_head) <= c->width)
        canvas_text(c, y, x, style_of(ROLE_TEXT), by_head);
    return 1;
}

/* ---- CPU ---- */

/* Groups of threads by the names that the engine gives them. */
static const struct {
    const char *label, *names[3];
    enum ui_role role;
} groups[] = {
    { "compute", { "engine", "worker" }, ROLE_GRAPH },
    { "read", { "reader", "reads", "iou-" }, ROLE_GRAPH_2 },
    { "main", { "memwall" }, ROLE_TEXT },
};
#define N_GROUP    (sizeof groups / sizeof groups[0])
#define GROUP_MAIN 2

/* The first thread has the name of the program, whatever that is. */
static bool is_in_group(const struct mw_os *os, uint32_t thread, size_t group)
{
    const struct mw_thread *t = &os->thread[thread];

    if (thread == 0)
        return group == GROUP_MAIN;
    for (int i = 0; i < 3 && groups[group].names[i] != NULL; i++)
        if (strncmp(t->name, groups[group].names[i], strlen(groups[group].names[i])) == 0)
            return true;
    return false;
}

/* A recording may have any number. */
static double busy(const struct mw_thread *t)
{
    return t->busy >= 0 ? fmin(t->busy, 1) : 0;
}

static int eighths_of(const struct mw_thread *t, bool ascii)
{
    return (int)lround(busy(t) * (ascii ? 9 : 8));
}

static bool is_group_busy(const struct mw_os *os, size_t g, bool ascii)
{
    for (uint32_t i = 0; i < os->n_thread; i++)
        if (is_in_group(os, i, g) && eighths_of(&os->thread[i], ascii) > 0)
            return true;
    return false;
}

/* The kinds of cores of a hybrid processor: "6P 8E 2LP".  "" if all are alike. */
static char *cores_text(const struct mw_run *r, char *buf, size_t n)
{
    int at;

    buf[0] = '\0';
    if (r->efficient_cores == 0 && r->low_power_cores == 0)
        return buf;
    at = snprintf(buf, n, "%uP", r->cores);
    if (r->efficient_cores > 0)
        at += snprintf(buf + at, n - (size_t)at, " %uE", r->efficient_cores);
    if (r->low_power_cores > 0)
        snprintf(buf + at, n - (size_t)at, " %uLP", r->low_power_cores);
    return buf;
}

/* Draw one cell for each thread: an eighth of its height is an eighth of a CPU.  Groups that do
 * nothing are left out.  The kinds of cores come last; threads leave space for them.  Returns the
 * number of lines. */
static int draw_cpu(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_os *os = &d->now.os;
    bool ascii = canvas_is_ascii(c);
    double sum = 0;
    int x = 4, end = c->width;
    char cores[48];

    for (uint32_t i = 0; i < os->n_thread; i++)
        sum += busy(&os->thread[i]);
    if (sum < 0.005)
        return 0;
    canvas_text(c, y, 0, style_of(ROLE_DIM), "cpu");
    x += canvas_printf(c, y, x, style_of(ROLE_TEXT), "%5.0f %%", sum * 100) + 2;
    if (cores_text(&d->now.run, cores, sizeof cores)[0] != '\0') {
        end -= (int)strlen(cores) + 1;
        if (end >= x)
            canvas_right(c, y, c->width, style_of(ROLE_TEXT), cores);
        else
            end = c->width;
    }
    for (size_t g = 0; g < N_GROUP; g++) {
        int from = x + (int)strlen(groups[g].label) + 1, at = from;

        if (from >= end)
            break;
        if (!is_group_busy(os, g, ascii))
            continue;
        for (uint32_t i = 0; i < os->n_thread && at < end; i++) {
            int eighths = eighths_of(&os->thread[i], ascii);

            if (!is_in_group(os, i, g))
                continue;
            canvas_cell(c, y, at++, style_of(groups[g].role),
                        ascii          ? (wchar_t)(L'0' + eighths)
                        : eighths == 0 ? L'\u00b7'
                                       : (wchar_t)(0x2580 + eighths));
        }
        if (at == from)
            continue;
        canvas_text(c, y, x, style_of(ROLE_DIM), groups[g].label);
        x = at + 2;
    }
    return 1;
}

/* ---- disk ---- */

/* Rows of tables are read before the pass, so nothing can overlap with them. */
static bool reads_weights(const struct dash *d)
{
    return d->rates.read_per_token >= FEW_READS * (double)d->now.run.hot_bytes;
}

/* Returns the number of lines. */
static int draw_disk(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_sample *s = &d->now;
    double seen = fmax(d->rates.read_bytes_s, d->fastest_read);
    /* A rate observed since then overrides a probe on a busy machine. */
    double limit = s->disk_limit > 0 ? fmax((double)s->disk_limit, seen) : -1;
    int x = 5;
    int bar_end = c->width - 15;
    const char *name;
    double unit = figure_disk_unit(s, &name);

    if (d->rates.read_bytes_s < 0 ? limit < 0 : d->rates.read_bytes_s / unit < LEAST_SCALE)
        return 0;
    canvas_text(c, y, 0, style_of(ROLE_DIM), "disk");
    if (d->rates.read_bytes_s >= 0)
        x += canvas_text(c, y, x, style_of(ROLE_TEXT),
                         figure_rate5(d->rates.read_bytes_s / unit).text);
    if (limit >= 0)
        x += canvas_printf(c, y, x, style_of(ROLE_TEXT),
                           d->rates.read_bytes_s >= 0 ? " of %s" : "at most %s",
                           figure_rate5(limit / unit).text);
    x += canvas_printf(c, y, x, style_of(ROLE_TEXT), " %s", name) + 1;
    if (!(d->rates.read_bytes_s >= 0))
        return 1;
    if (bar_end - x >= 4)
        canvas_bar(c, y, x, bar_end - x, limit > 0 ? d->rates.read_bytes_s / limit : 0,
                   style_of(ROLE_GRAPH_2), style_of(ROLE_FILL_FREE));
    if (c->width - x >= 14 && d->rates.overlap >= 0.005 && reads_weights(d)) {
        char text[64];

        canvas_text(c, y, c->width - 14, style_of(ROLE_DIM), "overlap");
        snprintf(text, sizeof text, "~%.0f %%", d->rates.overlap * 100);
        canvas_right(c, y, c->width, style_of(ROLE_TEXT), text);
    }
    return 1;
}

/* The rates of both disks of a model with a mirror. */
static int draw_disks(const struct dash *d, const struct canvas *c, int y)
{
    char text[DISKS_TEXT];

    if (disks_text(&d->now, text, sizeof text)[0] == '\0')
        return 0;
    canvas_text(c, y, 0, style_of(ROLE_DIM), "disks");
    canvas_text(c, y, 6, style_of(d->now.io.mirror == MW_MIRROR_LOST ? ROLE_WARN : ROLE_TEXT),
                text);
    return 1;
}

/* How weights are read if it is not as usual, and why; the reason goes to a line of its own if it
 * does not fit. */
static int draw_io(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_run *r = &d->now.run;
    struct canvas rest;
    int x;

    if (r->io_reason[0] == '\0' || strcmp(r->io, USUAL_IO) == 0)
        return 0;
    x = canvas_text(c, y, 0, style_of(ROLE_DIM), "io") + 4;
    x += canvas_text(c, y, x, style_of(ROLE_TEXT), r->io) + 1;
    if (x + (int)strlen(r->io_reason) + 2 <= c->width) {
        canvas_printf(c, y, x, style_of(ROLE_DIM), "(%s)", r->io_reason);
        return 1;
    }
    rest = canvas_sub(c, y + 1, 6, 2, c->width - 6);
    widget_wrap(&rest, style_of(ROLE_DIM), r->io_reason);
    return 1 + (widget_lines(r->io_reason, rest.width) > 1 ? 2 : 1);
}

/* ---- curves ---- */

/* Draw tokens per second; with enough height also the disk rate and the stall share of each
 * token.  Curves whose values would all be 0.00 are left out. */
static void draw_curves(const struct dash *d, const struct canvas *c)
{
    const char *name;
    double unit = figure_disk_unit(&d->now, &name);
    char disk_label[40];
    const struct {
        const struct past *history;
        const char *label;
        double unit;
        enum ui_role role;
    } curves[] = {
        { &d->tps, "tok/s, each token", 1, ROLE_GRAPH },
        { &d->read_rate, disk_label, unit, ROLE_GRAPH_2 },
        { &d->stall_share, "waiting %, each token", 0.01, ROLE_WARN },
    };
    size_t shown[3], n = 0, most = (size_t)c->height / CURVE_TALL;

    snprintf(disk_label, sizeof disk_label, "disk %s, each second", name);
    for (size_t i = 0; i < 3 && (n == 0 || n < most); i++)
        if (curve_max(d, curves[i].history, c->width) / curves[i].unit >= LEAST_SCALE)
            shown[n++] = i;
    for (size_t k = 0; k < n; k++) {
        int from = c->height * (int)k / (int)n, to = c->height * (int)(k + 1) / (int)n;
        struct canvas part = canvas_sub(c, from, 0, to - from, c->width);
        struct canvas curve = canvas_sub(&part, 1, 0, part.height - 1, part.width);

        canvas_text(&part, 0, 0, style_of(ROLE_DIM), curves[shown[k]].label);
        curve_with_scale(&curve, d, curves[shown[k]].history, curves[shown[k]].unit,
                         style_of(curves[shown[k]].role));
    }
}

/* ---- the widget ---- */

static void speed_draw(const struct dash *d, const struct canvas *c)
{
    char head[64];
    int y = 1;

    snprintf(head, sizeof head, "%s%s tok/s", mw_state_name(d->now.state), speed_now(d).text);
    widget_headline(c, "speed", head, style_with(ROLE_ACCENT, UI_BOLD));
    y += draw_rates(d, c, y);
    y += draw_progress(d, c, y);
    if (y < c->height)
        y += draw_drafts(d, c, y);
    if (y < c->height)
        y += draw_disk(d, c, y);
    if (y < c->height)
        y += draw_disks(d, c, y);
    if (y < c->height)
        y += draw_cpu(d, c, y);
    if (y < c->height && c->width < ONE_LINE && d->rates.first_s >= 0)
        draw_first(d, c, y++);
    if (c->height - y > CURVE_LEAST + 2)
        y += draw_io(d, c, y);
    if (c->height - y >= 2) {
        struct canvas rest = canvas_sub(c, y, 0, c->height - y, c->width);

        draw_curves(d, &rest);
    }
}

const struct dash_widget dash_speed_widget = {
    .name = "speed",
    .min_width = 30,
    .min_height = 3,
    .importance = 0,
    .stretches = true,
    .enough = speed_enough,
    .step = speed_step,
    .draw = speed_draw,
};
