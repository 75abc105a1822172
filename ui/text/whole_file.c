#include "config.h"

#include "ui/text/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int whole_file_begin(struct whole_file *w, const char *path, bool replace, struct err *e)
{
    int fd;

    if (path[0] == '\0' || strlen(path) + sizeof ".XXXXXX" > sizeof w->path)
        return err_set(e, ERR_ARGUMENT, "\"%.200s\" is no name for a file", path);
    w->replace = replace;
    snprintf(w->path, sizeof w->path, "%s", path);
    snprintf(w->temporary, sizeof w->temporary, "%.4080s.XXXXXX", path);
    fd = mkostemp(w->temporary, O_CLOEXEC); /* 0600 */
    if (fd < 0)
        return err_sys(e, "cannot write \"%.200s\"", path);
    w->f = fdopen(fd, "w");
    if (w->f == NULL) {
        err_sys(e, "cannot write \"%.200s\"", path);
        close(fd);
        unlink(w->temporary);
        return -1;
    }
    return 0;
}

/* Some file systems cannot rename without replacing, but nearly all of those can link. */
static int put_in_place(const struct whole_file *w)
{
    if (w->replace)
        return rename(w->temporary, w->path);
    if (renameat2(AT_FDCWD, w->temporary, AT_FDCWD, w->path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(w->temporary, w->path) != 0)
        return -1;
    unlink(w->temporary);
    return 0;
}

int whole_file_end(struct whole_file *w, struct err *e)
{
    FILE *f = w->f;
    int failed = fflush(f) != 0 || ferror(f) || fsync(fileno(f)) != 0;
    int reason = errno;

    w->f = NULL;
    if (fclose(f) != 0 && !failed) {
        failed = 1;
        reason = errno;
    }
    if (!failed && put_in_place(w) == 0)
        return 0;
    errno = failed ? reason : errno;
    err_sys(e, "could not write \"%.200s\"", w->path);
    unlink(w->temporary);
    return -1;
}

void whole_file_drop(struct whole_file *w)
{
    if (w->f == NULL)
        return;
    fclose(w->f);
    w->f = NULL;
    unlink(w->temporary);
}
