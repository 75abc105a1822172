/* See pull_folder.h. */
#include "config.h"

#include "engine/hub/pull_folder.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME     "memwall-pull-"
#define ATTEMPTS 8 /* another process may take a folder that is not locked yet for a leftover */

/* Remove the files of a folder, then itself: no folders are made in it. */
static void empty(int fd, const char *path)
{
    int copy = dup(fd);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL)
        unlinkat(fd, entry->d_name, 0);
    if (dir != NULL)
        closedir(dir);
    else if (copy >= 0)
        close(copy);
    rmdir(path);
}

/* Lock a folder of ours.  Returns a descriptor, or -1 if another process has it. */
static int lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st, now;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        stat(path, &now) == 0 && now.st_ino == st.st_ino)
        return fd;
    close(fd);
    return -1;
}

static void remove_leftovers(const char *temp)
{
    DIR *dir = opendir(temp);
    struct dirent *entry;
    char path[PULL_FOLDER_MAX];

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        int fd;

        if (strncmp(entry->d_name, NAME, strlen(NAME)) != 0 ||
            snprintf(path, sizeof path, "%s/%s", temp, entry->d_name) >= (int)sizeof path)
            continue;
        fd = lock(path);
        if (fd < 0)
            continue;
        empty(fd, path);
        close(fd);
    }
    if (dir != NULL)
        closedir(dir);
}

int pull_folder_make(struct pull_folder *f, const char *temp, struct err *e)
{
    remove_leftovers(temp);
    for (int i = 0; i < ATTEMPTS; i++) {
        if (snprintf(f->path, sizeof f->path, "%s/" NAME "XXXXXX", temp) >= (int)sizeof f->path)
            return err_set(e, ERR_ARGUMENT, "the name of the folder for headers is too long");
        if (mkdtemp(f->path) == NULL)
            return err_sys(e, "could not make \"%.100s\"", f->path);
        f->lock = lock(f->path);
        if (f->lock >= 0)
            return 0;
    }
    return err_sys(e, "could not lock \"%.100s\"", f->path);
}

void pull_folder_remove(struct pull_folder *f)
{
    empty(f->lock, f->path);
    close(f->lock);
}
