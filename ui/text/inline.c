#include "config.h"

#include "ui/text/inline.h"

#include <string.h>

/* A newline can only come from an entity or a separator character.  It becomes a blank, since
 * it does not end the line. */
static void add(struct inlines *in, const char *text, size_t n, size_t src, size_t src_n,
                enum clean_kind kind)
{
    enum ui_role role = kind == CLEAN_ODD ? ROLE_ODD : in->role;

    if (in->kind == RICH_SAME)
        rich_add(in->r, text, n, kind == CLEAN_SAME ? RICH_SAME : RICH_FOR,
                 in->src + (src - in->fed), src_n, role, in->attr);
    else
        rich_add(in->r, text, n, in->kind, in->src, in->src_n, role, in->attr);
    if (in->kind == RICH_FOR)
        in->src_n = 0; /* copy the source only once */
}

static void take(void *ctx, const char *text, size_t n, size_t src, size_t src_n,
                 enum clean_kind kind)
{
    size_t i = 0;

    if (kind != CLEAN_SAME) {
        add(ctx, text[0] == '\n' ? " " : text, n, src, src_n, kind);
        return;
    }
    while (i < n) {
        const char *end = memchr(text + i, '\n', n - i);
        size_t len = end == NULL ? n - i : (size_t)(end - text) - i;

        if (len > 0)
            add(ctx, text + i, len, src + i, len, kind);
        if (end != NULL)
            add(ctx, " ", 1, src + i + len, 1, CLEAN_GAP);
        i += len + (end != NULL);
    }
}

void inlines_start(struct inlines *in, struct rich *r, enum clean_how how)
{
    in->r = r;
    clean_start(&in->clean, how);
}

static void feed(struct inlines *in, const char *text, size_t n)
{
    in->fed = in->clean.at;
    clean_feed(&in->clean, text, n, take, in);
    clean_cut(&in->clean, take, in);
}

void inlines_source(struct inlines *in, const char *text, size_t n, size_t src)
{
    in->kind = RICH_SAME;
    in->src = src;
    in->src_n = 0;
    feed(in, text, n);
}

void inlines_for(struct inlines *in, const char *text, size_t n, size_t src, size_t src_n)
{
    in->kind = RICH_FOR;
    in->src = src;
    in->src_n = src_n;
    feed(in, text, n);
}

void inlines_ours(struct inlines *in, const char *text, size_t n, enum rich_kind kind)
{
    in->kind = kind;
    in->src = 0;
    in->src_n = 0;
    feed(in, text, n);
}
