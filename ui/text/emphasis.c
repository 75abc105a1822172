/* See emphasis.h. */
#include "config.h"

#include "ui/text/emphasis.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* A letter and a punctuation mark, each of three and of four bytes. */
static const char stand_ins[2][2][5] = { { "\xe4\xb8\x80", "\xf0\xa0\x80\x80" },
                                         { "\xe3\x80\x81", "\xf0\x90\x84\x80" } };

static bool is_cjk(int32_t c)
{
    static const struct {
        int32_t first, last;
    } ranges[] = {
        { 0x1100, 0x11ff }, { 0x2e80, 0x2fff }, { 0x3001, 0xa4cf }, { 0xa960, 0xa97f },
        { 0xac00, 0xd7ff }, { 0xf900, 0xfaff }, { 0xfe30, 0xfe4f }, { 0xff00, 0xffef },
        { 0x20000, 0x3ffff },
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/* Punctuation of other scripts. */
static bool is_point(int32_t c)
{
    utf8proc_category_t kind;

    if (c < 0x80)
        return (c > 0x20 && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') ||
               (c > 'z' && c < 0x7f);
    kind = utf8proc_category(c);
    return !is_cjk(c) && kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

/* Returns the length of the character at text[0 .. n), 1 and -1 in *c if it is not one. */
static size_t next(const char *text, size_t n, int32_t *c)
{
    utf8proc_ssize_t len =
        n == 0 ? 0 : utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, c);

    if (len > 0)
        return (size_t)len;
    *c = -1;
    return 1;
}

/* The start of the character that ends at text[at). */
static size_t back(const char *text, size_t at)
{
    size_t from = at;

    while (from > 0 && at - from < 4 && ((unsigned char)text[--from] & 0xc0) == 0x80)
        ;
    return from;
}

/* Does the line have an address with escapes?  The parser copies these, so they must be right. */
static bool has_copies(const char *line, size_t n)
{
    bool escapes = false, addresses = false;

    for (size_t i = 0; i < n; i++) {
        escapes = escapes || line[i] == '&' || line[i] == '\\';
        addresses = addresses || memchr("[:@w", line[i], 4) != NULL;
    }
    return escapes && addresses;
}

/* Replace the character at copy + at, if it is of these scripts, for a mark with other beside it.
 * A letter may have emphasis at either side, and so may a point with a point beyond the marks. */
static void replace(char *copy, const char *text, size_t at, size_t n, int32_t other)
{
    int32_t c;
    size_t len = next(text + at, n - at, &c);

    if (is_cjk(c) && len >= 3)
        memcpy(copy + at, stand_ins[is_point(other)][len - 3], len);
}

static void replace_line(char *copy, const char *text, size_t from, size_t end)
{
    for (size_t i = from; i < end;) {
        size_t run = i, before;
        int32_t left = -1, right;

        if (text[i] != '*') {
            i++;
            continue;
        }
        while (i < end && text[i] == '*')
            i++;
        next(text + i, end - i, &right);
        before = run > from ? back(text, run) : run;
        if (before < run)
            next(text + before, run - before, &left);
        if (before < run)
            replace(copy, text, before, run, right);
        if (i < end)
            replace(copy, text, i, end, left);
    }
}

void emphasis_allow(char *copy, const char *text, size_t n)
{
    if (memchr(text, '*', n) == NULL)
        return;
    for (size_t at = 0; at < n;) {
        const char *newline = memchr(text + at, '\n', n - at);
        size_t end = newline == NULL ? n : (size_t)(newline - text);

        if (!has_copies(text + at, end - at))
            replace_line(copy, text, at, end);
        at = end + 1;
    }
}
