/*
 * Models in the cache of the Hugging Face hub: see cache_layout.h.
 *
 * A snapshot is one commit of a repository.  The one that refs/main names comes first, then the
 * newest.  A file of an older snapshot is listed only if it is not in a newer one.
 */
#include "config.h"

#include <sys/stat.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/small_file.h"
#include "engine/base/utf8.h"
#include "engine/format/file_open.h"
#include "engine/hub/cache_layout.h"
#include "engine/hub/find.h"

#define MAX_SNAPSHOTS 32
#define MAX_REPOS     2048

struct snapshot {
    char commit[CACHE_MAX_NAME + 1];
    int64_t mtime_s;
    bool is_main;
};

/* Read the commit that refs/main names; "" if there is none. */
static void read_main(const char *cache, const char *repo, char commit[CACHE_MAX_NAME + 1])
{
    struct err ignored = ERR_INIT;
    char path[PATH_MAX], *text;
    const char *begin;
    size_t len;

    commit[0] = '\0';
    if (cache_path(path, sizeof path, cache, repo, CACHE_REFS, "main", &ignored) != 0)
        return;
    text = small_file_read(path, CACHE_MAX_NAME, NULL, &ignored);
    if (text == NULL)
        return;
    begin = text;
    len = utf8_trim(&begin, strlen(text));
    snprintf(commit, CACHE_MAX_NAME + 1, "%.*s", (int)len, begin);
    free(text);
}

static int newest_first(const void *a, const void *b)
{
    const struct snapshot *x = a, *y = b;

    if (x->is_main != y->is_main)
        return x->is_main ? -1 : 1;
    if (x->mtime_s != y->mtime_s)
        return x->mtime_s < y->mtime_s ? 1 : -1;
    return strcmp(x->commit, y->commit);
}

static size_t read_snapshots(const char *folder, const char *main_commit,
                             struct snapshot list[MAX_SNAPSHOTS])
{
    const struct dirent *entry;
    DIR *dir = opendir(folder);
    size_t n = 0;

    while (dir != NULL && n < MAX_SNAPSHOTS && (entry = readdir(dir)) != NULL) {
        struct stat st;

        if (!cache_is_name(entry->d_name) || fstatat(dirfd(dir), entry->d_name, &st, 0) != 0 ||
            !S_ISDIR(st.st_mode))
            continue;
        snprintf(list[n].commit, sizeof list[n].commit, "%s", entry->d_name);
        list[n].mtime_s = (int64_t)st.st_mtime;
        list[n].is_main = strcmp(entry->d_name, main_commit) == 0;
        n++;
    }
    if (dir != NULL)
        closedir(dir);
    qsort(list, n, sizeof list[0], newest_first);
    return n;
}

/* Remove the entries from index `from` on whose file is listed by an entry in [first, from), unless
 * that one cannot be opened. */
static void drop_repeated(struct mw_models *m, size_t first, size_t from)
{
    size_t kept = from;

    for (size_t i = from; i < m->n; i++) {
        bool is_repeated = false;

        for (size_t j = first; j < from; j++)
            is_repeated |= !m->entries[j].is_broken &&
                           strcmp(m->entries[j].file, m->entries[i].file) == 0;
        if (is_repeated)
            find_drop(&m->entries[i]);
        else
            m->entries[kept++] = m->entries[i];
    }
    m->n = kept;
}

/* A repository without a model may be one whose download was interrupted.  Its name then means it, and
 * not another one whose name begins in the same way. */
static int add_unended(struct mw_models *m, const char *cache, const char *repo, struct err *e)
{
    struct err ignored = ERR_INIT;
    char folder[PATH_MAX];
    struct stat st;
    bool found;
    int fd;
    struct find_new new = { .store = MW_STORE_HUB,
                            .name = repo,
                            .path = folder,
                            .file = "",
                            .broken = "its download has not ended; fetch it again" };

    if (cache_path(folder, sizeof folder, cache, repo, CACHE_REPO, NULL, &ignored) != 0 ||
        (fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
        return 0;
    found = model_file_unended(fd, &st);
    close(fd);
    if (!found)
        return 0;
    new.id = (struct find_id){ .dev = (uint64_t)st.st_dev, .ino = (uint64_t)st.st_ino };
    return find_add(m, &new, e);
}

static int add_repo(struct mw_models *m, const char *cache, const char *repo, struct err *e)
{
    struct snapshot list[MAX_SNAPSHOTS];
    char main_commit[CACHE_MAX_NAME + 1], folder[PATH_MAX];
    struct err ignored = ERR_INIT;
    size_t n, first = m->n;

    read_main(cache, repo, main_commit);
    if (cache_path(folder, sizeof folder, cache, repo, CACHE_SNAPSHOTS, NULL, &ignored) != 0)
        return 0;
    n = read_snapshots(folder, main_commit, list);
    for (size_t i = 0; i < n; i++) {
        size_t from = m->n;

        if (cache_path(folder, sizeof folder, cache, repo, CACHE_SNAPSHOTS, list[i].commit,
                       &ignored) != 0)
            continue;
        if (find_walk(m, MW_STORE_HUB, folder, repo, CACHE_MAX_DEPTH, e) != 0)
            return -1;
        drop_repeated(m, first, from);
    }
    if (m->n == first && add_unended(m, cache, repo, e) != 0)
        return -1;
    return find_name_repo(m, first, repo, e);
}

int find_folder(struct mw_models *m, const char *folder, struct err *e)
{
    char whole[PATH_MAX], repo[CACHE_MAX_REPO + 1], *name;

    if (realpath(folder, whole) == NULL)
        return 0;
    name = strrchr(whole, '/');
    if (!cache_repo_of(name + 1, repo))
        return find_walk(m, MW_STORE_FOLDER, folder, NULL, 1, e);
    name[name == whole] = '\0';
    return add_repo(m, whole, repo, e);
}

int find_hub(struct mw_models *m, const char *folder, struct err *e)
{
    const struct dirent *entry;
    DIR *dir = opendir(folder);
    int rc = 0;

    for (int n = 0; dir != NULL && rc == 0 && n < MAX_REPOS && (entry = readdir(dir)) != NULL;
         n++) {
        char repo[CACHE_MAX_REPO + 1];

        if (cache_repo_of(entry->d_name, repo))
            rc = add_repo(m, folder, repo, e);
    }
    if (dir != NULL)
        closedir(dir);
    return rc;
}
