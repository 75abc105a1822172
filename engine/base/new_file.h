/*
 * new_file.h - a file that appears complete or not at all.
 *
 *     new_file_begin(&n, path, true, e);
 *     fputs("...", n.f);
 *     new_file_end(&n, e);          or new_file_drop(&n) to give up
 *
 * It is written to "path.XXXXXX", synced and renamed, so a crash or a full disk leaves the
 * file that was there before.  A replaced file keeps its mode; a new one is 0600.
 */
#ifndef MEMWALL_ENGINE_BASE_NEW_FILE_H
#define MEMWALL_ENGINE_BASE_NEW_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/err.h"

struct new_file {
    FILE *f; /* the caller writes here; errors of writing are found by new_file_end() */
    char path[4096], temporary[4096];
    bool replace;
};

/*
 * Open the temporary file.  Unless replace is set, new_file_end() fails if path exists by
 * then.  Returns 0, or -1 with *e and nothing to clean up.
 */
int new_file_begin(struct new_file *n, const char *path, bool replace, struct err *e);

/* Sync it and move it to its place.  Returns 0, or -1 with *e; then nothing of it is left. */
int new_file_end(struct new_file *n, struct err *e);

/* Delete what was written.  Does nothing after new_file_end(). */
void new_file_drop(struct new_file *n);

#endif
