#include "config.h"

#include "engine/stream/mirror.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/units.h"
#include "engine/format/file_open.h"
#include "engine/stream/read_now.h"

_Static_assert((int)READ_DISKS == (int)MW_DISKS, "telemetry counts both disks");

#define HEADER_MOST  (64 * MIB) /* of a file that is compared from its beginning */
#define SAMPLES      64         /* of each file, evenly spread, */
#define SAMPLE_BYTES (64 * KIB) /* of this size */
#define HOLES_MOST   256        /* of each file: more would take long to compare */

/* --- opening --- */

/* Write the path of the copy of file i. */
static int copy_path(const struct catalogue *c, uint32_t i, const char *path, char *buf,
                     size_t n, struct err *e)
{
    const char *name = strrchr(c->files[i].path, '/'), *slash = strrchr(path, '/');
    struct stat st;
    int len;

    name = name != NULL ? name + 1 : c->files[i].path;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        len = snprintf(buf, n, "%s/%s", path, name);
    else if (c->n_file == 1)
        len = snprintf(buf, n, "%s", path);
    else
        len = snprintf(buf, n, "%.*s/%s", slash != NULL ? (int)(slash - path) : 1,
                       slash != NULL ? path : ".", name);
    return len >= 0 && (size_t)len < n ? 0 : err_set(e, ERR_ARGUMENT, "the path is too long");
}

void mirror_close(struct model_file *files, uint32_t n)
{
    for (uint32_t i = 0; files != NULL && i < n; i++)
        model_file_close(&files[i]);
    free(files);
}

/* --- comparing --- */

struct comparison {
    struct read_now model, copy;
    unsigned char *buf; /* [2 * SAMPLE_BYTES] */
};

/* The end of the first sample of a range, and the start of its last one. */
static uint64_t end_of_sample(uint64_t from, uint64_t to)
{
    return to - from > SAMPLE_BYTES ? from + SAMPLE_BYTES : to;
}

static uint64_t start_of_sample(uint64_t from, uint64_t to)
{
    return to - from > SAMPLE_BYTES ? to - SAMPLE_BYTES : from;
}

static int compare(struct comparison *q, uint32_t file, uint64_t from, uint64_t to,
                   struct err *e)
{
    for (uint64_t at = from; at < to; at += SAMPLE_BYTES) {
        uint64_t n = to - at < SAMPLE_BYTES ? to - at : SAMPLE_BYTES, i = 0;

        if (read_now(&q->model, file, at, n, q->buf, e) != 0 ||
            read_now(&q->copy, file, at, n, q->buf + SAMPLE_BYTES, e) != 0)
            return -1;
        if (memcmp(q->buf, q->buf + SAMPLE_BYTES, n) == 0)
            continue;
        while (q->buf[i] == q->buf[SAMPLE_BYTES + i])
            i++;
        err_set(e, ERR_FORMAT, "is not a copy of the model: it has other bytes");
        return err_at(e, q->copy.c->files[file].path, at + i, NULL);
    }
    return 0;
}

/*
 * A copy that is not complete often has its full size already: what is missing are holes, or space
 * that was allocated and never written, which the file system reports as holes, too.  They read as
 * zeros, so the model must have zeros at both ends of each.  Without this, a few percent of the
 * file could be missing between two samples.
 */
static int compare_holes(struct comparison *q, uint32_t file, struct err *e)
{
    const struct model_file *copy = &q->copy.c->files[file];
    uint64_t size = copy->size;
    off_t from = 0, to;

    for (int n = 0;; n++, from = to) {
        from = lseek(copy->fd, from, SEEK_HOLE);
        if (from < 0 || (uint64_t)from >= size) /* the last one is the end of the file */
            return 0;
        if (n == HOLES_MOST) {
            err_set(e, ERR_FORMAT,
                    "has more than %d holes, so what is missing is not known; copy the model with "
                    "cp --sparse=never",
                    HOLES_MOST);
            return err_at(e, copy->path, (uint64_t)from, NULL);
        }
        to = lseek(copy->fd, from, SEEK_DATA);
        if (to < 0)
            to = (off_t)size;
        if (compare(q, file, (uint64_t)from, end_of_sample((uint64_t)from, (uint64_t)to), e) != 0)
            return -1;
        if ((uint64_t)(to - from) > SAMPLE_BYTES &&
            compare(q, file, start_of_sample((uint64_t)from, (uint64_t)to), (uint64_t)to, e) != 0)
            return -1;
        if ((uint64_t)to >= size)
            return 0;
    }
}

/* Returns where the first weights of a file begin. */
static uint64_t header_end(const struct catalogue *c, uint32_t file)
{
    uint64_t end = c->files[file].size;

    for (uint32_t i = 0; i < c->n_tensor; i++)
        if (c->tensors[i].file == file && c->tensors[i].offset < end)
            end = c->tensors[i].offset;
    return end < HEADER_MOST ? end : HEADER_MOST;
}

static int compare_file(struct comparison *q, const struct catalogue *c, uint32_t file,
                        struct err *e)
{
    uint64_t size = c->files[file].size, end = header_end(c, file);
    char have[24], want[24];

    if (q->copy.c->files[file].size != size) {
        err_set(e, ERR_FORMAT, "is not a copy of the model: its size is %s, not %s",
                units_size(have, sizeof have, q->copy.c->files[file].size),
                units_size(want, sizeof want, size));
        return err_at(e, q->copy.c->files[file].path, ERR_NO_OFFSET, NULL);
    }
    if (compare(q, file, 0, end, e) != 0 || compare_holes(q, file, e) != 0)
        return -1;
    for (uint64_t i = 1; i <= SAMPLES && size > end;
         i++) { /* the last one ends with the file */
        uint64_t to = end + (uint64_t)((double)(size - end) * (double)i / SAMPLES);

        to = i == SAMPLES || to > size ? size : to;
        if (compare(q, file, start_of_sample(end, to), to, e) != 0)
            return -1;
    }
    return 0;
}

static int compare_files(const struct catalogue *c, struct model_file *files, struct err *e)
{
    struct catalogue copy = { .files = files, .n_file = c->n_file };
    struct comparison q = { .buf = malloc(2 * SAMPLE_BYTES) };
    int rc = q.buf != NULL ? 0 : err_memory(e, "a comparison with the copy");

    if (rc == 0)
        rc = read_now_open(&q.model, c, e);
    if (rc == 0)
        rc = read_now_open(&q.copy, &copy, e);
    for (uint32_t i = 0; rc == 0 && i < c->n_file; i++)
        rc = compare_file(&q, c, i, e);
    read_now_close(&q.model);
    read_now_close(&q.copy);
    free(q.buf);
    return rc;
}

int mirror_open(struct model_file **out, const struct catalogue *c, const char *path,
                struct err *e)
{
    struct model_file *files = calloc(c->n_file > 0 ? c->n_file : 1, sizeof *files);
    char name[4096];
    int rc = 0;

    *out = NULL;
    if (files == NULL)
        return err_memory(e, "%u files", c->n_file);
    for (uint32_t i = 0; i < c->n_file; i++)
        files[i].fd = -1;
    for (uint32_t i = 0; rc == 0 && i < c->n_file; i++)
        rc = copy_path(c, i, path, name, sizeof name, e) != 0
                 ? -1
                 : model_file_open(&files[i], AT_FDCWD, name, name, e);
    if (rc == 0)
        rc = compare_files(c, files, e);
    if (rc != 0) {
        mirror_close(files, c->n_file);
        return -1;
    }
    *out = files;
    return 0;
}

bool mirror_has_changed(const struct model_file *f)
{
    struct model_file now;

    return !model_file_now(f, &now) || now.size != f->size || now.mtime_ns != f->mtime_ns ||
           now.ctime_ns != f->ctime_ns;
}

/* --- two disks --- */

/* A rate is measured over so much time in which the disk was busy. */
#define WINDOW_NS 20000000u
/* A disk that got no read for so long is tried again: it may be faster now.  The second is in
 * times that a block took there, so that a disk that stays slow costs little. */
#define TRY_NS     1000000000u
#define TRY_BLOCKS 40
/* Slots that fill while a block of the slower disk is read. */
#define RING_AHEAD(n_slot) ((double)((n_slot) > 3 ? (n_slot)-2 : 1))

void disks_open(struct disks *d, struct telemetry *t)
{
    d->has_mirror = true;
    d->telemetry = t;
    counter_set(&t->mirror, MW_MIRROR_USED);
}

/* Whether a disk got no read for so long that what is known of it may be wrong. */
static bool is_forgotten(const struct disk_load *l, size_t bytes, uint64_t now_ns)
{
    double block_ns = l->bytes_s > 0 ? (double)bytes * 1e9 / l->bytes_s : 0;

    return l->flying == 0 && l->last_ns > 0 && now_ns > l->last_ns + TRY_NS &&
           (double)(now_ns - l->last_ns) > TRY_BLOCKS * block_ns;
}

/* Whether a read shall find out how fast a disk is now.  The engine waits for urgent ones, and for
 * the first one after a pause, in which the other disk was idle, too: they go where they are
 * expected to end first. */
static bool tries(const struct disk_load *l, const struct disk_load *other,
                  const struct read_op *op, uint64_t now_ns)
{
    return !op->is_urgent && is_forgotten(l, op->bytes, now_ns) &&
           !is_forgotten(other, op->bytes, now_ns);
}

/* Whether a disk has a read already while its rate of now is not known. */
static bool is_on_trial(const struct disk_load *l)
{
    return (l->bytes_s <= 0 || l->is_old) && l->flying > 0;
}

enum read_disk disks_choose(const struct disks *d, const struct read_op *op, uint32_t n_slot,
                            uint64_t now_ns)
{
    const struct disk_load *model = &d->disk[READ_MODEL], *mirror = &d->disk[READ_MIRROR];
    double model_s = 1, mirror_s = 1, own = op->is_urgent ? (double)op->bytes : 0;

    if (!d->has_mirror)
        return READ_MODEL;
    if (tries(mirror, model, op, now_ns))
        return READ_MIRROR;
    if (tries(model, mirror, op, now_ns))
        return READ_MODEL;
    if (is_on_trial(mirror))
        return READ_MODEL;
    if (model->bytes_s > 0 && mirror->bytes_s > 0) { /* the time of a byte */
        model_s = 1 / model->bytes_s;
        mirror_s = 1 / mirror->bytes_s;
    }
    /* The engine takes blocks in order: while it waits for one of a slow disk, the other disk
     * fills the ring, and then it waits, too. */
    if (!op->is_urgent && n_slot > 0 && mirror_s > model_s * RING_AHEAD(n_slot))
        return READ_MODEL;
    if (!op->is_urgent && n_slot > 0 && model_s > mirror_s * RING_AHEAD(n_slot))
        return READ_MIRROR;
    return ((double)mirror->flying + own) * mirror_s < ((double)model->flying + own) * model_s
               ? READ_MIRROR
               : READ_MODEL;
}

void disks_begin(struct disks *d, const struct read_op *op, uint64_t now_ns)
{
    struct disk_load *l = &d->disk[op->disk];

    if (d->telemetry == NULL)
        return;
    if (l->flying == 0 && l->last_ns > 0 && now_ns > l->last_ns + TRY_NS) { /* measure again */
        l->is_old = true;
        l->window_ns = l->window_bytes = 0;
    }
    if (l->flying == 0)
        l->busy_from_ns = now_ns;
    l->flying += op->bytes;
}

void disks_end(struct disks *d, const struct read_op *op, uint64_t now_ns)
{
    struct disk_load *l = &d->disk[op->disk];
    uint64_t ns = now_ns - l->busy_from_ns, bytes = op->result > 0 ? (uint64_t)op->result : 0;

    if (d->telemetry == NULL)
        return;
    l->flying -= op->bytes < l->flying ? op->bytes : l->flying;
    l->busy_from_ns = l->last_ns = now_ns;
    l->window_ns += ns;
    l->window_bytes += bytes;
    counter_add(&d->telemetry->disk_bytes[op->disk], bytes);
    counter_add(&d->telemetry->disk_ns[op->disk], ns);
    if (l->window_ns < WINDOW_NS)
        return;
    if (l->window_bytes > 0) {
        double seen = (double)l->window_bytes * 1e9 / (double)l->window_ns;

        l->bytes_s = l->bytes_s > 0 && !l->is_old ? 0.75 * l->bytes_s + 0.25 * seen : seen;
        l->is_old = false;
    }
    l->window_ns = l->window_bytes = 0;
}

void disks_stop(struct disks *d)
{
    d->disk[READ_MODEL].flying = d->disk[READ_MIRROR].flying = 0;
}

void disks_drop(struct disks *d, const struct err *why)
{
    if (!d->has_mirror)
        return;
    d->has_mirror = false;
    d->failure = *why;
    counter_set(&d->telemetry->mirror, MW_MIRROR_LOST);
}
