/*
 * file_open.h - opening what a user calls a model file, and saying what it is instead.
 */
#ifndef MEMWALL_ENGINE_FORMAT_FILE_OPEN_H
#define MEMWALL_ENGINE_FORMAT_FILE_OPEN_H

#include "engine/base/err.h"
#include "engine/format/catalogue.h"

/*
 * Open a regular file for reading and note its identity.  name is looked up in dir_fd
 * (AT_FDCWD: as it is); shown is what messages call it.  A FIFO, folder or device is
 * refused without waiting for it.  Returns 0, or -1 with *e naming the file.
 */
int model_file_open(struct model_file *f, int dir_fd, const char *name, const char *shown,
                    struct err *e);
void model_file_close(struct model_file *f);

/*
 * What a file that is not the wanted kind seems to be: "a git-lfs pointer: …", told from
 * its first bytes, or NULL if it gives no sign.  The text is static.
 */
const char *file_says(const struct model_file *f);

#endif
