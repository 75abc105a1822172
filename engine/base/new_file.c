#include "config.h"

#include "engine/base/new_file.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

    if (path[0] == '\0' || strlen(path) + sizeof ".XXXXXX" > sizeof n->path)
        return err_set(e, ERR_ARGUMENT, "\"%.200s\" is not a usable file name", path);
    n->replace = replace;
    snprintf(n->path, sizeof n->path, "%s", path);
    snprintf(n->temporary, sizeof n->temporary, "%.4080s.XXXXXX", path);
    fd = mkostemp(n->temporary, O_CLOEXEC); /* 0600 */
    if (fd < 0)
        return err_sys(e, "cannot write \"%.200s\"", path);
    keep_mode(n, fd);
    n->f = fdopen(fd, "w");
    if (n->f == NULL) {
        err_sys(e, "cannot write \"%.200s\"", path);
        close(fd);
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
    if (!failed && put_in_place(n) == 0)
        return 0;
    errno = failed ? reason : errno;
    err_sys(e, "cannot write \"%.200s\"", n->path);
    unlink(n->temporary);
    return -1;
}

void new_file_drop(struct new_file *n)
{
    if (n->f == NULL)
        return;
    fclose(n->f);
    n->f = NULL;
    unlink(n->temporary);
}
