#include "config.h"

#include "engine/stream/read_now.h"

#include <sys/mman.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/stream/schedule.h"
#include "engine/stream/source.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define TRIES_MAX    3

/* Read at least `need` of `bytes` bytes at offset.  buffer, bytes and offset are aligned for
 * O_DIRECT. */
static int fill(int fd, const struct model_file *f, unsigned char *buffer, uint64_t offset,
                size_t bytes, size_t need, struct err *e)
{
    size_t got = 0;
    int tries = 0;

    while (got < need) {
        size_t at = got & ~(size_t)(SCHEDULE_ALIGN - 1);
        ssize_t n = pread(fd, buffer + at, bytes - at, (off_t)(offset + at));

        if (n < 0 && (errno == EINTR || (errno == EIO && ++tries < TRIES_MAX)))
            continue;
        if (n < 0) {
            err_sys(e, "could not read %zu bytes", need - got);
            return err_at(e, f->path, offset + got, NULL);
        }
        if (at + (size_t)n <= got) {
            err_set(e, ERR_IO, "the file changed while it was in use: it ends %zu bytes early",
                    need - got);
            return err_at(e, f->path, offset + got, NULL);
        }
        got = at + (size_t)n;
    }
    return 0;
}

static int read_pieces(int fd, const struct model_file *f, uint64_t offset, uint64_t bytes,
                       unsigned char *dst, unsigned char *buffer, struct err *e)
{
    while (bytes > 0) {
        uint64_t base = align_down(offset, SCHEDULE_ALIGN);
        size_t lead = (size_t)(offset - base);
        size_t n = BUFFER_BYTES - lead < bytes ? BUFFER_BYTES - lead : (size_t)bytes;
        size_t whole = (size_t)align_up(lead + n, SCHEDULE_ALIGN);

        if (fill(fd, f, buffer, base, whole, lead + n, e) != 0)
            return -1;
        memcpy(dst, buffer + lead, n);
        dst += n;
        offset += n;
        bytes -= n;
    }
    return 0;
}

static void close_file(struct read_now *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

static int open_file(struct read_now *r, uint32_t file, struct err *e)
{
    if (r->fd >= 0 && r->file == file)
        return 0;
    close_file(r);
    r->file = file;
    r->is_direct = true;
    r->fd = source_open_file(&r->c->files[file], true, e);
    if (r->fd < 0 && e->code == ERR_UNSUPPORTED) {
        r->is_direct = false;
        r->fd = source_open_file(&r->c->files[file], false, e);
    }
    return r->fd < 0 ? -1 : 0;
}

int read_now_open(struct read_now *r, const struct catalogue *c, struct err *e)
{
    unsigned char *buffer =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    *r = (struct read_now){ .c = c, .fd = -1 };
    if (buffer == MAP_FAILED)
        return err_sys(e, "cannot map %zu bytes to read into", BUFFER_BYTES);
    r->buffer = buffer;
    return 0;
}

int read_now(struct read_now *r, uint32_t file, uint64_t offset, uint64_t bytes, void *dst,
             struct err *e)
{
    uint64_t end = offset + bytes;
    int result;

    assert(file < r->c->n_file && end >= offset && end <= r->c->files[file].size);
    if (bytes == 0)
        return 0;
    if (open_file(r, file, e) != 0)
        return -1;
    result = read_pieces(r->fd, &r->c->files[file], offset, bytes, dst, r->buffer, e);
    if (!r->is_direct)
        source_drop(r->fd, align_down(offset, SCHEDULE_ALIGN),
                    align_up(end, SCHEDULE_ALIGN) - align_down(offset, SCHEDULE_ALIGN));
    return result;
}

void read_now_close(struct read_now *r)
{
    if (r->buffer == NULL)
        return;
    close_file(r);
    munmap(r->buffer, BUFFER_BYTES);
    *r = (struct read_now){ .fd = -1 };
}
