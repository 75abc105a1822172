/*
 * highlight.h - colours for code: a table of languages, one scanner for all of them.
 *
 * A language is keywords, comment marks and string marks.  That is enough to tell words
 * from text and comments from code, which is what one wants to see while an answer comes;
 * it is no parser.  A line is coloured knowing only what was open at its beginning, so
 * that code can be coloured as it streams.
 */
#ifndef MEMWALL_UI_TEXT_HIGHLIGHT_H
#define MEMWALL_UI_TEXT_HIGHLIGHT_H

#include <stddef.h>
#include <stdint.h>

#include "ui/term/role.h"

/* The language of a fence's label ("python", "C++", "{.rust}"); 0: none that is known. */
uint8_t highlight_language(const char *label, size_t n);

/* Bytes from .. to of the line are of this role; the rest is ROLE_CODE. */
typedef void highlight_fn(void *ctx, size_t from, size_t to, enum ui_role role);

/* Colour one line without its newline; open: what the line before returned, 0 for the
 * first.  fn may be NULL.  Returns what is open at its end. */
uint8_t highlight_line(uint8_t language, uint8_t open, const char *text, size_t n,
                       highlight_fn *fn, void *ctx);

#endif
