/*
 * quote.h - writes names from files into texts that other programs read.
 *
 * A name is foreign text: a spreadsheet would evaluate one that begins with "=", and a page
 * made from Markdown would follow its markup.  Names are cleaned as clean_line() does, and then
 * appear there as they do on the terminal.  markup.h does the same for HTML and SVG.
 */
#ifndef MEMWALL_UI_WORDS_QUOTE_H
#define MEMWALL_UI_WORDS_QUOTE_H

#include <stdio.h>

/* Write a name as text of Markdown, in one line. */
void quote_markdown(FILE *to, const char *name);

/* Write a name as a quoted cell of CSV (RFC 4180).  If a spreadsheet could take it for a
 * formula, "'" is put before it. */
void quote_csv(FILE *to, const char *name);

/* Write a text as a word for the shell, in quotes if it needs them.  n is at least 8. */
void quote_shell(const char *text, char *buf, size_t n);

#endif
