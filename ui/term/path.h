/*
 * path.h - paths as people type them.
 */
#ifndef MEMWALL_UI_TERM_PATH_H
#define MEMWALL_UI_TERM_PATH_H

#include <stddef.h>

#include "engine/memwall.h"

/* "~/x" to the home folder's x; anything else as it is.  Returns buf. */
char *path_expand(char *buf, size_t n, const char *path);

/* Make a folder and those above it, for this person alone.  Failing shows later, when
 * something is written there. */
void path_make_folder(const char *path);

/* The folder that path is in, likewise. */
void path_make_parent(const char *path);

/* Names in the folder of path that begin like it: add(list, whole path) for each, with a
 * slash behind folders.  What begins with a dot only if path's last part does. */
typedef void path_add_fn(void *list, const char *path);
void path_complete(const char *path, path_add_fn *add, void *list);

/* Open a file of settings for reading.  A FIFO, socket, folder or device is refused without
 * waiting for it, apart from /dev/null.  Returns a descriptor, or -1 with *e, whose sys is
 * ENOENT if there is no such file. */
int path_open_file(const char *path, struct err *e);

#endif
