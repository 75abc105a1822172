/* The folder of KV files: see api/kv_files.h. */
#include "config.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/kv/kv_file.h"
#include "engine/memwall.h"
#include "engine/stream/shape.h"

#define PATH_BYTES  4400
#define DISK_SHARE  10  /* of the free space */
#define BLOCK_BYTES 512 /* of st_blocks */
#define NEW_S       60  /* the writer of a younger file may be about to lock it */

static bool is_beginning(const char *name)
{
    size_t n = strlen(MW_KV_BEGINNING);

    return strncmp(name, MW_KV_BEGINNING, n) == 0 &&
           strlen(name + n) == MW_KV_BEGINNING_DIGITS &&
           strspn(name + n, "0123456789abcdef") == MW_KV_BEGINNING_DIGITS;
}

bool mw_kv_look(const char *path, struct mw_kv_file *out)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    struct err ignored = ERR_INIT;
    struct kv_file_head head;
    struct stat st;
    size_t len = strlen(name), suffix = strlen(MW_KV_SUFFIX);

    *out = (struct mw_kv_file){ .n_token = 0 };
    if (len <= suffix || strcmp(name + len - suffix, MW_KV_SUFFIX) != 0 ||
        len - suffix >= sizeof out->name || lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    snprintf(out->name, sizeof out->name, "%.*s", (int)(len - suffix), name);
    out->is_beginning = is_beginning(out->name);
    out->bytes = (uint64_t)st.st_blocks * BLOCK_BYTES;
    out->used_s = st.st_mtim.tv_sec;
    out->used_ns = st.st_mtim.tv_nsec;
    if (kv_file_look(path, &head, &ignored) == 0) {
        snprintf(out->model, sizeof out->model, "%s", head.name);
        out->n_token = head.n_token;
        out->is_unfinished = head.n_token == 0;
    }
    return out->n_token > 0;
}

double mw_kv_read_s(uint64_t bytes, uint64_t ahead_bytes, double disk_bytes_s,
                    double fresh_bytes_s)
{
    const double blocks = (double)SHAPE_FLYING_BYTES / (double)KV_PIECE; /* for a piece */
    double beside = (double)ahead_bytes / blocks; /* bytes of the file until weights are read */

    if (disk_bytes_s <= 0)
        return 0;
    if (beside > (double)bytes)
        beside = (double)bytes;
    return ((double)bytes + beside * blocks) / disk_bytes_s +
           (fresh_bytes_s > 0 ? (double)bytes / fresh_bytes_s : 0);
}

static int last_used_first(const void *a, const void *b)
{
    const struct mw_kv_file *x = a, *y = b;

    if (x->used_s != y->used_s)
        return x->used_s > y->used_s ? -1 : 1;
    if (x->used_ns != y->used_ns)
        return x->used_ns > y->used_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Add a file to a list that grows. */
static int add_file(struct mw_kv_file **all, size_t *n, size_t *room,
                    const struct mw_kv_file *file, struct err *e)
{
    if (*n == *room) {
        size_t more = *room == 0 ? 16 : *room * 2;
        struct mw_kv_file *grown = realloc(*all, more * sizeof **all);

        if (grown == NULL)
            return err_memory(e, "the list of KV files");
        *all = grown;
        *room = more;
    }
    (*all)[(*n)++] = *file;
    return 0;
}

int mw_kv_list(const char *folder, struct mw_kv_file **out, size_t *n, struct err *e)
{
    struct mw_kv_file *all = NULL, file;
    DIR *d = opendir(folder);
    size_t room = 0;
    int rc = 0;

    *out = NULL;
    *n = 0;
    if (d == NULL)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : err_sys(e, "cannot read the folder \"%.200s\"", folder);
    for (const struct dirent *f; rc == 0 && (f = readdir(d)) != NULL;) {
        char path[PATH_BYTES];

        if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, f->d_name) >= sizeof path)
            continue;
        (void)mw_kv_look(path, &file);
        if (file.name[0] != '\0')
            rc = add_file(&all, n, &room, &file, e);
    }
    closedir(d);
    if (rc != 0) {
        free(all);
        *n = 0;
        return -1;
    }
    if (*n > 0)
        qsort(all, *n, sizeof *all, last_used_first);
    *out = all;
    return 0;
}

static uint64_t sum_of(const struct mw_kv_file *all, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += all[i].bytes;
    return sum;
}

/* Look at the disk of the folder, which is made with its first file. */
static int look_at_disk(const char *folder, struct statvfs *fs)
{
    char parent[PATH_BYTES];
    char *slash;

    while (statvfs(folder, fs) != 0) {
        slash = errno == ENOENT ? strrchr(folder, '/') : NULL;
        if (slash == NULL || slash == folder || strlen(folder) >= sizeof parent)
            return -1;
        memmove(parent, folder, (size_t)(slash - folder));
        parent[slash - folder] = '\0';
        folder = parent;
    }
    return 0;
}

uint64_t mw_kv_limit(const char *folder)
{
    struct err ignored = ERR_INIT;
    struct mw_kv_file *all;
    struct statvfs fs;
    uint64_t free_bytes, share;
    size_t n;

    if (look_at_disk(folder, &fs) != 0)
        return MW_KV_LIMIT;
    free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (free_bytes < DISK_SHARE * MW_KV_LIMIT && mw_kv_list(folder, &all, &n, &ignored) == 0) {
        free_bytes += sum_of(all, n);
        free(all);
    }
    share = free_bytes / DISK_SHARE;
    return share < MW_KV_LIMIT ? share : MW_KV_LIMIT;
}

static void path_of(const char *folder, const struct mw_kv_file *f, char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/%s" MW_KV_SUFFIX, folder, f->name);
}

/* Opening an unfinished file deletes it, unless its writer still has the lock. */
static void delete_unfinished(const char *folder, struct mw_kv_file *all, size_t n)
{
    int64_t now_s = (int64_t)time(NULL);

    for (size_t i = 0; i < n; i++) {
        struct err ignored = ERR_INIT;
        char path[PATH_BYTES];
        struct kv_file *f;

        if (!all[i].is_unfinished || now_s - all[i].used_s < NEW_S)
            continue;
        path_of(folder, &all[i], path);
        if (kv_file_open(&f, path, 1, &ignored) == 0) /* it was just completed */
            kv_file_close(f);
        else if (access(path, F_OK) != 0)
            all[i].bytes = 0;
    }
}

void mw_kv_trim(const char *folder, uint64_t limit, const char *keep)
{
    struct err ignored = ERR_INIT;
    struct mw_kv_file *all;
    uint64_t sum;
    size_t n;

    if (mw_kv_list(folder, &all, &n, &ignored) != 0)
        return;
    delete_unfinished(folder, all, n);
    sum = sum_of(all, n);
    for (size_t i = n; i > 0 && sum > limit; i--) {
        const struct timespec used = { all[i - 1].used_s, all[i - 1].used_ns };
        char path[PATH_BYTES];

        path_of(folder, &all[i - 1], path);
        if ((keep == NULL || strcmp(path, keep) != 0) && kv_file_delete(path, &used))
            sum -= all[i - 1].bytes;
    }
    free(all);
}
