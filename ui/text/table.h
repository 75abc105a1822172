/*
 * table.h - a table whose cells arrive one by one and whose column widths are known last.
 *
 * A table that fits the width is shown as a grid with aligned columns.  Otherwise each row
 * becomes lines of the form "head: cell", which fit every width.
 */
#ifndef MEMWALL_UI_TEXT_TABLE_H
#define MEMWALL_UI_TEXT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "ui/text/rich.h"

#define TABLE_MAX_CELLS 4096

enum table_align { TABLE_LEFT, TABLE_CENTER, TABLE_RIGHT };

struct table {
    struct rich cells; /* one line a cell */
    uint8_t *align;    /* of each cell */
    uint32_t n_col;    /* of the first row, the head */
    uint32_t n_row;
    uint32_t room;
};

void table_start(struct table *t);
void table_free(struct table *t);
void table_row(struct table *t);
/* Begin a cell; its text goes to t->cells.  Returns false if there are too many cells or no
 * memory is left. */
bool table_cell(struct table *t, enum table_align align);

/* Add the table to r; prefix (a number from rich_deco) precedes each line. */
void table_render(const struct table *t, struct rich *r, uint32_t prefix, int width,
                  bool ascii);

#endif
