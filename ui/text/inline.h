/*
 * inline.h - adds foreign text to a line of rich text, cleaned and mapped to its source.
 */
#ifndef MEMWALL_UI_TEXT_INLINE_H
#define MEMWALL_UI_TEXT_INLINE_H

#include <stddef.h>

#include "ui/text/rich.h"
#include "ui/words/clean.h"

struct inlines {
    struct rich *r;
    struct clean clean;
    size_t src;   /* position in the source of the current piece */
    size_t fed;   /* clean.at at the start of that piece */
    size_t src_n; /* > 0: the piece represents this many bytes of the source */
    enum rich_kind kind;
    enum ui_role role;
    unsigned attr;
};

/* Begin a line, after rich_line. */
void inlines_start(struct inlines *in, struct rich *r, enum clean_how how);
/* Add text from byte src of the source. */
void inlines_source(struct inlines *in, const char *text, size_t n, size_t src);
/* Add text that represents src_n bytes of the source. */
void inlines_for(struct inlines *in, const char *text, size_t n, size_t src, size_t src_n);
/* Add text that is not in the source. */
void inlines_ours(struct inlines *in, const char *text, size_t n, enum rich_kind kind);

#endif
