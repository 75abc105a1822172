/* Draws the visible rows: text by its runs, then matches and the selection. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/term/canvas.h"
#include "ui/text/transcript_internal.h"
#include "ui/words/cluster.h"

#define BAR_WIDTH 16

/* Highlights of one row. */
struct over {
    uint32_t select_from, select_to;
    uint32_t match, match_end; /* the next match at or after the current byte */
    bool is_now;               /* it is the current match of the search */
    bool is_turn, is_unseen;
};

static struct ui_style style_at(const struct rich_run *run, const struct over *o, uint32_t at)
{
    struct ui_style s = { .role = run->role, .attr = run->attr };

    if (at >= o->select_from && at < o->select_to)
        s = style_of(ROLE_SELECTED);
    else if (at >= o->match && at < o->match_end)
        s = style_of(o->is_now ? ROLE_MATCH_NOW : ROLE_MATCH);
    else if (o->is_turn)
        s = style_of(ROLE_SELECTED);
    else if (o->is_unseen)
        s.role = ROLE_DIM;
    return s;
}

static bool same_style(struct ui_style a, struct ui_style b)
{
    return a.role == b.role && a.on == b.on && a.attr == b.attr;
}

/* Find the next match in the line that ends after byte at. */
static void next_match(const struct transcript *t, const struct rich *r, struct place p,
                       uint32_t line, uint32_t at, struct over *o)
{
    uint32_t begin = r->line[line].at, n = rich_line_end(r, line) - begin;
    size_t end = 0, from = at - begin;

    o->match = o->match_end = UINT32_MAX;
    if (t->query[0] == '\0')
        return;
    /* A match may begin in the previous row. */
    from = from > 4 * strlen(t->query) ? from - 4 * strlen(t->query) : 0;
    from = utf8_start(r->text + begin, 0, from);
    while ((from = find_match(t, r->text + begin, n, from, &end)) < n) {
        if (begin + end > at) {
            o->match = begin + (uint32_t)from;
            o->match_end = begin + (uint32_t)end;
            o->is_now =
                t->has_match && place_compare(t->match.at, p) == 0 && t->match.byte == o->match;
            return;
        }
        from = end;
    }
}

static void draw_text(struct transcript *t, const struct canvas *c, int y, int x,
                      const struct rich *r, struct place p, uint32_t row, struct over *o)
{
    const struct rich_row *line = &r->row[row];
    uint32_t at = line->start;
    struct cluster cell;

    next_match(t, r, p, line->line, at, o);
    while (at < line->end) {
        uint32_t from = at;
        struct ui_style style = style_at(rich_run_at(r, at), o, at);

        do {
            cluster_next(r->text + at, line->end - at, &cell);
            at += (uint32_t)cell.bytes;
            if (at >= o->match_end)
                next_match(t, r, p, line->line, at, o);
        } while (at < line->end && same_style(style, style_at(rich_run_at(r, at), o, at)));
        x += canvas_put(c, y, x, c->width - x, style, r->text + from, at - from);
    }
}

/* The first row of an item has its mark.  The other rows of a user message, its files and
 * thinking have a line, so that they differ from an answer without colours. */
static void draw_gutter(struct transcript *t, const struct canvas *c, int y, struct place p,
                        bool is_first)
{
    static const char marks[] = {
        [TRANSCRIPT_SYSTEM] = '#', [TRANSCRIPT_USER] = '>',  [TRANSCRIPT_ANSWER] = ' ',
        [TRANSCRIPT_NOTICE] = '-', [TRANSCRIPT_ERROR] = '!',
    };
    uint8_t kind = t->item[p.item].kind;
    enum ui_role role = kind == TRANSCRIPT_USER    ? ROLE_USER
                        : kind == TRANSCRIPT_ERROR ? ROLE_BAD
                                                   : ROLE_NOTICE;
    bool is_unseen = p.item < t->n_unseen && kind == TRANSCRIPT_USER;
    bool is_begin = is_first && p.seg == 0 && p.area != AREA_THINKING &&
                    (p.area == AREA_HEAD || !part_is_shown(t, p.item, AREA_HEAD));
    char mark[2] = { is_unseen ? 'x' : marks[kind], '\0' };

    if (part_gutter(t, p) == 0)
        return;
    if (is_begin)
        canvas_text(c, y, 0, style_with(role, UI_BOLD), mark);
    else if (p.area == AREA_THINKING || kind == TRANSCRIPT_USER)
        canvas_text(c, y, 0, style_of(kind == TRANSCRIPT_USER ? ROLE_USER : ROLE_THINKING),
                    t->ascii ? "|" : "\xe2\x94\x82");
}

static void draw_row(struct transcript *t, const struct canvas *c, int y, struct spot s)
{
    uint32_t gap = part_gap(t, s.at), row = s.row - gap;
    const struct rich *r = part_rich(t, s.at);
    struct over o = { .is_turn = t->has_turn && t->turn == s.at.item,
                      .is_unseen = s.at.item < t->n_unseen };
    const char *prefix;
    int x;

    if (s.row < gap && s.at.seg > 0)
        draw_gutter(t, c, y, s.at, false);
    if (s.row < gap || row >= r->n_row)
        return;
    if (!select_range(t, s.at, &o.select_from, &o.select_to))
        o.select_from = o.select_to = UINT32_MAX;
    r = part_rich(t, s.at);
    x = part_gutter(t, s.at);
    draw_gutter(t, c, y, s.at, row == 0);
    prefix = rich_prefix(r, row);
    x += canvas_put(c, y, x, c->width - x,
                    style_of((enum ui_role)r->line[r->row[row].line].role), prefix,
                    strlen(prefix));
    draw_text(t, c, y, x, r, s.at, row, &o);
}

static bool need_shown(struct transcript *t, int n)
{
    struct spot *more;

    if (n <= t->room_shown)
        return true;
    more = realloc(t->shown, (size_t)n * sizeof *more);
    if (more == NULL)
        return false;
    t->shown = more;
    t->room_shown = n;
    return true;
}

static void draw_items(struct transcript *t, const struct canvas *c, int height)
{
    struct spot s = view_top(t);
    uint32_t first = s.at.item;

    for (int y = 0; y < height; y++) {
        t->shown[t->n_shown++] = s;
        draw_row(t, c, y, s);
        if (spot_down(t, &s, 1) == 0)
            break;
    }
    transcript_keep(t, first, s.at.item);
}

/* Show that the view does not follow, and whether there is more below. */
static void draw_hold(struct transcript *t, const struct canvas *c, int y)
{
    const char *text =
        transcript_more_below(t)
            ? (t->ascii ? " v more below - End: latest "
                        : " \xe2\x96\xbc more below \xc2\xb7 End: latest ")
            : (t->ascii ? " scrolled up - End: latest " : " scrolled up \xc2\xb7 End: latest ");
    int width = cluster_width(text, strlen(text)), x = (c->width - width) / 2;

    x = x > 0 ? x : 0;
    canvas_hline(c, y, 0, c->width, style_of(ROLE_BORDER));
    canvas_text(c, y, x, style_of(ROLE_HINT), text);
}

/* Returns the bytes of the parts of a status that fit into width columns: a number that is cut
 * is another number. */
static size_t whole_parts(const char *text, int width)
{
    size_t n = strlen(text);

    while (n > 0 && cluster_width(text, n) > width) {
        do
            n--;
        while (n > 0 && strncmp(text + n, " - ", 3) != 0 &&
               strncmp(text + n, " \xc2\xb7 ", 4) != 0);
    }
    return n > 0 ? n : cluster_fit(text, strlen(text), width);
}

static void draw_status(struct transcript *t, const struct canvas *c, int y)
{
    size_t n = strlen(t->status);
    int x = 0;

    /* The text says as much as the bar. */
    if (t->status_share >= 0 && c->width > BAR_WIDTH + cluster_width(t->status, n)) {
        canvas_bar(c, y, 0, BAR_WIDTH, t->status_share, style_of(ROLE_ACCENT),
                   (struct ui_style){ .role = ROLE_DIM, .on = ROLE_FILL_FREE });
        x = BAR_WIDTH + 1;
    }
    canvas_put(c, y, x, c->width - x, style_of(ROLE_DIM), t->status,
               whole_parts(t->status, c->width - x));
}

void transcript_draw(struct transcript *t, const struct canvas *c)
{
    int y, height;

    if (canvas_is_ascii(c) != t->ascii) {
        t->ascii = canvas_is_ascii(c);
        transcript_forget_rows(t);
    }
    transcript_size(t, c->height, c->width);
    canvas_clear(c, style_of(ROLE_TEXT));
    height = view_height(t);
    t->n_shown = 0;
    if (t->n_item > 0 && height > 0 && need_shown(t, height))
        draw_items(t, c, height);
    y = c->height - 1;
    if (t->status[0] != '\0' && y >= 0)
        draw_status(t, c, y--);
    if (!t->follows && y >= 0)
        draw_hold(t, c, y);
}
