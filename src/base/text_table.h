/*
 * text_table.h - a table of short texts, aligned for a terminal or as Markdown.
 */
#ifndef MEMWALL_SRC_BASE_TEXT_TABLE_H
#define MEMWALL_SRC_BASE_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "engine/base/err.h"

#define TEXT_TABLE_CELL 56 /* bytes of a text with its NUL */

struct text_column {
    char heading[24], unit[12]; /* unit may be "" */
    bool is_left;               /* else aligned at the right */
    int rank;                   /* columns of the highest rank are left out first; 0: never */
};

struct text_table {
    struct text_column *column;    /* [n_column] */
    char (*cell)[TEXT_TABLE_CELL]; /* [n_row][n_column] */
    size_t n_column, n_row;
};

/* Allocate a table of empty cells.  Returns -1 with *e. */
int text_table_open(struct text_table *t, size_t n_column, size_t n_row, struct err *e);
void text_table_close(struct text_table *t);
char *text_table_cell(struct text_table *t, size_t row, size_t column);

/* Print with blanks between columns.  Leaves out columns that do not fit the width, and names
 * them in a line after the table. */
void text_table_print(FILE *to, const struct text_table *t, int width);
/* Print as a Markdown table with every column. */
void text_table_markdown(FILE *to, const struct text_table *t);

#endif
