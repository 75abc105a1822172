/*
 * folder.h - make folders and their parents.
 *
 * New folders are private (0700); existing ones do not change.  Both functions return 0, or
 * -1 with errno.  A caller that writes a file there next may ignore a failure, because
 * opening the file then fails too and names the file.
 */
#ifndef MEMWALL_ENGINE_BASE_FOLDER_H
#define MEMWALL_ENGINE_BASE_FOLDER_H

int folder_make(const char *path);

/* Make the folder that path is in. */
int folder_make_parent(const char *path);

#endif
