#include "config.h"

#include "engine/base/visible.h"

#include <string.h>

#include <utf8proc.h>

#include "engine/base/utf8.h"

/* Letters, marks and symbols that look like nothing, and selectors of variants.  The general
 * category of the other characters that hide is Cf, Zl or Zp. */
static const struct {
    uint32_t first, last;
} blank[] = {
    { 0x34f, 0x34f },     { 0x115f, 0x1160 },   { 0x17b4, 0x17b5 }, { 0x180b, 0x180f },
    { 0x2065, 0x2065 },   { 0x2800, 0x2800 },   { 0x3164, 0x3164 }, { 0xfe00, 0xfe0f },
    { 0xffa0, 0xffa0 },   { 0xfff0, 0xfff8 },   { 0xfffc, 0xfffc }, { 0x16fe4, 0x16fe4 },
    { 0x1d159, 0x1d159 }, { 0xe0000, 0xe0fff },
};

/* Characters of the category Cf that can be seen: they enclose the digits that follow. */
static bool is_number_sign(uint32_t cp)
{
    return (cp >= 0x600 && cp <= 0x605) || cp == 0x6dd || cp == 0x70f ||
           (cp >= 0x890 && cp <= 0x891) || cp == 0x8e2 || cp == 0x110bd || cp == 0x110cd;
}

bool visible_hides(uint32_t cp)
{
    utf8proc_category_t kind;

    if (cp < 0xad || cp > 0x10ffff)
        return false;
    for (size_t i = 0; i < sizeof blank / sizeof blank[0]; i++)
        if (cp >= blank[i].first && cp <= blank[i].last)
            return true;
    kind = utf8proc_category((utf8proc_int32_t)cp);
    return (kind == UTF8PROC_CATEGORY_CF && !is_number_sign(cp)) ||
           kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool visible_is(uint32_t cp)
{
    if (cp < 0x7f)
        return cp >= 0x20;
    if (cp > 0x10ffff || visible_hides(cp))
        return false;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS: return false;
    default: return true;
    }
}

bool visible_all(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;

        i += utf8_decode(s + i, n - i, &cp);
        if (!visible_is(cp))
            return false;
    }
    return true;
}

size_t visible_line(char *dst, size_t size, const char *s, size_t n)
{
    size_t used = 0;

    for (size_t at = 0, len; at < n; at += len) {
        const char *from = s + at;
        uint32_t cp;
        size_t take;

        len = utf8_decode(from, n - at, &cp);
        take = len;
        if (cp == 0x2028 || cp == 0x2029) {
            from = " ";
            take = 1;
        } else if (visible_hides(cp)) {
            continue;
        } else if (!visible_is(cp)) {
            from = "?";
            take = 1;
        }
        if (used + take >= size)
            break;
        memmove(dst + used, from, take);
        used += take;
    }
    if (size > 0)
        dst[used] = '\0';
    return used;
}
