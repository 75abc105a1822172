/*
 * markup.h - foreign text inside XML and HTML.
 *
 * Names of models and files may hold anything.  Written with these functions they are text:
 * they can neither end an element or attribute nor reorder the text around them.  Broken UTF-8
 * and characters that XML forbids become U+FFFD, and invisible formatting characters are
 * removed.
 */
#ifndef MEMWALL_UI_WORDS_MARKUP_H
#define MEMWALL_UI_WORDS_MARKUP_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Write text for the content of an element or for an attribute in quotes. */
void markup_text(FILE *to, const char *text);
void markup_text_n(FILE *to, const char *text, size_t n);

/* Write as printf does, the result (at most 2047 bytes) as markup_text(). */
void markup_printf(FILE *to, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void markup_vprintf(FILE *to, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

#endif
