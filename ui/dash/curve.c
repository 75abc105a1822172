#include "config.h"

#include "ui/dash/curve.h"

#include <math.h>
#include <stdio.h>

#define SCALE_WIDTH 6
#define MAX_CELLS   512

/* Levels per row and values per cell. */
static const struct {
    int levels;
    uint32_t values;
} kinds[] = {
    [UI_GRAPH_AUTO] = { 3, 1 },
    [UI_GRAPH_BRAILLE] = { 4, 2 },
    [UI_GRAPH_BLOCK] = { 8, 1 },
    [UI_GRAPH_ASCII] = { 3, 1 },
};

static wchar_t braille(int left, int right)
{
    static const unsigned char lefts[] = { 0x00, 0x40, 0x44, 0x46, 0x47 };
    static const unsigned char rights[] = { 0x00, 0x80, 0xa0, 0xb0, 0xb8 };

    return (wchar_t)(0x2800 + lefts[left] + rights[right]);
}

static wchar_t glyph(enum ui_graph graph, int left, int right)
{
    static const wchar_t ascii[] = L" .:#";

    switch (graph) {
    case UI_GRAPH_BRAILLE: return braille(left, right);
    case UI_GRAPH_BLOCK: return left == 0 ? L' ' : (wchar_t)(0x2580 + left);
    case UI_GRAPH_ASCII:
    case UI_GRAPH_AUTO: break;
    }
    return ascii[left];
}

/* Returns how many levels of a row that begins at level `from` the value fills.  A value above
 * 0 fills at least one level. */
static int fill(float value, float top, int height, int levels, int from)
{
    int level;

    if (isnan(value) || top <= 0)
        return 0;
    level = (int)lroundf(fminf(value / top, 1) * (float)(height * levels));
    if (level == 0 && value > 0)
        level = 1;
    level -= from;
    return level < 0 ? 0 : level > levels ? levels : level;
}

uint32_t curve_values(enum ui_graph graph, int width)
{
    return width > 0 ? (uint32_t)width * kinds[graph].values : 0;
}

void curve_draw_values(const struct canvas *c, enum ui_graph graph, const float *value,
                       uint32_t n, float top, struct ui_style style)
{
    int levels = kinds[graph].levels;
    uint32_t step = kinds[graph].values;

    for (int y = 0; y < c->height; y++) {
        int from = (c->height - 1 - y) * levels;

        for (uint32_t i = 0; i < n; i += step) {
            int left = fill(value[i], top, c->height, levels, from);
            int right =
                step > 1 && i + 1 < n ? fill(value[i + 1], top, c->height, levels, from) : 0;

            if (left > 0 || right > 0)
                canvas_cell(c, y, (int)(i / step), style, glyph(graph, left, right));
        }
    }
}

/* The dots of a braille cell from the upper to the lower of two levels of its row, 0 at the
 * bottom. */
static unsigned dots(bool is_right, int low, int high)
{
    static const unsigned char left[] = { 0x40, 0x04, 0x02, 0x01 };
    static const unsigned char right[] = { 0x80, 0x20, 0x10, 0x08 };
    unsigned all = 0;

    for (int level = low < 0 ? 0 : low; level <= high && level < 4; level++)
        all |= is_right ? right[level] : left[level];
    return all;
}

/* A mark at the lower, middle or upper third of a cell. */
static wchar_t line_mark(enum ui_graph graph, int level, int levels)
{
    static const wchar_t ascii[] = L".-'", block[] = L"\u2581\u2500\u2594";

    return (graph == UI_GRAPH_BLOCK ? block : ascii)[level * 3 / levels];
}

void curve_line(const struct canvas *c, enum ui_graph graph, const float *value, uint32_t n,
                float top, struct ui_style style)
{
    int levels = kinds[graph].levels, all = c->height * levels, last = -1;
    uint32_t step = kinds[graph].values;

    for (uint32_t i = 0; i < n && top > 0; i += step) {
        int low[2] = { -1, -1 }, high[2] = { -1, -1 };

        for (uint32_t k = 0; k < step && i + k < n; k++) {
            int level = isnan(value[i + k]) ? -1 : (int)(fminf(value[i + k] / top, 1) * (float)all);

            level = level >= all ? all - 1 : level;
            low[k] = high[k] = level;
            if (level >= 0 && last >= 0 && level > last + 1)
                low[k] = last + 1; /* join it with the value before */
            last = level;
        }
        for (int y = 0; y < c->height; y++) {
            int from = (c->height - 1 - y) * levels;
            unsigned both = dots(false, low[0] - from, high[0] < 0 ? -1 : high[0] - from) |
                            dots(true, low[1] - from, high[1] < 0 ? -1 : high[1] - from);

            if (graph == UI_GRAPH_BRAILLE && both != 0)
                canvas_cell(c, y, (int)(i / step), style, (wchar_t)(0x2800 + both));
            else if (graph != UI_GRAPH_BRAILLE && high[0] >= from && high[0] < from + levels)
                canvas_cell(c, y, (int)(i / step), style,
                            line_mark(graph, high[0] - from, levels));
        }
    }
}

void curve_draw(const struct canvas *c, enum ui_graph graph, const struct past *h, float top,
                struct ui_style style)
{
    float value[2 * MAX_CELLS];
    int width = c->width < MAX_CELLS ? c->width : MAX_CELLS;
    uint32_t room = curve_values(graph, width);

    /* Oldest at the left; missing values are gaps. */
    for (uint32_t i = 0; i < room; i++)
        value[i] = i + h->n < room ? NAN : past_at(h, i + h->n - room);
    curve_draw_values(c, graph, value, room, top, style);
}

/* Steps that are close to each other, so that a curve fills at least half of its height. */
float curve_top(float max)
{
    static const double steps[] = { 1, 1.5, 2, 3, 4, 5, 7.5 };
    double power = max > 0 ? pow(10, floor(log10((double)max))) : 1;
    double digit = (double)max / power;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (digit <= steps[i] * (1 + 1e-6))
            return (float)(steps[i] * power);
    return (float)(10 * power);
}

/* At most 5 columns, such as 0.015, 2, 7.5, 500; never an exponent. */
static void scale_text(char *buf, size_t n, float top, double unit)
{
    static const char letters[] = " KMGT";
    double bytes = (double)top;
    size_t i = 0;

    if (unit > 0) {
        snprintf(buf, n, top < 99999 ? "%.5g" : "%.0f", (double)top);
        return;
    }
    while (bytes >= 1024 && i + 2 < sizeof letters) {
        bytes /= 1024;
        i++;
    }
    snprintf(buf, n, "%.3g%c", bytes, letters[i]);
}

/* Returns a round number of bytes at or above max. */
static float bytes_top(float max)
{
    float unit = 1;

    while (max / unit > 512)
        unit *= 1024;
    return unit * curve_top(max / unit);
}

float curve_max(const struct dash *d, const struct past *h, int width)
{
    return past_max(h, curve_values(d->graph, width - SCALE_WIDTH));
}

void curve_with_scale(const struct canvas *c, const struct dash *d, const struct past *h,
                      double unit, struct ui_style style)
{
    struct canvas area = canvas_sub(c, 0, 0, c->height, c->width - SCALE_WIDTH);
    float max = curve_max(d, h, c->width);
    float top = unit > 0 ? curve_top(max / (float)unit) : bytes_top(max);
    char text[16];

    curve_draw(&area, d->graph, h, unit > 0 ? top * (float)unit : top, style);
    scale_text(text, sizeof text, top, unit);
    canvas_right(c, 0, c->width, style_of(ROLE_DIM), text);
    if (c->height > 1)
        canvas_right(c, c->height - 1, c->width, style_of(ROLE_DIM), "0");
}
