/* One sentence about the bottleneck and its remedy. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/dash.h"
#include "ui/dash/large.h"
#include "ui/dash/token.h"
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

#define LARGE_HEIGHT (1 + LARGE_ROWS) /* of the head and a large figure */
#define LARGE_WIDE   (LARGE_WIDTH + 3) /* columns of a large figure with its unit and a gap */
#define LARGE_SPARE  24 /* columns for the sentence beside it */
#define NARROW       54                   /* columns in which a line holds the longest advice */

/* The head and the lines of the longest sentence, so that widgets below never move. */
static int sentence_height(int width)
{
    return 1 + (width >= 104 ? 1 : width >= NARROW ? 2 : 3);
}

/* The sentence and the bar of a token. */
static int verdict_enough(const struct dash *d, int width)
{
    (void)d;
    return sentence_height(width) + 1;
}

/* A second line for the advice, which is worth more than the figures of other widgets. */
static int verdict_wants(const struct dash *d, int width)
{
    (void)d;
    return width < NARROW;
}

/* With a large figure beside the sentence, and below it the bar and a line of its key. */
static bool is_large(int width, int height)
{
    return width >= LARGE_WIDE + LARGE_SPARE && height >= LARGE_HEIGHT + 2;
}

/* Returns the row of the bar of a token: below the sentence, or below the large figure. */
static int bar_row(int width, int height)
{
    return is_large(width, height) ? LARGE_HEIGHT : sentence_height(width);
}

/* Heights: the sentence, the bar of a token, its key, a large figure of the speed, more key. */
static int verdict_step(const struct dash *d, int width, int height)
{
    int text = verdict_enough(d, width), large = LARGE_HEIGHT + 2;
    int all = bar_row(width, large) + 1 + token_key_lines(width);

    if (height < text + 1)
        return height + 1;
    if (height < large && is_large(width, large))
        return large;
    return height < all ? all : 0;
}

/* Draw tokens per second.  Returns the part at its right. */
static struct canvas draw_large(const struct dash *d, const struct canvas *c)
{
    struct figure rate = speed_now(d);
    const char *number = figure_trim(rate.text);
    bool is_measured = number[0] >= '0' && number[0] <= '9';
    int unit;

    unit = large_number(c, 0, 0,
                        is_measured ? style_with(ROLE_ACCENT, UI_BOLD) : style_of(ROLE_DIM),
                        number);
    if (d->now.state == MW_PREFILL && unit < LARGE_WIDE - 6) /* and a gap */
        canvas_text(c, LARGE_ROWS - 2, unit, style_of(ROLE_DIM), "prompt");
    if (unit <= LARGE_WIDE - 6)
        canvas_text(c, LARGE_ROWS - 1, unit, style_of(ROLE_DIM), "tok/s");
    return canvas_sub(c, 0, LARGE_WIDE, c->height, c->width - LARGE_WIDE);
}

enum ui_role verdict_role(const struct dash *d)
{
    static const enum ui_role roles[] = {
        [MW_BINDS_NONE] = ROLE_DIM,    [MW_BINDS_DISK] = ROLE_WARN,
        [MW_BINDS_MEMORY] = ROLE_TEXT, [MW_BINDS_COMPUTE] = ROLE_TEXT,
        [MW_BINDS_KV] = ROLE_TEXT,     [MW_BINDS_SWAP] = ROLE_BAD,
        [MW_BINDS_OTHERS] = ROLE_WARN,
    };
    struct mw_diagnosis now;

    mw_diagnosis_of_sample(&d->now, &now);
    if (now.is_measured && mw_diagnosis_needs_nothing(&now))
        return ROLE_GOOD;
    return roles[d->now.verdict.binds];
}

static void verdict_draw(const struct dash *d, const struct canvas *c)
{
    enum ui_role role = verdict_role(d);
    char text[256], bound[40];
    int bar = bar_row(c->width, c->height), key = c->height - bar - 1;
    struct canvas below = canvas_sub(c, 1, 0, bar - 1, c->width);

    dash_verdict(text, sizeof text, &d->now, d->has_keys);
    snprintf(bound, sizeof bound, "%.*s",
             strchr(text, ':') == NULL ? 0 : (int)strcspn(text, ":"), text);
    widget_headline(c, "verdict", bound, style_with(role, UI_BOLD));
    if (is_large(c->width, c->height))
        below = draw_large(d, &below);
    widget_wrap(&below, style_of(role), text[0] != '\0' ? text : "-");
    if (c->height > bar)
        token_bar(d, c, bar);
    else if (1 + widget_lines(text, c->width) < c->height) /* a short sentence */
        token_bar(d, c, c->height - 1);
    if (key > 0)
        token_key(d, c, bar + 1, key);
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
