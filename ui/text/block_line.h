/*
 * block_line.h - a line of Markdown with its marks of quotes and items, for those who change the
 * parser's copy of a text.
 */
#ifndef MEMWALL_UI_TEXT_BLOCK_LINE_H
#define MEMWALL_UI_TEXT_BLOCK_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct block_line {
    const char *text;
    size_t at, end, next; /* end: without the newline */
    size_t body;          /* after blanks and marks of quotes */
    size_t words;         /* after marks of items too */
    size_t indent;        /* blanks between the last mark of a quote and body */
};

/* Read the line at text[at .. n). */
struct block_line block_line_read(const char *text, size_t at, size_t n);

/* Returns the end of the mark of an item at text[at .. end) with its blanks, or at. */
size_t block_line_mark(const char *text, size_t at, size_t end);

/* Keep in *fence the character of the fence that is open after the line, 0 for none.  Returns
 * whether the line is in the code or is a fence. */
bool block_line_in_code(const struct block_line *l, char *fence);

#endif
