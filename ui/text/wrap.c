#include "config.h"

#include "ui/text/wrap.h"

#include <stdlib.h>
#include <wchar.h>
#include <wctype.h>

#include "ui/words/cluster.h"

/* The last place where the current row can be broken: the row ends at end, the next one begins
 * at next. */
struct breaks {
    size_t end, next;
    bool is_there;
};

static bool add_row(struct wrap *w, size_t start, size_t end)
{
    if (w->n_row == w->room) {
        uint32_t room = w->room == 0 ? 4 : w->room * 2;
        struct wrap_row *row = realloc(w->row, room * sizeof *row);

        if (row == NULL) {
            w->n_row = 0;
            return false;
        }
        w->row = row;
        w->room = room;
    }
    w->row[w->n_row++] = (struct wrap_row){ (uint32_t)start, (uint32_t)end };
    return true;
}

static bool is_blank(wchar_t ch)
{
    return ch == L' ' || ch == 0x3000 || ch == 0x1680 || ch == 0x205f ||
           (ch >= 0x2000 && ch <= 0x200a && ch != 0x2007);
}

/* Is it punctuation that cannot begin a row? */
static bool is_closing(wchar_t ch)
{
    static const wchar_t closing[] =
        L",.;:!?)]}%\"'\u2019\u201d\u2026\u3001\u3002\u3009\u300b\u300d\u300f\u3011\u3015"
        L"\u30fb\u30fc\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff3d\uff5d\uff61\uff63";

    return ch != 0 && wcschr(closing, ch) != NULL;
}

/* Is it punctuation that cannot end a row? */
static bool is_opening(wchar_t ch)
{
    static const wchar_t opening[] =
        L"([{\"'\u2018\u201c\u3008\u300a\u300c\u300e\u3010\u3014\uff08\uff3b\uff5b\uff62";

    return ch != 0 && wcschr(opening, ch) != NULL;
}

/* May a row end between these two neighbours (before is not a blank)? */
static bool may_break(wchar_t before_that, wchar_t before, int before_width,
                      const struct cluster *c)
{
    wchar_t ch = c->shown[0];

    if (before == 0)
        return false;
    if (before == L'-')
        return iswalpha((wint_t)before_that) && iswalpha((wint_t)ch);
    return (before_width == 2 || c->width == 2) && !is_closing(ch) && !is_opening(before);
}

/*
 * Fill one row of width columns from byte start.  Sets the end of its text and returns the
 * start of the next row (n at the end of the text).
 */
static size_t fill(const char *text, size_t n, size_t start, int width, enum wrap_how how,
                   bool is_first, size_t *end)
{
    struct breaks at = { 0, 0, false };
    wchar_t before_that = 0, before = 0;
    int column = 0, before_width = 0;
    size_t word_end = start; /* after the last character that is not blank */
    bool only_blanks = true;

    for (size_t i = start; i < n;) {
        struct cluster c;
        bool blank;

        cluster_next(text + i, n - i, &c);
        blank = how == WRAP_WORDS && is_blank(c.shown[0]);
        if (!blank && before != 0 && is_blank(before) && how == WRAP_WORDS) {
            /* Keep the blanks that indent the text. */
            if (!(only_blanks && is_first))
                at = (struct breaks){ word_end, i, true };
        } else if (!blank && how == WRAP_WORDS &&
                   may_break(before_that, before, before_width, &c)) {
            at = (struct breaks){ i, i, true };
        }
        if (column + c.width > width && !(blank && !only_blanks)) {
            if (how == WRAP_WORDS && at.is_there) {
                *end = at.end;
                return at.next;
            }
            *end = i;
            return i;
        }
        if (!blank) {
            word_end = i + c.bytes;
            only_blanks = false;
        }
        column += c.width;
        before_that = before;
        before = c.shown[0] != 0 ? c.shown[0] : before;
        before_width = c.width > 0 ? c.width : before_width;
        i += c.bytes;
    }
    /* Keep blanks after the last word if they fit: the user is typing. */
    *end = column > width ? word_end : n;
    return n;
}

/* Returns the first row that must be made again if only the first from bytes are unchanged.  A
 * row is final if the row after the next one begins in unchanged text: the word that did not
 * fit is between them. */
static uint32_t first_unsettled(const struct wrap *w, size_t from)
{
    uint32_t row = 0;

    while (row + 2 < w->n_row && w->row[row + 2].start <= from)
        row++;
    return row;
}

bool wrap_text(struct wrap *w, const char *text, size_t n, int first, int rest,
               enum wrap_how how, size_t from)
{
    size_t at = 0, end;
    uint32_t keep = 0;

    if (first < WRAP_MIN_WIDTH || rest < WRAP_MIN_WIDTH || n > UINT32_MAX) {
        w->n_row = 0;
        return true;
    }
    if (from > 0 && w->n_row > 0) {
        keep = first_unsettled(w, from);
        at = w->row[keep].start;
    }
    w->n_row = keep;
    do {
        bool is_first = w->n_row == 0;
        size_t next = fill(text, n, at, is_first ? first : rest, how, is_first, &end);

        if (!add_row(w, at, end))
            return false;
        at = next;
    } while (at < n);
    return true;
}

void wrap_free(struct wrap *w)
{
    free(w->row);
    *w = (struct wrap){ 0 };
}
