/* The code blocks of a text, by themselves: md4c over all of it, once, when somebody asks. */
#include "config.h"

#include <md4c.h>
#include <stdlib.h>
#include <string.h>

#include "ui/chat/markdown.h"

struct blocks {
    markdown_code_fn *block;
    void *ctx;
    char label[128];
    size_t label_n;
    char *code;
    size_t n, room;
    bool is_in;
};

static int enter(MD_BLOCKTYPE type, void *detail, void *ctx)
{
    const MD_BLOCK_CODE_DETAIL *d = detail;
    struct blocks *b = ctx;

    if (type != MD_BLOCK_CODE)
        return 0;
    b->is_in = true;
    b->n = 0;
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
    if (b->n + n > b->room) {
        size_t room = (b->n + n) * 2;
        char *more = realloc(b->code, room);

        if (more == NULL)
            return 1;
        b->code = more;
        b->room = room;
    }
    memcpy(b->code + b->n, s, n);
    b->n += n;
    return 0;
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
    struct blocks b = { .block = block, .ctx = ctx };

    (void)md_parse(whole, (MD_SIZE)n, &parser, &b);
    free(b.code);
}
