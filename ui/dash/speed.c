/*
 * Speed: tokens per second now and over time, progress of the prompt, disk.
 *
 *     speed ──────────────────────────── decode  3.12 tok/s
 *     now  3.12  mean  3.10 tok/s   first token   8.2 s
 *     answer     112 tokens   left ~2:05 m
 *     disk  8.72 of  9.65 GB/s ███████████████░░  overlap 23 %
 *     io    direct/io_uring (direct 9650 MB/s, buffered 9210 MB/s)
 *     ⣿⣿⣿⣿⣿⣿ …                                          5
 *                                                        0
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/dash/curve.h"
#include "ui/dash/widget.h"

#define CURVE_TALL 6  /* minimum height of a curve with another one below */
#define ONE_LINE   54 /* minimum width for all rates on one line */
#define IO_TALL    10 /* minimum height for how weights are read, and why */

/* Heights: rates and progress, disk, a curve of at least three lines. */
static int speed_step(const struct dash *d, int width, int height)
{
    int text = width >= ONE_LINE ? 4 : 5;

    (void)d;
    if (height < text)
        return height + 1;
    return height < text + 3 ? text + 3 : height < text + 6 ? height + 1 : 0;
}

static const char *trim(const char *s)
{
    return s + strspn(s, " ");
}

/* Returns the tokens until the limit of the answer or the end of the context. */
static uint64_t tokens_left(const struct dash *d)
{
    const struct mw_sample *s = &d->now;
    uint64_t context = s->kv.capacity > s->kv.tokens ? s->kv.capacity - s->kv.tokens : 0;
    uint64_t cap = d->n_predict > s->n_decoded ? d->n_predict - s->n_decoded : 0;

    return d->n_predict > 0 && cap < context ? cap : context;
}

static void draw_prefill(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_sample *s = &d->now;
    double share = s->n_prompt > 0 ? (double)s->n_prompt_done / (double)s->n_prompt : 0;
    double left =
        d->rates.prefill > 0 ? (double)(s->n_prompt - s->n_prompt_done) / d->rates.prefill : -1;
    int x = canvas_text(c, y, 0, style_of(ROLE_DIM), "prompt") + 1;

    x += canvas_printf(c, y, x, style_of(ROLE_TEXT), "%s of %s",
                       figure_count7(s->n_prompt_done).text, figure_count7(s->n_prompt).text) +
         1;
    x += canvas_text(c, y, x, style_of(ROLE_TEXT), figure_percent5(share).text) + 1;
    if (c->width - x - 10 >= 4)
        canvas_bar(c, y, x, c->width - x - 10, share, style_of(ROLE_GOOD),
                   style_of(ROLE_FILL_FREE));
    if (c->width - x >= 9) {
        char text[64];

        snprintf(text, sizeof text, "~%s", trim(figure_time7(left).text));
        canvas_right(c, y, c->width, style_of(ROLE_TEXT), left >= 0 ? text : "-");
    }
}

/* Draw the maximum time left for the answer. */
static void draw_answer(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_sample *s = &d->now;
    double rate = d->rates.decode_mean > 0 ? d->rates.decode_mean : d->rates.decode_last;
    char text[64] = "-";
    int x;

    x = widget_pair(c, y, 0, "answer", figure_count7(s->n_decoded).text, ROLE_TEXT);
    if (c->width >= 50)
        x = widget_pair(c, y, x, "at most", figure_count7(s->n_decoded + tokens_left(d)).text,
                        ROLE_TEXT);
    if (s->state == MW_DECODE && rate > 0)
        snprintf(text, sizeof text, "~%s",
                 trim(figure_time7((double)tokens_left(d) / rate).text));
    widget_pair(c, y, x, "left", text, ROLE_TEXT);
}

static void draw_disk(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_sample *s = &d->now;
    double seen = fmax(d->rates.read_bytes_s, d->fastest_read);
    /* A rate observed since then overrides a probe on a busy machine. */
    double limit = s->disk_limit > 0 ? fmax((double)s->disk_limit, seen) : -1;
    int x = canvas_text(c, y, 0, style_of(ROLE_DIM), "disk") + 1;
    int bar_end = c->width - 15;
    const char *name;
    double unit = figure_disk_unit(s, &name);

    x += canvas_printf(c, y, x, style_of(ROLE_TEXT), "%s of %s %s",
                       figure_rate5(d->rates.read_bytes_s / unit).text,
                       figure_rate5(limit / unit).text, name) +
         1;
    if (bar_end - x >= 4)
        canvas_bar(c, y, x, bar_end - x, limit > 0 ? d->rates.read_bytes_s / limit : 0,
                   style_of(ROLE_GRAPH_2), style_of(ROLE_FILL_FREE));
    if (c->width - x >= 14) {
        char text[64] = "-";

        canvas_text(c, y, c->width - 14, style_of(ROLE_DIM), "overlap");
        if (d->rates.overlap >= 0)
            snprintf(text, sizeof text, "~%.0f %%", d->rates.overlap * 100);
        canvas_right(c, y, c->width, style_of(ROLE_TEXT), text);
    }
}

/* How weights are read, and why; the reason goes to a line of its own if it does not fit. */
static int draw_io(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_run *r = &d->now.run;
    int x = canvas_text(c, y, 0, style_of(ROLE_DIM), "io") + 4;

    x += canvas_text(c, y, x, style_of(ROLE_TEXT), r->io) + 1;
    if (x + (int)strlen(r->io_reason) + 2 <= c->width) {
        canvas_printf(c, y, x, style_of(ROLE_DIM), "(%s)", r->io_reason);
        return 1;
    }
    canvas_text(c, y + 1, 6, style_of(ROLE_DIM), r->io_reason);
    return 2;
}

/* Draw tokens per second; with enough height also the disk rate and the stall share of each
 * token. */
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
    int n = c->height >= 3 * CURVE_TALL ? 3 : c->height >= 2 * CURVE_TALL ? 2 : 1;

    snprintf(disk_label, sizeof disk_label, "disk %s, each second", name);
    for (int i = 0; i < n; i++) {
        int from = c->height * i / n, to = c->height * (i + 1) / n;
        int label = n > 1 ? 1 : 0;
        struct canvas part = canvas_sub(c, from + label, 0, to - from - label, c->width);

        if (label > 0)
            canvas_text(c, from, 0, style_of(ROLE_DIM), curves[i].label);
        curve_with_scale(&part, d, curves[i].history, curves[i].unit, style_of(curves[i].role));
    }
}

static void speed_draw(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    bool is_prefill = s->state == MW_PREFILL;
    char head[64];
    int y = 1, x;

    snprintf(head, sizeof head, "%s %s tok/s", mw_state_name(s->state),
             figure_rate5(is_prefill ? d->rates.prefill : d->rates.decode_last).text);
    widget_head(c, "speed", head);
    x = widget_pair(c, y, 0, "now", figure_rate5(d->rates.decode_last).text, ROLE_TEXT);
    x = widget_pair(c, y, x, "mean", figure_rate5(d->rates.decode_mean).text, ROLE_TEXT);
    x = widget_pair(c, y, x, "prompt", figure_rate5(d->rates.prefill).text, ROLE_TEXT);
    if (c->width >= ONE_LINE)
        widget_pair(c, y, x, "first token", figure_time7(d->rates.first_s).text, ROLE_TEXT);
    y++;
    if (is_prefill)
        draw_prefill(d, c, y++);
    else
        draw_answer(d, c, y++);
    if (y < c->height)
        draw_disk(d, c, y++);
    if (y < c->height && c->width < ONE_LINE)
        widget_pair(c, y++, 0, "first token", figure_time7(d->rates.first_s).text, ROLE_TEXT);
    if (c->height >= IO_TALL && d->now.run.io_reason[0] != '\0')
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
    .step = speed_step,
    .draw = speed_draw,
};
