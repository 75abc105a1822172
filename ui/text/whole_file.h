/*
 * whole_file.h - a file that is there whole or not at all: written beside its place under
 * another name, synced, renamed.  Mode 0600; a file that was there keeps its place until
 * the new one is complete.
 */
#ifndef MEMWALL_UI_TEXT_WHOLE_FILE_H
#define MEMWALL_UI_TEXT_WHOLE_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "engine/memwall.h"

struct whole_file {
    FILE *f; /* to write to */
    char path[4096], temporary[4096];
    bool replace;
};

/* Begin.  replace: a file of that name may be there and is replaced.  -1 with *e: nothing
 * is there. */
int whole_file_begin(struct whole_file *w, const char *path, bool replace, struct err *e);
/* End: put it in its place.  On failure nothing is left of it. */
int whole_file_end(struct whole_file *w, struct err *e);
/* Leave it: nothing is left of it. */
void whole_file_drop(struct whole_file *w);

#endif
