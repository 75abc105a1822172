/*
 * The KV cache: its size, its growth, and a prediction.
 *
 *     kv cache ──────────────────── 13.1 MiB of 59.0 MiB
 *     ████████████·······································
 *     tokens   2,070 of 8,192  global 9.00 MiB  sliding 11.0 MiB
 *     full in   6,122 tokens  borrowed 30.0 MiB
 *                            ⣀⣀⡠⠤⠤⠒⠒⠉⠉│ 59.0 MiB
 *     ⣀⣀⣤⣤⣶⣶⣿⣿⡠⠤⠤⠒⠒⠒⠉⠉⠉               │
 *     ⣿⣿⣿⣿⣿⣿⣿⣿          full at 8,192 │        0
 *
 * The curve shows bytes by tokens, from 0 to the full context.  The measured part is filled,
 * the prediction is a line.  It ends at a wall: the end of the context, or the budget if other
 * memory uses it up earlier.
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
    return s->kv.capacity > s->kv.context ? s->kv.capacity - s->kv.context : 0;
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

/* Draw what stops the growth as a vertical line with its label: the budget if it is reached
 * first, else the end of the context. */
static void draw_wall(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    double budget = tokens_to_budget(d);
    double at = budget >= 0 ? (double)s->kv.tokens + budget : (double)s->kv.capacity;
    int x = (int)(at / (double)s->kv.capacity * c->width), width;
    enum ui_role role = budget >= 0 ? ROLE_WARN : ROLE_LIMIT;
    char text[48];

    x = x < c->width ? x : c->width - 1;
    canvas_vline(c, 0, x, c->height, style_of(role));
    snprintf(text, sizeof text, budget >= 0 ? "budget reached at ~%s" : "full at %s",
             figure_trim(figure_count7((uint64_t)at).text));
    width = (int)strlen(text);
    if (x > width) /* below the line, which is at the top there */
        canvas_text(c, c->height - 1, x - width - 1, style_of(role), text);
    else
        canvas_text(c, 0, x + 2, style_of(role), text);
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
    draw_wall(d, &area);
    for (uint32_t i = 0; i < n; i++) {
        double tokens = (i + 0.5) / n * (double)s->kv.capacity;
        bool is_ahead = tokens > (double)s->kv.tokens && growth(s) > 0;

        value[i] = is_ahead ? (float)projected(s, tokens) : NAN;
    }
    curve_line(&area, d->graph, value, n, top, style_of(ROLE_DIM));
    measured(d, value, n);
    curve_draw_values(&area, d->graph, value, n, top, style_of(ROLE_FILL_KV));
    canvas_right(c, 0, c->width, style_of(ROLE_DIM), figure_size8(s->kv.bytes_reserved).text);
    if (c->height > 1)
        canvas_right(c, c->height - 1, c->width, style_of(ROLE_DIM), "0");
}

/* ---- the widget ---- */

/* Bar, tokens and text. */
static int kv_enough(const struct dash *d, int width)
{
    (void)d;
    return width >= 60 ? 4 : 5;
}

/* Heights: the figures, a curve of at least three lines. */
static int kv_step(const struct dash *d, int width, int height)
{
    int text = kv_enough(d, width);

    if (height < text)
        return height + 1;
    return height < text + 3 ? text + 3 : height < text + 6 ? height + 1 : 0;
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
    snprintf(text, sizeof text, "%s of %s", figure_count7(s->kv.context).text,
             figure_trim(figure_count7(s->kv.capacity).text));
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
            snprintf(text, sizeof text, "~%s",
                     figure_trim(figure_count7((uint64_t)budget).text));
            widget_pair(c, y, x, "budget in", text, ROLE_WARN);
        } else if (s->kv.context > s->kv.tokens) {
            widget_pair(c, y, x, "to evaluate",
                        figure_count7(s->kv.context - s->kv.tokens).text, ROLE_TEXT);
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
    .is_of_model = true,
    .min_width = 26,
    .min_height = 3,
    .importance = 4,
    .stretches = true,
    .enough = kv_enough,
    .step = kv_step,
    .draw = kv_draw,
};
