#include "config.h"

#include "ui/store/json_text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

void json_text_free(struct json_text *j)
{
    free(j->s);
    *j = (struct json_text){ 0 };
}

void json_text_raw(struct json_text *j, const char *s, size_t n)
{
    if (n > j->room - j->n) {
        size_t room = j->room + j->room / 2 + n + 64;
        char *more = realloc(j->s, room);

        if (more == NULL) {
            j->failed = true;
            return;
        }
        j->s = more;
        j->room = room;
    }
    if (n > 0)
        memcpy(j->s + j->n, s, n);
    j->n += n;
}

void json_text_print(struct json_text *j, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        j->failed = true;
    else
        json_text_raw(j, text, (size_t)n);
}

static bool is_seen(int32_t cp)
{
    if (cp < 0x7f)
        return cp >= 0x20 && cp != '"' && cp != '\\';
    switch (utf8proc_category(cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
    }
}

static void escape(struct json_text *j, int32_t cp)
{
    static const char shorts[] = "\"\"\\\\\nn\tt\rr";

    for (const char *p = shorts; *p != '\0'; p += 2)
        if (cp == *p) {
            json_text_print(j, "\\%c", p[1]);
            return;
        }
    if (cp < 0x10000)
        json_text_print(j, "\\u%04x", (unsigned)cp);
    else
        json_text_print(j, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((cp - 0x10000) >> 10)),
                        (unsigned)(0xdc00 + ((cp - 0x10000) & 0x3ff)));
}

void json_text_inside(struct json_text *j, const char *s, size_t n)
{
    size_t from = 0, at = 0;

    while (at < n) {
        int32_t cp;
        size_t left = n - at;
        utf8proc_ssize_t used = utf8proc_iterate((const uint8_t *)s + at,
                                                 left < 4 ? (utf8proc_ssize_t)left : 4, &cp);

        if (used > 0 && is_seen(cp)) {
            at += (size_t)used;
            continue;
        }
        json_text_raw(j, s + from, at - from);
        escape(j, used > 0 ? cp : 0xfffd);
        at += used > 0 ? (size_t)used : 1;
        from = at;
    }
    json_text_raw(j, s + from, at - from);
}

void json_text_string(struct json_text *j, const char *s, size_t n)
{
    json_text_raw(j, "\"", 1);
    json_text_inside(j, s, n);
    json_text_raw(j, "\"", 1);
}
