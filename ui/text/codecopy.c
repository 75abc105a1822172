/*
 * Extracts the code blocks of a text with md4c, on demand.
 *
 * md4c reports the blanks at the start of a line as spaces, even if the source has tabs.  A
 * Makefile needs its tabs, so blanks are taken from the source if nothing else precedes the
 * text of the line.
 */
#include "config.h"

#include <md4c.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ui/text/markdown.h"
#include "ui/text/parser_input.h"

struct blocks {
    markdown_code_fn *block;
    void *ctx;
    char label[128];
    size_t label_n;
    char *code;
    size_t n, room;
    bool is_in;
    const char *source; /* the whole text */
    const char *copy;   /* of it, for md4c */
    size_t source_n;
    size_t indent;    /* spaces reported at the start of the current line */
    bool only_blanks; /* nothing else of the line was reported */
};

static bool add(struct blocks *b, const char *s, size_t n)
{
    if (n == 0)
        return true;
    if (b->n + n > b->room) {
        size_t room = (b->n + n) * 2;
        char *more = realloc(b->code, room);

        if (more == NULL)
            return false;
        b->code = more;
        b->room = room;
    }
    memcpy(b->code + b->n, s, n);
    b->n += n;
    return true;
}

static bool are_spaces(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ')
            return false;
    return true;
}

/* Replace the reported spaces by the blanks before s in the source, if they have the same
 * width. */
static bool take_blanks(struct blocks *b, const char *s)
{
    uintptr_t from = (uintptr_t)b->source, p = (uintptr_t)s;
    size_t at, end, width = 0;

    if (p < from || p - from > b->source_n)
        return true;
    at = end = p - from;
    while (at > 0 && (b->source[at - 1] == ' ' || b->source[at - 1] == '\t'))
        at--;
    if (at > 0 && b->source[at - 1] != '\n')
        return true;
    for (size_t i = at; i < end; i++)
        width = b->source[i] == '\t' ? (width / 4 + 1) * 4 : width + 1;
    if (width != b->indent)
        return true;
    b->n -= b->indent;
    return add(b, b->source + at, end - at);
}

static const char *reported(const struct blocks *b, const char *s, size_t *n)
{
    return parser_source(b->copy, b->source, b->source_n, s, n);
}

static int enter(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    const MD_BLOCK_CODE_DETAIL *d = detail;
    struct blocks *b = ctx;
    const char *label;
    size_t n;

    if (type != MD_BLOCK_CODE)
        return 0;
    n = d->info.size;
    label = reported(b, d->info.text, &n);
    b->is_in = true;
    b->n = 0;
    b->indent = 0;
    b->only_blanks = true;
    b->label_n = n < sizeof b->label ? n : sizeof b->label;
    if (b->label_n > 0)
        memcpy(b->label, label, b->label_n);
    return 0;
}

static int leave(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    struct blocks *b = ctx;

    (void)detail;
    if (type != MD_BLOCK_CODE)
        return 0;
    b->is_in = false;
    /* Pasted into a shell, the last newline would run the command. */
    if (b->n > 0 && b->code[b->n - 1] == '\n')
        b->n--;
    return b->block(b->ctx, b->label, b->label_n, b->code == NULL ? "" : b->code, b->n) ? 0 : 1;
}

static int span(MD_SPANTYPE type, void *detail, void *ctx)
{
    (void)type, (void)detail, (void)ctx;
    return 0;
}

static int text(MD_TEXTTYPE type, const MD_CHAR *s, MD_SIZE size, void *ctx)
{
    struct blocks *b = ctx;
    size_t n = size;

    if (!b->is_in)
        return 0;
    s = reported(b, s, &n);
    if (type == MD_TEXT_NULLCHAR) {
        s = "\xef\xbf\xbd";
        n = 3;
    }
    if (n == 1 && s[0] == '\n') {
        b->indent = 0;
        b->only_blanks = true;
    } else if (b->only_blanks && are_spaces(s, n)) {
        b->indent += n;
    } else if (b->only_blanks) {
        b->only_blanks = false;
        if (b->indent > 0 && !take_blanks(b, s))
            return 1;
    }
    return add(b, s, n) ? 0 : 1;
}

void markdown_code(const char *whole, size_t n, markdown_code_fn *block, void *ctx)
{
    const MD_PARSER parser = {
        .flags = MD_FLAG_TABLES | MD_FLAG_NOHTML,
        .enter_block = enter,
        .leave_block = leave,
        .enter_span = span,
        .leave_span = span,
        .text = text,
    };
    struct blocks b = { .block = block, .ctx = ctx, .source = whole, .source_n = n };
    char *copy = parser_input(whole, n);

    if (copy == NULL)
        return;
    b.copy = copy;
    (void)md_parse(copy, (MD_SIZE)n, &parser, &b);
    free(b.code);
    free(copy);
}
