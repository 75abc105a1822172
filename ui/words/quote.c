#include "config.h"

#include "ui/words/quote.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "ui/words/clean.h"

#define NAME_ROOM 4096

static bool is_in_word(const char *name, size_t i)
{
    return i > 0 && isalnum((unsigned char)name[i - 1]) && isalnum((unsigned char)name[i + 1]);
}

/* Does name[i] begin something in Markdown?  Dashes and the like do only at the start. */
static bool is_mark(const char *name, size_t i)
{
    if (strchr("\\`*[]#|~", name[i]) != NULL)
        return true;
    if (name[i] == '_')
        return !is_in_word(name, i);
    return i == 0 && strchr("-+=", name[i]) != NULL;
}

void quote_markdown(FILE *to, const char *name)
{
    char line[NAME_ROOM];
    size_t n = clean_line(line, sizeof line, name, strlen(name));

    for (size_t i = 0; i < n; i++) {
        switch (line[i]) {
        case '&': fputs("&amp;", to); break;
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        default:
            if (is_mark(line, i))
                fputc('\\', to);
            fputc(line[i], to);
        }
    }
}

/* Spreadsheets ignore blanks at the start of a cell, and some take the wide forms of these
 * characters for them. */
static bool is_formula(const char *name, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t cp;

        at += utf8_decode(name + at, n - at, &cp);
        if (utf8_is_white(cp))
            continue;
        if (cp >= 0xff01 && cp <= 0xff5e) /* wide forms of ASCII */
            cp -= 0xfee0;
        else if (cp == 0xfe62 || cp == 0xfe63 || cp == 0xfe66 || cp == 0xfe6b) /* small ones */
            return true;
        return cp == '=' || cp == '+' || cp == '-' || cp == '@' || cp == 0x2212;
    }
    return false;
}

void quote_csv(FILE *to, const char *name)
{
    char line[NAME_ROOM];
    size_t n = clean_line(line, sizeof line, name, strlen(name));

    fputs(is_formula(line, n) ? "\"'" : "\"", to);
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '"')
            fputc('"', to);
        fputc(line[i], to);
    }
    fputc('"', to);
}

void quote_shell(const char *text, char *buf, size_t n)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./:+,=@%";
    size_t used = 0;

    if (text[strspn(text, plain)] == '\0') {
        snprintf(buf, n, "%s", text);
        return;
    }
    buf[used++] = '\'';
    for (; *text != '\0' && used + 6 < n; text++) {
        if (*text == '\'')
            used += (size_t)snprintf(buf + used, n - used, "'\\'");
        buf[used++] = *text;
    }
    buf[used++] = '\'';
    buf[used] = '\0';
}
