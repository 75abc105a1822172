/*
 * source.h - the model's files, opened for reading blocks.
 *
 * Each file is opened a second time through /proc/self/fd, so that it is the file whose header
 * was read, even if its name now belongs to another one.  It is opened with O_DIRECT, or for
 * the page cache without read-ahead.
 */
#ifndef MEMWALL_ENGINE_STREAM_SOURCE_H
#define MEMWALL_ENGINE_STREAM_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

struct source_file {
    int fd, mirror_fd; /* mirror_fd -1: there is no copy */
    uint64_t size;
    bool is_elsewhere; /* on another disk than the first file, as far as the system knows */
    const char *path;  /* for messages; the catalogue's */
    const struct model_file *mirror; /* the copy; not owned */
};

/* The file after those of the models, in errors: stream_set_kv_file(). */
#define SOURCE_KV_NAME "keys and values on the disk"

struct source {
    struct source_file *files; /* [n_file + 1], allocated; the last one has keys and values */
    uint32_t n_file;
    bool is_direct, is_mirror_direct;
};

/*
 * Open the files of c, and then those of `more`, which may be NULL.  With is_direct they are opened
 * with O_DIRECT, and each is read once to be sure that this works.  Returns 0; or -1 with *e (ERR_UNSUPPORTED: no direct reads here)
 * and nothing open.
 */
int source_open(struct source *s, const struct catalogue *c, const struct catalogue *more,
                bool is_direct, struct err *e);
/* Open the copies of the first n files in the same way, or through the page cache if their file
 * system needs that.  They must outlive s.  Returns 0, or -1 with *e and no copy open. */
int source_open_mirror(struct source *s, const struct model_file *mirror, uint32_t n,
                       struct err *e);
void source_close(struct source *s); /* safe on a zeroed struct */

/* The same for one file; returns a descriptor, or -1 with *e. */
int source_open_file(const struct model_file *f, bool is_direct, struct err *e);

/* Whether two open files are on different file systems. */
bool source_is_elsewhere(int fd, int other_fd);

/* Drop the pages inside a range from the page cache; bytes 0: to the end of the file. */
void source_drop(int fd, uint64_t offset, uint64_t bytes);

#endif
