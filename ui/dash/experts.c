/*
 * The cache of experts: how often the chosen experts were in memory, what a token reads, and
 * a heat map with a row for each layer that has experts and a column for each of these.
 *
 *   experts ┃ hits  63 %  512 MiB/token
 *   in memory 1,834 of 3,840   ░▒▓█ in memory, the warmer the more used
 *    0 ▓▓ ░██▓ …
 *    1 …
 *
 * The glyph is the share in memory, the colour how often recent tokens chose the expert.  With
 * less space a cell stands for several experts, and a row for several layers.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/numbers.h"
#include "ui/dash/widget.h"

#define LABEL  4 /* width: three digits and a blank */
#define ABOVE  2 /* lines above the map */
#define SHARES 5
#define MOST   15 /* of a half of a cell */

static bool has_experts(const struct mw_sample *s, uint32_t layer)
{
    for (uint64_t i = 0; i < s->experts.bins; i++)
        if (s->experts.heat[layer * s->experts.bins + i] != 0)
            return true;
    return false;
}

/* Write the layers that have experts to layers[MW_HEAT] and return their number; 0: no map. */
static int layers_of_map(const struct mw_sample *s, uint16_t *layers)
{
    int n = 0;

    if (s->experts.bins == 0 || s->experts.bins > MW_HEAT_BINS ||
        s->n_layer * s->experts.bins > MW_HEAT)
        return 0;
    for (uint32_t i = 0; i < s->n_layer; i++)
        if (has_experts(s, i))
            layers[n++] = (uint16_t)i;
    return n;
}

static int map_rows(const struct dash *d)
{
    uint16_t layers[MW_HEAT];

    return layers_of_map(&d->now, layers);
}

/* The means of a rectangle of the map: share in memory and use, 0 to 1. */
struct mean {
    double share, use;
};

static struct mean mean_of(const struct mw_sample *s, const uint16_t *layers, int n_layer, int x0,
                           int x1)
{
    struct mean m = { 0 };
    int n = 0;

    for (int y = 0; y < n_layer; y++)
        for (int x = x0; x < x1; x++, n++) {
            uint8_t cell = s->experts.heat[layers[y] * (int)s->experts.bins + x];

            m.share += cell >> 4;
            m.use += cell & 15;
        }
    if (n > 0) {
        m.share /= MOST * n;
        m.use /= MOST * n;
    }
    return m;
}

static wchar_t share_glyph(double share, bool ascii)
{
    static const wchar_t blocks[SHARES] = { L'\u00b7', L'\u2591', L'\u2592', L'\u2593',
                                            L'\u2588' };
    static const wchar_t marks[SHARES] = { L'.', L':', L'+', L'*', L'#' };
    int i = share <= 0 ? 0 : 1 + (int)(share * (SHARES - 1) - 1e-9);

    i = i < SHARES ? i : SHARES - 1;
    return ascii ? marks[i] : blocks[i];
}

static void draw_map(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    uint16_t layers[MW_HEAT];
    int rows = layers_of_map(s, layers);
    int lines = c->height < rows ? c->height : rows, wide = c->width - LABEL;
    int bins, cell, columns;

    if (rows == 0 || lines <= 0 || wide < 1)
        return;
    bins = (int)s->experts.bins;
    cell = wide / bins > 2 ? 2 : wide / bins;
    columns = cell > 0 ? bins : wide;
    cell = cell > 0 ? cell : 1;
    for (int y = 0; y < lines; y++) {
        int from = rows * y / lines, end = rows * (y + 1) / lines;

        canvas_printf(c, y, 0, style_of(ROLE_DIM), "%3d", layers[from]);
        for (int x = 0; x < columns; x++) {
            struct mean m = mean_of(s, layers + from, end - from, bins * x / columns,
                                    bins * (x + 1) / columns);

            canvas_repeat(c, y, LABEL + x * cell, cell,
                          m.share > 0 ? style_of(ui_ramp(m.use)) : style_of(ROLE_DIM),
                          share_glyph(m.share, canvas_is_ascii(c)));
        }
    }
}

static void experts_draw(const struct dash *d, const struct canvas *c)
{
    const struct mw_sample *s = &d->now;
    struct canvas map = canvas_sub(c, ABOVE, 0, c->height - ABOVE, c->width);
    struct mw_rates r;
    char head[64] = "", text[64];
    int x;

    mw_rates(s, &r);
    if (r.expert_hits >= 0)
        snprintf(head, sizeof head, "hits %s", figure_percent5(r.expert_hits).text);
    widget_head(c, "experts", head);
    snprintf(text, sizeof text, "%s of %s", figure_trim(figure_count7(s->experts.held).text),
             figure_trim(figure_count7(s->experts.all).text));
    x = widget_pair(c, 1, 0, "in memory", text, ROLE_TEXT);
    if (r.expert_bytes >= 0 && c->width - x > 18)
        widget_pair(c, 1, x, "read/tok", figure_size8(numbers_whole(r.expert_bytes)).text,
                    ROLE_TEXT);
    draw_map(d, &map);
}

static int experts_enough(const struct dash *d, int width)
{
    (void)width;
    return ABOVE + (map_rows(d) < 4 ? map_rows(d) : 4);
}

/* Rows for fewer layers each, up to one row for each layer. */
static int experts_step(const struct dash *d, int width, int height)
{
    int rows = map_rows(d);

    (void)width;
    for (int each = rows; each >= 1; each--) {
        int lines = ABOVE + (rows + each - 1) / each;

        if (lines > height)
            return lines;
    }
    return 0;
}

const struct dash_widget dash_experts_widget = {
    .name = "experts",
    .min_width = 24,
    .min_height = ABOVE,
    .importance = 4,
    .enough = experts_enough,
    .step = experts_step,
    .draw = experts_draw,
};
