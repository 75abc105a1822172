/*
 * parser_input.h - text as md4c reads it.
 *
 * Some versions of md4c read beyond the end of their input, and take what is there for a part of
 * it: after "[text](address", a parenthesis beyond the end completes the link.  They report more
 * than the input then.  So the parser gets a copy with zeros after it, which end everything that
 * it looks for, and what it reports is cut.
 */
#ifndef MEMWALL_UI_TEXT_PARSER_INPUT_H
#define MEMWALL_UI_TEXT_PARSER_INPUT_H

#include <stddef.h>

/* Returns a copy of text[0 .. n), which the caller frees; NULL if memory is short. */
char *parser_input(const char *text, size_t n);
/* Returns room for n bytes of such a copy, with the zeros after it. */
char *parser_room(size_t n);

/* Returns the place in text of s[0 .. *n), which the parser reported, and cuts it at the end of the
 * input; s if it is not a part of the copy. */
const char *parser_source(const char *copy, const char *text, size_t n_text, const char *s,
                          size_t *n);

#endif
