/* The files of a model: pages in the page cache, and parts that are not on the disk. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "engine/session/model.h"

void mw_model_drop_cache(const struct mw_model *m)
{
    for (uint32_t i = 0; i < m->catalogue->n_file; i++)
        (void)posix_fadvise(m->catalogue->files[i].fd, 0, 0, POSIX_FADV_DONTNEED);
}

/* Returns the bytes of a file that are on the disk; size if the file system cannot tell. */
static uint64_t data_bytes(int fd, uint64_t size)
{
    uint64_t sum = 0;
    off_t from, to = 0;

    while ((from = lseek(fd, to, SEEK_DATA)) >= 0) {
        to = lseek(fd, from, SEEK_HOLE);
        if (to <= from)
            return size;
        sum += (uint64_t)(to - from);
    }
    return errno == ENXIO ? sum : size; /* ENXIO: no data after `to` */
}

uint64_t mw_model_hole_bytes(const struct mw_model *m)
{
    uint64_t holes = 0;

    for (uint32_t i = 0; i < m->catalogue->n_file; i++) {
        const struct model_file *f = &m->catalogue->files[i];
        uint64_t data = data_bytes(f->fd, f->size);

        holes += data < f->size ? f->size - data : 0;
    }
    return holes;
}
