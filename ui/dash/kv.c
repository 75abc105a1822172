/*
 * The KV cache: its size, its growth, and a prediction.
 *
 *     kv cache ──────────────────── 13.1 MiB of 59.0 MiB
 *     ████████████·······································
 *     2,070 of 8,192 tokens  global 9.00 MiB  sliding 11.0 MiB
 *     full in   6,122 tokens  budget reached in ~3,100
 *     ⣀⣀⣤⣤⣶⣶⣿⣿                ....:::::::::::::::::::
 *
 * The curve shows bytes by tokens, from 0 to the full context.  The measured part is filled,
 * the prediction is dotted.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ui/dash/curve.h"
#include "ui/dash/widget.h"

/* Returns the bytes of one more token.  Only global layers keep growing, up to the size of
 * their plan item at the full context.  (The current size is a multiple of the page size.) */
static double growth(const struct mw_sample *s)
{
    return s->kv.capacity > 0 ? (double)s->mem.plan[MW_ROW_KV_GLOBAL] / (double)s->kv.capacity
                              : 0;
}

static uint64_t tokens_left(const struct mw_sample *s)
{
    return s->kv.capacity > s->kv.tokens ? s->kv.capacity - s->kv.tokens : 0;
}

/* Returns the tokens until free memory and the KV space borrowed by pinned weights are used
 * up; negative: not before the context is full, or unknown. */
static double tokens_to_budget(const struct dash *d)
{
    const struct mw_sample *s = &d->now;
    struct dash_total total;
    double room, tokens;

    dash_total(d, &total);
    if (total.bytes.why_not != NULL || growth(s) <= 0)
        return -1;
    /* The kernel drops the model's cached pages when memory is needed. */
    room = (double)s->run.budget_bytes + (double)s->mem.lent_bytes + (double)total.model -
           (double)total.bytes.value;
    tokens = room > 0 ? room / growth(s) : 0;
    return tokens < (double)tokens_left(s) ? tokens : -1;
}

/* ---- the curve ---- */

static double projected(const struct mw_sample *s, double tokens)
{
    double bytes = (double)s->kv.bytes_used + (tokens - (double)s->kv.tokens) * growth(s);

    return bytes < (double)s->kv.bytes_reserved ? bytes : (double)s->kv.bytes_reserved;
}

/* Fill value with the last known point at or before each of n places, and with gaps before the
 * first one. */
static void measured(const struct dash *d, float *value, uint32_t n)
{
    const struct mw_sample *s = &d->now;
    uint32_t point = 0;
    float last = NAN;

    for (uint32_t i = 0; i < n; i++) {
        for (; point <= i * DASH_KV_POINTS / n; point++)
            if (!isnan(d->kv_point[point]))
                last = d->kv_point[point];
        value[i] = (uint64_t)i * s->kv.capacity / n <= s->kv.tokens ? last : NAN;
    }
}

static void draw_curve(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    struct canvas area = canvas_sub(c, 0, 0, c->height, c->width - 9);
    float value[1024];
    uint32_t n = curve_values(d->graph, area.width < 512 ? area.width : 512);
    float top = (float)s->kv.bytes_reserved;

    if (s->kv.capacity == 0 || top <= 0)
        return;
    for (int x = 0; x < area.width; x++) {
        double tokens = (x + 0.5) / area.width * (double)s->kv.capacity;
        int row;

        if (tokens <= (double)s->kv.tokens || growth(s) <= 0)
            continue;
        row = area.height - 1 - (int)(projected(s, tokens) / top * area.height);
        canvas_cell(&area, row < 0 ? 0 : row, x, style_of(ROLE_DIM),
                    canvas_is_ascii(c) ? L'.' : L'\u00b7');
    }
    measured(d, value, n);
    curve_draw_values(&area, d->graph, value, n, top, style_of(ROLE_FILL_KV));
    canvas_right(c, 0, c->width, style_of(ROLE_DIM), figure_size8(s->kv.bytes_reserved).text);
    if (c->height > 1)
        canvas_right(c, c->height - 1, c->width, style_of(ROLE_DIM), "0");
}

/* ---- the widget ---- */

/* Heights: bar and tokens, text, a curve of at least three lines. */
static int kv_step(const struct dash *d, int width, int height)
{
    int text = width >= 60 ? 4 : 5;

    (void)d;
    if (height < text)
        return height + 1;
    return height < text + 3 ? text + 3 : height < text + 6 ? height + 1 : 0;
}

static const char *trim(const char *s)
{
    return s + strspn(s, " ");
}

static void kv_draw(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    double budget = tokens_to_budget(d);
    char head[64], text[96];
    int y = 2, x;

    snprintf(head, sizeof head, "%s of %s", figure_size8(s->kv.bytes_used).text,
             figure_size8(s->kv.bytes_reserved).text);
    widget_head(c, "kv cache", head);
    canvas_bar(
        c, 1, 0, c->width,
        s->kv.bytes_reserved > 0 ? (double)s->kv.bytes_used / (double)s->kv.bytes_reserved : 0,
        style_of(ROLE_FILL_KV), style_of(ROLE_FILL_FREE));
    snprintf(text, sizeof text, "%s of %s", figure_count7(s->kv.tokens).text,
             trim(figure_count7(s->kv.capacity).text));
    x = widget_pair(c, y, 0, "tokens", text, ROLE_TEXT);
    if (c->width < 60)
        y++, x = 0;
    if (y < c->height) {
        x = widget_pair(c, y, x, "global", figure_size8(s->kv.global_bytes).text, ROLE_TEXT);
        widget_pair(c, y, x, "sliding", figure_size8(s->kv.sliding_bytes).text, ROLE_TEXT);
    }
    y++;
    if (y < c->height) {
        x = widget_pair(c, y, 0, "full in", figure_count7(tokens_left(s)).text, ROLE_TEXT);
        if (budget >= 0) {
            snprintf(text, sizeof text, "~%s", trim(figure_count7((uint64_t)budget).text));
            widget_pair(c, y, x, "budget in", text, ROLE_WARN);
        } else if (s->mem.lent_bytes > 0) {
            widget_pair(c, y, x, "borrowed", figure_size8(s->mem.lent_bytes).text, ROLE_TEXT);
        }
    }
    y++;
    if (c->height - y >= 2) {
        struct canvas curve = canvas_sub(c, y, 0, c->height - y, c->width);

        draw_curve(d, &curve);
    }
}

const struct dash_widget dash_kv_widget = {
    .name = "kv cache",
    .min_width = 26,
    .min_height = 3,
    .importance = 4,
    .stretches = true,
    .step = kv_step,
    .draw = kv_draw,
};
