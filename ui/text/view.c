/* The sequence of parts, their rows, and the position of the view. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/text/transcript_internal.h"
#include "ui/words/cluster.h"
#include "ui/words/receipt.h"

/* ---- parts ---- */

static bool shows_thinking(const struct transcript *t, const struct item *i)
{
    return t->o.show_thinking != i->flip_thinking;
}

static bool shows_receipt(const struct transcript *t, const struct item *i)
{
    return t->o.show_receipts != i->flip_receipt;
}

static struct body *body_of(struct transcript *t, uint32_t item, enum area area)
{
    struct held *h = transcript_held(t, item);

    if (h == NULL)
        return NULL;
    return area == AREA_TEXT ? &h->text : &h->thinking;
}

/* Returns the number of parts in an area; 0 if it is not shown. */
static uint32_t area_count(struct transcript *t, uint32_t item, enum area area)
{
    struct item *i = &t->item[item];
    struct body *b;
    size_t before;
    uint32_t n;

    if (area == AREA_RECEIPT)
        return i->has_receipt ? 1 : 0;
    b = body_of(t, item, area);
    if (b == NULL || (area == AREA_THINKING && !shows_thinking(t, i)))
        return 0;
    if (area == AREA_HEAD)
        return b->n > 0 ? 1 : 0;
    before = transcript_held_bytes(i->held);
    n = body_count(b);
    transcript_counted(t, i->held, before);
    return n;
}

bool part_is_shown(struct transcript *t, uint32_t item, enum area area)
{
    return area_count(t, item, area) > 0;
}

/* Find the first part at or after an area, in screen order. */
static bool forward(struct transcript *t, struct place *p, uint32_t item, int area)
{
    for (; item < t->n_item; item++, area = 0)
        for (; area < AREAS; area++)
            if (part_is_shown(t, item, (enum area)area)) {
                *p = (struct place){ item, (enum area)area, 0 };
                return true;
            }
    return false;
}

static bool backward(struct transcript *t, struct place *p, int64_t item, int area)
{
    for (; item >= 0; item--, area = AREAS - 1)
        for (; area >= 0; area--) {
            uint32_t n = area_count(t, (uint32_t)item, (enum area)area);

            if (n > 0) {
                *p = (struct place){ (uint32_t)item, (enum area)area, n - 1 };
                return true;
            }
        }
    return false;
}

bool part_first(struct transcript *t, struct place *p)
{
    return forward(t, p, 0, 0);
}

bool part_last(struct transcript *t, struct place *p)
{
    return backward(t, p, (int64_t)t->n_item - 1, AREAS - 1);
}

bool part_next(struct transcript *t, struct place *p)
{
    if (p->seg + 1 < area_count(t, p->item, p->area)) {
        p->seg++;
        return true;
    }
    return forward(t, p, p->item, p->area + 1);
}

bool part_before(struct transcript *t, struct place *p)
{
    if (p->seg > 0) {
        p->seg--;
        return true;
    }
    return backward(t, p, p->item, (int)p->area - 1);
}

uint32_t part_gap(struct transcript *t, struct place p)
{
    struct place before = p;

    if (p.seg > 0 && (p.area == AREA_TEXT || p.area == AREA_THINKING))
        return body_segment(body_of(t, p.item, p.area), p.seg)->gap ? 1 : 0;
    if (!backward(t, &before, p.item, (int)p.area - 1))
        return 0;
    if (before.item != p.item)
        return 1;
    return p.area == AREA_TEXT && before.area == AREA_THINKING ? 1 : 0;
}

uint32_t part_rows(struct transcript *t, struct place p)
{
    return part_gap(t, p) + part_rich(t, p)->n_row;
}

int part_gutter(const struct transcript *t, struct place p)
{
    bool is_answer = t->item[p.item].kind == TRANSCRIPT_ANSWER;

    return p.area == AREA_THINKING ||
                   ((p.area == AREA_TEXT || p.area == AREA_HEAD) && !is_answer)
               ? 2
               : 0;
}

static uint32_t n_word(const struct body *b)
{
    uint32_t n = 0;
    bool in = false;

    for (uint32_t i = 0; i < b->n; i++) {
        bool blank = b->text[i] == ' ' || b->text[i] == '\n' || b->text[i] == '\t';

        n += !blank && !in;
        in = !blank;
    }
    return n;
}

/* Make a part of one line. */
static const struct rich *line_of(struct transcript *t, int width, const char *text,
                                  enum ui_role role, bool shown)
{
    const char *mark =
        t->ascii ? (shown ? "- " : "+ ") : (shown ? "\xe2\x96\xbe " : "\xe2\x96\xb8 ");
    struct rich *r = &t->line;

    rich_start(r);
    rich_line(r, 0, 0, 0, role, WRAP_WORDS);
    rich_add(r, mark, strlen(mark), RICH_FRAME, 0, 0, role, 0);
    rich_add(r, text, strlen(text), RICH_OURS, 0, 0, role, 0);
    rich_wrap(r, width, NULL);
    return r;
}

static const struct rich *head_of(struct transcript *t, uint32_t item)
{
    const struct item *i = &t->item[item];
    const struct body *b = &i->held->thinking;
    char count[32], text[96];
    uint32_t n = n_word(b);
    bool still = i->is_open && i->held->text.n == 0;

    if (i->kind == TRANSCRIPT_USER)
        return line_of(t, t->width - 2, i->held->label, ROLE_USER, shows_thinking(t, i));
    snprintf(text, sizeof text, "%s: %s word%s", still ? "thinking" : "thought",
             numbers_count(count, sizeof count, n), n == 1 ? "" : "s");
    return line_of(t, t->width, text, ROLE_THINKING, shows_thinking(t, i));
}

static const struct rich *receipt_of(struct transcript *t, uint32_t item)
{
    const struct item *i = &t->item[item];
    bool shown = shows_receipt(t, i);
    char text[256];

    if (shown)
        receipt_line(text, sizeof text, &i->receipt, t->ascii);
    else
        receipt_short(text, sizeof text, &i->receipt);
    return line_of(t, t->width, text, ROLE_RECEIPT, shown);
}

static enum ui_role role_of(const struct item *i, enum area area)
{
    static const enum ui_role roles[] = {
        [TRANSCRIPT_SYSTEM] = ROLE_DIM,  [TRANSCRIPT_USER] = ROLE_USER,
        [TRANSCRIPT_ANSWER] = ROLE_TEXT, [TRANSCRIPT_NOTICE] = ROLE_NOTICE,
        [TRANSCRIPT_ERROR] = ROLE_BAD,
    };

    return i->is_lost ? ROLE_BAD : area == AREA_THINKING ? ROLE_THINKING : roles[i->kind];
}

const struct rich *part_rich(struct transcript *t, struct place p)
{
    struct body_look look = { t->width - part_gutter(t, p), t->ascii, ROLE_TEXT };
    struct body *b = body_of(t, p.item, p.area);
    const struct rich *r;
    size_t before;

    if (b == NULL) {
        rich_start(&t->line);
        return &t->line;
    }
    if (p.area == AREA_HEAD)
        return head_of(t, p.item);
    if (p.area == AREA_RECEIPT)
        return receipt_of(t, p.item);
    look.role = role_of(&t->item[p.item], p.area);
    before = transcript_held_bytes(t->item[p.item].held);
    r = body_rich(b, p.seg, &look);
    transcript_counted(t, t->item[p.item].held, before);
    return r;
}

const char *part_source(struct transcript *t, struct place p)
{
    struct body *b = body_of(t, p.item, p.area);

    return b == NULL || b->text == NULL ? "" : b->text;
}

int place_compare(struct place a, struct place b)
{
    if (a.item != b.item)
        return a.item < b.item ? -1 : 1;
    if (a.area != b.area)
        return a.area < b.area ? -1 : 1;
    return a.seg < b.seg ? -1 : a.seg > b.seg;
}

int point_compare(struct point a, struct point b)
{
    int order = place_compare(a.at, b.at);

    return order != 0 ? order : a.byte < b.byte ? -1 : a.byte > b.byte;
}

/* ---- rows ---- */

uint32_t spot_down(struct transcript *t, struct spot *s, uint32_t n)
{
    uint32_t gone = 0;

    while (gone < n) {
        uint32_t rows = part_rows(t, s->at), left = rows > s->row ? rows - 1 - s->row : 0;
        struct place next = s->at;

        if (left >= n - gone) {
            s->row += n - gone;
            return n;
        }
        do {
            if (!part_next(t, &next)) {
                s->row += left;
                return gone + left;
            }
        } while (part_rows(t, next) == 0);
        gone += left + 1;
        *s = (struct spot){ next, 0 };
    }
    return gone;
}

uint32_t spot_up(struct transcript *t, struct spot *s, uint32_t n)
{
    uint32_t gone = 0;

    while (gone < n) {
        struct place before = s->at;
        uint32_t rows;

        if (s->row >= n - gone) {
            s->row -= n - gone;
            return n;
        }
        do {
            if (!part_before(t, &before)) {
                gone += s->row;
                s->row = 0;
                return gone;
            }
            rows = part_rows(t, before);
        } while (rows == 0);
        gone += s->row + 1;
        *s = (struct spot){ before, rows - 1 };
    }
    return gone;
}

/* ---- the view ---- */

int view_height(const struct transcript *t)
{
    int h = t->height - (t->status[0] != '\0' ? 1 : 0) - (t->follows ? 0 : 1);

    return h > 0 ? h : 0;
}

/* Correct an anchor whose part became shorter or was hidden. */
static void settle(struct transcript *t, struct spot *s)
{
    uint32_t n, rows, extra;

    if (s->at.item >= t->n_item)
        return;
    n = area_count(t, s->at.item, s->at.area);
    if (n == 0) {
        struct place p = s->at;

        if (!forward(t, &p, s->at.item, s->at.area) && !backward(t, &p, s->at.item, s->at.area))
            return;
        *s = (struct spot){ p, 0 };
    } else if (s->at.seg >= n) {
        s->at.seg = n - 1;
        s->row = 0;
    }
    rows = part_rows(t, s->at);
    if (s->row >= rows) {
        extra = s->row - (rows > 0 ? rows - 1 : 0);
        s->row = rows > 0 ? rows - 1 : 0;
        spot_down(t, s, extra);
    }
}

static struct spot last_spot(struct transcript *t)
{
    struct spot s = { { 0, AREA_TEXT, 0 }, 0 };
    uint32_t rows;

    if (!part_last(t, &s.at))
        return s;
    rows = part_rows(t, s.at);
    s.row = rows > 0 ? rows - 1 : 0;
    return s;
}

struct spot view_top(struct transcript *t)
{
    struct spot s;
    int h = view_height(t);

    if (t->follows) {
        s = last_spot(t);
        if (t->n_item > 0)
            spot_up(t, &s, h > 0 ? (uint32_t)h - 1 : 0);
        return s;
    }
    settle(t, &t->top);
    return t->top;
}

/* Stop following, at the current position. */
static void hold(struct transcript *t)
{
    if (!t->follows)
        return;
    t->top = view_top(t);
    t->follows = false;
}

/* Do h rows from top on reach the end? */
static bool reaches_end(struct transcript *t, struct spot top, int h)
{
    return spot_down(t, &top, (uint32_t)h) < (uint32_t)h;
}

/* Move the view to s.  It follows if nothing is below it, counting the row that shows that it
 * does not follow. */
static void put(struct transcript *t, struct spot s)
{
    t->top = s;
    t->follows = true;
    t->follows = reaches_end(t, s, view_height(t));
}

void transcript_scroll(struct transcript *t, int rows)
{
    struct spot s;

    t->has_code = false;
    if (t->n_item == 0 || t->height <= 0 || (rows > 0 && t->follows))
        return;
    s = view_top(t);
    if (rows < 0) {
        if (spot_up(t, &s, (uint32_t) - (int64_t)rows) == 0)
            return;
        t->follows = false;
        t->top = s;
    } else {
        spot_down(t, &s, (uint32_t)rows);
        put(t, s);
    }
}

void transcript_page(struct transcript *t, int pages)
{
    int h = view_height(t) - 1;

    transcript_scroll(t, pages * (h > 0 ? h : 1));
}

void transcript_home(struct transcript *t)
{
    struct spot s = { { 0, AREA_TEXT, 0 }, 0 };

    t->has_code = false;
    if (!part_first(t, &s.at))
        return;
    put(t, s);
}

void transcript_end(struct transcript *t)
{
    t->has_code = false;
    t->follows = true;
}

bool transcript_follows(const struct transcript *t)
{
    return t->follows;
}

bool transcript_more_below(struct transcript *t)
{
    return !t->follows && t->n_item > 0 && !reaches_end(t, view_top(t), view_height(t));
}

/* ---- points: they outlive rows ---- */

static struct point point_of(struct transcript *t, struct spot s)
{
    uint32_t gap = part_gap(t, s.at), row = s.row > gap ? s.row - gap : 0;
    const struct rich *r = part_rich(t, s.at);

    return (struct point){ s.at, row < r->n_row ? r->row[row].start : 0 };
}

static struct spot spot_of(struct transcript *t, struct point p)
{
    uint32_t gap = part_gap(t, p.at);
    const struct rich *r = part_rich(t, p.at);

    return (struct spot){ p.at, r->n_row == 0 ? 0 : gap + rich_row_of(r, p.byte) };
}

void view_show(struct transcript *t, struct point p)
{
    struct spot s = spot_of(t, p), top, bottom;
    int h;

    hold(t);
    h = view_height(t);
    top = bottom = view_top(t);
    spot_down(t, &bottom, h > 0 ? (uint32_t)h - 1 : 0);
    if (point_compare((struct point){ s.at, s.row }, (struct point){ top.at, top.row }) >= 0 &&
        point_compare((struct point){ s.at, s.row }, (struct point){ bottom.at, bottom.row }) <=
            0)
        return;
    spot_up(t, &s, (uint32_t)h / 3);
    t->top = s;
}

void transcript_size(struct transcript *t, int height, int width)
{
    bool other = width != t->width;
    bool holds = !t->follows && t->n_item > 0 && t->width > 0;

    if (!other && height == t->height)
        return;
    if (holds) {
        settle(t, &t->top);
        /* After several changes of the width without scrolling, the same text is at the top
         * again. */
        if (!t->has_pin || t->pin_row != t->top.row || place_compare(t->pin.at, t->top.at) != 0)
            t->pin = point_of(t, t->top);
    }
    t->height = height;
    t->width = width;
    if (other)
        transcript_forget_rows(t);
    t->has_pin = holds;
    if (holds) {
        t->top = spot_of(t, t->pin);
        t->pin_row = t->top.row;
    }
    t->n_shown = 0;
}

/* ---- what is shown how ---- */

/* Returns the byte of the source of a point. */
static uint32_t source_of(struct transcript *t, struct point p)
{
    const struct rich *r = part_rich(t, p.at);
    const struct rich_run *run;

    if (r->n_run == 0 || p.at.area != AREA_TEXT)
        return 0;
    run = rich_run_at(r, p.byte);
    return run->kind == RICH_SAME ? run->src + (p.byte - run->at) : run->src;
}

static struct point point_in_source(struct transcript *t, uint32_t item, uint32_t src)
{
    struct held *h = transcript_held(t, item);
    struct point p = { { item, AREA_TEXT, 0 }, 0 };
    const struct rich *r;

    if (h == NULL)
        return p;
    p.at.seg = body_find(&h->text, src);
    r = part_rich(t, p.at);
    for (uint32_t i = 0; i < r->n_run; i++)
        if (r->run[i].kind == RICH_SAME && r->run[i].src <= src)
            p.byte = r->run[i].at +
                     (src - r->run[i].src < r->run[i].src_n ? src - r->run[i].src : 0);
    return p;
}

void transcript_set_raw(struct transcript *t, bool raw)
{
    struct point p = { { 0, AREA_TEXT, 0 }, 0 };
    uint32_t src = 0;
    bool holds = !t->follows && t->n_item > 0;

    if (t->raw == raw)
        return;
    if (holds) {
        settle(t, &t->top);
        p = point_of(t, t->top);
        src = source_of(t, p);
    }
    t->raw = raw;
    for (uint32_t i = 0; i < t->n_item; i++) {
        struct held *h = t->item[i].held;
        size_t before = transcript_held_bytes(h);

        if (h == NULL || t->item[i].kind != TRANSCRIPT_ANSWER)
            continue;
        body_set_markdown(&h->text, !raw);
        body_set_markdown(&h->thinking, !raw);
        transcript_counted(t, h, before);
    }
    transcript_unselect(t);
    t->has_match = false;
    if (holds && p.at.area == AREA_TEXT)
        t->top = spot_of(t, point_in_source(t, p.at.item, src));
}

bool transcript_is_raw(const struct transcript *t)
{
    return t->raw;
}

void transcript_set_thinking(struct transcript *t, bool show)
{
    t->o.show_thinking = show;
    for (uint32_t i = 0; i < t->n_item; i++)
        t->item[i].flip_thinking = false;
    transcript_unselect(t);
}

bool transcript_shows_thinking(const struct transcript *t)
{
    return t->o.show_thinking;
}

void transcript_set_receipts(struct transcript *t, bool show)
{
    t->o.show_receipts = show;
    for (uint32_t i = 0; i < t->n_item; i++)
        t->item[i].flip_receipt = false;
}

bool transcript_shows_receipts(const struct transcript *t)
{
    return t->o.show_receipts;
}

/* ---- the turn cursor ---- */

bool transcript_turn(struct transcript *t, int direction)
{
    int64_t i = t->has_turn ? (int64_t)t->turn + direction : (int64_t)t->n_item - 1;

    if (!t->has_turn)
        direction = -1;
    for (; i >= 0 && i < (int64_t)t->n_item; i += direction) {
        struct point p = { { (uint32_t)i, AREA_HEAD, 0 }, 0 };

        if (t->item[i].kind != TRANSCRIPT_USER)
            continue;
        if (!t->has_turn) {
            t->followed = t->follows;
            t->top_before = t->top;
        }
        t->has_turn = true;
        t->turn = (uint32_t)i;
        if (!part_is_shown(t, (uint32_t)i, AREA_HEAD))
            p.at.area = AREA_TEXT;
        if (t->height > 0 && part_is_shown(t, (uint32_t)i, p.at.area))
            view_show(t, p);
        return true;
    }
    return false;
}

void transcript_turn_end(struct transcript *t)
{
    if (t->has_turn) {
        t->follows = t->followed || t->top_before.at.item >= t->n_item;
        t->top = t->top_before;
    }
    t->has_turn = false;
}

long transcript_turn_keep(const struct transcript *t)
{
    long n = (long)t->n_older;

    if (!t->has_turn)
        return -1;
    for (uint32_t i = 0; i < t->turn; i++)
        n += t->item[i].kind == TRANSCRIPT_USER || t->item[i].kind == TRANSCRIPT_ANSWER;
    return n;
}
