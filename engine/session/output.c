/*
 * Files that the program writes because the user named them.
 *
 * Three rules: an existing file is replaced only on request, a file of the model never, and
 * only regular files are written.  The exceptions are /dev/null and the names of descriptors
 * that the program was started with.
 */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/memwall.h"
#include "engine/session/model.h"

/* Returns the descriptor that "/dev/stdout", "/dev/stderr" or "/dev/fd/N" names, or -1. */
static int named_descriptor(const char *path)
{
    char *end;
    long n;

    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    if (strncmp(path, "/dev/fd/", 8) != 0 || path[8] < '0' || path[8] > '9')
        return -1;
    n = strtol(path + 8, &end, 10);
    return *end == '\0' && n <= 65535 ? (int)n : -1;
}

static const char *kind_of(const struct stat *st)
{
    return S_ISDIR(st->st_mode)    ? "a folder"
           : S_ISFIFO(st->st_mode) ? "a FIFO"
           : S_ISSOCK(st->st_mode) ? "a socket"
                                   : "a device";
}

/* Refuse an existing file that must not be written. */
static int check_existing(const struct mw_model *m, const struct mw_output *o,
                          const struct stat *st, struct err *e)
{
    if (!S_ISREG(st->st_mode))
        return err_set(e, ERR_ARGUMENT, "\"%.120s\" is %s, not a regular file", o->path,
                       kind_of(st));
    if (m != NULL && catalogue_has_file(m->catalogue, (uint64_t)st->st_dev, st->st_ino))
        return err_set(e, ERR_ARGUMENT,
                       "\"%.120s\" is a file of the model, which is never written to", o->path);
    if (!o->replace)
        return err_set(e, ERR_ARGUMENT, "\"%.120s\" exists already; %s replaces it", o->path,
                       o->to_replace);
    return 0;
}

int mw_output_check(const struct mw_model *m, const struct mw_output *o, struct err *e)
{
    struct stat st;

    if (stat(o->path, &st) == 0)
        return check_existing(m, o, &st, e);
    if (errno != ENOENT)
        return err_sys(e, "cannot write \"%.120s\"", o->path);
    return 0;
}

/* Duplicate a descriptor that the program was started with.  All descriptors that it opened
 * itself are close-on-exec, which tells them apart. */
static int open_descriptor(const char *path, int fd, struct err *e)
{
    int flags = fcntl(fd, F_GETFD), mode = fcntl(fd, F_GETFL), copy;

    if (flags < 0 || mode < 0 || (flags & FD_CLOEXEC) != 0 || (mode & O_ACCMODE) == O_RDONLY)
        return err_set(e, ERR_ARGUMENT, "\"%.120s\" is not a descriptor that can be written to",
                       path);
    copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return copy >= 0 ? copy : err_sys(e, "cannot write \"%.120s\"", path);
}

/* Check the file again once it is open: the name may have been given to another file. */
static int open_existing(const struct mw_model *m, const struct mw_output *o, struct err *e)
{
    int fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0)
        return err_sys(e, "cannot write \"%.120s\"", o->path);
    if (fstat(fd, &st) != 0)
        err_sys(e, "cannot write \"%.120s\"", o->path);
    else if (check_existing(m, o, &st, e) == 0) {
        if (ftruncate(fd, 0) == 0)
            return fd;
        err_sys(e, "cannot empty \"%.120s\"", o->path);
    }
    close(fd);
    return -1;
}

int mw_output_open(const struct mw_model *m, const struct mw_output *o, bool *is_new,
                   struct err *e)
{
    int fd = named_descriptor(o->path);

    *is_new = false;
    if (fd >= 0)
        return open_descriptor(o->path, fd, e);
    if (strcmp(o->path, "/dev/null") == 0) {
        fd = open(o->path, O_WRONLY | O_CLOEXEC);
        return fd >= 0 ? fd : err_sys(e, "cannot write \"%.120s\"", o->path);
    }
    fd = open(o->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    *is_new = fd >= 0;
    if (fd >= 0)
        return fd;
    if (errno != EEXIST)
        return err_sys(e, "cannot write \"%.120s\"", o->path);
    /* Check before opening: opening a device may already have an effect. */
    if (mw_output_check(m, o, e) != 0)
        return -1;
    return open_existing(m, o, e);
}
