#include "config.h"

#include "engine/base/folder.h"

#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <string.h>

/* Make the folder path[0 .. n) and its parents. */
static int make(const char *path, size_t n)
{
    char part[PATH_MAX];

    if (n >= sizeof part) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(part, path, n);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/')
            continue;
        part[i] = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return -1;
        part[i] = '/';
    }
    return 0;
}

int folder_make(const char *path)
{
    return make(path, strlen(path));
}

int folder_make_parent(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? 0 : make(path, (size_t)(slash - path));
}
