/* See waterfall.h. */
#include "config.h"

#include "ui/dash/waterfall.h"

#define QUIET_MS 1.0F /* shorter waits are not drawn */
#define DOTS     4    /* of a cell of braille, from top to bottom */

bool fall_has_waits(const struct dash *d)
{
    for (uint32_t i = 0; i <= d->now.n_layer; i++)
        for (uint64_t k = 0; k < d->n_wait && k < DASH_LAYER_PASSES; k++)
            if (d->wait_value[i][k] >= QUIET_MS)
                return true;
    return false;
}

/* Dots show which layers waited; without braille a cell has their mean. */
static bool has_dots(const struct dash *d, uint32_t per_row)
{
    return per_row >= DOTS && d->graph == UI_GRAPH_BRAILLE;
}

int fall_most(const struct dash *d, uint32_t per_row)
{
    return has_dots(d, per_row) ? DASH_LAYER_PASSES / 2 : DASH_LAYER_PASSES;
}

/* The tokens of all columns. */
static uint64_t n_columns(const struct dash *d, const struct fall *f)
{
    return (uint64_t)f->width * (has_dots(d, f->per_row) ? 2 : 1);
}

/* From 1, 4, 16 and 64 ms on.  Levels are far apart and do not depend on the other layers, so
 * that few cells change when a column is written again. */
static wchar_t shade(float ms, bool ascii)
{
    static const wchar_t marks[2][5] = { L" \u2591\u2592\u2593\u2588", L" .:+#" };
    int level = 0;

    for (float least = QUIET_MS; ms >= least && level < 4; least *= 4)
        level++;
    return marks[ascii][level];
}

static float mean_wait(const struct dash *d, uint64_t token, uint32_t first, uint32_t n)
{
    float sum = 0;

    for (uint32_t i = first; i < first + n; i++)
        sum += d->wait_value[i][token % DASH_LAYER_PASSES];
    return sum / (float)n;
}

/* The dots of a token: one layer has all of them, several have one each or share one. */
static unsigned dots(const struct dash *d, uint64_t token, bool is_right, uint32_t first,
                     uint32_t n, uint32_t per_row)
{
    static const unsigned char marks[2][DOTS] = { { 0x01, 0x02, 0x04, 0x40 },
                                                  { 0x08, 0x10, 0x20, 0x80 } };
    uint32_t per_dot = per_row / DOTS;
    unsigned all = 0;

    for (uint32_t i = 0; i < n; i++)
        if (d->wait_value[first + i][token % DASH_LAYER_PASSES] >= QUIET_MS)
            for (uint32_t k = 0; k < DOTS; k++)
                if (n == 1 || k == i / per_dot)
                    all |= marks[is_right][k];
    return all;
}

void fall_row(const struct dash *d, const struct canvas *c, int y, const struct fall *f,
              uint32_t first, uint32_t n)
{
    unsigned cell[DASH_LAYER_PASSES] = { 0 };
    uint64_t columns = n_columns(d, f), kept = d->n_wait < columns ? d->n_wait : columns;
    bool is_braille = has_dots(d, f->per_row);

    for (uint64_t k = d->n_wait - kept; k < d->n_wait; k++) {
        uint64_t at = k % columns;

        if (is_braille)
            cell[at / 2] |= dots(d, k, at % 2 == 1, first, n, f->per_row);
        else
            canvas_cell(c, y, f->x + (int)at, style_of(ROLE_FILL_WORK),
                        shade(mean_wait(d, k, first, n), canvas_is_ascii(c)));
    }
    for (int i = 0; is_braille && i < f->width; i++)
        if (cell[i] != 0)
            canvas_cell(c, y, f->x + i, style_of(ROLE_FILL_WORK), (wchar_t)(0x2800 + cell[i]));
}

void fall_mark(const struct dash *d, const struct canvas *c, int y, const struct fall *f)
{
    uint64_t columns = n_columns(d, f);
    uint64_t at = columns > 0 && d->n_wait > 0 ? (d->n_wait - 1) % columns : 0;

    if (columns > 0 && d->n_wait > 0)
        canvas_cell(c, y, f->x + (int)(at / (columns / (uint64_t)f->width)),
                    style_of(ROLE_GRAPH_2), canvas_is_ascii(c) ? L'v' : L'\u25bc');
}
