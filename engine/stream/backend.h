/*
 * backend.h - how reads are done: io_uring, or a few threads that call pread.
 *
 * One thread (the reader) opens, submits and waits; only wake() may be called by others.
 * A backend knows nothing of blocks: it performs one system read per submission and says
 * what came of it.  Short reads, retries and errors are the reader's business.
 */
#ifndef MEMWALL_ENGINE_STREAM_BACKEND_H
#define MEMWALL_ENGINE_STREAM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/stream/source.h"

enum read_kind { READ_SLOT, READ_PINNED, READ_LOOKUP };

/* One read of a range, in one or several system reads. */
struct read_op {
    enum read_kind kind;
    uint32_t target; /* slot, block or lookup cell */
    uint32_t layer;
    uint64_t pass; /* that it was begun for */
    uint32_t file;
    bool is_flying;  /* submitted, not yet reported as done */
    bool is_urgent;  /* a lookup: ahead of what waits */
    uint64_t offset; /* multiple of SCHEDULE_ALIGN */
    size_t bytes;    /* to be asked for; multiple of SCHEDULE_ALIGN */
    size_t need;     /* that have to come: less than bytes at the end of the file */
    size_t lead;     /* of those, before what is wanted */
    size_t got;      /* so far */
    unsigned char *dst;
    uint32_t tries;
    uint64_t start_ns;
    int64_t result;       /* of the last system read: bytes or -errno */
    struct read_op *next; /* while it waits in a queue of the backend */
};

/* What the next system read of an op is to fetch: from the last aligned byte. */
static inline size_t read_op_at(const struct read_op *op)
{
    return op->got & ~(size_t)4095;
}

/* Memory that all reads into slots and lookup cells lie in: may be registered. */
struct backend_buffer {
    void *base;
    size_t bytes;
};

enum { BACKEND_BUFFERS = 2 };

struct backend_options {
    const struct source *source;
    struct backend_buffer buffers[BACKEND_BUFFERS];
    uint32_t n_op;  /* that can fly at once */
    uint32_t depth; /* of large reads among them */
};

struct backend;

struct backend_kind {
    const char *name;
    /* Returns 0, or -1 with *e. */
    int (*open)(struct backend **out, const struct backend_options *options, struct err *e);
    /* Queue a read; wait() passes queued ones on.  Never fails. */
    void (*submit)(struct backend *b, struct read_op *op);
    /*
     * Pass on what is queued; collect what is done, at most max, into done.  If `block`
     * is set and nothing is done, wait for a read or a wake().
     * Returns the number; -1: broken, and no read is done any more.
     */
    int (*wait)(struct backend *b, struct read_op **done, int max, bool block);
    void (*wake)(struct backend *b);
    /* The memory that may be registered is another now.  NULL: it does not matter. */
    void (*set_buffers)(struct backend *b, const struct backend_buffer *buffers);
    /* No read may be flying, but for a broken one; then it waits until the kernel
     * writes no more.  False: it still may. */
    bool (*close)(struct backend *b);
};

extern const struct backend_kind backend_pread;
extern const struct backend_kind *const backend_uring; /* NULL: not compiled in */

#endif
