/*
 * The file.  All writes go through out.  Bytes that could not be written (a full disk) stay
 * there and are written before the next line, so the file never has a gap.
 */
#include "config.h"

#include "ui/store/store.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "ui/store/store_internal.h"

struct store *store_blank(struct err *e)
{
    struct store *s = calloc(1, sizeof *s);

    if (s == NULL || (s->old = calloc(1, sizeof *s->old)) == NULL) {
        err_memory(e, "a chat");
        free(s);
        return NULL;
    }
    s->fd = -1;
    json_start(&s->out);
    return s;
}

void store_drop(struct store *s)
{
    if (s == NULL)
        return;
    if (s->fd >= 0)
        close(s->fd);
    json_release(&s->out);
    store_drop(s->old->view);
    free(s->old);
    free(s->part);
    free(s->is_user);
    free(s->record);
    free(s->piece);
    free(s->tail);
    free(s);
}

static void take_name(struct store *s)
{
    const char *base = strrchr(s->path, '/');
    size_t n;

    base = base == NULL ? s->path : base + 1;
    n = strlen(base);
    if (n > strlen(STORE_SUFFIX) && strcmp(base + n - strlen(STORE_SUFFIX), STORE_SUFFIX) == 0)
        n -= strlen(STORE_SUFFIX);
    snprintf(s->name, sizeof s->name, "%.*s",
             (int)(n < sizeof s->name ? n : sizeof s->name - 1), base);
}

void store_now(char buf[32], bool as_name)
{
    time_t t = time(NULL);
    struct tm tm;

    buf[0] = '\0';
    if (gmtime_r(&t, &tm) == NULL)
        return;
    if (as_name)
        strftime(buf, 32, "%Y%m%d-%H%M%S", &tm);
    else
        strftime(buf, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

/* Create path, which must not exist. */
static int take_file(struct store *s, const char *path)
{
    s->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (s->fd >= 0)
        snprintf(s->path, sizeof s->path, "%s", path);
    return s->fd;
}

static const char *name_in(char *buf, size_t n, const char *dir, const char *name)
{
    snprintf(buf, n, "%.3900s/%.90s" STORE_SUFFIX, dir, name);
    return buf;
}

/* Use an unused name: path, the name that was given, or the time, with a number if two chats
 * begin in one second. */
int store_make_file(struct store *s, const char *path, struct err *e)
{
    char stamp[32], name[sizeof s->path];

    if (folder_make(s->dir) != 0)
        return err_sys(e, "cannot make the folder \"%.200s\"", s->dir);
    store_now(stamp, true);
    if (path != NULL)
        take_file(s, path);
    else if (s->name[0] != '\0')
        take_file(s, name_in(name, sizeof name, s->dir, s->name));
    for (int i = 1; i < 1000 && s->fd < 0; i++) {
        char number[16] = "";

        if (i > 1)
            snprintf(number, sizeof number, "-%d", i);
        snprintf(name, sizeof name, "%.4000s/%s%s" STORE_SUFFIX, s->dir, stamp, number);
        if (take_file(s, name) < 0 && errno != EEXIST)
            break;
    }
    if (s->fd < 0)
        return err_sys(e, "cannot make \"%.200s\"", name);
    (void)flock(s->fd, LOCK_EX | LOCK_NB);
    take_name(s);
    return 0;
}

/* Write out to the file; unwritten bytes stay in out. */
static int flush(struct store *s, struct err *e)
{
    size_t done = 0;
    int failed = 0;

    if (s->out.failed)
        return err_memory(e, "saving the chat");
    while (failed == 0 && done < s->out.used) {
        ssize_t n =
            pwrite(s->fd, s->out.buf + done, s->out.used - done, (off_t)(s->size + done));

        if (n < 0 && errno != EINTR)
            failed = err_sys(e, "could not write \"%.150s\"", s->path);
        done += n > 0 ? (size_t)n : 0;
    }
    if (done > 0) {
        store_remember(s, s->out.buf, done);
        memmove(s->out.buf, s->out.buf + done, s->out.used - done);
    }
    s->out.used -= done;
    s->size += done;
    return failed;
}

/* Beyond the limit, drop the older half of a chat that is only in memory. */
static void forget_oldest(struct store *s)
{
    uint64_t from = s->size + s->out.used - STORE_MEMORY_BYTES / 2;
    size_t n;

    if (s->out.used <= STORE_MEMORY_BYTES)
        return;
    if (s->is_open && from > s->line_at)
        from = s->line_at;
    n = (size_t)(from - s->size);
    memmove(s->out.buf, s->out.buf + n, s->out.used - n);
    s->out.used -= n;
    s->size += n;
}

int store_commit(struct store *s, bool sync, struct err *e)
{
    if (s->in_memory)
        forget_oldest(s);
    if (!s->is_said || s->in_memory || s->is_held)
        return 0;
    s->is_lost = s->is_lost || !store_is_intact(s);
    if (s->is_lost && store_rescue(s, e) != 0)
        return -1;
    if (s->fd < 0 && store_make_file(s, NULL, e) != 0)
        return -1;
    if (flush(s, e) != 0)
        return -1;
    /* Some file systems and sandboxes cannot sync; that is not an error. */
    if (sync && fdatasync(s->fd) != 0 && errno != EINVAL && errno != ENOSYS && errno != EPERM)
        return err_sys(e, "could not sync \"%.150s\"", s->path);
    return 0;
}

void store_begin_together(struct store *s)
{
    s->is_held = true;
}

int store_end_together(struct store *s, struct err *e)
{
    s->is_held = false;
    return store_commit(s, true, e);
}

int store_check_room(const struct store *s, struct err *e)
{
    if (s->in_memory || s->out.used <= STORE_MEMORY_BYTES)
        return 0;
    return err_set(e, ERR_IO, "%zu KiB of this chat are not saved", s->out.used >> 10);
}

void store_print_head(struct store *s)
{
    json_object(&s->out, NULL);
    json_string(&s->out, "memwall", "chat");
    json_u64(&s->out, "version", 1);
    json_string(&s->out, "created", s->head.created);
    json_string(&s->out, "model", s->head.model);
    json_end(&s->out);
    json_line(&s->out);
}

void store_print_settings(struct store *s)
{
    json_object(&s->out, NULL);
    json_string(&s->out, "settings", s->settings);
    json_end(&s->out);
    json_line(&s->out);
}

void store_print_model(struct store *s)
{
    json_object(&s->out, NULL);
    json_string(&s->out, "model_file", s->model.file);
    json_string(&s->out, "model_name", s->model.name);
    json_end(&s->out);
    json_line(&s->out);
}

int store_new(struct store **out, const char *dir, const char *model, struct err *e)
{
    struct store *s;

    *out = NULL;
    if (dir != NULL && strlen(dir) > 4000)
        return err_set(e, ERR_ARGUMENT, "the path of the folder for chats is too long");
    s = store_blank(e);
    if (s == NULL)
        return -1;
    s->in_memory = dir == NULL;
    snprintf(s->dir, sizeof s->dir, "%s", dir == NULL ? "" : dir);
    snprintf(s->head.model, sizeof s->head.model, "%s", model);
    snprintf(s->model.name, sizeof s->model.name, "%s", model);
    store_now(s->head.created, false);
    store_print_head(s);
    *out = s;
    return 0;
}

static int open_file(struct store *s, const char *path, struct err *e)
{
    struct stat st;

    if (strlen(path) >= sizeof s->path)
        return err_set(e, ERR_ARGUMENT, "the path of the chat is too long");
    snprintf(s->path, sizeof s->path, "%s", path);
    take_name(s);
    s->fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (s->fd < 0 || fstat(s->fd, &st) != 0)
        return err_sys(e, "cannot open the file");
    s->is_nameless = st.st_nlink == 0;
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_FORMAT, "is not a file");
    if (flock(s->fd, LOCK_EX | LOCK_NB) != 0)
        return err_set(e, ERR_IO, "is open in another memwall");
    return 0;
}

/* Complete the last line of a program that was killed.  A damaged last line gets a newline, and
 * an empty line after it. */
static int repair(struct store *s, uint64_t keep, const char *more, bool is_answer,
                  struct err *e)
{
    bool is_torn = s->is_torn;
    char last = '\n';

    s->is_torn = false;
    if (keep < s->size && ftruncate(s->fd, (off_t)keep) != 0)
        return err_sys(e, "could not repair \"%.200s\"", s->path);
    store_forget(s, keep);
    if (keep > 0 && store_bytes(s, keep - 1, &last, 1, e) != 0)
        return -1;
    if (last == '\n' && more[0] == '\0' && !is_torn)
        return 0;
    if (is_answer)
        json_print(&s->out, "%s,\"done\":\"cancelled\"}\n", more[0] == '"' ? "\"" : "");
    else
        json_print(&s->out, "%s\n%s", more, is_torn && last != '\n' ? "\n" : "");
    return store_commit(s, true, e);
}

int store_open(struct store **out, const char *path, struct err *e)
{
    struct store *s = store_blank(e);
    const char *more;
    uint64_t keep;
    bool is_answer;

    *out = NULL;
    if (s == NULL)
        return -1;
    s->is_said = true;
    if (open_file(s, path, e) != 0) {
        store_drop(s);
        return err_at(e, path, ERR_NO_OFFSET, NULL);
    }
    if (store_load(s, &keep, &more, &is_answer, e) != 0 ||
        (more != NULL && repair(s, keep, more, is_answer, e) != 0)) {
        store_drop(s);
        return -1;
    }
    *out = s;
    return 0;
}

int store_sync(struct store *s, struct err *e)
{
    return store_commit(s, true, e);
}

bool store_take_moved(struct store *s, uint32_t *n_lost)
{
    bool is_moved = s->is_moved;

    *n_lost = s->n_lost;
    s->is_moved = false;
    s->n_lost = 0;
    return is_moved;
}

void store_close(struct store *s)
{
    struct err unused = ERR_INIT;

    if (s == NULL)
        return;
    (void)store_finish(s, &unused);
    store_drop(s);
}

/* ---- what is in it ---- */

const char *store_path(const struct store *s)
{
    return s->path;
}

uint32_t store_damage(const struct store *s, uint64_t *line, const char **why)
{
    *line = s->damaged;
    *why = s->damage;
    return s->n_damaged;
}

const struct store_head *store_head(const struct store *s)
{
    return &s->head;
}

const char *store_settings(const struct store *s)
{
    return s->settings;
}

const struct store_model *store_model(const struct store *s)
{
    return &s->model;
}

uint32_t store_queue_count(const struct store *s)
{
    return s->n_queue;
}
