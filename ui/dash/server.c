/*
 * The dashboard of a server, in one box:
 *
 *     ╭─ server ──────────────────────── answering 31.2 tok/s ─╮
 *     │ server     127.0.0.1:8080 (llama.cpp)                  │
 *     │ answer     112 tokens, 31.2 tok/s, first after 0.8 s   │
 *     │ not known  its memory, weights, layers and reads, ...  │
 *     │ pieces/s, each second                               40 │
 *     │ ⣿⣿⣿⣿⣿⣿ …                                             0 │
 *
 * A row that is too long goes on below, as far as there is space.
 */
#include "config.h"

#include "ui/dash/server.h"

#include <stdio.h>

#include "engine/base/numbers.h"
#include "ui/dash/curve.h"
#include "ui/dash/widget.h"
#include "ui/term/box.h"
#include "ui/words/server.h"

#define LABEL       11 /* columns */
#define CURVE_LEAST 4  /* its label and three rows */
#define BOX_LEAST   4  /* a lower dashboard has no box */

static const char *state_text(const struct dash *d)
{
    switch (d->now.state) {
    case MW_IDLE: return "ready";
    case MW_LOADING: return "loading";
    case MW_PREFILL: return "waiting";
    case MW_DECODE: return "answering";
    case MW_ERROR: return "error";
    }
    return "";
}

static void head_text(const struct dash *d, char *buf, size_t n)
{
    const char *unit;
    double per_s = server_rate(&d->server, &unit);
    char rate[24];

    if (per_s > 0 && d->now.state != MW_PREFILL)
        snprintf(buf, n, "%s %s %s", state_text(d), numbers_measured(rate, sizeof rate, per_s),
                 unit);
    else
        snprintf(buf, n, "%s", state_text(d));
}

/* Draw a row, wrapped.  Returns the lines it took. */
static int draw_row(const struct canvas *c, int y, const struct server_row *r)
{
    struct canvas text = canvas_sub(c, y, LABEL, c->height - y, c->width - LABEL);
    int lines = widget_lines(r->text, text.width);

    canvas_text(c, y, 0, style_of(ROLE_DIM), r->label);
    if (lines <= text.height)
        widget_wrap(&text, style_of(r->is_unknown ? ROLE_DIM : ROLE_TEXT), r->text);
    else
        canvas_text(&text, 0, 0, style_of(r->is_unknown ? ROLE_DIM : ROLE_TEXT), r->text);
    return lines <= text.height ? lines : text.height;
}

static void draw_curve(const struct dash *d, const struct canvas *c, int y)
{
    struct canvas curve = canvas_sub(c, y + 1, 0, c->height - y - 1, c->width);

    canvas_text(c, y, 0, style_of(ROLE_DIM), "pieces/s, each second");
    curve_with_scale(&curve, d, &d->piece_rate, 1, style_of(ROLE_GRAPH));
}

static void draw_rows(const struct dash *d, const struct canvas *c)
{
    struct server_row rows[SERVER_ROWS];
    size_t n = server_rows(&d->server, &d->server_model, rows);
    int y = 0;

    for (size_t i = 0; i < n && y < c->height; i++)
        y += draw_row(c, y, &rows[i]);
    if (c->height - y >= CURVE_LEAST && curve_max(d, &d->piece_rate, c->width) > 0)
        draw_curve(d, c, y);
}

void server_draw(const struct dash *d, const struct canvas *c)
{
    int inset = box_inset(c->width);
    bool has_box = c->height >= BOX_LEAST;
    struct canvas inside = canvas_sub(c, 0, inset, c->height, c->width - 2 * inset);
    struct canvas rows = canvas_sub(&inside, 1, 0, c->height - 1 - has_box, inside.width);
    char head[80];

    if (c->height < 2 || c->width <= LABEL)
        return;
    box_line(c, 0, BOX_TOP, ROLE_BORDER);
    if (has_box) {
        box_sides(c, 1, c->height - 2, ROLE_BORDER);
        box_line(c, c->height - 1, BOX_BOTTOM, ROLE_BORDER);
    }
    head_text(d, head, sizeof head);
    widget_headline(&inside, "server", head, style_with(ROLE_ACCENT, UI_BOLD));
    draw_rows(d, &rows);
}
