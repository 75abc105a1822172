/* Lists the chats of a folder.  Only the start of a file is read, for the title, and its end,
 * for the last receipt. */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ui/store/store_internal.h"
#include "ui/text/clean.h"

#define LOOK 16384 /* bytes read at both ends */

static const char suffix[] = STORE_SUFFIX;

/* Read a complete or cut line. */
static bool read_line(const char *s, size_t n, struct chatline *l)
{
    struct chatline_reader *r = chatline_begin(true);
    const char *more = "";
    struct err unused;
    size_t keep = n;

    if (!chatline_repair(s, n, &keep, &more)) {
        keep = n;
        more = "";
    }
    if (r == NULL)
        return false;
    if (chatline_feed(r, s, keep, &unused) != 0 ||
        chatline_feed(r, more, strlen(more), &unused) != 0) {
        chatline_drop(r);
        return false;
    }
    return chatline_end(r, l, &unused) == 0;
}

static size_t line_length(const char *s, size_t n)
{
    const char *newline = memchr(s, '\n', n);

    return newline == NULL ? n : (size_t)(newline - s);
}

/* Read head and title from the start of a file.  Returns false if it is not a chat. */
static bool look_at_beginning(const char *s, size_t n, struct store_entry *out)
{
    bool first = true, is_chat = false;

    for (size_t at = 0, len; at < n && out->title[0] == '\0'; at += len + 1) {
        struct chatline l = { 0 };

        len = line_length(s + at, n - at);
        if (!read_line(s + at, len, &l) || (first && !l.is_head)) {
            chatline_free(&l);
            return is_chat;
        }
        if (first)
            clean_line(out->model, sizeof out->model, l.model, strlen(l.model));
        else if (l.is_message && l.kind == STORE_USER && l.text.s != NULL)
            clean_line(out->title, sizeof out->title, l.text.s, l.text.n);
        chatline_free(&l);
        is_chat = true;
        first = false;
    }
    return is_chat;
}

/* Read the tokens from the last receipt. */
static void look_at_end(const char *s, size_t n, struct store_entry *out)
{
    static const char mark[] = "{\"receipt\":";
    const char *from = memchr(s, '\n', n);

    while (from != NULL) {
        size_t at = (size_t)(from + 1 - s), len = line_length(s + at, n - at);
        struct chatline l = { 0 };

        if (len > sizeof mark && memcmp(s + at, mark, sizeof mark - 1) == 0 &&
            read_line(s + at, len, &l) && l.is_receipt)
            out->context = l.context;
        chatline_free(&l);
        from = memchr(s + at, '\n', n - at);
    }
}

static ssize_t read_at(int fd, char *buf, uint64_t offset)
{
    ssize_t n;

    do
        n = pread(fd, buf, LOOK, (off_t)offset);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Is it a name made from the time: "20260801-120000", "20260801-120000-2"? */
static bool is_time(const char *name)
{
    static const char form[] = "dddddddd-dddddd";
    size_t i = 0;

    for (; form[i] != '\0'; i++)
        if (form[i] == 'd' ? name[i] < '0' || name[i] > '9' : name[i] != form[i])
            return false;
    return name[i] == '\0' || name[i] == '-';
}

static bool look(int dir, const char *file, struct store_entry *out)
{
    int fd = openat(dir, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    char *buf = malloc(LOOK);
    bool is_chat = false;
    struct stat st;
    ssize_t n;

    *out = (struct store_entry){ 0 };
    if (fd >= 0 && buf != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (n = read_at(fd, buf, 0)) > 0) {
        is_chat = look_at_beginning(buf, (size_t)n, out);
        if (st.st_size > LOOK)
            n = read_at(fd, buf, (uint64_t)st.st_size - LOOK);
        if (is_chat && n > 0)
            look_at_end(buf, (size_t)n, out);
        snprintf(out->name, sizeof out->name, "%.*s", (int)(strlen(file) - strlen(suffix)),
                 file);
        out->is_named = !is_time(out->name);
        out->changed = st.st_mtim.tv_sec;
        out->changed_ns = st.st_mtim.tv_nsec;
        out->bytes = (uint64_t)st.st_size;
    }
    free(buf);
    if (fd >= 0)
        close(fd);
    return is_chat;
}

static int newest_first(const void *a, const void *b)
{
    const struct store_entry *x = a, *y = b;

    if (x->changed != y->changed)
        return x->changed > y->changed ? -1 : 1;
    if (x->changed_ns != y->changed_ns)
        return x->changed_ns > y->changed_ns ? -1 : 1;
    return -strcmp(x->name, y->name);
}

static bool has_suffix(const char *name)
{
    size_t n = strlen(name);

    return n > strlen(suffix) && n < sizeof((struct store_entry *)0)->name &&
           strcmp(name + n - strlen(suffix), suffix) == 0;
}

int store_list(const char *dir, struct store_entry **out, size_t *n, struct err *e)
{
    struct store_entry *all = NULL;
    size_t room = 0;
    DIR *d = opendir(dir);

    *out = NULL;
    *n = 0;
    if (d == NULL)
        return errno == ENOENT ? 0 : err_sys(e, "cannot read the folder \"%.200s\"", dir);
    for (const struct dirent *f; (f = readdir(d)) != NULL;) {
        if (!has_suffix(f->d_name))
            continue;
        if (*n == room) {
            struct store_entry *more;

            room = room == 0 ? 16 : room * 2;
            more = realloc(all, room * sizeof *all);
            if (more == NULL) {
                free(all);
                closedir(d);
                *n = 0;
                return err_memory(e, "the list of chats");
            }
            all = more;
        }
        if (look(dirfd(d), f->d_name, &all[*n]))
            ++*n;
    }
    closedir(d);
    if (*n > 0)
        qsort(all, *n, sizeof *all, newest_first);
    *out = all;
    return 0;
}

const struct store_entry *store_choose(const struct store_entry *all, size_t n,
                                       const char *name, struct err *e)
{
    const struct store_entry *found = NULL;
    size_t len = strlen(name);

    if (len > strlen(suffix) && strcmp(name + len - strlen(suffix), suffix) == 0)
        len -= strlen(suffix);
    if (n == 0) {
        err_set(e, ERR_ARGUMENT, "no saved chat");
        return NULL;
    }
    if (len == 0)
        return &all[0];
    for (size_t i = 0; i < n; i++) {
        if (strncmp(all[i].name, name, len) != 0)
            continue;
        if (all[i].name[len] == '\0')
            return &all[i];
        if (found != NULL) {
            err_set(e, ERR_ARGUMENT,
                    "several saved chats begin with "
                    "\"%.60s\"",
                    name);
            return NULL;
        }
        found = &all[i];
    }
    if (found == NULL)
        err_set(e, ERR_ARGUMENT, "no saved chat \"%.60s\"", name);
    return found;
}

int store_find(const char *dir, const char *name, char *path, size_t n, struct err *e)
{
    const struct store_entry *found;
    struct store_entry *all;
    size_t count;

    if (name != NULL && strchr(name, '/') != NULL) {
        if ((size_t)snprintf(path, n, "%s", name) >= n)
            return err_set(e, ERR_ARGUMENT, "the path of the chat is too long");
        return 0;
    }
    if (store_list(dir, &all, &count, e) != 0)
        return -1;
    found = store_choose(all, count, name == NULL ? "" : name, e);
    if (found != NULL && (size_t)snprintf(path, n, "%s/%s%s", dir, found->name, suffix) >= n) {
        err_set(e, ERR_ARGUMENT, "the path of the folder for chats is too long");
        found = NULL;
    }
    free(all);
    return found != NULL ? 0 : -1;
}
