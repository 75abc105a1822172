/*
 * wrap.h - breaks one line of text into rows by display width.
 *
 * Text is clean (clean.h) and has no newlines.  The first row may be narrower than the others
 * (a bullet, a label).  Rows are byte ranges: together with the blanks dropped between two
 * rows they cover the text, so each row maps to its bytes.
 *
 * Rows break after blanks (which are dropped), after a hyphen between letters, before and
 * after CJK characters except where punctuation forbids it, and between clusters if a word is
 * longer than the row.  Code has no words: rows are filled and blanks are kept.
 *
 * After a line has grown, only the rows that could change are made again.
 */
#ifndef MEMWALL_UI_TEXT_WRAP_H
#define MEMWALL_UI_TEXT_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRAP_MIN_WIDTH 4 /* narrower panes have no rows */

struct wrap_row {
    uint32_t start, end; /* bytes of the text; the next row may start later */
};

struct wrap {
    struct wrap_row *row; /* [n_row] */
    uint32_t n_row, room;
};

enum wrap_how { WRAP_WORDS, WRAP_CODE };

/*
 * Break text[0 .. n) into rows: the first of at most first columns, the others of at most
 * rest columns.  An empty text is one empty row.  With from > 0, *w has the rows of an earlier
 * call with the same widths whose first from bytes were the same; rows that cannot have
 * changed are kept.  A width below WRAP_MIN_WIDTH gives no rows.  Returns
 * false, with no rows in *w, if out of memory.
 */
bool wrap_text(struct wrap *w, const char *text, size_t n, int first, int rest,
               enum wrap_how how, size_t from);

void wrap_free(struct wrap *w); /* leaves *w all zero */

#endif
