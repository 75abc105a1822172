/*
 * The code blocks of a text, by themselves: md4c over all of it, once, when somebody asks.
 *
 * md4c tells the blanks at the beginning of a line as so many spaces, also where the source
 * has tabs.  A Makefile must keep them, so where these blanks are all that stands in front
 * of the line's text they are taken from the source.
 */
#include "config.h"

#include <md4c.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ui/text/markdown.h"

struct blocks {
    markdown_code_fn *block;
    void *ctx;
    char label[128];
    size_t label_n;
    char *code;
    size_t n, room;
    bool is_in;
    const char *source; /* the whole text */
    size_t source_n;
    size_t indent;    /* spaces told at the beginning of the line that is being told */
    bool only_blanks; /* nothing else of it was told */
};

static bool add(struct blocks *b, const char *s, size_t n)
{
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

/* If the blanks before s in the source are as wide as the spaces that were told, put them
 * in their place. */
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

static int enter(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    const MD_BLOCK_CODE_DETAIL *d = detail;
    struct blocks *b = ctx;

    if (type != MD_BLOCK_CODE)
        return 0;
    b->is_in = true;
    b->n = 0;
    b->indent = 0;
    b->only_blanks = true;
    b->label_n = d->info.size < sizeof b->label ? d->info.size : sizeof b->label;
    if (b->label_n > 0)
        memcpy(b->label, d->info.text, b->label_n);
    return 0;
}

static int leave(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    struct blocks *b = ctx;

    (void)detail;
    if (type != MD_BLOCK_CODE)
        return 0;
    b->is_in = false;
    /* The last newline would run a command where it is pasted. */
    if (b->n > 0 && b->code[b->n - 1] == '\n')
        b->n--;
    return b->block(b->ctx, b->label, b->label_n, b->code == NULL ? "" : b->code, b->n) ? 0 : 1;
}

static int span(MD_SPANTYPE type, void *detail, void *ctx)
{
    (void)type, (void)detail, (void)ctx;
    return 0;
}

static int text(MD_TEXTTYPE type, const MD_CHAR *s, MD_SIZE n, void *ctx)
{
    struct blocks *b = ctx;

    if (!b->is_in)
        return 0;
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

    (void)md_parse(whole, (MD_SIZE)n, &parser, &b);
    free(b.code);
}
