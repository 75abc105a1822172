#include "config.h"

#include "engine/stream/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/machine/kernel_file.h"

/*
 * Ranges that mw_mapping_repair() searches in a signal handler, where locks and allocation
 * are not possible.  The owner claims an entry, writes its base last and clears it first.
 */
#define N_RANGE 64

#define IO_TEXT 512 /* bytes of /proc/self/io, at most */

static struct range {
    atomic_bool is_claimed;
    _Atomic uintptr_t base; /* 0: not in use */
    _Atomic uint64_t bytes;
    atomic_bool was_cut;
} ranges[N_RANGE];

static struct range *claim_range(unsigned char *base, uint64_t bytes)
{
    for (size_t i = 0; i < N_RANGE; i++) {
        struct range *r = &ranges[i];
        bool is_claimed = false;

        if (!atomic_compare_exchange_strong(&r->is_claimed, &is_claimed, true))
            continue;
        atomic_store(&r->was_cut, false);
        atomic_store(&r->bytes, bytes);
        atomic_store(&r->base, (uintptr_t)base);
        return r;
    }
    return NULL;
}

static void release_range(struct range *r)
{
    if (r == NULL)
        return;
    atomic_store(&r->base, 0);
    atomic_store(&r->is_claimed, false);
}

bool mw_mapping_repair(const void *address)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)address;
    int was = errno;
    bool done = false;

    for (size_t i = 0; i < N_RANGE && !done; i++) {
        uintptr_t base = atomic_load(&ranges[i].base);

        if (base == 0 || at < base || at - base >= atomic_load(&ranges[i].bytes))
            continue;
        /* The flag first: a thread that reads the zeros must find it set. */
        atomic_store(&ranges[i].was_cut, true);
        done = mmap((void *)(at / page * page), page, PROT_READ,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
    }
    errno = was;
    return done;
}

/* One range of addresses for all files, so they need one entry. */
static int reserve(struct mapping *m, const struct source *s, struct err *e)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    void *p;

    for (uint32_t i = 0; i < s->n_file; i++)
        m->bytes += align_up(s->files[i].size, page);
    if (m->bytes == 0)
        return 0;
    p = mmap(NULL, m->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        m->bytes = 0;
        return err_sys(e, "cannot reserve addresses for %u files", s->n_file);
    }
    m->start = p;
    m->range = claim_range(p, m->bytes);
    if (m->range == NULL)
        return err_set(e, ERR_UNSUPPORTED, "cannot map more than %d models at once", N_RANGE);
    return 0;
}

int mapping_open(struct mapping *m, const struct source *s, struct err *e)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), at = 0;

    *m = (struct mapping){ .source = s, .io = kernel_file_open("", "/proc/self/io") };
    (void)mapping_count(m);
    m->base = calloc(s->n_file > 0 ? s->n_file : 1, sizeof *m->base);
    if (m->base == NULL) {
        mapping_close(m);
        return err_memory(e, "mapping %u files", s->n_file);
    }
    if (reserve(m, s, e) != 0) {
        mapping_close(m);
        return -1;
    }
    for (uint32_t i = 0; i < s->n_file; i++) {
        void *p;

        if (s->files[i].size == 0)
            continue;
        p = mmap(m->start + at, s->files[i].size, PROT_READ, MAP_SHARED | MAP_FIXED,
                 s->files[i].fd, 0);
        if (p == MAP_FAILED) {
            err_sys(e, "cannot map the file");
            err_at(e, s->files[i].path, ERR_NO_OFFSET, NULL);
            mapping_close(m);
            return -1;
        }
        (void)madvise(p, s->files[i].size, MADV_SEQUENTIAL);
        m->base[i] = p;
        at += align_up(s->files[i].size, page);
    }
    return 0;
}

void mapping_close(struct mapping *m)
{
    release_range(m->range);
    if (m->start != NULL)
        munmap(m->start, m->bytes);
    free(m->base);
    if (m->source != NULL)
        kernel_file_close(m->io);
    *m = (struct mapping){ 0 };
}

uint64_t mapping_count(struct mapping *m)
{
    uint64_t before = m->counted;
    char text[IO_TEXT];

    if (kernel_file_read(m->io, text, sizeof text) < 0 ||
        !kernel_file_field(text, "read_bytes", &m->counted) || m->counted < before)
        return 0;
    return m->counted - before;
}

int mapping_check(const struct mapping *m, struct err *e)
{
    if (m->range == NULL || !atomic_load(&m->range->was_cut))
        return 0;
    err_set(e, ERR_IO, "the file changed while it was in use: mapped bytes cannot be read");
    for (uint32_t i = 0; i < m->source->n_file; i++) {
        const struct source_file *f = &m->source->files[i];
        struct stat st;

        if (fstat(f->fd, &st) != 0 || (uint64_t)st.st_size >= f->size)
            continue;
        err_set(e, ERR_IO, "the file changed while it was in use: it now ends at byte %llu",
                (unsigned long long)st.st_size);
        return err_at(e, f->path, ERR_NO_OFFSET, NULL);
    }
    return err_at(e, m->source->files[0].path, ERR_NO_OFFSET, NULL);
}

const void *mapping_at(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes,
                       struct err *e)
{
    const struct source_file *f = &m->source->files[file];
    struct stat st;

    if (mapping_check(m, e) != 0)
        return NULL;
    if (fstat(f->fd, &st) != 0) {
        err_sys(e, "cannot check the size of the file");
        err_at(e, f->path, offset, NULL);
        return NULL;
    }
    if ((uint64_t)st.st_size < offset + bytes) {
        err_set(e, ERR_IO, "the file changed while it was in use: it now ends at byte %llu",
                (unsigned long long)st.st_size);
        err_at(e, f->path, offset, NULL);
        return NULL;
    }
    return m->base[file] + offset;
}

void mapping_drop(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t lo = align_down(offset, page), hi = align_up(offset + bytes, page);

    (void)madvise(m->base[file] + lo, hi - lo, MADV_DONTNEED);
    source_drop(m->source->files[file].fd, lo, hi - lo);
}
