/*
 * output.h - open files that the user named, without overwriting a model or anything else by
 * mistake.
 */
#ifndef MEMWALL_ENGINE_API_OUTPUT_H
#define MEMWALL_ENGINE_API_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

struct mw_model;

struct mw_output {
    const char *path;
    bool replace;           /* replace an existing regular file */
    const char *to_replace; /* the option that allows it, for the message: "--force" */
};

/*
 * Open a file that the user named, empty, for writing.  Refuses an existing file unless
 * o->replace is set, every file of the model m (which may be NULL), and special files except
 * /dev/null, /dev/stdout, /dev/stderr and /dev/fd/N.  Does not wait for a reader of a FIFO.
 * Returns a descriptor, or -1 with *e.  *is_new: the file did not exist.
 */
int mw_output_open(const struct mw_model *m, const struct mw_output *o, bool *is_new,
                   struct err *e);

/* Refuse the same files, without opening one: for a file that will be renamed to o->path. */
int mw_output_check(const struct mw_model *m, const struct mw_output *o, struct err *e);

#endif
