/*
 * lookup.h - reads a few rows of large tables, anywhere in the files.
 *
 *     rows, sorted:  [r3][r3][r4]      [r9]            [r12 …… long …… ]
 *     reads:        |rounded out|   |rounded out|   |   piece   |   piece   |
 *
 * All rows of a chunk are requested at once.  Reads are rounded out to the alignment and go
 * into cells, from which the rows are copied.  Rows close to each other share a cell, and a
 * row longer than a cell is read in pieces.  Rows wait while no cell is free.  If a long
 * row's destination has the same alignment as its file offset, its complete pages are read
 * directly into place in large pieces (used for experts).
 *
 * Not locked: the caller holds the stream's lock.
 */
#ifndef MEMWALL_ENGINE_STREAM_LOOKUP_H
#define MEMWALL_ENGINE_STREAM_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/stream/backend.h"
#include "engine/stream/stream.h"

#define LOOKUP_CELLS      32
#define LOOKUP_CELL_BYTES ((size_t)32 << 10)
#define LOOKUP_STRAIGHT   ((size_t)1 << 20) /* of a row that is read into place */
#define LOOKUP_BATCH      2048              /* rows sorted together */

struct lookup_cell {
    struct read_op op;
    uint64_t lo, hi;   /* bytes of the file that it fetches */
    size_t first, end; /* rows, sorted, that may be in it; none: it reads into place */
};

struct lookup {
    unsigned char *buffer; /* [n_cell][LOOKUP_CELL_BYTES] */
    uint32_t *order;       /* [LOOKUP_BATCH] */
    struct lookup_cell cells[LOOKUP_CELLS];
    uint32_t n_cell, n_flying;
    const struct stream_lookup *rows; /* of the batch */
    uint32_t first_file;              /* added to their files */
    size_t n_row;
    size_t next;      /* in order: the row that the next read begins with, */
    uint64_t next_at; /* and the byte of that row */
    bool stopped;     /* after an error no more reads begin */
};

/* Number of cells, and bytes of cells and table, for n_token rows of each table. */
uint32_t lookup_cells(const uint64_t *row_bytes, size_t n_table, size_t n_token);
uint64_t lookup_bytes(uint32_t n_cell);
void lookup_init(struct lookup *l, void *memory, uint32_t n_cell);

/* Begin a batch of at most LOOKUP_BATCH rows, whose files count from first_file on; they must
 * stay until it is done. */
void lookup_begin(struct lookup *l, const struct stream_lookup *rows, size_t n_row,
                  uint32_t first_file);
/* The next read; NULL: no cell is free, or every read has begun. */
struct read_op *lookup_next(struct lookup *l);
/* Copy the rows of a finished read and free its cell.  After a failed read no more begin. */
void lookup_finish(struct lookup *l, struct read_op *op, bool is_read);
bool lookup_is_done(const struct lookup *l);

#endif
