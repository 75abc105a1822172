/*
 * The dashboard in three lines, for small screens:
 *
 *     decode  3.12 tok/s  disk  8.72 GB/s  wait 78 %
 *     p█a█w███████████████k█····· 1.98 of 2.00 GiB
 *     disk-bound: 78 % of each token waits; +0.8 GiB …
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "ui/dash/dash.h"
#include "ui/dash/widget.h"

static void draw_first(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    bool is_prefill = s->state == MW_PREFILL;
    int x;

    x = canvas_printf(c, 0, 0, style_with(ROLE_ACCENT, UI_BOLD), "%-7s",
                      mw_state_name(s->state));
    x +=
        canvas_printf(c, 0, x + 1, style_of(ROLE_TEXT), "%s tok/s",
                      figure_rate5(is_prefill ? d->rates.prefill : d->rates.decode_last).text) +
        3;
    if (is_prefill) {
        double share = s->n_prompt > 0 ? (double)s->n_prompt_done / (double)s->n_prompt : 0;

        x += canvas_text(c, 0, x, style_of(ROLE_TEXT), figure_percent5(share).text) + 1;
        canvas_bar(c, 0, x, c->width - x, share, style_of(ROLE_GOOD), style_of(ROLE_FILL_FREE));
        return;
    }
    x = widget_pair(c, 0, x, "wait", figure_percent5(d->rates.stall_share).text,
                    d->rates.stall_share >= 0.1 ? ROLE_WARN : ROLE_TEXT);
    if (c->width - x >= 16) {
        const char *name;
        double unit = figure_disk_unit(&d->now, &name);
        char text[64];

        snprintf(text, sizeof text, "%s %s", figure_rate5(d->rates.read_bytes_s / unit).text,
                 name);
        widget_pair(c, 0, x, "disk", text, ROLE_TEXT);
    }
}

static void draw_second(const struct dash *d, const struct canvas *c)
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

        memory_bar(d, &bar, 0);
    }
    canvas_right(c, 1, c->width, style_of(ROLE_TEXT), text);
}

void strip_draw(const struct dash *d, const struct canvas *c)
{
    char text[256];

    draw_first(d, c);
    draw_second(d, c);
    dash_verdict(text, sizeof text, &d->now);
    canvas_text(c, 2, 0, style_of(text[0] != '\0' ? ROLE_TEXT : ROLE_DIM),
                text[0] != '\0' ? text : "-");
}
