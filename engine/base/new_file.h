/*
 * new_file.h - a file that appears complete or not at all.
 *
 *     new_file_begin(&n, path, true, e);
 *     fputs("...", n.f);
 *     new_file_end(&n, e);          or new_file_drop(&n) to give up
 *
 * The text goes to "path.mw-new-XXXXXX", which is synced and renamed, so a crash or a full disk
 * leaves an older file unchanged.  A replaced file keeps its mode; a new one has 0600.
 *
 * A program that is killed leaves its temporary file, which the next writer of the same path
 * deletes: a writer has a lock on its own, and the kernel takes locks from a process that ends.
 */
#ifndef MEMWALL_ENGINE_BASE_NEW_FILE_H
#define MEMWALL_ENGINE_BASE_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/err.h"

struct new_file {
    FILE *f; /* the caller writes here; new_file_end() finds write errors */
    char path[4096], temporary[4096];
    bool replace;
    int lock; /* a descriptor */
};

/*
 * Open the temporary file.  Unless replace is set, new_file_end() fails if path exists by
 * then.  Returns 0, or -1 with *e and nothing to clean up.
 */
int new_file_begin(struct new_file *n, const char *path, bool replace, struct err *e);

/* Sync the file and rename it to path.  Returns 0, or -1 with *e after deleting it. */
int new_file_end(struct new_file *n, struct err *e);

/* Sync a file; 0 also on a file system that cannot, otherwise -1 with errno. */
int new_file_sync(int fd);

/* Delete the file at path if fd is open on it and nothing was written to it: a caller that writes
 * piece by piece has created it, and failed. */
void new_file_drop_empty(int fd, const char *path);

/* Delete the temporary file.  Does nothing after new_file_end(). */
void new_file_drop(struct new_file *n);

#endif
