/*
 * pull_folder.h - a folder for the headers of a model that is described before it is fetched.
 *
 * A killed process leaves its folder, with the first megabytes of files.  So a process holds a
 * lock on its own one, and removes those of other processes that have none.
 */
#ifndef MEMWALL_ENGINE_HUB_PULL_FOLDER_H
#define MEMWALL_ENGINE_HUB_PULL_FOLDER_H

#include "engine/base/err.h"

#define PULL_FOLDER_MAX 4096

struct pull_folder {
    char path[PULL_FOLDER_MAX];
    int lock; /* descriptor of the folder */
};

/* Make one in the folder `temp`.  Returns 0, or -1 with *e. */
int pull_folder_make(struct pull_folder *f, const char *temp, struct err *e);
/* Remove it with the files in it. */
void pull_folder_remove(struct pull_folder *f);

#endif
