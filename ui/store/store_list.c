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

#include "engine/base/near.h"
#include "engine/base/visible.h"
#include "ui/store/store_internal.h"
#include "ui/words/clean.h"

#define LOOK 16384 /* bytes read at both ends */

static const char suffix[] = STORE_SUFFIX;

/* Read a line.  is_cut: it may be incomplete. */
static bool read_line(const char *s, size_t n, bool is_cut, struct chatline *l)
{
    const char *more;
    size_t used;

    if (!store_read_line(s, n, true, l, &used, &more))
        return false;
    if (is_cut || (used == n && more[0] == '\0'))
        return true;
    chatline_free(l);
    return false;
}

static size_t line_length(const char *s, size_t n)
{
    const char *newline = memchr(s, '\n', n);

    return newline == NULL ? n : (size_t)(newline - s);
}

/* The kind of a file, by its start. */
enum look { LOOK_OTHER, LOOK_CHAT, LOOK_DAMAGED };

/* Does s[0 .. n) begin as the first line of a chat? */
static bool is_head_start(const char *s, size_t n)
{
    static const char begin[] = "{\"memwall\":\"chat\"";
    size_t len = n < sizeof begin - 1 ? n : sizeof begin - 1;

    return memcmp(s, begin, len) == 0;
}

/* Read the title from the start of a file; is_cut: the file is longer. */
static enum look look_at_beginning(const char *s, size_t n, bool is_cut, bool has_time,
                                   struct store_entry *out)
{
    enum look is = is_head_start(s, n) || has_time ? LOOK_DAMAGED : LOOK_OTHER;

    for (size_t at = 0, len; at < n && out->title[0] == '\0'; at += len + 1) {
        struct chatline l = { 0 };
        bool is_last;

        len = line_length(s + at, n - at);
        is_last = at + len == n;
        if (at == 0 && is_last && !is_cut && is != LOOK_OTHER)
            break; /* a chat has a complete first line */
        if (!read_line(s + at, len, is_last, &l))
            continue;
        if (at == 0 && (l.is_other_file || !l.has_known_key)) {
            chatline_free(&l);
            return LOOK_OTHER;
        }
        if (l.is_message && l.kind == STORE_USER && l.text.s != NULL)
            clean_line(out->title, sizeof out->title, l.text.s, l.text.n);
        if (l.is_head || chatline_is_own(&l))
            is = LOOK_CHAT;
        chatline_free(&l);
    }
    return is;
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
            read_line(s + at, len, true, &l) && l.is_receipt)
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
    enum look is = LOOK_OTHER;
    struct stat st;
    ssize_t n;

    *out = (struct store_entry){ 0 };
    snprintf(out->name, sizeof out->name, "%.*s", (int)(strlen(file) - strlen(suffix)), file);
    out->is_named = !is_time(out->name);
    if (fd >= 0 && buf != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (n = read_at(fd, buf, 0)) > 0) {
        is = look_at_beginning(buf, (size_t)n, st.st_size > n, !out->is_named, out);
        if (st.st_size > LOOK)
            n = read_at(fd, buf, (uint64_t)st.st_size - LOOK);
        if (is == LOOK_CHAT && n > 0)
            look_at_end(buf, (size_t)n, out);
        out->is_damaged = is == LOOK_DAMAGED;
        out->changed = st.st_mtim.tv_sec;
        out->changed_ns = st.st_mtim.tv_nsec;
        out->bytes = (uint64_t)st.st_size;
    }
    free(buf);
    if (fd >= 0)
        close(fd);
    return is != LOOK_OTHER;
}

/* ---- facts ---- */

/* The start of a line.  Lines with facts are shorter, unless most of their bytes are escaped. */
struct line_start {
    char s[2 * sizeof((struct store_model){ 0 }.file)];
    size_t n; /* bytes of the line; the first of them are in s */
};

static bool begins(const struct line_start *line, const char *mark)
{
    size_t n = strlen(mark);

    return line->n > n && line->n <= sizeof line->s && memcmp(line->s, mark, n) == 0;
}

static void add_to_line(struct line_start *line, const char *s, size_t n)
{
    if (line->n < sizeof line->s)
        memcpy(line->s + line->n, s, n < sizeof line->s - line->n ? n : sizeof line->s - line->n);
    line->n += n;
}

static void end_line_start(struct line_start *line, struct store_facts *out)
{
    struct chatline l = { 0 };

    if ((begins(line, "{\"settings\":") || begins(line, "{\"model_file\":") ||
         begins(line, "{\"memwall\":")) &&
        read_line(line->s, line->n, false, &l)) {
        if (l.is_settings)
            snprintf(out->settings, sizeof out->settings, "%s", l.settings);
        if (l.is_model)
            store_take_model(&out->model, &l);
        if (l.is_head)
            snprintf(out->model.name, sizeof out->model.name, "%s", l.model);
    }
    chatline_free(&l);
    line->n = 0;
}

void store_facts_of(const char *path, struct store_facts *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *chunk = malloc(LOOK);
    struct line_start line = { .n = 0 };
    struct stat st;
    uint64_t at = 0;
    ssize_t n;

    *out = (struct store_facts){ .settings = "" };
    while (fd >= 0 && chunk != NULL && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           (n = read_at(fd, chunk, at)) > 0) {
        for (size_t i = 0, len; i < (size_t)n; i += len + 1) {
            len = line_length(chunk + i, (size_t)n - i);
            add_to_line(&line, chunk + i, len);
            if (i + len < (size_t)n)
                end_line_start(&line, out);
        }
        at += (uint64_t)n;
    }
    free(chunk);
    if (fd >= 0)
        close(fd);
}

/* ---- the list ---- */

static int newest_first(const void *a, const void *b)
{
    const struct store_entry *x = a, *y = b;

    if (x->changed != y->changed)
        return x->changed > y->changed ? -1 : 1;
    if (x->changed_ns != y->changed_ns)
        return x->changed_ns > y->changed_ns ? -1 : 1;
    return -strcmp(x->name, y->name);
}

/* A name that cannot be seen as it is could be another one on the screen. */
static bool can_be_listed(const char *name)
{
    size_t n = strlen(name);

    return n > strlen(suffix) && n < sizeof((struct store_entry *)0)->name &&
           strcmp(name + n - strlen(suffix), suffix) == 0 && visible_all(name, n);
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
        if (!can_be_listed(f->d_name))
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
    if (*n == 0) { /* all files were skipped */
        free(all);
        return 0;
    }
    qsort(all, *n, sizeof *all, newest_first);
    *out = all;
    return 0;
}

static void refuse_name(const struct store_entry *all, size_t n, const char *name,
                        struct err *e)
{
    struct near near = { .word = name, .len = strlen(name) };

    for (size_t i = 0; i < n; i++)
        near_try(&near, all[i].name);
    if (near.name != NULL)
        err_set(e, ERR_ARGUMENT, "no saved chat \"%.60s\"; did you mean \"%s\"?", name,
                near.name);
    else if (access(name, F_OK) == 0)
        err_set(e, ERR_ARGUMENT, "no saved chat \"%.60s\"; \"./%.60s\" names the file", name,
                name);
    else
        err_set(e, ERR_ARGUMENT, "no saved chat \"%.60s\"", name);
}

const struct store_entry *store_choose(const struct store_entry *all, size_t n,
                                       const char *name, struct err *e)
{
    const struct store_entry *found = NULL;
    size_t len = strlen(name);

    if (len > strlen(suffix) && strcmp(name + len - strlen(suffix), suffix) == 0)
        len -= strlen(suffix);
    for (size_t i = 0; len == 0 && i < n; i++)
        if (!all[i].is_damaged)
            return &all[i];
    if (len == 0) {
        err_set(e, ERR_ARGUMENT, "no saved chat");
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (strncmp(all[i].name, name, len) == 0 && all[i].name[len] == '\0')
            return &all[i];
    for (size_t i = 0; i < n; i++) {
        if (strncmp(all[i].name, name, len) != 0)
            continue;
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
        refuse_name(all, n, name, e);
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

/* Is the file of no use to any memwall, in contrast to one that another memwall has open? */
static bool is_unreadable(const struct err *e)
{
    return e->code == ERR_FORMAT || e->code == ERR_UNSUPPORTED ||
           (e->code == ERR_IO && e->sys != 0);
}

int store_open_newest(struct store **out, const char *dir, store_passed_fn *passed, void *ctx,
                      struct err *e)
{
    struct store_entry *all;
    size_t n;
    int rc = -1;

    *out = NULL;
    if (store_list(dir, &all, &n, e) != 0)
        return -1;
    err_set(e, ERR_ARGUMENT, n == 0 ? "no saved chat" : "no saved chat can be read");
    for (size_t i = 0; rc != 0 && i < n; i++) {
        struct err why = ERR_INIT;
        char path[4400];

        snprintf(path, sizeof path, "%.4200s/%s%s", dir, all[i].name, suffix);
        rc = store_open(out, path, &why);
        if (rc != 0 && !is_unreadable(&why)) {
            *e = why;
            break;
        }
        if (rc != 0)
            passed(ctx, all[i].name, &why);
    }
    free(all);
    if (rc == 0)
        *e = (struct err)ERR_INIT;
    return rc;
}
