/*
 * small_file.h - reads a small file that may have been replaced by anything.
 *
 * Settings, measurements, lists and tokens are files of a few kilobytes, in folders where other
 * programs and people write too.  In place of one there may be a FIFO, a device without end, a
 * folder, or a file of a terabyte.  Nothing but a regular file (or /dev/null, which is empty)
 * is read, and never more than a limit, so that reading never waits and never fills the memory.
 */
#ifndef MEMWALL_ENGINE_BASE_SMALL_FILE_H
#define MEMWALL_ENGINE_BASE_SMALL_FILE_H

#include <stddef.h>

#include "engine/base/err.h"

/*
 * Read a file of at most `most` bytes.  Returns its text with a NUL after it, for free(), and
 * its length in *n (may be NULL); or NULL with *e, whose sys is ENOENT or ENOTDIR if there is
 * no such file.  A longer file is an error.  A mark of its encoding (encoding.h) is skipped.
 */
char *small_file_read(const char *path, size_t most, size_t *n, struct err *e);

/* The same for a file that this program wrote: a link and a file of another user are errors. */
char *small_file_read_own(const char *path, size_t most, size_t *n, struct err *e);

/* The same as small_file_read() for the last `most` bytes of a file of any length. */
char *small_file_read_end(const char *path, size_t most, size_t *n, struct err *e);

#endif
