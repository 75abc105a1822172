/*
 * paths.h - the folders for the user's files: the XDG base directories.
 */
#ifndef MEMWALL_SRC_BASE_PATHS_H
#define MEMWALL_SRC_BASE_PATHS_H

#include "engine/memwall.h"

struct paths {
    char config_dir[512];  /* $XDG_CONFIG_HOME/memwall */
    char config_file[544]; /* …/config */
    char state_dir[512];   /* history, log */
    char data_dir[512];    /* chats, models */
    char cache_dir[512];   /* may be deleted at any time */
};

/* Returns the home directory, or NULL. */
const char *paths_home(void);

/* Read the folders from the environment; nothing is created.  Returns -1 with *e if there is no
 * home directory or a name is too long. */
int paths_find(struct paths *p, struct err *e);

/*
 * Write the path of a file or folder that is installed in the data folder.  The program of a
 * build tree uses the one of its source tree, and a copy of an installed tree the one of that
 * tree.  Returns false if there is none; then it is the path where it should be.
 */
bool paths_share(const char *name, char *buf, size_t n);

/* Write candidate i of paths_share(); false after the last one. */
bool paths_share_at(int i, const char *name, char *buf, size_t n);

#endif
