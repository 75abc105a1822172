/*
 * stream.h - brings a model's weights from disk into memory in the order they are used.
 *
 *     pass:   | layer 0 | layer 1 | … | layer n | head | layer 0 | …
 *     block:  run of whole rows of one tensor, at most a slot
 *     ring:   [ slot being computed ][ read ahead ][ read ahead ][ in flight ] …
 *     pinned: blocks spread evenly over the pass that stay in memory
 *
 * Every pass uses the same blocks in the same order, so nothing is guessed.  A reader
 * thread keeps a fixed number of reads in flight in that order and continues past the end
 * of a pass into the next one.  The engine thread takes the next block, or waits for it;
 * that wait is the stall.  Pinned blocks are read straight to their place, while no pass runs
 * or by the first pass, and they are never read again.
 *
 * A span may have another form in memory than in the file.  Its pinned blocks are laid out
 * once: where they were read, if the form has the same size, or else from a landing to their
 * place.  A block that turns out larger than its place is streamed from then on.  Streamed
 * blocks are always as in the file.
 *
 * Lookup rows (embeddings) and experts have a queue of their own, which goes ahead of
 * blocks.  Direct I/O leaves nothing in the page cache.
 *
 * Calls in the wrong order (a pass begun twice, a lookup that was not started) are bugs of
 * the caller and stop at an assertion.
 */
#ifndef MEMWALL_ENGINE_STREAM_STREAM_H
#define MEMWALL_ENGINE_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"
#include "engine/stream/populate.h"
#include "engine/stream/shape.h"
#include "engine/telemetry/telemetry.h"

/* Rows of one tensor that a pass uses, in the order of the pass. */
struct stream_span {
    uint32_t file;
    uint64_t offset;    /* of the first row, in bytes from the start of the file */
    uint64_t row_bytes; /* > 0 */
    uint64_t n_row;
    uint32_t layer; /* for accounting; n_layer: the head */
    bool stays_as_in_file; /* pinned rows, too: the caller reads them one by one */
    bool in_prompt; /* a prompt pass uses it; these spans come first */
    /* Pinned blocks are stored in this form of the caller; 0: as in the file.  Either they take
     * at most laid_row_bytes per row, or they are laid out in the bytes that were read, with
     * the help of scratch_bytes. */
    uint32_t form;
    uint32_t type; /* of the weights; only stream_lay_fn uses it */
    uint64_t laid_row_bytes, scratch_bytes;
};

enum stream_io { STREAM_AUTO, STREAM_DIRECT, STREAM_BUFFERED, STREAM_MMAP };

/*
 * Lay out n_row rows of a span, at `from` as in the file, in its form at `to`, which has n_row
 * * laid_row_bytes bytes, rounded up to pages.  Returns false if they do not fit; this must not
 * happen if laid_row_bytes is at least row_bytes.  If the span has scratch_bytes,
 * scratch is that large, `to` is `from` or begins before it in the same memory, and the rows
 * always fit.  Runs on the thread of the reader.
 */
typedef bool stream_lay_fn(const struct stream_span *span, uint64_t n_row, const void *from,
                           void *to, size_t room, void *scratch);

struct cancel;

struct stream_options {
    enum stream_io io;
    bool mmap_drop;        /* mmap: drop the pages of each block once it is given back */
    bool no_uring;         /* use pread threads even where io_uring works */
    uint32_t n_slot;       /* of the ring, 2 to STREAM_SLOTS_MAX; 0: everything is pinned */
    uint64_t pinned_bytes; /* for pinned blocks, rounding and stream_landing_bytes() included */
    stream_lay_fn *lay;    /* if a span has a form */
    uint64_t lookup_bytes; /* from stream_lookup_bytes(); 0: the smallest that works */
    /* Slow all reads down to this many bytes per second, to show how a slower disk would do; 0:
     * no limit.  Uses pread threads.  Mapped reads cannot be slowed down. */
    uint64_t bytes_s;
    struct cancel *cancel; /* ends passes while it is set; outlives the stream; may be NULL */
    /* Copies of all files on another disk, see mirror.h; NULL: none.  They outlive the stream. */
    const struct model_file *mirror;
    uint64_t mirror_bytes_s; /* as bytes_s, for the mirror; 0: bytes_s */
    /* The files of a second model, see stream_open_guest(); NULL: none. */
    const struct catalogue *guest;
    /* Measured on this file system, 0 if not: auto compares them (io_choice.h). */
    double direct_bytes_s, buffered_bytes_s;
};

struct stream;

/* Memory the stream takes besides slots, pinned blocks and lookup buffers: its tables, its
 * threads, the rings shared with the kernel.  Pure. */
uint64_t stream_overhead_bytes(uint32_t n_span, uint32_t n_block, uint32_t n_file);

/* The part of the pinned memory that keeps no blocks: the landing, and scratch memory for
 * blocks that are laid out in place.  Pure. */
uint64_t stream_landing_bytes(const struct stream_span *spans, uint32_t n_span,
                              const struct stream_shape *shape);

/*
 * Open the files and start the reader.  The spans are copied; the catalogue must outlive the
 * stream.  Counters go to t.  The ring is mapped and touched here, so that a lack of memory
 * is reported now.  Returns 0, or -1 with *e.
 */
int stream_open(struct stream **out, const struct catalogue *c, const struct stream_span *spans,
                uint32_t n_span, const struct stream_shape *shape,
                const struct stream_options *options, struct telemetry *t, struct err *e);
void stream_close(struct stream *s); /* joins the reader; NULL is fine */

/*
 * Open the weights of a second model, whose files the host has opened as its guest, and read all
 * of them into memory.  Passes and lookups are as of any stream, while no pass of the host runs.
 * The host is not STREAM_MMAP, and is closed after its guest.  ERR_CANCELLED: the host's token
 * was set.
 */
int stream_open_guest(struct stream **out, struct stream *host, const struct catalogue *c,
                      const struct stream_span *spans, uint32_t n_span,
                      const struct stream_shape *shape, struct telemetry *t, struct err *e);

/* Memory of a guest with these spans, at most.  Pure. */
uint64_t stream_guest_bytes(const struct stream_span *spans, uint32_t n_span,
                            const struct stream_shape *shape);

/* How the stream reads ("direct/io_uring", "direct/pread", "buffered", "mmap") and why.
 * Valid as long as the stream. */
const char *stream_io_name(const struct stream *s);
const char *stream_io_reason(const struct stream *s);

/* Returns whether the mirror was used and is not used any longer, and why. */
bool stream_lost_mirror(struct stream *s, struct err *why);

/* --- a pass: engine thread only --- */

struct stream_block {
    uint32_t index; /* in the schedule */
    uint32_t span;
    uint64_t row, n_row; /* rows row … row + n_row of the span */
    const void *data;    /* of row `row`; any alignment */
    bool is_pinned;
    bool is_low;   /* data is a copy of stream_keep_low() */
    uint32_t form; /* how the rows are laid out; 0: as in the file */
};

/* Begin a pass, over all spans or only those of a prompt. */
void stream_pass_begin(struct stream *s, bool is_prompt);

/*
 * Take the next block of the pass, waiting until it is in memory; the wait is added to
 * *stall_ns.  After the last block the caller ends the pass.  Returns 0, or -1 with *e if a
 * read failed, came short or was cancelled; the caller then ends the pass.
 */
int stream_next(struct stream *s, struct stream_block *block, uint64_t *stall_ns,
                struct err *e);

/* Take the next block of the pass if it belongs to the span and is pinned and in memory.  It
 * need not be given back. */
bool stream_next_pinned(struct stream *s, uint32_t span, struct stream_block *block);

/* Give back the block's memory, in the order in which blocks were taken. */
void stream_give(struct stream *s, const struct stream_block *block);

/* End a pass, finished or not.  Returns -1 with *e if a file is not what it was at open. */
int stream_pass_end(struct stream *s, struct err *e);

/* --- passes without reads: engine thread only --- */

/* Copies of the blocks that are streamed if pinned ones take pinned_bytes, in at most `bytes`. */
struct stream_low {
    uint64_t pinned_bytes, bytes;
    const uint64_t *row_bytes; /* of a row of each span */
    uint32_t type;             /* of the caller */
};

/*
 * Keep such copies.  The caller makes each of them while it has the block of a pass:
 * stream_low_place() returns its place, or NULL if there is nothing to do.  Returns 0, or -1 with
 * *e and no copies.
 */
int stream_keep_low(struct stream *s, const struct stream_low *low, struct err *e);
void stream_drop_low(struct stream *s); /* also without copies */
void *stream_low_place(struct stream *s, const struct stream_block *block);
void stream_low_made(struct stream *s, const struct stream_block *block);
uint64_t stream_low_bytes(const struct stream *s);
uint64_t stream_low_ns(const struct stream *s); /* in which they were made; 0 without copies */
uint32_t stream_low_type(const struct stream *s); /* with copies */

/* Whether each block is pinned and in memory, or has its copy.  Then a pass can use these. */
bool stream_low_ready(const struct stream *s);
void stream_low_pass_begin(struct stream *s);
void stream_low_pass_end(struct stream *s);

/* --- lookups: engine thread only --- */

struct stream_lookup {
    uint32_t file;
    uint64_t offset, bytes;
    void *dst; /* bytes bytes, filled when stream_lookup_wait() returns */
};

/*
 * Request all rows at once.  Order and duplicates do not matter.  lookups and dst must stay
 * until stream_lookup_wait().  Neighbouring rows are merged and reads are rounded out to the
 * alignment.  Rows of 64 KiB and more are read without a copy if dst and offset are equal
 * modulo 4096.
 */
void stream_lookup_start(struct stream *s, const struct stream_lookup *lookups, size_t n);
int stream_lookup_wait(struct stream *s, struct err *e);

/* Buffers the stream needs to look up n_token rows of each table, part of the plan's item
 * `rows`.  The size is bounded: rows that do not fit at once are read in turn. */
uint64_t stream_lookup_bytes(const uint64_t *row_bytes, size_t n_table, size_t n_token);

/* --- fetches: engine thread only --- */

/* A range to read into place: offset, dst and bytes are multiples of 4096, and the file has at
 * least `need` of the bytes. */
struct stream_range {
    uint32_t file;
    uint64_t offset;
    size_t bytes, need; /* need > bytes - 4096 */
    unsigned char *dst;
};

enum { FETCH_RANGES = 8 };

enum fetch_state { FETCH_READING, FETCH_DONE, FETCH_FAILED };

/* The caller sets the first members and keeps the struct until it is not FETCH_READING. */
struct stream_fetch {
    struct stream_range range[FETCH_RANGES];
    uint32_t n_range;
    uint32_t layer; /* for accounting */
    bool is_guest;  /* weights of a guest, which count for no layer */
    bool is_kv;     /* keys and values, from stream_kv_file() */
    /* Under the stream's lock. */
    enum fetch_state state;
    uint32_t range_now;
    size_t at; /* in that range: where the next read begins */
    uint32_t n_flying;
    bool has_failed;
    struct stream_fetch *next;
};

/* Whether weights are used where the files are mapped; then nothing can be fetched. */
bool stream_is_mapped(const struct stream *s);

/* Begin to read all ranges, after those of earlier fetches. */
void stream_fetch_start(struct stream *s, struct stream_fetch *f);

/*
 * Wait until one of n fetches is done, and return its index; the wait is added to *stall_ns.
 * Returns -1 with *e if one of them failed, or if the pass was cancelled.
 */
int stream_fetch_wait(struct stream *s, struct stream_fetch *const *fetches, uint32_t n,
                      uint64_t *stall_ns, struct err *e);

bool stream_fetch_is_done(struct stream *s, const struct stream_fetch *f);

/* A file of keys and values, which the caller keeps open for direct reads; -1: none.  Not while
 * something is read from it. */
void stream_set_kv_file(struct stream *s, int fd);
uint32_t stream_kv_file(const struct stream *s); /* its number, for a range */

/* Begin no more reads of fetches of keys and values, or of others, and wait for those in flight. */
void stream_fetch_drain(struct stream *s, bool of_kv);

/* The bytes at offset where the file is mapped, or NULL with *e. */
const void *stream_mapped_at(struct stream *s, uint32_t file, uint64_t offset, uint64_t bytes,
                             struct err *e);
/* They were used; with mmap_drop, drop their pages. */
void stream_mapped_give(struct stream *s, uint32_t file, uint64_t offset, uint64_t bytes);

/* --- memory: between passes, or in one while no block is taken --- */

/* Fetches memory ahead of reads, for the areas of this stream. */
struct populator *stream_populator(struct stream *s);

/*
 * Change the number of slots and the memory for pinned blocks.  Blocks that stay pinned are
 * not read again.  Shrinking gives memory back at once, so the charge falls.  Growing fills
 * from then on.  n_slot 0 needs everything pinned, in forms that always fit.
 */
int stream_set_memory(struct stream *s, uint32_t n_slot, uint64_t pinned_bytes, struct err *e);

/* Memory of the pinned blocks that hold data now, rounding included. */
uint64_t stream_pinned_now(const struct stream *s);

#endif
