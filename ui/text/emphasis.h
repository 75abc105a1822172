/*
 * emphasis.h - lets emphasis begin and end beside Chinese, Japanese and Korean characters.
 *
 * Markdown finds out by white space and punctuation whether ** begins or ends emphasis.  These
 * scripts have no spaces between words, so its rules show the marks around a quoted word in the
 * middle of a sentence.  The parser gets a copy in which the characters beside the marks are others
 * of the same length that its rules allow; the text itself is shown.
 */
#ifndef MEMWALL_UI_TEXT_EMPHASIS_H
#define MEMWALL_UI_TEXT_EMPHASIS_H

#include <stddef.h>

/* Replace characters in a copy of text[0 .. n). */
void emphasis_allow(char *copy, const char *text, size_t n);

#endif
