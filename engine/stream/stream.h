/*
 * stream.h - catalogue and plan to bytes in memory at the right moment.
 *
 *     pass:   | layer 0 | layer 1 | … | layer n | head | layer 0 | …
 *     block:  run of whole rows of one tensor, at most a slot
 *     ring:   [ slot being computed ][ read ahead ][ read ahead ][ in flight ] …
 *     pinned: blocks spread evenly over the pass that stay in memory
 *
 * The order of blocks is known and the same for ever, so nothing is guessed: a reader
 * thread keeps the wanted depth of reads in flight in schedule order, over the end of
 * a pass into the next one.  The engine thread takes the next block or waits; the wait
 * is the stall.  Blocks that are to be pinned are read straight to their pinned place
 * by the first pass and never again.
 *
 * Lookup rows (embeddings) and experts go by a queue of their own, ahead of blocks.
 * Direct I/O leaves nothing in the page cache.
 */
#ifndef MEMWALL_ENGINE_STREAM_STREAM_H
#define MEMWALL_ENGINE_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/stream/shape.h"
#include "engine/telemetry/telemetry.h"

/* Rows of one tensor that a pass uses, in the order of the pass. */
struct stream_span {
    uint32_t file;
    uint64_t offset;    /* of row 0 of the span, bytes from the start of the file */
    uint64_t row_bytes; /* > 0 */
    uint64_t n_row;
    uint32_t layer; /* for accounting; n_layer: the head */
    bool in_prompt; /* a prompt pass uses it; all spans that it uses come first */
};

enum stream_io { STREAM_AUTO, STREAM_DIRECT, STREAM_BUFFERED, STREAM_MMAP };

struct stream_options {
    enum stream_io io;
    bool mmap_drop;        /* mmap: drop pages behind the read position */
    bool no_uring;         /* use pread threads even where io_uring is there */
    uint32_t n_slot;       /* of the ring, 2 to STREAM_SLOTS_MAX; 0: everything is pinned */
    uint64_t pinned_bytes; /* for pinned blocks, rounding included */
    uint64_t lookup_bytes; /* as stream_lookup_bytes() says; 0: the smallest that works */
    /* What probes measured, 0: they did not.  auto is not direct where that is slow. */
    double direct_bytes_s, buffered_bytes_s;
};

struct stream;

/* What the stream needs beside slots, pinned blocks and lookup buffers: its tables, its
 * thread, the rings shared with the kernel.  Pure. */
uint64_t stream_overhead_bytes(uint32_t n_span, uint32_t n_block, uint32_t n_file);

/*
 * Start the reader.  spans are copied; the catalogue must outlive the stream.  Counters
 * go to t.  Everything that is filled at once (ring) is mapped and touched here.
 * Returns 0, or -1 with *e.
 */
int stream_open(struct stream **out, const struct catalogue *c, const struct stream_span *spans,
                uint32_t n_span, const struct stream_shape *shape,
                const struct stream_options *options, struct telemetry *t, struct err *e);
void stream_close(struct stream *s); /* joins the reader; NULL is fine */

/* What the stream chose: "direct/io_uring", "direct/pread", "buffered", "mmap", and why
 * ("" or a sentence).  Static as long as the stream. */
const char *stream_io_name(const struct stream *s);
const char *stream_io_reason(const struct stream *s);

/* --- a pass: engine thread only --- */

struct stream_block {
    uint32_t index; /* in the schedule */
    uint32_t span;
    uint64_t row, n_row; /* rows row … row + n_row of the span */
    const void *data;    /* of row `row`; any alignment */
    bool is_pinned;
};

/* Begin a pass: of all spans, or of the prompt's only. */
int stream_pass_begin(struct stream *s, bool is_prompt, struct err *e);

/*
 * The next block of the pass, in order; waits until it is in memory and adds the wait
 * to *stall_ns.  Returns 0; -1 with *e: a failed, short or cancelled read (the pass is
 * to be ended).  After the last block of the pass the caller ends the pass.
 */
int stream_next(struct stream *s, struct stream_block *block, uint64_t *stall_ns,
                struct err *e);

/* The block's memory may be used again.  Blocks are given back in the order taken. */
void stream_give(struct stream *s, const struct stream_block *block);

/* End a pass, finished or not; the reader stands before the first block again.  Checks
 * that the files are what they were (once a pass). */
int stream_pass_end(struct stream *s, struct err *e);

/* --- lookups: engine thread only --- */

struct stream_lookup {
    uint32_t file;
    uint64_t offset, bytes;
    void *dst; /* bytes bytes, filled when stream_lookup_wait returns */
};

/* Request all rows at once; order and duplicates do not matter.  lookups and dst must
 * stay until the wait.  Neighbours are merged, reads are rounded out to the alignment.
 * Rows of 64 KiB and more are read without a copy in between if the address of dst is, modulo
 * 4096, what offset is. */
int stream_lookup_start(struct stream *s, const struct stream_lookup *lookups, size_t n,
                        struct err *e);
int stream_lookup_wait(struct stream *s, struct err *e);
/* Buffers that lookups of n_token rows of each table need inside the stream (plan's
 * `rows`, beside the dst of the caller).  Bounded: what does not fit at once goes by
 * turns. */
uint64_t stream_lookup_bytes(const uint64_t *row_bytes, size_t n_table, size_t n_token);

/* Read a small range now, without leaving it in the page cache (norms at start). */
int stream_read_now(const struct catalogue *c, uint32_t file, uint64_t offset, uint64_t bytes,
                    void *dst, struct err *e);

/* --- memory --- */

/*
 * Change what may be pinned, between passes.  Shrinking gives memory back at once
 * (madvise), so that the charge really falls; growing fills during the next passes.
 * Which blocks are pinned is spread evenly over the pass.
 */
int stream_set_pinned(struct stream *s, uint64_t pinned_bytes, struct err *e);

/* The same with another number of slots: a whole change of the budget, without reading
 * again what stays pinned.  n_slot 0 needs room for everything. */
int stream_set_memory(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes, struct err *e);

/* Memory of the pinned blocks that hold data now, rounding included; bytes that a full
 * pass reads from the files once all that may be pinned is. */
uint64_t stream_pinned_now(const struct stream *s);
uint64_t stream_streamed_bytes(const struct stream *s);

/* From any thread: make a waiting or coming stream_next return ERR_CANCELLED until the
 * next stream_pass_begin. */
void stream_cancel(struct stream *s);

#endif
