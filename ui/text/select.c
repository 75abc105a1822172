/* Selection by mouse, and copying: always of the source, never of the drawing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "ui/text/markdown.h"
#include "ui/text/transcript_internal.h"
#include "ui/words/clean.h"
#include "ui/words/cluster.h"

/* ---- from the pane to the text ---- */

/* Returns the byte shown in column x of a row, counting the prefix. */
static uint32_t byte_at(const struct rich *r, uint32_t row, int x)
{
    const char *prefix = rich_prefix(r, row);
    uint32_t at = r->row[row].start, end = r->row[row].end;
    struct cluster c;

    x -= cluster_width(prefix, strlen(prefix));
    while (at < end) {
        cluster_next(r->text + at, end - at, &c);
        if (x < c.width)
            break;
        x -= c.width;
        at += (uint32_t)c.bytes;
    }
    return at;
}

static bool point_at(struct transcript *t, int y, int x, struct point *out)
{
    const struct rich *r;
    struct spot s;
    uint32_t gap;

    if (t->n_shown == 0)
        return false;
    y = y < 0 ? 0 : y;
    s = t->shown[y < t->n_shown ? y : t->n_shown - 1];
    gap = part_gap(t, s.at);
    r = part_rich(t, s.at);
    out->at = s.at;
    if (r->n_row == 0 || s.row < gap)
        out->byte = 0;
    else if (y >= t->n_shown)
        out->byte = r->n_text;
    else
        out->byte = byte_at(r, s.row - gap < r->n_row ? s.row - gap : r->n_row - 1,
                            x - part_gutter(t, s.at));
    return true;
}

/* ---- units ---- */

/* Adjacent characters of one kind form a word. */
static int kind_of(const char *s, size_t n)
{
    uint32_t cp;

    if (n == 0)
        return 0;
    utf8_decode(s, n, &cp);
    if (cp >= UTF8_SHORT)
        return 0;
    if (cp == ' ')
        return 1;
    switch (utf8proc_category((int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_PC: return 2;
    default: return 3;
    }
}

static uint32_t line_of(const struct rich *r, uint32_t byte)
{
    uint32_t line = 0;

    while (line + 1 < r->n_line && r->line[line + 1].at <= byte)
        line++;
    return line;
}

/* Find the unit that contains a point: bytes *from .. *to. */
static void unit_at(struct transcript *t, struct point p, uint32_t *from, uint32_t *to)
{
    const struct rich *r = part_rich(t, p.at);
    uint32_t line, begin, end, at;
    struct cluster c;

    *from = *to = p.byte;
    if (r->n_line == 0)
        return;
    line = line_of(r, p.byte);
    begin = r->line[line].at;
    end = rich_line_end(r, line);
    if (t->unit == TRANSCRIPT_PARAGRAPH) {
        *from = begin;
        *to = end;
        return;
    }
    if (t->unit == TRANSCRIPT_CLUSTER) {
        if (p.byte < end) {
            cluster_next(r->text + p.byte, end - p.byte, &c);
            *to = p.byte + (uint32_t)c.bytes;
        }
        return;
    }
    *from = at = begin;
    for (int kind = 0; at < end; at += (uint32_t)c.bytes) {
        int next = kind_of(r->text + at, end - at);

        if (next != kind && at > p.byte)
            break;
        *from = next != kind ? at : *from;
        kind = next;
        cluster_next(r->text + at, end - at, &c);
    }
    *to = at;
}

static void ends(struct transcript *t, struct point *from, struct point *to)
{
    bool forward = point_compare(t->from, t->to) <= 0;
    struct point first = forward ? t->from : t->to, last = forward ? t->to : t->from;
    uint32_t unused;

    *from = first;
    *to = last;
    unit_at(t, first, &from->byte, &unused);
    unit_at(t, last, &unused, &to->byte);
}

bool select_range(struct transcript *t, struct place p, uint32_t *from, uint32_t *to)
{
    struct point first, last;

    if (!t->has_selection || place_compare(p, t->from.at) * place_compare(p, t->to.at) > 0)
        return false;
    ends(t, &first, &last);
    *from = place_compare(p, first.at) == 0 ? first.byte : 0;
    *to = place_compare(p, last.at) == 0 ? last.byte : part_rich(t, p)->n_text;
    return *from < *to;
}

/* ---- the mouse ---- */

bool transcript_press(struct transcript *t, int y, int x, enum transcript_unit unit)
{
    struct point p;
    struct item *i;

    transcript_unselect(t);
    if (y < 0 || y >= t->n_shown || !point_at(t, y, x, &p))
        return true;
    i = &t->item[p.at.item];
    if (p.at.area == AREA_HEAD || p.at.area == AREA_RECEIPT) {
        if (p.at.area == AREA_HEAD)
            i->flip_thinking = !i->flip_thinking;
        else
            i->flip_receipt = !i->flip_receipt;
        return true;
    }
    t->unit = unit;
    t->from = t->to = p;
    t->is_pressed = true;
    /* A single click selects nothing; a word or a paragraph is selected at once. */
    t->has_selection = unit != TRANSCRIPT_CLUSTER;
    return false;
}

void transcript_drag(struct transcript *t, int y, int x)
{
    struct point p;

    if (!t->is_pressed || !point_at(t, y, x, &p))
        return;
    t->to = p;
    t->has_selection = true;
}

void transcript_unselect(struct transcript *t)
{
    t->has_selection = t->is_pressed = false;
}

bool transcript_has_selection(struct transcript *t)
{
    return t->has_selection;
}

/* ---- copying ---- */

static bool add(char **out, size_t *n, const char *s)
{
    size_t len = strlen(s);
    char *more = realloc(*out, *n + len + 1);

    if (more == NULL)
        return false;
    memcpy(more + *n, s, len + 1);
    *n += len;
    *out = more;
    return true;
}

static bool is_joined(struct transcript *t, struct place p)
{
    struct held *h = transcript_held(t, p.item);

    if (h == NULL || p.area == AREA_HEAD || p.area == AREA_RECEIPT)
        return false;
    return body_segment(p.area == AREA_TEXT ? &h->text : &h->thinking, p.seg)->joined;
}

char *transcript_copy_selection(struct transcript *t, size_t *n)
{
    struct point first, last;
    struct place p;
    char *out = NULL;

    *n = 0;
    if (!t->has_selection)
        return NULL;
    ends(t, &first, &last);
    p = first.at;
    for (;;) {
        uint32_t from = 0, to = 0;
        const char *between = is_joined(t, p) ? "" : part_gap(t, p) > 0 ? "\n\n" : "\n";
        bool some = select_range(t, p, &from, &to) && p.area != AREA_HEAD;

        if ((some && out != NULL && !add(&out, n, between)) ||
            (some && !rich_copy(part_rich(t, p), from, to, part_source(t, p), &out, n))) {
            free(out);
            return NULL;
        }
        if (place_compare(p, last.at) >= 0 || !part_next(t, &p))
            return out;
    }
}

static char *copy(const char *s, size_t n)
{
    char *out = malloc(n + 1);

    if (out == NULL)
        return NULL;
    if (n > 0)
        memcpy(out, s, n);
    out[n] = '\0';
    return out;
}

/* Returns the topmost visible answer, or the last one while following. */
static int64_t answer_in_view(struct transcript *t)
{
    int64_t i = t->follows ? (int64_t)t->n_item - 1 : (int64_t)view_top(t).at.item;

    for (; !t->follows && i < (int64_t)t->n_item; i++)
        if (t->item[i].kind == TRANSCRIPT_ANSWER)
            return i;
    for (i = (int64_t)t->n_item - 1; i >= 0; i--)
        if (t->item[i].kind == TRANSCRIPT_ANSWER)
            return i;
    return -1;
}

char *transcript_copy_answer(struct transcript *t, size_t *n)
{
    int64_t i = t->n_item == 0 ? -1 : answer_in_view(t);
    struct held *h = i < 0 ? NULL : transcript_held(t, (uint32_t)i);

    if (h == NULL || h->text.n == 0)
        return NULL;
    *n = h->text.n;
    return copy(h->text.text, h->text.n);
}

/* Search for block number want, from 0; UINT32_MAX: the last one. */
struct wanted {
    uint32_t want, n;
    char *code;
    size_t code_n;
    char label[40];
};

static bool on_code(void *ctx, const char *label, size_t label_n, const char *code, size_t n)
{
    struct wanted *w = ctx;

    if (w->want == UINT32_MAX || w->want == w->n) {
        free(w->code);
        w->code = copy(code, n);
        w->code_n = n;
        clean_line(w->label, sizeof w->label, label, label_n);
    }
    w->n++;
    return true;
}

static bool find_code(struct transcript *t, uint32_t item, struct wanted *w)
{
    struct held *h = t->item[item].kind == TRANSCRIPT_ANSWER ? transcript_held(t, item) : NULL;

    if (h == NULL || h->text.n == 0)
        return false;
    markdown_code(h->text.text, h->text.n, on_code, w);
    return w->code != NULL;
}

char *transcript_copy_code(struct transcript *t, size_t *n, char *which, size_t which_size)
{
    struct wanted w = { .want = UINT32_MAX };
    int64_t item = t->n_item == 0 ? -1 : answer_in_view(t);

    if (t->has_code && t->code_item < t->n_item) {
        item = t->code_item;
        w.want = t->code_block > 0 ? t->code_block - 1 : UINT32_MAX;
    }
    /* Take the visible answer, or else the nearest earlier one with code. */
    for (; item >= 0; item--) {
        w.n = 0;
        if (find_code(t, (uint32_t)item, &w))
            break;
    }
    if (item < 0)
        return NULL;
    t->has_code = true;
    t->code_item = (uint32_t)item;
    t->code_block = w.want == UINT32_MAX ? w.n - 1 : w.want;
    snprintf(which, which_size, "block %u of %u%s%s%s", t->code_block + 1, w.n,
             w.label[0] != '\0' ? " (" : "", w.label, w.label[0] != '\0' ? ")" : "");
    *n = w.code_n;
    return w.code;
}

char *transcript_turn_text(struct transcript *t, size_t *n)
{
    struct held *h = t->has_turn ? transcript_held(t, t->turn) : NULL;
    char *out = h == NULL ? NULL : malloc((size_t)h->thinking.n + h->text.n + 1);

    if (out == NULL)
        return NULL;
    *n = (size_t)h->thinking.n + h->text.n;
    if (h->thinking.n > 0) /* the files before the text */
        memcpy(out, h->thinking.text, h->thinking.n);
    if (h->text.n > 0)
        memcpy(out + h->thinking.n, h->text.text, h->text.n);
    out[*n] = '\0';
    return out;
}
