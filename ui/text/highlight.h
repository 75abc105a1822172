/*
 * highlight.h - colours for code: a table of languages, one scanner for all of them.
 *
 * A language is a set of keywords, comment marks and string marks.  There is no parser: this
 * is enough to distinguish keywords, strings and comments while an answer streams.  A line
 * depends only on the comment or string that is open at its start.
 */
#ifndef MEMWALL_UI_TEXT_HIGHLIGHT_H
#define MEMWALL_UI_TEXT_HIGHLIGHT_H

#include <stddef.h>
#include <stdint.h>

#include "ui/look/role.h"

/* Returns the language of a fence's label ("python", "C++", "{.rust}"); 0: unknown. */
uint8_t highlight_language(const char *label, size_t n);

/* Bytes from .. to of the line have this role; the rest is ROLE_CODE. */
typedef void highlight_fn(void *ctx, size_t from, size_t to, enum ui_role role);

/* Colour one line, given without its newline.  open is the result for the previous line, 0 for
 * the first.  fn may be NULL.  Returns what is open at the end. */
uint8_t highlight_line(uint8_t language, uint8_t open, const char *text, size_t n,
                       highlight_fn *fn, void *ctx);

#endif
