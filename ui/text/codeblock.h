/*
 * codeblock.h - lines of code, coloured, with a label above and a line below.
 *
 * Code has no frame at its sides, so that the terminal's own selection copies it unchanged.
 * Long lines continue after a mark.
 */
#ifndef MEMWALL_UI_TEXT_CODEBLOCK_H
#define MEMWALL_UI_TEXT_CODEBLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/text/inline.h"
#include "ui/text/rich.h"

#define CODEBLOCK_PREFIX 256

struct codeblock {
    struct rich *r;
    struct inlines in;
    int width;
    bool ascii;
    uint8_t language, open; /* for highlight_line */
    bool in_line;
    char prefix[CODEBLOCK_PREFIX]; /* before each line */
};

/* Begin; the caller has set r, width, ascii, language, open and prefix. */
void codeblock_label(struct codeblock *b, const char *label, size_t n);
/* Add a part of a line: from byte src of the source, or our own text. */
void codeblock_source(struct codeblock *b, const char *text, size_t n, size_t src);
void codeblock_ours(struct codeblock *b, const char *text, size_t n);
/* End the line. */
void codeblock_line(struct codeblock *b);
/* Draw the line below the block. */
void codeblock_end(struct codeblock *b);

#endif
