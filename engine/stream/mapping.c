#include "config.h"

#include "engine/stream/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <stdlib.h>
#include <unistd.h>

#include "engine/base/units.h"

int mapping_open(struct mapping *m, const struct source *s, struct err *e)
{
    *m = (struct mapping){ .source = s };
    m->base = calloc(s->n_file > 0 ? s->n_file : 1, sizeof *m->base);
    if (m->base == NULL)
        return err_set(e, ERR_MEMORY, "no memory to map %u files", s->n_file);
    for (uint32_t i = 0; i < s->n_file; i++) {
        void *p;

        if (s->files[i].size == 0)
            continue;
        p = mmap(NULL, s->files[i].size, PROT_READ, MAP_SHARED, s->files[i].fd, 0);
        if (p == MAP_FAILED) {
            err_sys(e, "cannot be mapped");
            err_at(e, s->files[i].path, ERR_NO_OFFSET, NULL);
            mapping_close(m);
            return -1;
        }
        (void)madvise(p, s->files[i].size, MADV_SEQUENTIAL);
        m->base[i] = p;
    }
    return 0;
}

void mapping_close(struct mapping *m)
{
    for (uint32_t i = 0; m->base != NULL && i < m->source->n_file; i++)
        if (m->base[i] != NULL)
            munmap(m->base[i], m->source->files[i].size);
    free(m->base);
    *m = (struct mapping){ 0 };
}

const void *mapping_at(const struct mapping *m, uint32_t file, uint64_t offset, uint64_t bytes,
                       struct err *e)
{
    const struct source_file *f = &m->source->files[file];
    struct stat st;

    if (fstat(f->fd, &st) != 0) {
        err_sys(e, "cannot be checked");
        err_at(e, f->path, offset, NULL);
        return NULL;
    }
    if ((uint64_t)st.st_size < offset + bytes) {
        err_set(e, ERR_IO, "the file changed while it was in use: it ends at byte %llu now",
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
    source_drop(&m->source->files[file], lo, hi - lo);
}
