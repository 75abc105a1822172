/* Names of chats.  The name of a chat is the name of its file, so a chat needs no second place
 * for it, two chats cannot have one name, and a killed program loses none. */
#include "config.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/visible.h"
#include "ui/store/store_internal.h"

#define COUNT_BYTES ((off_t)4 << 20) /* longer chats are not counted */

int store_check_name(const char *name, struct err *e)
{
    size_t n = strlen(name), suffix = strlen(STORE_SUFFIX);

    if (n == 0)
        return err_set(e, ERR_ARGUMENT, "the name of a chat cannot be empty");
    if (n >= STORE_NAME_BYTES - suffix)
        return err_set(e, ERR_ARGUMENT, "the name of a chat can have up to %zu bytes, not %zu",
                       STORE_NAME_BYTES - suffix - 1, n);
    if (!visible_all(name, n))
        return err_set(e, ERR_ARGUMENT,
                       "the name of a chat cannot have control or invisible characters");
    if (strchr(name, '/') != NULL || strstr(name, STORE_NAME_ARROW) != NULL)
        return err_set(e, ERR_ARGUMENT, "the name of a chat cannot have \"/\" or \"%s\"",
                       STORE_NAME_ARROW);
    if (strchr(".- ", name[0]) != NULL || name[n - 1] == ' ')
        return err_set(e, ERR_ARGUMENT,
                       "the name of a chat cannot begin with \".\", \"-\" or a blank, or end "
                       "with a blank");
    if (n > suffix && strcmp(name + n - suffix, STORE_SUFFIX) == 0)
        return err_set(e, ERR_ARGUMENT, "the name of a chat cannot end with \"%s\"",
                       STORE_SUFFIX);
    return 0;
}

/* Move a file to a path that does not exist.  File systems without RENAME_NOREPLACE leave a
 * moment in which another program could create that path. */
static int move_file(const char *from, const char *to, const char *name, struct err *e)
{
    struct stat st;
    int rc = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);

    if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) {
        errno = EEXIST;
        rc = lstat(to, &st) == 0 ? -1 : rename(from, to);
    }
    if (rc != 0 && errno == EEXIST)
        return err_set(e, ERR_ARGUMENT, "there is already a chat \"%.80s\"", name);
    return rc == 0 ? 0 : err_sys(e, "cannot rename \"%.200s\"", from);
}

/* Get the path of a chat with this name in the folder of path. */
static int sibling(char *buf, size_t n, const char *path, const char *name, struct err *e)
{
    const char *slash = strrchr(path, '/');
    int len = slash == NULL ? 0 : (int)(slash + 1 - path);

    if ((size_t)snprintf(buf, n, "%.*s%s" STORE_SUFFIX, len, path, name) >= n)
        return err_set(e, ERR_ARGUMENT, "the path of the chat is too long");
    return 0;
}

/* A chat without a file is named when the file is created. */
static int name_later(struct store *s, const char *name, struct err *e)
{
    char path[sizeof s->path];
    struct stat st;

    if ((size_t)snprintf(path, sizeof path, "%s/%s" STORE_SUFFIX, s->dir, name) >= sizeof path)
        return err_set(e, ERR_ARGUMENT, "the path of the chat is too long");
    if (lstat(path, &st) == 0)
        return err_set(e, ERR_ARGUMENT, "there is already a chat \"%.80s\"", name);
    snprintf(s->name, sizeof s->name, "%s", name);
    return 0;
}

int store_rename(struct store *s, const char *name, struct err *e)
{
    char path[sizeof s->path];

    if (store_check_name(name, e) != 0)
        return -1;
    if (s->in_memory || s->is_nameless)
        return err_set(e, ERR_ARGUMENT, "this chat is not saved in a file that can be renamed");
    if (s->fd < 0)
        return name_later(s, name, e);
    if (strcmp(name, s->name) == 0)
        return 0;
    /* If another program took the file away, this writes it again. */
    if (store_commit(s, true, e) != 0 || sibling(path, sizeof path, s->path, name, e) != 0 ||
        move_file(s->path, path, name, e) != 0)
        return -1;
    memcpy(s->path, path, sizeof path);
    snprintf(s->name, sizeof s->name, "%s", name);
    return 0;
}

/* Open and lock the chat with exactly this name, so that no memwall uses it.  Returns the
 * descriptor, or -1 with *e. */
static int lock_file(const char *dir, const char *name, char *path, size_t n, struct err *e)
{
    int fd;

    if (strchr(name, '/') != NULL ||
        (size_t)snprintf(path, n, "%s/%s" STORE_SUFFIX, dir, name) >= n)
        return err_set(e, ERR_ARGUMENT, "no saved chat \"%.60s\"", name);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT)
        return err_set(e, ERR_ARGUMENT, "no saved chat \"%.60s\"", name);
    if (fd < 0)
        return err_sys(e, "cannot open \"%.200s\"", path);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return err_set(e, ERR_IO, "the chat \"%.60s\" is open in another memwall", name);
}

int store_rename_saved(const char *dir, const char *old, const char *name, struct err *e)
{
    char from[4400], to[4400];
    int fd, rc;

    if (store_check_name(name, e) != 0 || (fd = lock_file(dir, old, from, sizeof from, e)) < 0)
        return -1;
    rc = sibling(to, sizeof to, from, name, e);
    if (rc == 0)
        rc = move_file(from, to, name, e);
    close(fd);
    return rc;
}

int store_delete(const char *dir, const char *name, struct err *e)
{
    char path[4400];
    int rc, fd = lock_file(dir, name, path, sizeof path, e);

    if (fd < 0)
        return -1;
    rc = unlink(path) == 0 ? 0 : err_sys(e, "cannot delete \"%.200s\"", path);
    close(fd);
    return rc;
}

bool store_count_saved(const char *dir, const char *name, uint32_t *n_message)
{
    struct err ignored = ERR_INIT;
    struct store *s = store_blank(&ignored);
    bool is_counted = false, is_answer;
    const char *more;
    uint64_t keep;
    struct stat st;

    if (s == NULL)
        return false;
    snprintf(s->path, sizeof s->path, "%.3900s/%.90s" STORE_SUFFIX, dir, name);
    s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (s->fd >= 0 && fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_size <= COUNT_BYTES)
        is_counted = store_load(s, &keep, &more, &is_answer, &ignored) == 0;
    *n_message = s->n_message;
    store_drop(s);
    return is_counted;
}
