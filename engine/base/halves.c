/* See halves.h. */
#include "config.h"

#include "engine/base/halves.h"

#include <ctype.h>
#include <string.h>

#include "engine/base/utf8.h"

#define ESCAPE_BYTES 6 /* \ud83d */
#define HALF_BYTES   3

static bool is_first(uint32_t unit)
{
    return unit >> 10 == 0xd800 >> 10;
}

static bool is_second(uint32_t unit)
{
    return unit >> 10 == 0xdc00 >> 10;
}

/* Returns the half that s[0 .. n) begins with, or 0. */
static uint32_t half_at(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;

    if (n < HALF_BYTES || p[0] != 0xed || p[1] < 0xa0 || p[1] > 0xbf || !utf8_is_inside(s[2]))
        return 0;
    return 0xd000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
}

static size_t write_half(uint32_t unit, char *out)
{
    out[0] = (char)0xed;
    out[1] = (char)(0x80 | (unit >> 6 & 0x3f));
    out[2] = (char)(0x80 | (unit & 0x3f));
    return HALF_BYTES;
}

/* Returns the unit of the escape that s[0 .. n) begins with, or 0. */
static uint32_t escape_at(const char *s, size_t n)
{
    uint32_t unit = 0;

    if (n < ESCAPE_BYTES || s[0] != '\\' || s[1] != 'u')
        return 0;
    for (size_t i = 2; i < ESCAPE_BYTES; i++) {
        unsigned char c = (unsigned char)s[i];

        if (!isxdigit(c))
            return 0;
        unit = unit << 4 | (c <= '9' ? c - 0u - '0' : (c | 0x20u) - 'a' + 10);
    }
    return unit;
}

size_t halves_from_json(const char *json, size_t n, char *out)
{
    size_t len = 0, step;

    for (size_t at = 0; at < n; at += step) {
        uint32_t unit = escape_at(json + at, n - at), next = 0;

        if (is_first(unit))
            next = escape_at(json + at + ESCAPE_BYTES, n - at - ESCAPE_BYTES);
        if ((is_first(unit) && !is_second(next)) || is_second(unit)) {
            len += write_half(unit, out + len);
            step = ESCAPE_BYTES;
            continue;
        }
        /* A backslash and the byte after it are one escape, which may be another backslash. */
        step = is_first(unit) ? 2 * ESCAPE_BYTES : json[at] == '\\' && at + 1 < n ? 2 : 1;
        memmove(out + len, json + at, step);
        len += step;
    }
    return len;
}

bool halves_are_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t used = utf8_decode(s + i, n - i, &cp);

        if (cp == UTF8_SHORT)
            return false;
        if (cp == UTF8_BAD && half_at(s + i, n - i) == 0)
            return false;
        i += cp == UTF8_BAD ? HALF_BYTES : used;
    }
    return true;
}

size_t halves_join(uint32_t *first, const char *s, size_t n, char *out)
{
    size_t len = 0, step;

    for (size_t i = 0; i < n; i += step) {
        uint32_t unit = half_at(s + i, n - i);

        step = unit != 0 ? HALF_BYTES : 1;
        if (*first != 0 && is_second(unit)) {
            len += utf8_encode(0x10000 + ((*first & 0x3ff) << 10 | (unit & 0x3ff)), out + len);
            *first = 0;
            continue;
        }
        if (*first != 0)
            len += utf8_encode(0xfffd, out + len);
        *first = is_first(unit) ? unit : 0;
        if (unit == 0)
            out[len++] = s[i];
        else if (is_second(unit))
            len += utf8_encode(0xfffd, out + len);
    }
    return len;
}
