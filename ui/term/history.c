#include "config.h"

#include "ui/term/history.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "engine/base/small_file.h"
#include "ui/words/path.h"

struct history {
    char *path;
    char **entry; /* [n] */
    size_t n, room, bytes;
    bool is_failing; /* the last entry could not be written */
};

static void drop_oldest(struct history *h)
{
    h->bytes -= strlen(h->entry[0]);
    free(h->entry[0]);
    memmove(h->entry, h->entry + 1, (h->n - 1) * sizeof *h->entry);
    h->n--;
}

/* Takes ownership of text. */
static bool keep(struct history *h, char *text)
{
    if (h->n == h->room) {
        size_t room = h->room * 2 + 64;
        char **bigger = realloc(h->entry, room * sizeof *bigger);

        if (bigger == NULL) {
            free(text);
            return false;
        }
        h->entry = bigger;
        h->room = room;
    }
    h->entry[h->n++] = text;
    h->bytes += strlen(text);
    while (h->n > HISTORY_MAX_ENTRIES || (h->bytes > HISTORY_MAX_BYTES && h->n > 1))
        drop_oldest(h);
    return true;
}

/* ---- one entry as a line of the file ---- */

static char *escape(const char *text, size_t *len)
{
    char *out = malloc(strlen(text) * 2 + 2), *at = out;

    if (out == NULL)
        return NULL;
    for (; *text != '\0'; text++) {
        if (*text == '\n' || *text == '\\')
            *at++ = '\\';
        *at++ = (char)(*text == '\n' ? 'n' : *text);
    }
    *at++ = '\n';
    *at = '\0';
    *len = (size_t)(at - out);
    return out;
}

static char *unescape(const char *line, size_t n)
{
    char *out = malloc(n + 1), *at = out;

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        bool is_pair = line[i] == '\\' && i + 1 < n;

        if (is_pair)
            i++;
        if (line[i] != '\0')
            *at++ = (char)(is_pair && line[i] == 'n' ? '\n' : line[i]);
    }
    *at = '\0';
    return out;
}

/* ---- the file ---- */

static void load(struct history *h, const char *text, size_t n)
{
    while (n > 0) {
        const char *end = memchr(text, '\n', n);
        size_t len = end == NULL ? n : (size_t)(end - text);
        size_t visible = len > 0 && text[len - 1] == '\r' ? len - 1 : len;
        char *entry = visible == 0 ? NULL : unescape(text, visible);

        if (entry != NULL)
            keep(h, entry);
        if (end == NULL)
            return;
        text += len + 1;
        n -= len + 1;
    }
}

int history_open(struct history **out, const char *path, struct err *e)
{
    struct history *h = calloc(1, sizeof *h);
    struct err ignored = ERR_INIT;
    size_t n = 0;
    char *text;

    *out = NULL;
    if (h == NULL || (path != NULL && (h->path = strdup(path)) == NULL)) {
        free(h);
        return err_memory(e, "the history");
    }
    /* A history that cannot be read begins empty; writing it reports why it fails. */
    text = path == NULL ? NULL : small_file_read_end(path, 2 * HISTORY_MAX_BYTES, &n, &ignored);
    if (text != NULL)
        load(h, text, n);
    free(text);
    *out = h;
    return 0;
}

void history_close(struct history *h)
{
    if (h == NULL)
        return;
    for (size_t i = 0; i < h->n; i++)
        free(h->entry[i]);
    free(h->entry);
    free(h->path);
    free(h);
}

static int append(const char *path, const char *text, struct err *e)
{
    const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    size_t n = 0;
    char *line = escape(text, &n);
    int fd = open(path, flags, 0600);
    ssize_t done;

    if (fd < 0 && errno == ENOENT) { /* first start, or the file was removed */
        if (folder_make_parent(path) == 0)
            fd = open(path, flags, 0600); /* else errno is why there is no folder */
    }
    if (line == NULL || fd < 0) {
        free(line);
        if (fd < 0)
            return err_sys(e, "cannot write the history \"%s\"", path);
        close(fd);
        return err_memory(e, "an entry of the history");
    }
    done = write(fd, line, n);
    free(line);
    if (close(fd) != 0 || done != (ssize_t)n)
        return err_sys(e, "could not write the history \"%s\"", path);
    return 0;
}

int history_add(struct history *h, const char *text, struct err *e)
{
    bool was_failing;
    char *copy;

    if (*text == '\0' || strlen(text) > HISTORY_MAX_BYTES / 16 ||
        (h->n > 0 && strcmp(h->entry[h->n - 1], text) == 0))
        return 0;
    copy = strdup(text);
    if (copy == NULL || !keep(h, copy))
        return err_memory(e, "the history");
    if (h->path == NULL)
        return 0;
    was_failing = h->is_failing;
    h->is_failing = append(h->path, text, e) != 0;
    return h->is_failing && !was_failing ? -1 : 0;
}

size_t history_count(const struct history *h)
{
    return h->n;
}

const char *history_at(const struct history *h, size_t i)
{
    return h->entry[i];
}

static bool has_upper(const char *s)
{
    for (; *s != '\0'; s++)
        if (isupper((unsigned char)*s))
            return true;
    return false;
}

long history_find(const struct history *h, const char *text, size_t from, bool newer)
{
    bool exact = has_upper(text);

    for (size_t i = from; newer ? ++i < h->n : i-- > 0;)
        if ((exact ? strstr : strcasestr)(h->entry[i], text) != NULL)
            return (long)i;
    return -1;
}
