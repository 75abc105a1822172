#include "config.h"

#include "engine/machine/thread_use.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/machine/kernel_file.h"

#define STAT_MAX 512 /* the fields before the CPU times take at most 200 bytes */

void thread_use_open(struct thread_use *u, const char *root)
{
    char path[KERNEL_PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/proc/self/task", root);

    *u = (struct thread_use){ .folder = NULL };
    if (n > 0 && (size_t)n < sizeof path)
        u->folder = opendir(path);
}

void thread_use_close(struct thread_use *u)
{
    if (u->folder != NULL)
        closedir(u->folder);
    u->folder = NULL;
}

/* Read fields 2, 14 and 15 of TID/stat: "7 (name) R 1 2 … utime stime".  The name may contain
 * spaces and brackets, so the fields are counted from the last closing bracket. */
static bool read_stat(int folder, const char *id, char name[16], uint64_t *ticks)
{
    char path[64], text[STAT_MAX], *first, *at;
    long n;
    int fd;

    snprintf(path, sizeof path, "%.20s/stat", id);
    fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false; /* the thread has ended */
    n = kernel_file_read(fd, text, sizeof text);
    close(fd);
    first = n > 0 ? strchr(text, '(') : NULL;
    at = n > 0 ? strrchr(text, ')') : NULL;
    if (first == NULL || at == NULL || at < first)
        return false;
    *at++ = '\0';
    snprintf(name, 16, "%s", first + 1);
    for (int field = 2; field < 13 && at != NULL; field++)
        at = strchr(at + 1, ' ');
    if (at == NULL)
        return false;
    *ticks = strtoull(at, &at, 10);
    *ticks += strtoull(at, NULL, 10);
    return true;
}

/* Returns the ticks of the thread at the last reading; 0 if it is new. */
static uint64_t ticks_before(const struct thread_use *u, unsigned long id)
{
    for (uint32_t i = 0; i < u->n; i++)
        if (u->thread[i].id == id)
            return u->thread[i].ticks;
    return 0;
}

uint32_t thread_use_read(struct thread_use *u, struct mw_thread out[MW_MAX_THREAD])
{
    struct thread_ticks now[MW_MAX_THREAD];
    uint64_t t_ns = clock_ns();
    double tick_ns = 1e9 / (double)sysconf(_SC_CLK_TCK);
    bool is_first = u->t_ns == 0;
    struct dirent *entry;
    uint32_t n = 0;

    if (u->folder == NULL)
        return 0;
    rewinddir(u->folder);
    while (n < MW_MAX_THREAD && (entry = readdir(u->folder)) != NULL) {
        uint64_t before;

        now[n].id = strtoul(entry->d_name, NULL, 10);
        if (now[n].id == 0 ||
            !read_stat(dirfd(u->folder), entry->d_name, out[n].name, &now[n].ticks))
            continue;
        before = ticks_before(u, now[n].id);
        if (before > now[n].ticks)
            before = 0; /* another thread with the number of one that ended */
        out[n].busy = t_ns > u->t_ns
                          ? (double)(now[n].ticks - before) * tick_ns / (double)(t_ns - u->t_ns)
                          : 0;
        if (out[n].busy > 1)
            out[n].busy = 1; /* by a part of a tick */
        n++;
    }
    memcpy(u->thread, now, n * sizeof *now);
    u->n = n;
    u->t_ns = t_ns;
    return is_first ? 0 : n;
}
