/*
 * table_input.h - gives the Markdown parser the tables that it does not find by itself.
 *
 * md4c begins a table only at the start of a paragraph, and its versions before 0.5 want three
 * characters in each cell of the row of dashes.  Answers often have a table directly after a line
 * of text, or one dash in a cell.  GitHub shows both as tables.  So a blank line and dashes are
 * inserted in the parser's copy, and what the parser reports is mapped back to the source.
 */
#ifndef MEMWALL_UI_TEXT_TABLE_INPUT_H
#define MEMWALL_UI_TEXT_TABLE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

struct table_gap {
    size_t at; /* in the text without insertions */
    size_t n;  /* bytes inserted here and before */
    bool dash; /* dashes, else a blank line */
};

struct table_input {
    struct table_gap *gap; /* [n_gap], in order */
    size_t n_gap, room;
};

/* Insert what tables need.  *copy is from parser_input and has *n bytes; it is replaced by a larger
 * one if necessary.  Returns false if memory is short. */
bool table_input_allow(struct table_input *t, char **copy, size_t *n);
void table_input_free(struct table_input *t);

/* Returns the position before the insertions of byte at of the copy. */
size_t table_input_source(const struct table_input *t, size_t at);

#endif
