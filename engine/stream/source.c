#include "config.h"

#include "engine/stream/source.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/stream/schedule.h"

static int no_direct(const struct model_file *f, struct err *e, const char *why)
{
    err_set(e, ERR_UNSUPPORTED, "direct reads are not possible: %s", why);
    return err_at(e, f->path, ERR_NO_OFFSET, NULL);
}

/* Without /proc the path is the only way in, and must still name the same file. */
static int open_path(const struct model_file *f, int flags)
{
    int fd = open(f->path, flags);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || (uint64_t)st.st_dev != f->dev || (uint64_t)st.st_ino != f->ino) {
        close(fd);
        errno = ESTALE;
        return -1;
    }
    return fd;
}

static int open_again(const struct model_file *f, int flags)
{
    char name[40];
    int fd;

    snprintf(name, sizeof name, "/proc/self/fd/%d", f->fd);
    fd = open(name, flags);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
        fd = open_path(f, flags);
    return fd;
}

/* Compare the alignment that the file system reports, if it does, with ours. */
static int check_alignment(const struct model_file *f, int fd, struct err *e)
{
#ifdef STATX_DIOALIGN
    struct statx st;

    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) != 0 ||
        (st.stx_mask & STATX_DIOALIGN) == 0)
        return 0;
    if (st.stx_dio_mem_align == 0 || st.stx_dio_offset_align == 0)
        return no_direct(f, e, "the file system reports no support");
    if (st.stx_dio_mem_align > SCHEDULE_ALIGN || st.stx_dio_offset_align > SCHEDULE_ALIGN)
        return no_direct(f, e, "the device needs an alignment of more than 4096 bytes");
#else
    (void)f, (void)fd, (void)e;
#endif
    return 0;
}

static int try_read(const struct model_file *f, int fd, struct err *e)
{
    void *p =
        mmap(NULL, SCHEDULE_ALIGN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ssize_t n;

    if (p == MAP_FAILED)
        return err_sys(e, "cannot map %llu bytes to read into",
                       (unsigned long long)SCHEDULE_ALIGN);
    n = pread(fd, p, SCHEDULE_ALIGN, 0);
    munmap(p, SCHEDULE_ALIGN);
    if (n >= 0)
        return 0;
    if (errno == EINVAL || errno == EOPNOTSUPP)
        return no_direct(f, e, "the file system refuses them");
    err_sys(e, "could not read the file");
    return err_at(e, f->path, 0, NULL);
}

int source_open_file(const struct model_file *f, bool is_direct, struct err *e)
{
    int fd = open_again(f, O_RDONLY | O_CLOEXEC | (is_direct ? O_DIRECT : 0));

    if (fd < 0) {
        if (is_direct && errno == EINVAL)
            return no_direct(f, e, "the file system refuses them");
        err_sys(e, "cannot open the file again");
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    if (is_direct && (check_alignment(f, fd, e) != 0 || try_read(f, fd, e) != 0)) {
        close(fd);
        return -1;
    }
    /* Reads are large and their order is known.  Read-ahead would only leave pages in the
     * cache that nobody drops. */
    if (!is_direct)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    return fd;
}

bool source_is_elsewhere(int fd, int other_fd)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && fstat(other_fd, &b) == 0 && a.st_dev != b.st_dev;
}

static int open_files(struct source *s, const struct catalogue *c, struct err *e)
{
    for (uint32_t i = 0; i < c->n_file; i++) {
        const struct model_file *f = &c->files[i];
        int fd = source_open_file(f, s->is_direct, e);

        if (fd < 0)
            return -1;
        s->files[s->n_file] =
            (struct source_file){ .fd = fd, .mirror_fd = -1, .size = f->size, .path = f->path };
        s->files[s->n_file].is_elsewhere = source_is_elsewhere(fd, s->files[0].fd);
        s->n_file++;
    }
    return 0;
}

int source_open(struct source *s, const struct catalogue *c, const struct catalogue *more,
                bool is_direct, struct err *e)
{
    uint32_t n = c->n_file + (more != NULL ? more->n_file : 0);

    *s = (struct source){ .is_direct = is_direct };
    s->files = calloc(n + (size_t)1, sizeof *s->files);
    if (s->files == NULL)
        return err_memory(e, "%u files", n);
    s->files[n].fd = s->files[n].mirror_fd = -1;
    if (open_files(s, c, e) == 0 && (more == NULL || open_files(s, more, e) == 0))
        return 0;
    source_close(s);
    return -1;
}

static void close_mirror(struct source *s)
{
    for (uint32_t i = 0; i < s->n_file; i++) {
        if (s->files[i].mirror_fd >= 0)
            close(s->files[i].mirror_fd);
        s->files[i].mirror_fd = -1;
        s->files[i].mirror = NULL;
    }
}

int source_open_mirror(struct source *s, const struct model_file *mirror, uint32_t n,
                       struct err *e)
{
    s->is_mirror_direct = s->is_direct;
    for (uint32_t i = 0; i < n; i++) {
        int fd = source_open_file(&mirror[i], s->is_mirror_direct, e);

        if (fd < 0 && s->is_mirror_direct && i == 0 && e->code == ERR_UNSUPPORTED) {
            *e = (struct err)ERR_INIT;
            s->is_mirror_direct = false;
            fd = source_open_file(&mirror[i], false, e);
        }
        if (fd < 0) {
            close_mirror(s);
            return -1;
        }
        s->files[i].mirror_fd = fd;
        s->files[i].mirror = &mirror[i];
        s->files[i].is_elsewhere = false; /* its reads are shared, so they count */
    }
    return 0;
}

void source_close(struct source *s)
{
    close_mirror(s);
    for (uint32_t i = 0; i < s->n_file; i++)
        close(s->files[i].fd);
    free(s->files);
    *s = (struct source){ 0 };
}

void source_drop(int fd, uint64_t offset, uint64_t bytes)
{
    (void)posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}
