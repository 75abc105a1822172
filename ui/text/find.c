/* Search in all texts, starting at the view. */
#include "config.h"

#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"
#include "ui/text/transcript_internal.h"
#include "ui/words/clean.h"

/* Text in which matches are counted: less than 10 ms. */
#define COUNT_BYTES ((size_t)2 << 20)

static uint32_t fold(uint32_t cp)
{
    if (cp < 0x80)
        return cp >= 'A' && cp <= 'Z' ? cp | 0x20 : cp;
    return (uint32_t)utf8proc_tolower((int32_t)cp);
}

/* Returns the bytes of text[0 .. n) that the query matches; 0 if it does not match. */
static size_t match_here(const struct transcript *t, const char *text, size_t n)
{
    size_t at = 0;

    for (const char *q = t->query; *q != '\0';) {
        uint32_t want, got;

        if (at == n)
            return 0;
        q += utf8_decode(q, strlen(q), &want);
        at += utf8_decode(text + at, n - at, &got);
        if (want != got && (t->match_case || fold(want) != fold(got)))
            return 0;
    }
    return at;
}

size_t find_match(const struct transcript *t, const char *text, size_t n, size_t from,
                  size_t *end)
{
    while (from < n) {
        size_t len = match_here(t, text + from, n - from);

        if (len > 0) {
            *end = from + len;
            return from;
        }
        from++;
        while (from < n && utf8_is_inside(text[from]))
            from++;
    }
    return n;
}

/* Find the last match in part p that begins before limit (older), or the first one at or after
 * it. */
static bool find_in(struct transcript *t, struct place p, uint32_t limit, bool older)
{
    const struct rich *r = part_rich(t, p);
    bool found = false;

    for (uint32_t line = 0; line < r->n_line; line++) {
        uint32_t begin = r->line[line].at, n = rich_line_end(r, line) - begin;
        size_t end = 0, at = 0;

        while ((at = find_match(t, r->text + begin, n, at, &end)) < n) {
            uint32_t byte = begin + (uint32_t)at;

            if (older ? byte >= limit : byte < limit) {
                at = end;
                if (older)
                    return found;
                continue;
            }
            found = true;
            t->match = (struct point){ p, byte };
            t->match_end = begin + (uint32_t)end;
            if (!older)
                return true;
            at = end;
        }
    }
    return found;
}

static bool search_from(struct transcript *t, struct point from, bool older)
{
    struct place p = from.at;
    uint32_t limit = from.byte, first, last;

    for (;;) {
        if (find_in(t, p, limit, older)) {
            t->has_match = true;
            view_show(t, t->match);
            return true;
        }
        first = last = p.item;
        if (!(older ? part_before(t, &p) : part_next(t, &p)))
            return false;
        limit = older ? UINT32_MAX : 0;
        transcript_keep(t, first, last);
    }
}

/* Get the lowest visible point. */
static bool below_view(struct transcript *t, struct point *p)
{
    struct spot s = view_top(t);
    int h = view_height(t);

    if (t->n_item == 0 || !part_first(t, &p->at))
        return false;
    spot_down(t, &s, h > 0 ? (uint32_t)h - 1 : 0);
    *p = (struct point){ s.at, UINT32_MAX };
    return true;
}

/* ---- counting ---- */

/* Add the matches of a part; the current one gets its number. */
static void count_in(struct transcript *t, struct place p, struct transcript_matches *m)
{
    const struct rich *r = part_rich(t, p);
    const struct place *now = &t->match.at;
    bool is_here = p.item == now->item && p.area == now->area && p.seg == now->seg;

    for (uint32_t line = 0; line < r->n_line; line++) {
        uint32_t begin = r->line[line].at, n = rich_line_end(r, line) - begin;
        size_t end = 0;

        for (size_t at = 0; (at = find_match(t, r->text + begin, n, at, &end)) < n; at = end) {
            m->of++;
            if (is_here && begin + at == t->match.byte)
                m->now = m->of;
        }
    }
}

bool transcript_count(struct transcript *t, struct transcript_matches *out)
{
    struct place p = { 0 };
    size_t bytes = 0;
    uint32_t item;

    *out = (struct transcript_matches){ 0 };
    if (!t->has_match || !part_first(t, &p))
        return false;
    do {
        item = p.item;
        count_in(t, p, out);
        bytes += part_rich(t, p)->n_text;
        transcript_keep(t, item, item);
    } while (bytes <= COUNT_BYTES && part_next(t, &p));
    return bytes <= COUNT_BYTES && out->now > 0;
}

bool transcript_search(struct transcript *t, const char *text)
{
    struct point from;

    clean_line(t->query, sizeof t->query, text, strlen(text));
    t->has_match = false;
    t->has_code = false;
    t->match_case = false;
    for (const char *q = t->query; *q != '\0';) {
        uint32_t cp;

        q += utf8_decode(q, strlen(q), &cp);
        t->match_case = t->match_case || fold(cp) != cp;
    }
    return t->query[0] != '\0' && below_view(t, &from) &&
           (search_from(t, from, true) || search_from(t, from, false));
}

bool transcript_search_next(struct transcript *t, int direction)
{
    struct point from = t->match;

    if (t->query[0] == '\0' || t->n_item == 0 || (!t->has_match && !below_view(t, &from)))
        return false;
    if (direction < 0)
        from.byte = t->has_match ? from.byte + 1 : from.byte;
    return search_from(t, from, direction > 0);
}

bool transcript_is_searching(const struct transcript *t)
{
    return t->query[0] != '\0';
}
