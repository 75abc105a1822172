/*
 * formula.h - shows formulas and products exactly as they are written.
 *
 * Markdown takes the stars, underscores and backslashes of a formula for marks and drops them,
 * which leaves a wrong formula.  The parser gets a copy in which the punctuation of formulas is
 * replaced by letters; the text itself is shown.
 *
 * A formula is $...$ or \(...\) within a line, or $$...$$ or \[...\], also of several lines if
 * they begin or end a line, or an environment, \begin{align*}...\end{align*}, of one or several
 * lines.  As in pandoc, the opening $ is not followed by a blank, and the
 * closing $ is not preceded by a blank and not followed by a digit, so prices are not formulas.
 */
#ifndef MEMWALL_UI_TEXT_FORMULA_H
#define MEMWALL_UI_TEXT_FORMULA_H

#include <stddef.h>

/* Replace characters in a copy of text[0 .. n). */
void formula_protect(char *copy, const char *text, size_t n);

/* Returns which formula is open after the line at text[at .. next): the second character of its
 * closing mark, the number of open environments, or 0 for none.  open: that of the line before. */
char formula_open(const char *text, size_t at, size_t next, char open);

#endif
