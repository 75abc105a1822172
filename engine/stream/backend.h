/*
 * backend.h - how system reads are done: io_uring, or a few threads that call pread.
 *
 * Only the reader opens, submits and waits; any thread may call wake().  A backend knows
 * nothing of blocks.  It does one system read per submission and reports the result; the
 * reader handles short reads, retries and errors.
 */
#ifndef MEMWALL_ENGINE_STREAM_BACKEND_H
#define MEMWALL_ENGINE_STREAM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/stream/source.h"

enum read_kind { READ_SLOT, READ_PINNED, READ_LOOKUP, READ_FETCH };

/* The disk with the model, or that with a copy of it (mirror.h). */
enum read_disk { READ_MODEL, READ_MIRROR, READ_DISKS };

struct stream_span;

/* One read of a range, in one or several system reads. */
struct read_op {
    enum read_kind kind;
    uint32_t target; /* slot, block, lookup cell, or read of a fetch */
    uint32_t layer;
    uint64_t pass; /* for which it was begun */
    uint32_t file;
    enum read_disk disk;
    bool is_stale;   /* the copy that it was read from has changed */
    bool is_flying;  /* submitted, not yet reported as done */
    bool is_urgent;  /* a lookup or fetch: goes ahead of waiting reads */
    uint64_t offset; /* multiple of SCHEDULE_ALIGN */
    size_t bytes;    /* to request; multiple of SCHEDULE_ALIGN */
    size_t need;     /* bytes that must arrive: fewer at the end of the file */
    size_t lead;     /* of those, added in front by rounding */
    size_t got;      /* so far */
    unsigned char *dst;
    const struct stream_span *laid; /* a pinned block in another form; NULL: as in the file */
    uint64_t n_row;                 /* of that block, */
    unsigned char *place;           /* where it is stored, */
    uint64_t place_bytes;           /* in this room; or what the read block takes */
    bool fits;
    uint32_t tries;
    uint64_t start_ns;
    int64_t result;       /* of the last system read: bytes or -errno */
    struct read_op *next; /* while it waits in a queue of the backend */
};

/* Where the next system read of an op starts: the last aligned byte. */
static inline size_t read_op_at(const struct read_op *op)
{
    return op->got & ~(size_t)4095;
}

/* The descriptor to read an op from. */
static inline int read_op_fd(const struct source *s, const struct read_op *op)
{
    return op->disk == READ_MIRROR ? s->files[op->file].mirror_fd : s->files[op->file].fd;
}

/* Memory of all slots or all lookup cells, which a backend may register. */
struct backend_buffer {
    void *base;
    size_t bytes;
};

enum { BACKEND_BUFFERS = 2 };

struct backend_options {
    const struct source *source;
    struct backend_buffer buffers[BACKEND_BUFFERS];
    uint32_t n_op;    /* reads in flight at most */
    uint32_t depth;   /* of them, reads of blocks */
    uint64_t bytes_s[READ_DISKS]; /* see stream_options; 0: as fast as the disk */
};

struct backend;

struct backend_kind {
    const char *name; /* of direct reads: "direct/pread" */
    /* Returns 0, or -1 with *e. */
    int (*open)(struct backend **out, const struct backend_options *options, struct err *e);
    /* Queue a read; wait() starts it.  Never fails. */
    void (*submit)(struct backend *b, struct read_op *op);
    /*
     * Start queued reads and collect up to max finished ones in done.  If `block` is set
     * and none has finished, wait for one or for wake().
     * Returns their number, or -1 if the backend is broken: then no read will finish.
     */
    int (*wait)(struct backend *b, struct read_op **done, int max, bool block);
    void (*wake)(struct backend *b);
    /* The ring was mapped again: register new memory.  NULL: nothing to do. */
    void (*set_buffers)(struct backend *b, const struct backend_buffer *buffers);
    /* Only a broken backend may have reads in flight; it waits until the kernel has stopped
     * writing.  False: the kernel may still write. */
    bool (*close)(struct backend *b);
};

extern const struct backend_kind backend_pread;
extern const struct backend_kind *const backend_uring; /* NULL: not compiled in */

#endif
