#include "config.h"

#include "ui/text/entity.h"

#include <stdint.h>
#include <string.h>

#include <utf8proc.h>

static const struct {
    const char *name, *text;
} named[] = {
    { "amp", "&" },
    { "lt", "<" },
    { "gt", ">" },
    { "quot", "\"" },
    { "apos", "'" },
    { "nbsp", "\xc2\xa0" },
    { "copy", "\xc2\xa9" },
    { "reg", "\xc2\xae" },
    { "deg", "\xc2\xb0" },
    { "plusmn", "\xc2\xb1" },
    { "middot", "\xc2\xb7" },
    { "times", "\xc3\x97" },
    { "divide", "\xc3\xb7" },
    { "ndash", "\xe2\x80\x93" },
    { "mdash", "\xe2\x80\x94" },
    { "lsquo", "\xe2\x80\x98" },
    { "rsquo", "\xe2\x80\x99" },
    { "ldquo", "\xe2\x80\x9c" },
    { "rdquo", "\xe2\x80\x9d" },
    { "bull", "\xe2\x80\xa2" },
    { "hellip", "\xe2\x80\xa6" },
    { "euro", "\xe2\x82\xac" },
    { "trade", "\xe2\x84\xa2" },
    { "larr", "\xe2\x86\x90" },
    { "rarr", "\xe2\x86\x92" },
    { "ne", "\xe2\x89\xa0" },
    { "le", "\xe2\x89\xa4" },
    { "ge", "\xe2\x89\xa5" },
};

/* Parse the digits s[0 .. n); -1 if there are none or the number is too large. */
static int32_t number(const char *s, size_t n, int base)
{
    int32_t value = 0;

    if (n == 0 || n > 7)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int c = s[i] | 0x20;
        int digit = s[i] >= '0' && s[i] <= '9' ? s[i] - '0'
                    : c >= 'a' && c <= 'f'     ? c - 'a' + 10
                                               : 99;

        if (digit >= base)
            return -1;
        value = value * base + digit;
    }
    return value > 0x10ffff ? -1 : value;
}

size_t entity_decode(const char *s, size_t n, char out[8])
{
    int32_t cp;

    if (n < 3 || s[0] != '&' || s[n - 1] != ';')
        return 0;
    s++;
    n -= 2;
    if (s[0] == '#') {
        cp =
            n > 1 && (s[1] | 0x20) == 'x' ? number(s + 2, n - 2, 16) : number(s + 1, n - 1, 10);
        if (cp <= 0 || !utf8proc_codepoint_valid(cp))
            return 0;
        return (size_t)utf8proc_encode_char(cp, (uint8_t *)out);
    }
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        if (strlen(named[i].name) == n && memcmp(named[i].name, s, n) == 0) {
            memcpy(out, named[i].text, strlen(named[i].text));
            return strlen(named[i].text);
        }
    return 0;
}
