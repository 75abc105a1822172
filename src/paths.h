/*
 * paths.h - the folders for the user's files: the XDG base directories.
 */
#ifndef MEMWALL_SRC_PATHS_H
#define MEMWALL_SRC_PATHS_H

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

#endif
