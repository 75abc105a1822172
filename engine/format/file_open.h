/* file_open.h - opens model files, and describes files that are something else. */
#ifndef MEMWALL_ENGINE_FORMAT_FILE_OPEN_H
#define MEMWALL_ENGINE_FORMAT_FILE_OPEN_H

#include <sys/stat.h>

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

/*
 * Open a regular file for reading and store its identity.  name is relative to dir_fd
 * (AT_FDCWD: the current folder); messages show it as shown.  A FIFO, folder or device is
 * refused without waiting for it.  Returns 0, or -1 with *e naming the file.
 */
int model_file_open(struct model_file *f, int dir_fd, const char *name, const char *shown,
                    struct err *e);
void model_file_close(struct model_file *f);

/* Whether there is a file of this name, or a link whose file is missing: caches of models link to
 * files that may be deleted, and a missing file that is not needed would be passed over. */
bool model_file_is_there(int dir_fd, const char *name);

/* Find a file whose download was interrupted in a repository of the hub's cache, the folder dir_fd.
 * Stores its identity in *st; returns false if there is none. */
bool model_file_unended(int dir_fd, struct stat *st);

/* The same for a file that this program wrote: a link and a file of another user are refused. */
int model_file_open_own(struct model_file *f, const char *path, struct err *e);

/* Store the identity that an open file has now.  Returns false if that is not known. */
bool model_file_now(const struct model_file *f, struct model_file *now);

/*
 * Returns what a file seems to be by its first bytes, "a git-lfs pointer; …", or NULL if they
 * do not show it.  The text is static.
 */
const char *file_says(const struct model_file *f);

/*
 * Refuse a file beside which a program that downloads in pieces keeps its state: it has its full
 * size and its header from the start, and the rest are zeros.  Returns 0, or -1 with *e.
 */
int file_check_ended(const struct model_file *f, struct err *e);

/* Add the file's name to the error of a text that should be JSON.  If its first bytes show that it
 * is something else, the error says so.  Always returns -1. */
int file_not_json(const struct model_file *f, struct err *e);

#endif
