/* Reads a small range in the calling thread, past the page cache. */
#include "config.h"

#include <sys/mman.h>

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/stream/schedule.h"
#include "engine/stream/source.h"
#include "engine/stream/stream.h"

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

int stream_read_now(const struct catalogue *c, uint32_t file, uint64_t offset, uint64_t bytes,
                    void *dst, struct err *e)
{
    const struct model_file *f;
    struct source_file dropped;
    unsigned char *buffer;
    bool is_direct = true;
    uint64_t end = offset + bytes;
    int fd, result;

    assert(file < c->n_file && end >= offset && end <= c->files[file].size);
    if (bytes == 0)
        return 0;
    f = &c->files[file];
    fd = source_open_file(f, true, e);
    if (fd < 0 && e->code == ERR_UNSUPPORTED) {
        is_direct = false;
        fd = source_open_file(f, false, e);
    }
    if (fd < 0)
        return -1;
    buffer =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED) {
        close(fd);
        return err_sys(e, "cannot map %zu bytes to read into", BUFFER_BYTES);
    }
    result = read_pieces(fd, f, offset, bytes, dst, buffer, e);
    munmap(buffer, BUFFER_BYTES);
    dropped = (struct source_file){ .fd = fd };
    if (!is_direct)
        source_drop(&dropped, align_down(offset, SCHEDULE_ALIGN),
                    align_up(end, SCHEDULE_ALIGN) - align_down(offset, SCHEDULE_ALIGN));
    close(fd);
    return result;
}
