/* See prompt.h. */
#include "config.h"

#include "src/prompt.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/term/path.h"

#define PIECE_BYTES 65536

static int stream_fd(int fd, const char *name, prompt_piece *fn, void *ctx, struct err *e)
{
    char *buf = malloc(PIECE_BYTES);
    int rc = 0;

    if (buf == NULL)
        return err_memory(e, "the text");
    while (rc == 0) {
        ssize_t got = read(fd, buf, PIECE_BYTES);

        if (got == 0)
            break;
        if (got > 0) {
            rc = fn(ctx, buf, (size_t)got, e);
        } else if (errno != EINTR) {
            err_sys(e, "could not read");
            rc = err_at(e, name, ERR_NO_OFFSET, NULL);
        }
    }
    free(buf);
    return rc;
}

int prompt_stream(const char *path, prompt_piece *fn, void *ctx, struct err *e)
{
    int rc, fd;

    if (strcmp(path, "-") == 0)
        return stream_fd(STDIN_FILENO, "standard input", fn, ctx, e);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open \"%.150s\"", path);
    rc = stream_fd(fd, path, fn, ctx, e);
    close(fd);
    return rc;
}

uint64_t prompt_file_bytes(const char *path)
{
    struct stat st;
    int rc = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st);

    return rc == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

/* A text that is read completely. */
struct whole {
    char *text;
    size_t n, room, max;
    bool is_too_long;
};

static int keep(void *ctx, const char *text, size_t len, struct err *e)
{
    struct whole *w = ctx;

    if (len > w->max - w->n) {
        w->is_too_long = true;
        return err_set(e, ERR_ARGUMENT, "is longer than %zu bytes", w->max);
    }
    if (len >= w->room - w->n) {
        size_t room = (w->n + len) * 2 + 1;
        char *larger;

        if (room > w->max + 1)
            room = w->max + 1;
        larger = realloc(w->text, room);
        if (larger == NULL)
            return err_memory(e, "the text");
        w->text = larger;
        w->room = room;
    }
    memcpy(w->text + w->n, text, len);
    w->n += len;
    w->text[w->n] = '\0';
    return 0;
}

static int read_whole(const char *path, struct whole *w, struct err *e)
{
    int rc = keep(w, "", 0, e);

    if (rc == 0)
        rc = prompt_stream(path, keep, w, e);
    if (rc != 0) {
        free(w->text);
        w->text = NULL;
    }
    return rc;
}

int prompt_read_file(const char *path, size_t max_bytes, char **out, size_t *len, struct err *e)
{
    struct whole w = { .max = max_bytes };

    *out = NULL;
    *len = 0;
    if (read_whole(path, &w, e) != 0) {
        if (w.is_too_long)
            err_at(e, strcmp(path, "-") == 0 ? "standard input" : path, ERR_NO_OFFSET, NULL);
        return -1;
    }
    *out = w.text;
    *len = w.n;
    return 0;
}

static int too_long(size_t max_bytes, struct err *e)
{
    return err_set(e, ERR_CONTEXT,
                   "the prompt is longer than %zu bytes, the limit for this context; use a "
                   "larger --ctx",
                   max_bytes);
}

int prompt_make(const char *arg, bool raw, size_t max_bytes, char **out, size_t *len,
                struct err *e)
{
    struct whole w = { .max = max_bytes };
    size_t n_arg = arg != NULL ? strlen(arg) : 0, n_head = n_arg > 0 ? n_arg + 2 : 0;

    *out = NULL;
    if (n_head > max_bytes)
        return too_long(max_bytes, e);
    if (n_head > 0 && (keep(&w, arg, n_arg, e) != 0 || keep(&w, "\n\n", 2, e) != 0)) {
        free(w.text);
        return -1;
    }
    if (!isatty(STDIN_FILENO) && read_whole("-", &w, e) != 0) {
        /* If standard input is closed, the prompt is the argument. */
        if (w.is_too_long)
            return too_long(max_bytes, e);
        if (e->sys != EBADF)
            return -1;
        *e = (struct err)ERR_INIT;
        w = (struct whole){ .max = max_bytes };
        if (n_head > 0 && (keep(&w, arg, n_arg, e) != 0 || keep(&w, "\n\n", 2, e) != 0)) {
            free(w.text);
            return -1;
        }
    }
    if (!raw && w.n > n_head && w.text[w.n - 1] == '\n')
        w.n--;
    if (w.n == n_head) /* the input is empty: drop the separator */
        w.n = n_arg;
    if (w.n == 0) {
        free(w.text);
        return err_set(e, ERR_ARGUMENT,
                       "no prompt given: pass one as an argument or on standard input");
    }
    w.text[w.n] = '\0';
    *out = w.text;
    *len = w.n;
    return 0;
}
