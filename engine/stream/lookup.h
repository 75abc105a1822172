/*
 * lookup.h - a few rows of large tables, wherever they lie.
 *
 *     rows wanted, sorted:  [r3][r3][r4]      [r9]            [r12 …… long …… ]
 *     reads:               |rounded out|   |rounded out|   |   piece   |   piece   |
 *
 * All rows of a chunk are asked for at once.  Reads are rounded out to the alignment and
 * go into cells, from which the rows are copied; rows that lie close share a cell, a
 * row that is longer than a cell is read in pieces.  What finds no free cell waits.
 * The whole pages of a long row whose destination lies as it does in the file, modulo the
 * alignment, are read straight into it in large pieces (experts).
 *
 * Not locked: the stream's lock is held around all calls.
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
#define LOOKUP_STRAIGHT   ((size_t)1 << 20)
#define LOOKUP_BATCH      2048 /* rows sorted together */

struct lookup_cell {
    struct read_op op;
    uint64_t lo, hi;   /* of the file that it fetches */
    size_t first, end; /* rows in the order sorted that may lie in it; none: read straight */
};

struct lookup {
    unsigned char *buffer; /* [n_cell][LOOKUP_CELL_BYTES] */
    uint32_t *order;       /* [LOOKUP_BATCH] */
    struct lookup_cell cells[LOOKUP_CELLS];
    uint32_t n_cell, n_flying;
    const struct stream_lookup *rows; /* of the batch */
    size_t n_row;
    size_t next;      /* in order: the row that the next read begins with */
    uint64_t next_at; /* … and the byte of it */
    bool stopped;     /* after an error: no more reads */
};

/* Buffers and table for lookups of so many rows. */
uint32_t lookup_cells(const uint64_t *row_bytes, size_t n_table, size_t n_token);
uint64_t lookup_bytes(uint32_t n_cell);
void lookup_init(struct lookup *l, void *memory, uint32_t n_cell);

/* Begin a batch of at most LOOKUP_BATCH rows, which stay where they are. */
void lookup_begin(struct lookup *l, const struct stream_lookup *rows, size_t n_row);
/* The next read; NULL: no cell is free, or nothing is left to be read. */
struct read_op *lookup_next(struct lookup *l);
/* A read is done (or failed: then no more are begun): copy its rows, free its cell. */
void lookup_finish(struct lookup *l, struct read_op *op, bool is_read);
bool lookup_is_done(const struct lookup *l);

#endif
