/*
 * The dashboard in four lines, for small screens:
 *
 *     ── decode  3.12 tok/s  wait 78 %  disk 8.72 GB/s ───
 *     p█a█w███████████████k█····· 1.98 of 2.00 GiB
 *     w pinned 827 MiB  a activations 91.1 MiB …
 *     78 % of each token waits; +0.8 GiB …
 *
 * A sentence that needs two lines takes the line of the key of letters; then the bar has no
 * letters.  While keys go to the dashboard, the wall takes that line, with its cursor.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/dash.h"
#include "ui/dash/widget.h"

#define TALL 4

/* Draw "label value" over the line in row 0.  Returns the column after it. */
static int draw_item(const struct canvas *c, int x, const char *label, const char *value,
                     struct ui_style style)
{
    int wide = (int)(strlen(label) + (label[0] != '\0')) + cluster_width(value, strlen(value));

    if (x + wide + 2 > c->width)
        return x;
    canvas_blank(c, 0, x, wide + 2, style_of(ROLE_TEXT));
    if (label[0] != '\0')
        x += canvas_text(c, 0, x + 1, style_of(ROLE_DIM), label) + 1;
    return x + canvas_text(c, 0, x + 1, style, value) + 3;
}

static void draw_title(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    bool is_prefill = s->state == MW_PREFILL;
    double share = s->n_prompt > 0 ? (double)s->n_prompt_done / (double)s->n_prompt : 0;
    const char *name;
    double unit = figure_disk_unit(s, &name);
    struct figure rate = speed_now(d);
    char text[64];
    int x;

    canvas_hline(c, 0, 0, c->width, style_of(ROLE_BORDER));
    snprintf(text, sizeof text, "%s tok/s", rate.text + (rate.text[0] == ' '));
    x = draw_item(c, 1, mw_state_name(s->state), text, style_with(ROLE_ACCENT, UI_BOLD));
    if (d->rates.loading >= 0) {
        snprintf(text, sizeof text, "%u %%",
                 (unsigned)(s->mem.ahead_done_bytes * 100 / s->mem.ahead_bytes));
        x = draw_item(c, x, "loading", text, style_of(ROLE_TEXT));
    }
    if (is_prefill) {
        x = draw_item(c, x, "", figure_percent5(share).text, style_of(ROLE_TEXT));
        canvas_bar(c, 0, x, c->width - x, share, style_of(ROLE_GOOD), style_of(ROLE_FILL_FREE));
        return;
    }
    if (d->rates.stall_share < 0)
        return;
    x = draw_item(c, x, "wait", figure_percent5(d->rates.stall_share).text,
                  style_of(d->rates.stall_share >= 0.1 ? ROLE_WARN : ROLE_TEXT));
    snprintf(text, sizeof text, "%s %s", figure_rate5(d->rates.read_bytes_s / unit).text, name);
    draw_item(c, x, "disk", text, style_of(ROLE_TEXT));
}

static void draw_memory(const struct dash *d, const struct canvas *c, const char *letters)
{
    struct dash_total total;
    char text[64];
    int wide;

    dash_total(d, &total);
    snprintf(text, sizeof text, "%s of %s", figure_os8(total.bytes).text,
             figure_budget8(&d->now).text);
    wide = c->width - (int)strlen(text) - 1;
    if (wide >= 8) {
        struct canvas bar = canvas_sub(c, 1, 0, 1, wide);

        memory_bar(d, &bar, 0, letters);
    }
    canvas_right(c, 1, c->width, style_of(ROLE_TEXT), text);
}

void strip_draw(const struct dash *d, const struct canvas *c)
{
    char text[256], letters[MEMORY_LETTERS] = "";
    const char *shown = text, *rest;
    int high = c->height < TALL ? c->height - 2 : TALL - 2;
    struct canvas below;
    bool has_key, has_wall = d->panels.chosen == PANEL_WALL && c->height >= TALL;

    dash_verdict(text, sizeof text, &d->now, d->has_keys);
    rest = strchr(text, ':'); /* the status bar has what is before it, too */
    if (rest != NULL && widget_lines(text, c->width) > 1 &&
        (widget_lines(rest + 2, c->width) == 1 || widget_lines(text, c->width) > high))
        shown = rest + 2;
    has_key = c->height >= TALL && widget_lines(shown, c->width) == 1;
    draw_title(d, c);
    if (has_wall)
        wall_line(d, c, 2, false);
    else if (has_key)
        memory_key(d, c, 2, 1, letters);
    draw_memory(d, c, letters);
    has_key |= has_wall;
    below = canvas_sub(c, has_key ? 3 : 2, 0, has_key ? 1 : high, c->width);
    widget_wrap(&below, style_of(verdict_role(d)), shown[0] != '\0' ? shown : "-");
}
