#include "config.h"

#include "engine/base/lookalike.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/base/visible.h"

static const struct {
    uint32_t first, last;
    char like;
} lookalikes[] = {
    { 0x2010, 0x2015, '-' },  { 0x2212, 0x2212, '-' },  { 0xfe58, 0xfe58, '-' },
    { 0xfe63, 0xfe63, '-' },  { 0x201c, 0x201f, '"' },  { 0x2033, 0x2033, '"' },
    { 0x2018, 0x201b, '\'' }, { 0x2032, 0x2032, '\'' }, { 0x00b4, 0x00b4, '\'' },
    { 0x2044, 0x2044, '/' },  { 0x2215, 0x2215, '/' },  { 0x2236, 0x2236, ':' },
};

char lookalike_of(uint32_t cp)
{
    if (cp >= 0x80 && cp < UTF8_SHORT && utf8_is_white(cp))
        return ' ';
    if (cp >= 0xff01 && cp <= 0xff5e) /* the wide forms of ASCII */
        return (char)(cp - 0xff01 + '!');
    for (size_t i = 0; i < sizeof lookalikes / sizeof lookalikes[0]; i++)
        if (cp >= lookalikes[i].first && cp <= lookalikes[i].last)
            return lookalikes[i].like;
    return 0;
}

static bool is_nothing(uint32_t cp)
{
    return visible_hides(cp) && !utf8_is_white(cp);
}

size_t lookalike_plain(char *text, size_t n)
{
    size_t to = 0;

    for (size_t at = 0; at < n;) {
        uint32_t cp;
        size_t used = utf8_decode(text + at, n - at, &cp);

        if (cp < UTF8_SHORT && cp != '\n' && utf8_is_white(cp)) {
            text[to++] = ' ';
        } else if (!is_nothing(cp)) {
            memmove(text + to, text + at, used);
            to += used;
        }
        at += used;
    }
    text[to] = '\0';
    return to;
}

const char *lookalike_seen(const char *text)
{
    size_t n = strlen(text), at = 0;

    while (at < n) {
        uint32_t cp;
        size_t used = utf8_decode(text + at, n - at, &cp);

        if (!is_nothing(cp))
            break;
        at += used;
    }
    return text + at;
}

size_t lookalike_word(const char *text, size_t n)
{
    size_t at = 0;

    while (at < n) {
        uint32_t cp;
        size_t used = utf8_decode(text + at, n - at, &cp);

        if (cp < UTF8_SHORT && utf8_is_white(cp))
            break;
        at += used;
    }
    return at;
}

char *lookalike_note(const char *text, char *buf, size_t n)
{
    size_t len = strlen(text);

    buf[0] = '\0';
    for (size_t at = 0; at < len && buf[0] == '\0';) {
        uint32_t cp;
        size_t used = utf8_decode(text + at, len - at, &cp);
        char like = lookalike_of(cp);

        if (like == ' ')
            snprintf(buf, n, "; U+%04X looks like a blank", (unsigned)cp);
        else if (like != 0)
            snprintf(buf, n, "; U+%04X looks like '%c'", (unsigned)cp, like);
        else if (is_nothing(cp))
            snprintf(buf, n, "; U+%04X is invisible", (unsigned)cp);
        at += used;
    }
    return buf;
}

int lookalike_explain(struct err *e, const char *text)
{
    size_t n = strlen(e->what);

    (void)lookalike_note(text, e->what + n, sizeof e->what - n);
    return -1;
}
