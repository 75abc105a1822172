/* One sentence about the bottleneck and its remedy. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/dash.h"
#include "ui/dash/large.h"
#include "ui/dash/widget.h"

char *dash_verdict(char *buf, size_t n, const struct mw_sample *s, bool has_keys)
{
    struct mw_diagnosis d;

    if (s->state == MW_LOADING) {
        snprintf(buf, n, "loading the model");
        return buf;
    }
    mw_diagnosis_of_sample(s, &d);
    return mw_diagnosis_text(&d, has_keys ? "F10: /" : "--", buf, n);
}

/* ---- the widget ---- */

#define LARGE_HEIGHT (1 + LARGE_ROWS + 1) /* of a widget with a large figure and its unit */
#define LARGE_SPARE  24                   /* columns for the sentence beside it */
#define NARROW       54                   /* columns in which a line holds the longest advice */

/* The lines of the longest sentence, so that widgets below never move. */
static int verdict_enough(const struct dash *d, int width)
{
    (void)d;
    return 1 + (width >= 104 ? 1 : width >= NARROW ? 2 : 3);
}

/* A second line for the advice, which is worth more than the figures of other widgets. */
static int verdict_wants(const struct dash *d, int width)
{
    (void)d;
    return width < NARROW;
}

static bool is_large(int width, int height)
{
    return width >= LARGE_WIDTH + 2 + LARGE_SPARE && height >= LARGE_HEIGHT;
}

/* Heights: the sentence, then a large figure of the speed beside it. */
static int verdict_step(const struct dash *d, int width, int height)
{
    if (height < verdict_enough(d, width))
        return height + 1;
    return height < LARGE_HEIGHT && is_large(width, LARGE_HEIGHT) ? LARGE_HEIGHT : 0;
}

/* Draw tokens per second.  Returns the part at its right. */
static struct canvas draw_large(const struct dash *d, const struct canvas *c)
{
    struct figure rate = speed_now(d);
    const char *number = figure_trim(rate.text);
    bool is_measured = number[0] >= '0' && number[0] <= '9';

    large_number(c, 0, 0, is_measured ? style_with(ROLE_ACCENT, UI_BOLD) : style_of(ROLE_DIM),
                 number);
    canvas_text(c, LARGE_ROWS, 0, style_of(ROLE_DIM),
                d->now.state == MW_PREFILL ? "prompt tok/s" : "tok/s");
    return canvas_sub(c, 0, LARGE_WIDTH + 2, c->height, c->width - LARGE_WIDTH - 2);
}

enum ui_role verdict_role(const struct dash *d)
{
    static const enum ui_role roles[] = {
        [MW_BINDS_NONE] = ROLE_DIM,    [MW_BINDS_DISK] = ROLE_WARN,
        [MW_BINDS_MEMORY] = ROLE_TEXT, [MW_BINDS_COMPUTE] = ROLE_TEXT,
        [MW_BINDS_KV] = ROLE_TEXT,     [MW_BINDS_SWAP] = ROLE_BAD,
        [MW_BINDS_OTHERS] = ROLE_WARN,
    };

    return roles[d->now.verdict.binds];
}

static void verdict_draw(const struct dash *d, const struct canvas *c)
{
    enum ui_role role = verdict_role(d);
    char text[256], bound[40];
    struct canvas below = canvas_sub(c, 1, 0, c->height - 1, c->width);

    dash_verdict(text, sizeof text, &d->now, d->has_keys);
    snprintf(bound, sizeof bound, "%.*s",
             strchr(text, ':') == NULL ? 0 : (int)strcspn(text, ":"), text);
    widget_headline(c, "verdict", bound, style_with(role, UI_BOLD));
    if (is_large(c->width, c->height))
        below = draw_large(d, &below);
    widget_wrap(&below, style_of(role), text[0] != '\0' ? text : "-");
}

const struct dash_widget dash_verdict_widget = {
    .name = "verdict",
    .min_width = 20,
    .min_height = 2,
    .importance = 2,
    .wants = verdict_wants,
    .enough = verdict_enough,
    .step = verdict_step,
    .draw = verdict_draw,
};
