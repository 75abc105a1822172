/* See prompt.h. */
#include "config.h"

#include "src/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/path.h"

#define PROMPT_MAX_BYTES ((size_t)64 << 20) /* far above any context */

static int read_all(int fd, size_t max_bytes, char **out, size_t *len, struct err *e)
{
    size_t room = 65536, n = 0;
    char *buf = malloc(room + 1);
    ssize_t got;

    if (buf == NULL)
        return err_set(e, ERR_MEMORY, "no memory for the text");
    while ((got = read(fd, buf + n, room - n)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            err_sys(e, "could not read");
            goto fail;
        }
        n += (size_t)got;
        if (n > max_bytes) {
            err_set(e, ERR_ARGUMENT, "is longer than %zu bytes", max_bytes);
            goto fail;
        }
        if (n == room) {
            char *larger = realloc(buf, room * 2 + 1);

            if (larger == NULL) {
                err_set(e, ERR_MEMORY, "no memory for the text");
                goto fail;
            }
            buf = larger;
            room *= 2;
        }
    }
    buf[n] = '\0';
    *out = buf;
    *len = n;
    return 0;

fail:
    free(buf);
    return -1;
}

int prompt_read_file(const char *path, size_t max_bytes, char **out, size_t *len, struct err *e)
{
    int fd, r;

    if (strcmp(path, "-") == 0) {
        if (read_all(STDIN_FILENO, max_bytes, out, len, e) != 0)
            return err_at(e, "standard input", ERR_NO_OFFSET, NULL);
        return 0;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "cannot open \"%.150s\"", path);
    r = read_all(fd, max_bytes, out, len, e);
    close(fd);
    return r == 0 ? 0 : err_at(e, path, ERR_NO_OFFSET, NULL);
}

int prompt_read_settings(const char *path, size_t max_bytes, char **out, size_t *len,
                         struct err *e)
{
    int r, fd = path_open_file(path, e);

    if (fd < 0)
        return -1;
    r = read_all(fd, max_bytes, out, len, e);
    close(fd);
    return r == 0 ? 0 : err_at(e, path, ERR_NO_OFFSET, NULL);
}

int prompt_make(const char *arg, bool raw, char **out, size_t *len, struct err *e)
{
    char *input = NULL;
    size_t n_input = 0, n_arg = arg != NULL ? strlen(arg) : 0;

    *out = NULL;
    if (!isatty(STDIN_FILENO) &&
        prompt_read_file("-", PROMPT_MAX_BYTES, &input, &n_input, e) != 0) {
        /* Started with standard input closed: the argument is all there is. */
        if (e->sys != EBADF)
            return -1;
        *e = (struct err)ERR_INIT;
        n_input = 0;
    }
    if (!raw && n_input > 0 && input[n_input - 1] == '\n')
        n_input--;
    if (n_arg == 0 && n_input == 0) {
        free(input);
        return err_set(e, ERR_ARGUMENT,
                       "no prompt: give one as an argument or on standard input");
    }
    *out = malloc(n_arg + n_input + 3);
    if (*out == NULL) {
        free(input);
        return err_set(e, ERR_MEMORY, "no memory for the prompt");
    }
    if (n_arg > 0)
        memcpy(*out, arg, n_arg);
    *len = n_arg;
    if (n_arg > 0 && n_input > 0) {
        memcpy(*out + *len, "\n\n", 2);
        *len += 2;
    }
    if (n_input > 0)
        memcpy(*out + *len, input, n_input);
    *len += n_input;
    (*out)[*len] = '\0';
    free(input);
    return 0;
}
