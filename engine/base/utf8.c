#include "config.h"

#include "engine/base/utf8.h"

#include <string.h>

size_t utf8_decode(const char *s, size_t n, uint32_t *cp)
{
    const unsigned char *p = (const unsigned char *)s;
    unsigned char low = 0x80, high = 0xbf; /* range of the second byte */
    uint32_t value;
    size_t len;

    if (p[0] < 0x80) {
        *cp = p[0];
        return 1;
    }
    if (p[0] < 0xc2 || p[0] > 0xf4) {
        *cp = UTF8_BAD;
        return 1;
    }
    if (p[0] < 0xe0) {
        len = 2;
        value = p[0] & 0x1fu;
    } else if (p[0] < 0xf0) {
        len = 3;
        value = p[0] & 0x0fu;
        low = p[0] == 0xe0 ? 0xa0 : 0x80;  /* no overlong forms */
        high = p[0] == 0xed ? 0x9f : 0xbf; /* no surrogates */
    } else {
        len = 4;
        value = p[0] & 0x07u;
        low = p[0] == 0xf0 ? 0x90 : 0x80;
        high = p[0] == 0xf4 ? 0x8f : 0xbf; /* at most U+10FFFF */
    }
    for (size_t i = 1; i < len; i++) {
        if (i == n) {
            *cp = UTF8_SHORT;
            return n;
        }
        if (p[i] < low || p[i] > high) {
            *cp = UTF8_BAD;
            return i;
        }
        value = value << 6 | (p[i] & 0x3fu);
        low = 0x80;
        high = 0xbf;
    }
    *cp = value;
    return len;
}

size_t utf8_encode(uint32_t cp, char *out)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xc0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xe0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
        out[2] = (char)(0x80 | (cp & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
    out[3] = (char)(0x80 | (cp & 0x3f));
    return 4;
}

/* Returns how many ASCII bytes s begins with, in steps of 8. */
static size_t ascii_run(const char *s, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8) {
        uint64_t word;

        memcpy(&word, s + i, 8);
        if ((word & 0x8080808080808080u) != 0)
            break;
    }
    return i;
}

size_t utf8_valid_bytes(const char *s, size_t n)
{
    size_t i = ascii_run(s, n);

    while (i < n) {
        uint32_t cp;
        size_t len = utf8_decode(s + i, n - i, &cp);

        if (cp >= UTF8_SHORT)
            return i;
        i += len;
        if (cp < 0x80)
            i += ascii_run(s + i, n - i);
    }
    return n;
}

bool utf8_is_valid(const char *s, size_t n)
{
    return utf8_valid_bytes(s, n) == n;
}

size_t utf8_repair(const char *s, size_t n, char *out)
{
    size_t used = 0;

    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = utf8_decode(s + i, n - i, &cp);
        const char *from = cp >= UTF8_SHORT ? "\xef\xbf\xbd" : s + i;
        size_t take = cp >= UTF8_SHORT ? 3 : len;

        if (out != NULL)
            memcpy(out + used, from, take);
        used += take;
        i += len;
    }
    return used;
}

bool utf8_is_white(uint32_t cp)
{
    return (cp >= 0x09 && cp <= 0x0d) || cp == 0x20 || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

static bool is_margin(uint32_t cp)
{
    return utf8_is_white(cp) || cp == 0xfeff;
}

size_t utf8_trim(const char **s, size_t n)
{
    size_t begin = 0, end = 0;
    bool any = false;

    for (size_t at = 0; at < n;) {
        uint32_t cp;
        size_t used = utf8_decode(*s + at, n - at, &cp);

        if (!is_margin(cp)) {
            begin = any ? begin : at;
            end = at + used;
            any = true;
        }
        at += used;
    }
    *s += begin;
    return end - begin;
}

bool utf8_is_single(const char *s, size_t n, uint32_t *cp)
{
    return n > 0 && n <= 4 && utf8_decode(s, n, cp) == n && *cp < UTF8_SHORT;
}
