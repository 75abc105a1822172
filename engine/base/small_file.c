#include "config.h"

#include "engine/base/small_file.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/encoding.h"

static bool is_null_device(const struct stat *st)
{
    struct stat null;

    return S_ISCHR(st->st_mode) && stat("/dev/null", &null) == 0 && st->st_rdev == null.st_rdev;
}

/* Read at most `most` bytes from the current position of fd.  Returns 0, or -1 with errno. */
static int read_bytes(int fd, char *text, size_t most, size_t *n)
{
    *n = 0;
    while (*n < most) {
        ssize_t got = read(fd, text + *n, most - *n);

        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        *n += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int too_long(const char *path, size_t most, struct err *e)
{
    return err_set(e, ERR_ARGUMENT, "\"%.150s\" is longer than %zu bytes", path, most);
}

/* Remove the mark of the encoding from a text of *n bytes. */
static int drop_mark(char *text, size_t *n, const char *path, struct err *e)
{
    int mark = encoding_mark(text, *n, e);

    if (mark < 0)
        return err_at(e, path, ERR_NO_OFFSET, NULL);
    *n -= (size_t)mark;
    memmove(text, text + mark, *n);
    return 0;
}

enum part { WHOLE, WHOLE_OWN, END };

/* The file is open. */
static char *read_open(int fd, const char *path, size_t most, enum part part, size_t *n,
                       struct err *e)
{
    bool is_end = part == END;
    struct stat st;
    size_t room, got;
    char *text;

    if (fstat(fd, &st) != 0 || (!S_ISREG(st.st_mode) && !is_null_device(&st))) {
        err_set(e, ERR_ARGUMENT, "\"%.150s\" is not a regular file", path);
        return NULL;
    }
    if (part == WHOLE_OWN && st.st_uid != geteuid()) {
        err_set(e, ERR_ARGUMENT, "\"%.150s\" belongs to another user", path);
        return NULL;
    }
    if (!is_end && (uint64_t)st.st_size > most) {
        too_long(path, most, e);
        return NULL;
    }
    if ((uint64_t)st.st_size > most && lseek(fd, st.st_size - (off_t)most, SEEK_SET) < 0) {
        err_sys(e, "cannot read \"%.150s\"", path);
        return NULL;
    }
    /* Files of /proc have the size 0.  One more byte shows that a file is longer. */
    room = st.st_size > 0 && (uint64_t)st.st_size < most ? (size_t)st.st_size : most;
    room += !is_end;
    text = malloc(room + 1);
    if (text == NULL) {
        err_memory(e, "reading \"%.150s\"", path);
        return NULL;
    }
    if (read_bytes(fd, text, room, &got) != 0)
        err_sys(e, "cannot read \"%.150s\"", path);
    else if (!is_end && got > most)
        too_long(path, most, e);
    else if ((uint64_t)st.st_size > most || drop_mark(text, &got, path, e) == 0) {
        char *fitting = realloc(text, got + 1);

        text = fitting != NULL ? fitting : text;
        text[got] = '\0';
        if (n != NULL)
            *n = got;
        return text;
    }
    free(text);
    return NULL;
}

static char *read_file(const char *path, size_t most, enum part part, size_t *n, struct err *e)
{
    /* O_NONBLOCK: do not wait for the other end of a FIFO. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY |
                            (part == WHOLE_OWN ? O_NOFOLLOW : 0));
    char *text;

    if (n != NULL)
        *n = 0;
    if (fd < 0) {
        err_sys(e, "cannot open \"%.150s\"", path);
        return NULL;
    }
    text = read_open(fd, path, most, part, n, e);
    close(fd);
    return text;
}

char *small_file_read(const char *path, size_t most, size_t *n, struct err *e)
{
    return read_file(path, most, WHOLE, n, e);
}

char *small_file_read_own(const char *path, size_t most, size_t *n, struct err *e)
{
    return read_file(path, most, WHOLE_OWN, n, e);
}

char *small_file_read_end(const char *path, size_t most, size_t *n, struct err *e)
{
    return read_file(path, most, END, n, e);
}
