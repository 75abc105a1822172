/*
 * The page cache: how much of the model the kernel caches, and its cost.  It is empty with
 * direct reads; with mmap it shows the cache fill and thrash.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/curve.h"
#include "ui/dash/widget.h"

#define FEW 50 /* cached pages below this part of the model are few */

/* Returns the figure per token of the current answer; negative: unknown. */
static double a_token(const struct dash *d, struct mw_os_value now, uint64_t start)
{
    if (d->now.os.t_ns == 0 || now.why_not != NULL || d->now.n_decoded == 0 ||
        now.value < start)
        return -1;
    return (double)(now.value - start) / (double)d->now.n_decoded;
}

/* Direct reads leave no pages of the model. */
static bool cache_folds(const struct dash *d)
{
    struct mw_os_value model = d->now.os.model_cached;
    bool has_pages = d->now.os.t_ns != 0 && model.why_not == NULL &&
                     model.value > d->now.run.file_bytes / FEW;

    return strncmp(d->now.run.io, "direct", 6) == 0 && !has_pages;
}

static bool cache_is_empty(const struct dash *d)
{
    if (d->now.run.io[0] == '\0') /* no model yet */
        return true;
    return cache_folds(d) && !(d->now.os.t_ns != 0 && d->now.os.model_cached.value > 0);
}

static int cache_enough(const struct dash *d, int width)
{
    (void)width;
    return d->now.os.model_cached.why_not != NULL ? 4 : 3;
}

/* Show a curve only if it has values. */
static int cache_step(const struct dash *d, int width, int height)
{
    bool has_curve = past_max(&d->model_cached, DASH_SECONDS) > 0;

    (void)width;
    if (!has_curve)
        return d->now.os.model_cached.why_not != NULL && height < 4 ? 4 : 0;
    return height < 6 ? 6 : height < 9 ? height + 1 : 0;
}

static int draw_known(const struct canvas *c, int x, const char *label, double rate)
{
    if (rate < 0 || c->width - x < (int)strlen(label) + 6)
        return x;
    return widget_pair(c, 2, x, label, figure_rate5(rate).text, ROLE_TEXT);
}

static void draw_curve(const struct dash *d, const struct canvas *c)
{
    if (past_max(&d->model_cached, DASH_SECONDS) <= 0)
        return;
    curve_with_scale(c, d, &d->model_cached, 0, style_of(ROLE_GRAPH_2));
    canvas_text(c, c->height - 1, 0, style_of(ROLE_DIM), "cached, each second");
}

/* The row of the folded panel. */
static void draw_row(const struct canvas *c, const char *head)
{
    widget_pair(c, 0, 0, "page cache", head + strspn(head, " "), ROLE_TEXT);
}

static void cache_draw(const struct dash *d, const struct canvas *c)
{
    const struct mw_os *os = &d->now.os;
    struct mw_os_value model = os->model_cached;
    double file = (double)d->now.run.file_bytes;
    struct canvas curve = canvas_sub(c, 3, 0, c->height - 3, c->width);
    char head[64];
    int x = 0;

    if (os->t_ns == 0)
        model.why_not = "not read yet";
    snprintf(head, sizeof head, "%s of %s", figure_os8(model).text,
             figure_size8(d->now.run.file_bytes).text);
    if (c->height == 1) {
        draw_row(c, head);
        return;
    }
    widget_head(c, "page cache", head);
    canvas_bar(c, 1, 0, c->width,
               model.why_not == NULL && file > 0 ? (double)model.value / file : 0,
               style_of(ROLE_GRAPH_2), style_of(ROLE_FILL_FREE));
    if (os->t_ns != 0 && os->system_cached.why_not == NULL)
        x = widget_pair(c, 2, 0, "system", figure_os8(os->system_cached).text, ROLE_TEXT);
    x = draw_known(c, x, "faults/tok", a_token(d, os->majflt, d->answer_majflt));
    draw_known(c, x, "refaults", a_token(d, os->refaults, d->answer_refaults));
    if (model.why_not != NULL)
        canvas_text(&curve, 0, 0, style_of(ROLE_DIM), model.why_not);
    else
        draw_curve(d, &curve);
}

const struct dash_widget dash_cache_widget = {
    .name = "page cache",
    .is_of_model = true,
    .min_width = 24,
    .min_height = 3,
    .importance = 5,
    .folds = cache_folds,
    .is_empty = cache_is_empty,
    .enough = cache_enough,
    .step = cache_step,
    .draw = cache_draw,
};
