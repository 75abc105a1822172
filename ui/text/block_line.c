#include "config.h"

#include "ui/text/block_line.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

size_t block_line_mark(const char *text, size_t at, size_t end)
{
    size_t i = at;

    while (i < end && i < at + 9 && text[i] >= '0' && text[i] <= '9')
        i++;
    if (i == end || text[i] == '\0' || strchr(i > at ? ".)" : "-+*", text[i]) == NULL)
        return at;
    i++;
    if (i == end || !is_blank(text[i]))
        return at;
    while (i < end && is_blank(text[i]))
        i++;
    return i;
}

struct block_line block_line_read(const char *text, size_t at, size_t n)
{
    const char *newline = memchr(text + at, '\n', n - at);
    size_t end = newline == NULL ? n : (size_t)(newline - text), mark;
    struct block_line l = { .text = text, .at = at, .next = end + 1, .body = at };

    l.end = end > at && text[end - 1] == '\r' ? end - 1 : end;
    for (; l.body < l.end && (is_blank(text[l.body]) || text[l.body] == '>'); l.body++)
        l.indent = is_blank(text[l.body]) ? l.indent + 1 : 0;
    l.words = l.body;
    while ((mark = block_line_mark(text, l.words, l.end)) > l.words)
        l.words = mark;
    return l;
}

bool block_line_in_code(const struct block_line *l, char *fence)
{
    const char *s = l->text + l->words;
    bool is_fence =
        l->end - l->words >= 3 && (s[0] == '`' || s[0] == '~') && s[1] == s[0] && s[2] == s[0];
    bool was = *fence != '\0';

    if (is_fence && (!was || *fence == s[0]))
        *fence = was ? '\0' : s[0];
    return was || is_fence;
}
