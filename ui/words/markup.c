/* See markup.h. */
#include "config.h"

#include "ui/words/markup.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/base/visible.h"

static const char replacement[] = "\xef\xbf\xbd";

static const char *ascii_escape(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    case '\n':
    case '\t': return " ";
    default: return (unsigned char)c < 0x20 || c == 0x7f ? replacement : NULL;
    }
}

/* Returns the text to write for a character above ASCII, or NULL to write it unchanged. */
static const char *wide_escape(uint32_t cp)
{
    if (cp == 0x2028 || cp == 0x2029)
        return " ";
    if (cp < UTF8_SHORT && visible_hides(cp))
        return "";
    return visible_is(cp) ? NULL : replacement;
}

void markup_text_n(FILE *to, const char *text, size_t n)
{
    for (size_t i = 0, used; i < n; i += used) {
        uint32_t cp;
        const char *instead;

        used = utf8_decode(text + i, n - i, &cp);
        instead = cp < 0x80 ? ascii_escape(text[i]) : wide_escape(cp);
        if (instead != NULL)
            fputs(instead, to);
        else
            fwrite(text + i, 1, used, to);
    }
}

void markup_text(FILE *to, const char *text)
{
    markup_text_n(to, text, strlen(text));
}

void markup_vprintf(FILE *to, const char *fmt, va_list ap)
{
    char text[2048];

    vsnprintf(text, sizeof text, fmt, ap);
    markup_text(to, text);
}

void markup_printf(FILE *to, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    markup_vprintf(to, fmt, ap);
    va_end(ap);
}
