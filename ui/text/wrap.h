/*
 * wrap.h - one line of text broken into rows by display width.
 *
 * Text is clean (clean.h), without newlines.  The first row may have less room than the
 * others (a bullet, a label).  Rows are byte ranges: rows + the blanks that vanish between
 * two of them are the text, so nothing is lost and a row can be mapped back.
 *
 * Breaks: after blanks (which vanish), after a hyphen between letters, before and after
 * CJK characters except where punctuation forbids, and between clusters where a word is
 * longer than the row.  In code there are no words: rows are full, blanks stay.
 *
 * A line that grows is wrapped again only from its last row that could change.
 */
#ifndef MEMWALL_UI_TEXT_WRAP_H
#define MEMWALL_UI_TEXT_WRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRAP_MIN_WIDTH 4 /* below it there are no rows */

struct wrap_row {
    uint32_t start, end; /* bytes of the text; the next row's start may be later */
};

struct wrap {
    struct wrap_row *row; /* [n_row] */
    uint32_t n_row, room;
};

enum wrap_how { WRAP_WORDS, WRAP_CODE };

/*
 * Break text[0 .. n) into rows of at most first columns for the first and rest columns for
 * the others; an empty text is one empty row.  With from > 0, *w holds the rows of an
 * earlier call with the same widths, and the first from bytes of the text are the same as
 * then: rows that cannot have changed are kept.  first or rest below WRAP_MIN_WIDTH: no
 * rows.  Returns false when memory is out; *w then has no rows.
 */
bool wrap_text(struct wrap *w, const char *text, size_t n, int first, int rest,
               enum wrap_how how, size_t from);

void wrap_free(struct wrap *w); /* back to all zero */

#endif
