#include "config.h"

#include "ui/text/table.h"

#include <stdlib.h>
#include <string.h>

#include "ui/words/cluster.h"

struct grid {
    const struct table *t;
    struct rich *r;
    uint32_t prefix;
    bool ascii;
    int *width; /* [n_col] */
};

void table_start(struct table *t)
{
    rich_start(&t->cells);
    t->n_col = 0;
    t->n_row = 0;
}

void table_free(struct table *t)
{
    rich_free(&t->cells);
    free(t->align);
    *t = (struct table){ 0 };
}

void table_row(struct table *t)
{
    t->n_row++;
}

bool table_cell(struct table *t, enum table_align align)
{
    uint32_t i = t->cells.n_line;

    if (i >= TABLE_MAX_CELLS)
        return false;
    if (i == t->room) {
        uint32_t room = t->room == 0 ? 32 : t->room * 2;
        uint8_t *more = realloc(t->align, room);

        if (more == NULL)
            return false;
        t->align = more;
        t->room = room;
    }
    rich_line(&t->cells, 0, 0, 0, ROLE_TABLE, WRAP_WORDS);
    if (t->cells.n_line == i)
        return false;
    t->align[i] = (uint8_t)align;
    if (t->n_row <= 1)
        t->n_col++;
    return true;
}

static int cell_width(const struct table *t, uint32_t cell)
{
    uint32_t at = t->cells.line[cell].at;

    return cluster_width(t->cells.text + at, rich_line_end(&t->cells, cell) - at);
}

/* Add the text of a cell with its runs; as a frame, so that it is not copied twice. */
static void put_cell(struct rich *r, const struct table *t, uint32_t cell, unsigned attr,
                     bool frame)
{
    const struct rich *c = &t->cells;
    uint32_t at = c->line[cell].at, end = rich_line_end(c, cell);

    while (at < end) {
        const struct rich_run *run = rich_run_at(c, at);
        uint32_t stop = rich_run_end(c, run);

        stop = stop < end ? stop : end;
        rich_add(r, c->text + at, stop - at, frame ? RICH_FRAME : run->kind, run->src,
                 run->src_n, run->role, run->attr | attr);
        at = stop;
    }
}

static void frame(struct rich *r, const char *s, int times)
{
    for (; times > 0; times--)
        rich_add(r, s, strlen(s), RICH_FRAME, 0, 0, ROLE_TABLE, 0);
}

static void grid_row(const struct grid *g, uint32_t row)
{
    const struct table *t = g->t;

    rich_line(g->r, g->prefix, g->prefix, 0, ROLE_QUOTE, WRAP_CODE);
    for (uint32_t col = 0; col < t->n_col; col++) {
        uint32_t cell = row * t->n_col + col;
        int pad = g->width[col] - cell_width(t, cell), left = 0;

        if (t->align[cell] == TABLE_RIGHT)
            left = pad;
        else if (t->align[cell] == TABLE_CENTER)
            left = pad / 2;
        frame(g->r, " ", left);
        put_cell(g->r, t, cell, row == 0 ? UI_BOLD : 0, false);
        if (col + 1 == t->n_col)
            continue;
        frame(g->r, " ", pad - left);
        rich_add(g->r, " ", 1, RICH_OURS, 0, 0, ROLE_TABLE, 0);
        frame(g->r, g->ascii ? "| " : "\xe2\x94\x82 ", 1);
    }
}

static void grid_rule(const struct grid *g)
{
    const char *dash = g->ascii ? "-" : "\xe2\x94\x80";

    rich_line(g->r, g->prefix, g->prefix, 0, ROLE_QUOTE, WRAP_CODE);
    for (uint32_t col = 0; col < g->t->n_col; col++) {
        bool last = col + 1 == g->t->n_col;

        frame(g->r, dash, g->width[col] + (last ? 0 : 1));
        if (!last) {
            frame(g->r, g->ascii ? "+" : "\xe2\x94\xbc", 1);
            frame(g->r, dash, 1);
        }
    }
}

static void as_grid(const struct grid *g)
{
    for (uint32_t row = 0; row < g->t->n_row; row++) {
        grid_row(g, row);
        if (row == 0)
            grid_rule(g);
    }
}

/* Show each cell on a line of its own, after the head of its column. */
static void as_lines(const struct table *t, struct rich *r, uint32_t prefix)
{
    for (uint32_t row = t->n_row > 1 ? 1 : 0; row < t->n_row; row++) {
        if (row > 1)
            rich_line(r, prefix, prefix, 0, ROLE_QUOTE, WRAP_WORDS);
        for (uint32_t col = 0; col < t->n_col; col++) {
            uint32_t head = t->cells.line[col].at;

            rich_line(r, prefix, prefix, 0, ROLE_QUOTE, WRAP_WORDS);
            if (row > 0 && rich_line_end(&t->cells, col) > head) {
                put_cell(r, t, col, UI_BOLD, true);
                frame(r, ": ", 1);
            }
            put_cell(r, t, row * t->n_col + col, row == 0 ? UI_BOLD : 0, false);
        }
    }
}

void table_render(const struct table *t, struct rich *r, uint32_t prefix, int width, bool ascii)
{
    struct grid g = { t, r, prefix, ascii, NULL };
    long sum = (long)cluster_width(r->deco + prefix, strlen(r->deco + prefix));

    if (t->n_col == 0 || t->n_row == 0 || t->cells.failed ||
        t->cells.n_line != t->n_row * t->n_col)
        return;
    g.width = calloc(t->n_col, sizeof *g.width);
    if (g.width == NULL) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < t->cells.n_line; i++) {
        int w = cell_width(t, i);

        g.width[i % t->n_col] = w > g.width[i % t->n_col] ? w : g.width[i % t->n_col];
    }
    for (uint32_t col = 0; col < t->n_col; col++)
        sum += g.width[col] + (col + 1 < t->n_col ? 3 : 0);
    if (sum <= width)
        as_grid(&g);
    else
        as_lines(t, r, prefix);
    free(g.width);
}
