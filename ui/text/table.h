/*
 * table.h - a table whose cells come one by one and whose columns are known at the end.
 *
 * If it fits the width, a grid with aligned columns; else each row as lines of its own,
 * "head: cell", which every width can show.
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
/* A cell begins: text goes to t->cells.  false: too many cells, or no memory. */
bool table_cell(struct table *t, enum table_align align);

/* The whole table into r; prefix (a number of rich_deco) stands before each line. */
void table_render(const struct table *t, struct rich *r, uint32_t prefix, int width,
                  bool ascii);

#endif
