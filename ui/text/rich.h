/*
 * rich.h - rendered text before it is wrapped: lines of clean text, with runs that give its
 * look and the bytes of the source it represents.
 *
 *     source    Some **bold** text & <tab>
 *     text      Some bold text &     <- clean, markup gone
 *     runs      |    |   |        |     {Some } {bold, UI_BOLD} { text } …
 *     line      one; wrapping (wrap.h) makes rows of it
 *
 * A line has a prefix for its first row (the bar of a quote, a bullet) and one for its other
 * rows; prefixes are not part of the text.  Copying takes the source of the runs, after the
 * mark of the line ("- ", "2. ").
 */
#ifndef MEMWALL_UI_TEXT_RICH_H
#define MEMWALL_UI_TEXT_RICH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/look/role.h"
#include "ui/text/wrap.h"
#include "ui/words/clean.h"

enum rich_kind {
    RICH_SAME,  /* bytes of the source */
    RICH_FOR,   /* represents src_n bytes of the source */
    RICH_OURS,  /* not in the source, but part of the content: copied as shown */
    RICH_FRAME, /* neither in the source nor copied */
};

struct rich_run {
    uint32_t at; /* byte of text; the run ends at the next one */
    uint32_t src, src_n;
    uint8_t kind, role, attr;
};

struct rich_line {
    uint32_t at;                /* byte of text; the line ends at the next one */
    uint32_t first, rest, mark; /* strings in deco: the prefixes, and the mark that is copied */
    uint8_t role;               /* of the prefixes */
    uint8_t how;                /* enum wrap_how */
};

struct rich_row {
    uint32_t line, start, end; /* bytes of text */
};

struct rich {
    char *text;
    struct rich_run *run;
    struct rich_line *line;
    struct rich_row *row; /* after rich_wrap */
    char *deco;           /* strings; the first one is empty */
    uint32_t n_text, n_run, n_line, n_row, n_deco;
    uint32_t room_text, room_run, room_line, room_row, room_deco;
    bool failed; /* out of memory; the existing lines are complete */
};

/* *r is all zero or was used before; its memory is reused. */
void rich_start(struct rich *r);
void rich_free(struct rich *r);
/* Free unused memory. */
void rich_trim(struct rich *r);
size_t rich_bytes(const struct rich *r);

/* Add a string for prefixes.  Returns its number, valid as long as the text. */
uint32_t rich_deco(struct rich *r, const char *s);

/* Begin a line.  first, rest and mark are numbers from rich_deco. */
void rich_line(struct rich *r, uint32_t first, uint32_t rest, uint32_t mark, enum ui_role role,
               enum wrap_how how);
/* Add clean text without newlines to the last line. */
void rich_add(struct rich *r, const char *text, size_t n, enum rich_kind kind, size_t src,
              size_t src_n, enum ui_role role, unsigned attr);
/* Change the role of bytes from .. to of the last line; call in ascending order. */
void rich_recolor(struct rich *r, uint32_t from, uint32_t to, enum ui_role role);

/* Returns the byte of text where line ends. */
uint32_t rich_line_end(const struct rich *r, uint32_t line);
/* Returns the run that contains byte at. */
const struct rich_run *rich_run_at(const struct rich *r, uint32_t at);
uint32_t rich_run_end(const struct rich *r, const struct rich_run *run);

/*
 * Make rows for a pane of width columns.  before is NULL or an earlier state of the same text
 * with rows of the same width; rows before the first difference are copied from it.
 */
void rich_wrap(struct rich *r, int width, const struct rich *before);

/* Returns the prefix of a row. */
const char *rich_prefix(const struct rich *r, uint32_t row);
/* Returns the row that shows byte at of the text. */
uint32_t rich_row_of(const struct rich *r, uint32_t at);

/* Append the source of text bytes from .. to, lines separated by newlines, to *out (from
 * realloc, *n bytes, may be NULL).  src is the whole source.  Returns false if out of memory.
 */
bool rich_copy(const struct rich *r, uint32_t from, uint32_t to, const char *src, char **out,
               size_t *n);

#endif
