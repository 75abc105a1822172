/* One sentence about the bottleneck and its remedy. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/dash.h"
#include "ui/dash/large.h"
#include "ui/dash/widget.h"

/* The bottlenecks. */
static const char *const share_texts[] = {
    [MW_BINDS_NONE] = "",
    [MW_BINDS_DISK] = "waits",
    [MW_BINDS_MEMORY] = "goes to moving weights from memory",
    [MW_BINDS_COMPUTE] = "is arithmetic",
    [MW_BINDS_KV] = "goes to keys and values",
    [MW_BINDS_SWAP] = "waits for memory",
    [MW_BINDS_OTHERS] = "waits for a processor that others use",
};

/* Advice, with and without a predicted speed. */
static const struct {
    const char *key, *what, *alone;
} advices[] = {
    { "more_budget", "of budget", "more budget would help" },
    { "smaller_type", "weights of half the size", "a smaller weight type would help" },
    { "smaller_kv", "q8_0 keys and values", "a smaller type for keys and values would help" },
    { "shorter_context", "a shorter context", "a shorter context would help" },
    { "less_budget", "a smaller budget", "a smaller budget would stop it" },
    { "rows_only", "", "for rows of tables alone, all weights are in memory" },
    { "other_programs", "", "stop other programs, or use fewer threads" },
    { "direct_io", "--io direct", "--io direct would read without the page cache" },
};

/* Write the command that F10 runs. */
static void remedy_text(char *buf, size_t n, const char *remedy, double to)
{
    if (to > 0)
        snprintf(buf, n, "; F10: %s for ~%.*f tok/s", remedy, to < 9.95, to);
    else
        snprintf(buf, n, "; F10: %s", remedy);
}

/* Write the advice with a leading "; "; nothing for unknown keys. */
static void advice_text(char *buf, size_t n, const struct mw_sample *s, const char *remedy)
{
    double to = s->verdict.advice_to;
    char size[24];

    buf[0] = '\0';
    if (remedy[0] != '\0') {
        remedy_text(buf, n, remedy, to);
        return;
    }
    for (size_t i = 0; i < sizeof advices / sizeof advices[0]; i++) {
        if (strcmp(s->verdict.advice, advices[i].key) != 0)
            continue;
        if (to <= 0)
            snprintf(buf, n, "; %s", advices[i].alone);
        else if (i == 0)
            snprintf(buf, n, "; +%s of budget for at most ~%.*f tok/s",
                     units_size(size, sizeof size, (uint64_t)s->verdict.advice_amount),
                     to < 9.95, to);
        else
            snprintf(buf, n, "; %s for at most ~%.*f tok/s", advices[i].what, to < 9.95, to);
    }
}

/* Returns the name of the whole that the share refers to. */
static const char *whole_text(const struct mw_sample *s)
{
    if (s->verdict.binds == MW_BINDS_SWAP)
        return "the time";
    return s->state == MW_PREFILL ? "the prompt's time" : "each token";
}

/* Write what the plan predicts, which begins with "~". */
static void planned_text(char *buf, size_t n, const struct mw_sample *s)
{
    double rate = s->run.predicted_decode;
    char size[24];
    int len;

    if (!(rate > 0) || s->run.predicted_binds == MW_BINDS_NONE)
        return;
    len = snprintf(buf, n, "~%s: the plan predicts ~%.*f tok/s; ",
                   mw_binds_label(s->run.predicted_binds),
                   rate < 9.95 ? rate < 0.995 ? 2 : 1 : 0, rate);
    if (s->run.predicted_read > 0)
        snprintf(buf + len, n - (size_t)len, "each token will read ~%s of weights",
                 units_size(size, sizeof size, s->run.predicted_read));
    else
        snprintf(buf + len, n - (size_t)len, "all weights fit the budget");
}

char *dash_verdict(char *buf, size_t n, const struct mw_sample *s, const char *remedy)
{
    char advice[120];

    buf[0] = '\0';
    if (s->state == MW_LOADING)
        snprintf(buf, n, "loading the model");
    else if (s->verdict.binds == MW_BINDS_NONE)
        planned_text(buf, n, s);
    if (s->verdict.binds == MW_BINDS_NONE)
        return buf;
    advice_text(advice, sizeof advice, s, remedy);
    snprintf(buf, n, "%s: %.0f %% of %s %s%s", mw_binds_label(s->verdict.binds),
             s->verdict.share * 100, whole_text(s), share_texts[s->verdict.binds], advice);
    return buf;
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

    dash_verdict(text, sizeof text, &d->now, d->remedy);
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
