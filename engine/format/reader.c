#include "config.h"

#include "engine/format/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"

/* No page is larger on supported systems.  Dropping more than was read does no harm. */
#define PAGE 65536

#define FIRST_READ ((size_t)32 << 10)

int reader_open(struct reader *r, int fd, uint64_t size, size_t capacity, struct err *e)
{
    *r = (struct reader){ .fd = fd, .size = size, .low = UINT64_MAX };
    r->capacity = capacity != 0 ? capacity : READER_BUFFER;
    if (r->capacity > size)
        r->capacity = size > 0 ? (size_t)size : 1;
    r->buf = malloc(r->capacity);
    if (r->buf == NULL)
        return err_memory(e, "a read buffer of %zu bytes", r->capacity);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return 0;
}

void reader_drop(int fd, uint64_t from, uint64_t to)
{
    if (from >= to || to > INT64_MAX - PAGE)
        return;
    from = align_down(from, PAGE);
    posix_fadvise(fd, (off_t)from, (off_t)(align_up(to, PAGE) - from), POSIX_FADV_DONTNEED);
}

void reader_close(struct reader *r)
{
    if (r->buf == NULL)
        return;
    reader_drop(r->fd, r->low, r->high);
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_NORMAL);
    free(r->buf);
    r->buf = NULL;
}

uint64_t reader_left(const struct reader *r)
{
    return r->pos < r->size ? r->size - r->pos : 0;
}

void reader_seek(struct reader *r, uint64_t pos)
{
    r->pos = pos;
}

/* Returns the bytes that the next read fills the buffer to, at least n. */
static uint64_t bytes_ahead(struct reader *r, size_t n)
{
    bool goes_on = r->pos >= r->buf_pos && r->pos <= r->buf_pos + r->buf_len;

    r->ahead = goes_on && r->ahead > 0 ? 2 * r->ahead : FIRST_READ;
    r->ahead = r->ahead > n ? r->ahead : n;
    r->ahead = r->ahead < r->capacity ? r->ahead : r->capacity;
    return reader_left(r) < r->ahead ? reader_left(r) : r->ahead;
}

/* Fills the buffer with at least n bytes from pos on. */
static int fill(struct reader *r, size_t n, struct err *e)
{
    uint64_t want = bytes_ahead(r, n);
    size_t kept = 0;

    /* Consumed bytes are not needed again: drop them, so a header of 30 MB does not stay
     * cached. */
    reader_drop(r->fd, r->buf_pos, r->pos);
    if (r->pos >= r->buf_pos && r->pos < r->buf_pos + r->buf_len) {
        kept = (size_t)(r->buf_pos + r->buf_len - r->pos);
        memmove(r->buf, r->buf + (r->pos - r->buf_pos), kept);
    }
    r->buf_pos = r->pos;
    r->buf_len = kept;
    while (r->buf_len < want) {
        uint64_t at = r->buf_pos + r->buf_len;
        ssize_t got = pread(r->fd, r->buf + r->buf_len, (size_t)want - r->buf_len, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            err_sys(e, "could not read %llu bytes", (unsigned long long)(want - r->buf_len));
            return err_at(e, NULL, at, NULL);
        }
        if (got == 0)
            break;
        r->low = at < r->low ? at : r->low;
        r->buf_len += (size_t)got;
        r->high = at + (uint64_t)got > r->high ? at + (uint64_t)got : r->high;
    }
    if (r->buf_len < n) {
        err_set(e, ERR_IO, "the file was truncated while it was read");
        return err_at(e, NULL, r->pos, NULL);
    }
    return 0;
}

static int short_file(const struct reader *r, uint64_t n, struct err *e)
{
    err_set(
        e, ERR_FORMAT, "%llu bytes are needed here, but the file ends after %llu (%llu bytes)",
        (unsigned long long)n, (unsigned long long)reader_left(r), (unsigned long long)r->size);
    return err_at(e, NULL, r->pos, NULL);
}

const unsigned char *reader_fetch(struct reader *r, size_t n, struct err *e)
{
    const unsigned char *p;

    if (n > reader_left(r)) {
        short_file(r, n, e);
        return NULL;
    }
    if (n > r->capacity) {
        err_set(e, ERR_FORMAT, "a piece of %zu bytes is longer than the limit of %zu", n,
                r->capacity);
        err_at(e, NULL, r->pos, NULL);
        return NULL;
    }
    if (r->pos < r->buf_pos || r->pos + n > r->buf_pos + r->buf_len)
        if (fill(r, n, e) != 0)
            return NULL;
    p = r->buf + (r->pos - r->buf_pos);
    r->pos += n;
    return p;
}

int reader_copy(struct reader *r, void *dst, size_t n, struct err *e)
{
    unsigned char *out = dst;

    if (n > reader_left(r))
        return short_file(r, n, e);
    while (n > 0) {
        size_t step = n < r->capacity ? n : r->capacity;
        const unsigned char *p = reader_take(r, step, e);

        if (p == NULL)
            return -1;
        memcpy(out, p, step);
        out += step;
        n -= step;
    }
    return 0;
}

int reader_skip(struct reader *r, uint64_t n, struct err *e)
{
    if (n > reader_left(r))
        return short_file(r, n, e);
    r->pos += n;
    return 0;
}

int reader_u32(struct reader *r, uint32_t *v, struct err *e)
{
    const unsigned char *p = reader_take(r, 4, e);

    if (p == NULL)
        return -1;
    *v = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    return 0;
}

int reader_u64(struct reader *r, uint64_t *v, struct err *e)
{
    const unsigned char *p = reader_take(r, 8, e);

    if (p == NULL)
        return -1;
    *v = 0;
    for (int i = 7; i >= 0; i--)
        *v = *v << 8 | p[i];
    return 0;
}
