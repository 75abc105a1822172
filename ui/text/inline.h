/*
 * inline.h - foreign text into a line of rich text: cleaned, with its place in the source.
 */
#ifndef MEMWALL_UI_TEXT_INLINE_H
#define MEMWALL_UI_TEXT_INLINE_H

#include <stddef.h>

#include "ui/text/clean.h"
#include "ui/text/rich.h"

struct inlines {
    struct rich *r;
    struct clean clean;
    size_t src;   /* where the piece that is being fed lies in the source ... */
    size_t fed;   /* ... and what clean.at was when it began */
    size_t src_n; /* > 0: it stands for so many bytes there */
    enum rich_kind kind;
    enum ui_role role;
    unsigned attr;
};

/* The line begins (after rich_line). */
void inlines_start(struct inlines *in, struct rich *r, enum clean_how how);
/* Text that lies in the source at src. */
void inlines_source(struct inlines *in, const char *text, size_t n, size_t src);
/* Text that stands for src_n bytes of the source. */
void inlines_for(struct inlines *in, const char *text, size_t n, size_t src, size_t src_n);
/* Text that is not in the source. */
void inlines_ours(struct inlines *in, const char *text, size_t n, enum rich_kind kind);

#endif
