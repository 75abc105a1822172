#include "config.h"

#include "engine/hub/pull_place.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/folder.h"
#include "engine/base/new_file.h"
#include "engine/hub/pull_blob.h"

static int too_long(const struct pull_file *f, struct err *e)
{
    return err_set(e, ERR_ARGUMENT, "the path of \"%.100s\" in the hub's cache is too long",
                   f->name);
}

int pull_place_blob(const struct pull_place *p, const struct pull_file *f,
                    char path[PULL_PATH_MAX], char incomplete[PULL_PATH_MAX], struct err *e)
{
    if (cache_path(path, PULL_PATH_MAX, p->cache, p->repo->name, CACHE_BLOBS, f->etag, e) != 0)
        return -1;
    if (snprintf(incomplete, PULL_PATH_MAX, "%s.incomplete", path) >= PULL_PATH_MAX)
        return too_long(f, e);
    folder_make_parent(path);
    return 0;
}

int pull_place_file(const struct pull_place *p, const struct pull_file *f,
                    char path[PULL_PATH_MAX], struct err *e)
{
    size_t n;

    if (cache_path(path, PULL_PATH_MAX, p->cache, p->repo->name, CACHE_SNAPSHOTS, p->commit,
                   e) != 0)
        return -1;
    n = strlen(path);
    if (n + 1 + strlen(f->name) >= PULL_PATH_MAX)
        return too_long(f, e);
    snprintf(path + n, PULL_PATH_MAX - n, "/%s", f->name);
    return 0;
}

static bool has_blob(const struct pull_place *p, const struct pull_file *f)
{
    char path[PULL_PATH_MAX];
    struct err ignored = ERR_INIT;
    struct stat st;

    return f->etag[0] != '\0' &&
           cache_path(path, sizeof path, p->cache, p->repo->name, CACHE_BLOBS, f->etag,
                      &ignored) == 0 &&
           stat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->size;
}

/* Is the content itself in the snapshot, as where there are no links? */
static bool is_in_snapshot(const struct pull_place *p, const struct pull_file *f)
{
    char path[PULL_PATH_MAX];
    struct err ignored = ERR_INIT;
    struct stat st;

    return pull_place_file(p, f, path, &ignored) == 0 && lstat(path, &st) == 0 &&
           S_ISREG(st.st_mode) && (uint64_t)st.st_size == f->size;
}

bool pull_place_has(const struct pull_place *p, const struct pull_file *f)
{
    return has_blob(p, f) || is_in_snapshot(p, f);
}

uint64_t pull_place_have(const struct pull_place *p, const struct pull_file *f)
{
    char path[PULL_PATH_MAX], incomplete[PULL_PATH_MAX + 16];
    struct err ignored = ERR_INIT;

    if (pull_place_has(p, f))
        return f->size;
    if (f->etag[0] == '\0' || cache_path(path, sizeof path, p->cache, p->repo->name,
                                         CACHE_BLOBS, f->etag, &ignored) != 0)
        return 0;
    snprintf(incomplete, sizeof incomplete, "%s.incomplete", path);
    return pull_blob_have(incomplete, f->size);
}

int pull_place_lock(const struct pull_place *p, const struct pull_file *f, bool *is_locked,
                    struct err *e)
{
    char path[PULL_PATH_MAX], folder[CACHE_MAX_REPO + 16];
    int fd;

    cache_folder_of(p->repo->name, folder, sizeof folder);
    if (snprintf(path, sizeof path, "%s/.locks/%s/%s.lock", p->cache, folder, f->etag) >=
        (int)sizeof path)
        return too_long(f, e);
    folder_make_parent(path);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0) {
        err_sys(e, "could not open the lock");
        return err_at(e, path, ERR_NO_OFFSET, NULL);
    }
    *is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (*is_locked || errno != EWOULDBLOCK)
        return fd;
    err_set(e, ERR_IO,
            "another program is fetching this file; wait until it is done, or stop it");
    close(fd);
    return err_at(e, f->name, ERR_NO_OFFSET, NULL);
}

/* Write the relative path from the link to the content. */
static void link_target(const struct pull_file *f, char *buf, size_t n)
{
    size_t at = (size_t)snprintf(buf, n, "../..");

    for (const char *c = f->name; *c != '\0'; c++)
        if (*c == '/')
            at += (size_t)snprintf(buf + at, n - at, "/..");
    snprintf(buf + at, n - at, "/blobs/%s", f->etag);
}

int pull_place_link(const struct pull_place *p, const struct pull_file *f, bool *is_link,
                    struct err *e)
{
    char path[PULL_PATH_MAX], new[PULL_PATH_MAX + 32], target[2 * CACHE_MAX_FILE];
    char blob[PULL_PATH_MAX];
    char now[sizeof target];
    ssize_t n;

    *is_link = has_blob(p, f);
    if (!*is_link && is_in_snapshot(p, f))
        return 0;
    if (pull_place_file(p, f, path, e) != 0 ||
        cache_path(blob, sizeof blob, p->cache, p->repo->name, CACHE_BLOBS, f->etag, e) != 0)
        return -1;
    link_target(f, target, sizeof target);
    n = readlink(path, now, sizeof now);
    if (n == (ssize_t)strlen(target) && memcmp(now, target, (size_t)n) == 0)
        return 0;
    folder_make_parent(path);
    snprintf(new, sizeof new, "%s.%ld.new", path, (long)getpid());
    unlink(new);
    if (symlink(target, new) == 0 && rename(new, path) == 0)
        return 0;
    unlink(new);
    *is_link = false;
    if (rename(blob, path) == 0)
        return 0;
    err_sys(e, "could not move the file here, and this file system has no links");
    return err_at(e, path, ERR_NO_OFFSET, NULL);
}

int pull_place_ref(const struct pull_place *p, struct err *e)
{
    char path[PULL_PATH_MAX];
    struct new_file file;

    if (strcmp(p->repo->revision, p->commit) == 0)
        return 0;
    if (cache_path(path, sizeof path, p->cache, p->repo->name, CACHE_REFS, p->repo->revision,
                   e) != 0)
        return -1;
    folder_make_parent(path);
    if (new_file_begin(&file, path, true, e) != 0)
        return -1;
    fputs(p->commit, file.f);
    return new_file_end(&file, e);
}

uint64_t pull_place_free(const struct pull_place *p)
{
    struct statvfs vfs;

    folder_make(p->cache);
    if (statvfs(p->cache, &vfs) != 0 || vfs.f_blocks == 0) /* some network disks have no size */
        return UINT64_MAX;
    return (uint64_t)vfs.f_bavail * vfs.f_frsize;
}

uint64_t pull_place_most(const struct pull_place *p)
{
    struct statfs fs;

    return statfs(p->cache, &fs) == 0 && fs.f_type == MSDOS_SUPER_MAGIC ? UINT32_MAX : UINT64_MAX;
}
