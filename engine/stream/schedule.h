/*
 * schedule.h - spans of rows cut into blocks, in the order of a pass.
 *
 *     span:    | rows of one tensor that a pass uses               |
 *     blocks:  | block 0      | block 1      | block 2      | rest |
 *
 * A block is the unit of reading, pinning, computing and accounting.  It has complete rows and
 * at most the target's bytes; a single row may be larger.  The blocks of a span are about
 * equal, since a small rest would cost a read of its own.  Nothing is stored for a block: its
 * place is computed from the span.
 *
 * Files are read in units of SCHEDULE_ALIGN, which every device with direct reads accepts.
 * read_offset and read_bytes are the block rounded out to these units.
 */
#ifndef MEMWALL_ENGINE_STREAM_SCHEDULE_H
#define MEMWALL_ENGINE_STREAM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/stream/stream.h"

#define SCHEDULE_ALIGN ((uint64_t)4096)

struct schedule_span {
    struct stream_span span;
    uint64_t block_rows; /* of every block except the last */
    uint32_t first_block, n_block;
    bool begins_layer; /* first span of its layer in the pass */
};

struct schedule {
    struct schedule_span *spans; /* [n_span] */
    uint32_t n_span;
    uint32_t n_block;
    uint32_t n_prompt_block; /* a prompt pass has these first blocks */
};

/* The position of a walk through the schedule. */
struct schedule_at {
    uint32_t block, span;
};

struct schedule_block {
    uint32_t file, layer, span;
    bool begins_layer;
    uint64_t row, n_row;
    uint64_t offset, bytes;           /* of the rows in the file */
    uint64_t read_offset, read_bytes; /* rounded out; may reach past the end of the file */
    uint64_t place_bytes;             /* in memory when pinned: read_bytes, or of its form */
};

uint64_t schedule_bytes(uint32_t n_span);

/* The read_bytes of the largest block of these spans, and in *n_block the number of blocks.
 * Spans that schedule_make refuses are left out. */
uint64_t schedule_measure(const struct stream_span *spans, uint32_t n_span, size_t target,
                          uint32_t *n_block);

/*
 * Cut spans into blocks.  The schedule uses schedule_bytes(n_span) bytes at `memory`.
 * Returns 0, or -1 with *e if a span overflows.
 */
int schedule_make(struct schedule *s, void *memory, const struct stream_span *spans,
                  uint32_t n_span, size_t target, struct err *e);

/* Compute the block at `at`, which is before the end. */
void schedule_get(const struct schedule *s, const struct schedule_at *at,
                  struct schedule_block *out);

/* Go to the next block; schedule_begin() returns the first. */
void schedule_next(const struct schedule *s, struct schedule_at *at);
struct schedule_at schedule_begin(const struct schedule *s);

#endif
