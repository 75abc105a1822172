/*
 * The KV cache: how far the conversation fills it, its size and growth, and predictions.
 *
 *     kv cache ─────────────── 2,070 of 8,192 tokens
 *     ████████████·······································
 *     size     20.0 MiB of 59.0 MiB  full KV 9.00 MiB  sliding KV 11.0 MiB
 *     a token  6.00 KiB  full in   6,122  then   ~2.8 tok/s
 *                            ⣀⣀⡠⠤⠤⠒⠒⠉⠉│ 59.0 MiB
 *     ⣀⣀⣤⣤⣶⣶⣿⣿⡠⠤⠤⠒⠒⠒⠉⠉⠉               │
 *     ⣿⣿⣿⣿⣿⣿⣿⣿          full at 8,192 │        0
 *
 * Sizes are those of the memory list and of /plan: keys and values, and copies for going back.
 * The curve shows bytes by tokens, from 0 to the full context.  The measured part is filled,
 * the prediction is a line.  It ends at a wall: the end of the context, or the budget if other
 * memory uses it up earlier.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/dash/curve.h"
#include "ui/dash/widget.h"

static const enum mw_plan_row items[] = { MW_ROW_KV_GLOBAL, MW_ROW_KV_SLIDING,
                                          MW_ROW_KV_RECURRENT, MW_ROW_KV_INDEX };
#define N_ITEM (sizeof items / sizeof items[0])

uint64_t kv_bytes(const uint64_t row[MW_PLAN_ROWS])
{
    uint64_t sum = 0;

    for (size_t i = 0; i < N_ITEM; i++)
        sum += row[items[i]];
    return sum;
}

/* Returns the bytes of one more token.  Only global layers and index keys keep growing, up to
 * the size of their plan items and of the part on the disk at the full context.  (The current size
 * is a multiple of the page size.) */
static double growth(const struct mw_sample *s)
{
    uint64_t grows =
        s->mem.plan[MW_ROW_KV_GLOBAL] + s->mem.plan[MW_ROW_KV_INDEX] + s->kv.disk_plan;

    return s->kv.capacity > 0 ? (double)grows / (double)s->kv.capacity : 0;
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
    if (s->kv.disk_plan > 0) /* what does not fit goes to the disk */
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
    double bytes = (double)kv_bytes(s->mem.used) + (tokens - (double)s->kv.tokens) * growth(s);

    return fmin(bytes, (double)kv_bytes(s->mem.plan));
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
    int x = (int)fmin(at / (double)s->kv.capacity * c->width, c->width - 1), width;
    enum ui_role role = budget >= 0 ? ROLE_WARN : ROLE_LIMIT;
    char text[48];

    canvas_vline(c, 0, x, c->height, style_of(role));
    snprintf(text, sizeof text, budget >= 0 ? "budget reached at ~%s" : "full at %s",
             figure_trim(figure_count7(numbers_whole(at)).text));
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
    float top = (float)kv_bytes(s->mem.plan);

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
    canvas_right(c, 0, c->width, style_of(ROLE_DIM), figure_size8(kv_bytes(s->mem.plan)).text);
    if (c->height > 1)
        canvas_right(c, c->height - 1, c->width, style_of(ROLE_DIM), "0");
}

/* ---- the figures ---- */

#define WIDE    60 /* columns of a line with sizes of all items */
#define LABEL   9  /* columns of "a token" and two blanks */

static int draw_label(const struct canvas *c, int y, const char *label)
{
    canvas_text(c, y, 0, style_of(ROLE_DIM), label);
    return LABEL;
}

/* "20.0 MiB of 59.0 MiB", and the items if there is more than one. */
static void draw_sizes(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_sample *s = &d->now;
    int x = draw_label(c, y, "size"), n = 0;

    x += canvas_printf(c, y, x, style_of(ROLE_TEXT), "%s of %s",
                       figure_size8(kv_bytes(s->mem.used)).text,
                       figure_trim(figure_size8(kv_bytes(s->mem.plan)).text)) +
         2;
    if (s->kv.disk_plan > 0)
        x = widget_pair(c, y, x, "on disk", figure_size8(s->kv.disk_bytes).text, ROLE_TEXT);
    for (size_t i = 0; i < N_ITEM; i++)
        n += s->mem.plan[items[i]] > 0;
    for (size_t i = 0; i < N_ITEM && n > 1; i++) {
        const char *label = mw_plan_row_label(items[i]);

        if (s->mem.plan[items[i]] > 0 && x + (int)strlen(label) + 9 <= c->width)
            x = widget_pair(c, y, x, label, figure_size8(s->mem.used[items[i]]).text, ROLE_TEXT);
    }
}

/* Draw the tokens until the context is full, or until something else happens. */
static int draw_left(const struct dash *d, const struct canvas *c, int y, int x)
{
    const struct mw_sample *s = &d->now;
    double budget = tokens_to_budget(d);
    char text[FIGURE_MAX + 1];

    if (budget >= 0) {
        snprintf(text, sizeof text, "~%s", figure_trim(figure_count7(numbers_whole(budget)).text));
        return widget_pair(c, y, x, "budget in", text, ROLE_WARN);
    }
    if (s->kv.context > s->kv.tokens)
        return widget_pair(c, y, x, "to evaluate",
                           figure_count7(s->kv.context - s->kv.tokens).text, ROLE_TEXT);
    return widget_pair(c, y, x, "full in", figure_count7(tokens_left(s)).text, ROLE_TEXT);
}

/* Draw the bytes of a token, and the speed at the end of the context. */
static void draw_growth(const struct dash *d, const struct canvas *c, int y)
{
    const struct mw_sample *s = &d->now;
    int x = draw_label(c, y, "a token");

    x += canvas_text(c, y, x, style_of(ROLE_TEXT), figure_size8(numbers_whole(growth(s))).text) + 2;
    if (c->width < WIDE)
        y++, x = 0;
    if (y >= c->height)
        return;
    x = draw_left(d, c, y, x);
    if (s->verdict.full_tps > 0 && c->width - x >= 18)
        canvas_printf(c, y, x, style_of(ROLE_DIM), "then %s%s tok/s",
                      figure_rate6(-1, s->verdict.full_tps).text,
                      d->wall.is_doubtful ? "?" : "");
}

/* ---- the widget ---- */

/* Bar and figures. */
static int kv_enough(const struct dash *d, int width)
{
    (void)d;
    return width >= WIDE ? 4 : 5;
}

/* Heights: the figures, a curve of four lines, a taller one. */
static int kv_step(const struct dash *d, int width, int height)
{
    int text = kv_enough(d, width);

    if (height < text)
        return height + 1;
    return height < text + 4 ? text + 4 : height < text + 7 ? height + 1 : 0;
}

static void kv_draw(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    int text = kv_enough(d, c->width);
    char head[64];

    snprintf(head, sizeof head, "%s of %s tokens", figure_count7(s->kv.context).text,
             figure_trim(figure_count7(s->kv.capacity).text));
    widget_head(c, "kv cache", head);
    canvas_bar(c, 1, 0, c->width,
               s->kv.capacity > 0 ? (double)s->kv.context / (double)s->kv.capacity : 0,
               style_of(ROLE_FILL_KV), style_of(ROLE_FILL_FREE));
    if (c->height > 2)
        draw_sizes(d, c, 2);
    if (c->height > 3)
        draw_growth(d, c, 3);
    if (c->height - text >= 2) {
        struct canvas curve = canvas_sub(c, text, 0, c->height - text, c->width);

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
