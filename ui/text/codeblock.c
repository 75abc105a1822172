#include "config.h"

#include "ui/text/codeblock.h"

#include <stdio.h>
#include <string.h>

#include "ui/text/highlight.h"
#include "ui/words/clean.h"
#include "ui/words/cluster.h"

#define LABEL_WIDTH 40 /* columns of the label and of the line below */

static void frame_line(struct codeblock *b, const char *label)
{
    const char *dash = b->ascii ? "-" : "\xe2\x94\x80";
    int room = b->width - cluster_width(b->prefix, strlen(b->prefix)), used = 0;
    size_t n = strlen(label);
    uint32_t prefix = rich_deco(b->r, b->prefix);

    room = room > LABEL_WIDTH ? LABEL_WIDTH : room;
    rich_line(b->r, prefix, prefix, 0, ROLE_QUOTE, WRAP_CODE);
    if (n > 0) {
        for (; used < 2; used++)
            rich_add(b->r, dash, strlen(dash), RICH_FRAME, 0, 0, ROLE_CODE_LABEL, 0);
        rich_add(b->r, " ", 1, RICH_FRAME, 0, 0, ROLE_CODE_LABEL, 0);
        rich_add(b->r, label, n, RICH_FRAME, 0, 0, ROLE_CODE_LABEL, 0);
        rich_add(b->r, " ", 1, RICH_FRAME, 0, 0, ROLE_CODE_LABEL, 0);
        used += 2 + cluster_width(label, n);
    }
    for (; used < room; used++)
        rich_add(b->r, dash, strlen(dash), RICH_FRAME, 0, 0, ROLE_CODE_LABEL, 0);
}

void codeblock_label(struct codeblock *b, const char *label, size_t n)
{
    int room = b->width - cluster_width(b->prefix, strlen(b->prefix)) - 6;
    char clean[LABEL_WIDTH + 1]; /* longer labels are cut */
    size_t len = clean_line(clean, sizeof clean, label, n);
    bool fits = n < LABEL_WIDTH && cluster_width(clean, len) <= room &&
                cluster_width(clean, len) <= LABEL_WIDTH - 6;
    uint32_t prefix;

    frame_line(b, fits ? clean : "");
    if (fits || n == 0)
        return;
    prefix = rich_deco(b->r, b->prefix);
    rich_line(b->r, prefix, prefix, 0, ROLE_QUOTE, WRAP_WORDS);
    inlines_start(&b->in, b->r, CLEAN_CODE);
    b->in.role = ROLE_CODE_LABEL;
    b->in.attr = 0;
    inlines_ours(&b->in, label, n, RICH_FRAME);
}

static void begin_line(struct codeblock *b)
{
    char rest[CODEBLOCK_PREFIX + 8];
    uint32_t first = rich_deco(b->r, b->prefix);

    if (b->in_line)
        return;
    b->in_line = true;
    snprintf(rest, sizeof rest, "%s%s", b->prefix, b->ascii ? "> " : "\xe2\x86\xb3 ");
    rich_line(b->r, first, rich_deco(b->r, rest), 0, ROLE_DIM, WRAP_CODE);
    inlines_start(&b->in, b->r, CLEAN_CODE);
    b->in.role = ROLE_CODE;
    b->in.attr = 0;
}

void codeblock_source(struct codeblock *b, const char *text, size_t n, size_t src)
{
    begin_line(b);
    inlines_source(&b->in, text, n, src);
}

void codeblock_ours(struct codeblock *b, const char *text, size_t n)
{
    begin_line(b);
    inlines_ours(&b->in, text, n, RICH_OURS);
}

static void recolor(void *ctx, size_t from, size_t to, enum ui_role role)
{
    struct rich *r = ctx;
    uint32_t at = r->line[r->n_line - 1].at;

    rich_recolor(r, at + (uint32_t)from, at + (uint32_t)to, role);
}

void codeblock_line(struct codeblock *b)
{
    uint32_t at;

    begin_line(b);
    b->in_line = false;
    if (b->r->failed)
        return;
    at = b->r->line[b->r->n_line - 1].at;
    b->open =
        highlight_line(b->language, b->open, b->r->text + at, b->r->n_text - at, recolor, b->r);
}

void codeblock_end(struct codeblock *b)
{
    frame_line(b, "");
}
