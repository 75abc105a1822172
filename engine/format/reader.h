/*
 * reader.h - reads a file in order through one small buffer.
 *
 * Used for headers.  Every read is checked against the size that the file had when it was
 * opened.  Consumed bytes are dropped from the page cache when the buffer is refilled, the rest
 * when the reader is closed.  Read-ahead is off while a reader is open, so pages after the
 * header are not fetched.  To make up for it, each read that goes on where the last one ended is
 * twice as long, up to the buffer's capacity: most headers are short, and memory that is read into
 * for the first time costs more than the read.
 */
#ifndef MEMWALL_ENGINE_FORMAT_READER_H
#define MEMWALL_ENGINE_FORMAT_READER_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

#define READER_BUFFER ((size_t)256 << 10)

struct reader {
    int fd;
    uint64_t size; /* of the file */
    uint64_t pos;  /* offset of the next byte */
    /* The rest is private. */
    unsigned char *buf;
    size_t capacity;
    uint64_t buf_pos; /* offset of buf[0] */
    size_t buf_len;
    size_t ahead;       /* bytes that the last read filled the buffer to, at least */
    uint64_t low, high; /* the range read so far */
};

/* Open a reader; fd stays the caller's.  The buffer has capacity bytes (0: READER_BUFFER), or
 * the file's size if that is less.  Returns 0, or -1 with *e. */
int reader_open(struct reader *r, int fd, uint64_t size, size_t capacity, struct err *e);

/* Drop the pages that were read from the page cache and free the buffer.  Safe on a zeroed
 * struct. */
void reader_close(struct reader *r);

/* Returns the bytes from pos to the end of the file. */
uint64_t reader_left(const struct reader *r);

/* Continue at pos.  If it is past the end, the next read fails. */
void reader_seek(struct reader *r, uint64_t pos);

/*
 * Return the next n bytes, at most the buffer's capacity, and advance.  They are valid until
 * the next call.  Returns NULL with *e if the file has fewer or a read fails.
 *
 * A vocabulary takes a million short pieces, so the usual case is inline.  reader_fetch() is
 * the general one.
 */
const unsigned char *reader_fetch(struct reader *r, size_t n, struct err *e);
static inline const unsigned char *reader_take(struct reader *r, size_t n, struct err *e)
{
    uint64_t at = r->pos - r->buf_pos; /* huge if pos is before the buffer */

    if (at > r->buf_len || n > r->buf_len - at)
        return reader_fetch(r, n, e);
    r->pos += n;
    return r->buf + at;
}

/* Copy the next n bytes. */
int reader_copy(struct reader *r, void *dst, size_t n, struct err *e);

/* Skip n bytes, which must exist. */
int reader_skip(struct reader *r, uint64_t n, struct err *e);

/* Little-endian numbers. */
int reader_u32(struct reader *r, uint32_t *v, struct err *e);
int reader_u64(struct reader *r, uint64_t *v, struct err *e);

/* Drop the pages of [from, to) of a file from the page cache. */
void reader_drop(int fd, uint64_t from, uint64_t to);

#endif
