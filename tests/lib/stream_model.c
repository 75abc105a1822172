#include "config.h"

#include "tests/lib/stream_model.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 1;

void model_seed(uint64_t seed)
{
    state = seed * 2 + 1;
}

uint64_t model_random(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return below > 0 ? (state >> 11) % below : 0;
}

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void make_file(struct stream_model *m, int i, uint64_t bytes)
{
    struct model_file *f = &m->files[i];
    char path[96];
    struct stat st;
    int fd;

    snprintf(path, sizeof path, "%s/%d", m->dir, i);
    m->bytes[i] = malloc(bytes);
    if (m->bytes[i] == NULL)
        die("malloc");
    for (uint64_t k = 0; k < bytes; k++)
        m->bytes[i][k] = (unsigned char)model_random(256);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, m->bytes[i], bytes) != (ssize_t)bytes || fsync(fd) != 0)
        die(path);
    close(fd);
    f->path = strdup(path);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        die(path);
    (void)posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED);
    f->size = bytes;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

void model_random_spans(struct stream_model *m, uint64_t span_bytes)
{
    uint32_t n_prompt = (uint32_t)model_random(MODEL_SPANS);
    uint32_t layer = 0;

    m->n_span = (uint32_t)(1 + model_random(MODEL_SPANS));
    for (uint32_t i = 0; i < m->n_span; i++) {
        struct stream_span *p = &m->spans[i];
        uint64_t rows_max;

        if (model_random(3) == 0)
            layer++;
        p->layer = layer;
        p->file = (uint32_t)model_random(MODEL_FILES);
        p->row_bytes = 1 + model_random(20000);
        p->offset = model_random(m->files[p->file].size);
        rows_max = (m->files[p->file].size - p->offset) / p->row_bytes;
        p->n_row = model_random(span_bytes / p->row_bytes + 2);
        if (p->n_row > rows_max || model_random(8) == 0)
            p->n_row = rows_max > 50 ? 50 : rows_max; /* often at the very end */
        p->in_prompt = i < n_prompt;
        p->form = 0;
    }
    m->n_layer = layer;
}

void model_make(struct stream_model *m, uint64_t file_bytes)
{
    const char *dir = getenv("TMPDIR");

    memset(m, 0, sizeof *m);
    snprintf(m->dir, sizeof m->dir, "%.40s/stream-XXXXXX", dir != NULL ? dir : "/tmp");
    if (mkdtemp(m->dir) == NULL)
        die(m->dir);
    for (int i = 0; i < MODEL_FILES; i++)
        make_file(m, i, file_bytes + model_random(9000));
    m->catalogue.n_file = MODEL_FILES;
    m->catalogue.files = m->files;
    m->catalogue.path = m->dir;
    m->catalogue.dir_fd = -1;
    model_random_spans(m, 100000);
}

void model_remove(struct stream_model *m)
{
    for (int i = 0; i < MODEL_FILES; i++) {
        unlink(m->files[i].path);
        close(m->files[i].fd);
        free(m->files[i].path);
        free(m->bytes[i]);
    }
    rmdir(m->dir);
}

int model_holds(const struct stream_model *m, const struct stream_block *b)
{
    const struct stream_span *p = &m->spans[b->span];

    return memcmp(b->data, m->bytes[p->file] + p->offset + b->row * p->row_bytes,
                  b->n_row * p->row_bytes) == 0;
}
