#include "config.h"

#include "engine/base/new_file.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARK   ".mw-new-"
#define DIGITS 6 /* of mkostemp */
#define TRIES  10

/* Delete the file if it is a leftover: no process has its lock. */
static void drop_leftover(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

/* Delete what killed programs left that wrote the same file. */
static void drop_leftovers(const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    size_t len = strlen(base), mark = sizeof MARK - 1;
    char folder[4096] = ".";
    DIR *d;

    if (slash != NULL)
        snprintf(folder, sizeof folder, "%.*s", (int)(base - path), path);
    d = opendir(folder);
    if (d == NULL)
        return;
    for (const struct dirent *f; (f = readdir(d)) != NULL;)
        if (strncmp(f->d_name, base, len) == 0 &&
            strncmp(f->d_name + len, MARK, mark) == 0 &&
            strlen(f->d_name + len + mark) == DIGITS)
            drop_leftover(dirfd(d), f->d_name);
    closedir(d);
}

/* Make the temporary file, with a lock.  Another writer may take it for a leftover until it has
 * one; then make another.  Returns a descriptor, or -1 with errno. */
static int make_temporary(struct new_file *n)
{
    struct stat st;
    int fd = -1;

    for (int i = 0; i < TRIES; i++) {
        snprintf(n->temporary, sizeof n->temporary, "%.4081s" MARK "XXXXXX", n->path);
        fd = mkostemp(n->temporary, O_CLOEXEC); /* 0600 */
        if (fd < 0)
            return -1;
        /* Some file systems have no locks.  There, no process can delete it. */
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 ? fstat(fd, &st) == 0 && st.st_nlink > 0
                                              : errno != EWOULDBLOCK)
            return fd;
        close(fd);
        errno = EBUSY;
        fd = -1;
    }
    return fd;
}

/* The mode of the file that is about to be replaced. */
static void keep_mode(const struct new_file *n, int fd)
{
    struct stat st;

    if (n->replace && stat(n->path, &st) == 0)
        (void)!fchmod(fd, st.st_mode & 0777);
}

int new_file_begin(struct new_file *n, const char *path, bool replace, struct err *e)
{
    int fd;

    if (path[0] == '\0' || strlen(path) + sizeof MARK "XXXXXX" > sizeof n->path)
        return err_set(e, ERR_ARGUMENT, "\"%.200s\" is not a usable file name", path);
    n->replace = replace;
    snprintf(n->path, sizeof n->path, "%s", path);
    drop_leftovers(path);
    fd = make_temporary(n);
    if (fd < 0)
        return err_sys(e, "cannot write \"%.200s\"", path);
    keep_mode(n, fd);
    n->lock = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* it stays until the file has its name */
    n->f = n->lock >= 0 ? fdopen(fd, "w") : NULL;
    if (n->f == NULL) {
        err_sys(e, "cannot write \"%.200s\"", path);
        close(fd);
        if (n->lock >= 0)
            close(n->lock);
        unlink(n->temporary);
        return -1;
    }
    return 0;
}

/* Some file systems cannot rename without replacing, but nearly all of them can link. */
static int put_in_place(const struct new_file *n)
{
    if (n->replace)
        return rename(n->temporary, n->path);
    if (renameat2(AT_FDCWD, n->temporary, AT_FDCWD, n->path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(n->temporary, n->path) != 0)
        return -1;
    unlink(n->temporary);
    return 0;
}

int new_file_sync(int fd)
{
    if (fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP ||
        errno == EPERM)
        return 0;
    return -1;
}

int new_file_end(struct new_file *n, struct err *e)
{
    FILE *f = n->f;
    bool failed = fflush(f) != 0 || ferror(f) || new_file_sync(fileno(f)) != 0;
    int reason = errno;

    n->f = NULL;
    if (fclose(f) != 0 && !failed) {
        failed = true;
        reason = errno;
    }
    if (!failed && put_in_place(n) != 0) {
        failed = true;
        reason = errno;
    }
    if (failed) {
        errno = reason;
        err_sys(e, "cannot write \"%.200s\"", n->path);
        unlink(n->temporary);
    }
    close(n->lock);
    return failed ? -1 : 0;
}

void new_file_drop(struct new_file *n)
{
    if (n->f == NULL)
        return;
    fclose(n->f);
    n->f = NULL;
    unlink(n->temporary);
    close(n->lock);
}

void new_file_drop_empty(int fd, const char *path)
{
    struct stat own, named;

    if (fstat(fd, &own) == 0 && S_ISREG(own.st_mode) && own.st_size == 0 &&
        lstat(path, &named) == 0 && named.st_dev == own.st_dev && named.st_ino == own.st_ino)
        unlink(path);
}
