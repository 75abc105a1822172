/*
 * rich.h - text as it is shown, before it has rows: lines of clean text, with runs that
 * say how it looks and which bytes of the source it stands for.
 *
 *     source    Some **bold** text & <tab>
 *     text      Some bold text &     <- clean, markup gone
 *     runs      |    |   |        |     {Some } {bold, UI_BOLD} { text } …
 *     line      one; wrapping (wrap.h) makes rows of it
 *
 * In front of a line stands its prefix (a quote's bar, a bullet), another one in front of
 * its rows but the first; prefixes are not part of the text.  What is copied is the source
 * of the runs, with the line's own mark ("- ", "2. ") in front.
 */
#ifndef MEMWALL_UI_TEXT_RICH_H
#define MEMWALL_UI_TEXT_RICH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/term/role.h"
#include "ui/text/clean.h"
#include "ui/text/wrap.h"

enum rich_kind {
    RICH_SAME,  /* the source's bytes */
    RICH_FOR,   /* stands for src_n bytes of the source */
    RICH_OURS,  /* not in the source, but part of what is said: copied as it is shown */
    RICH_FRAME, /* neither in the source nor copied */
};

struct rich_run {
    uint32_t at; /* byte of text; the run ends where the next one begins */
    uint32_t src, src_n;
    uint8_t kind, role, attr;
};

struct rich_line {
    uint32_t at;                /* byte of text; ends where the next one begins */
    uint32_t first, rest, mark; /* strings in deco: prefixes, and what is copied first */
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
    char *deco;           /* strings; the one at 0 is empty */
    uint32_t n_text, n_run, n_line, n_row, n_deco;
    uint32_t room_text, room_run, room_line, room_row, room_deco;
    bool failed; /* memory was out; what is there is whole */
};

/* *r is all zero or was used before; its memory is used again. */
void rich_start(struct rich *r);
void rich_free(struct rich *r);
/* Give back what is not used. */
void rich_trim(struct rich *r);
size_t rich_bytes(const struct rich *r);

/* A string for prefixes; the number lives as long as the text. */
uint32_t rich_deco(struct rich *r, const char *s);

/* Begin a line.  Numbers are of rich_deco. */
void rich_line(struct rich *r, uint32_t first, uint32_t rest, uint32_t mark, enum ui_role role,
               enum wrap_how how);
/* Add clean text without newlines to the last line. */
void rich_add(struct rich *r, const char *text, size_t n, enum rich_kind kind, size_t src,
              size_t src_n, enum ui_role role, unsigned attr);
/* Give another role to bytes from .. to of the last line's text; in rising order. */
void rich_recolor(struct rich *r, uint32_t from, uint32_t to, enum ui_role role);

/* Where line ends in text. */
uint32_t rich_line_end(const struct rich *r, uint32_t line);
/* The run that holds byte at. */
const struct rich_run *rich_run_at(const struct rich *r, uint32_t at);
uint32_t rich_run_end(const struct rich *r, const struct rich_run *run);

/*
 * Make rows for a pane of width columns.  before: NULL, or an earlier state of the same
 * text with rows of the same width: what is the same up to where the two differ is taken
 * from it.
 */
void rich_wrap(struct rich *r, int width, const struct rich *before);

/* The prefix of a row. */
const char *rich_prefix(const struct rich *r, uint32_t row);
/* The row that shows byte at of the text. */
uint32_t rich_row_of(const struct rich *r, uint32_t at);

/* Append the source of text bytes from .. to (src: all of it), lines parted by newlines,
 * to what *out is (for realloc, *n bytes, *out may be NULL).  false: no memory. */
bool rich_copy(const struct rich *r, uint32_t from, uint32_t to, const char *src, char **out,
               size_t *n);

#endif
