#include "config.h"

#include "engine/machine/pagecache.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/machine/kernel_file.h"

/* Headers of older systems have neither the number nor the structs.  Both are the same on all
 * architectures. */
#define CACHESTAT_CALL 451

struct cachestat_range {
    uint64_t off, len; /* len 0: to the end */
};

struct cachestat_pages {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

#define WINDOW ((size_t)64 << 20) /* bytes mapped at once for mincore */

static const char no_permission[] = "reported only to users who may write the file";
static const char no_call[] = "this kernel has no cachestat";

struct mw_os_value pagecache_by_cachestat(int fd, uint64_t offset, uint64_t bytes)
{
    struct cachestat_range range = { offset, bytes };
    struct cachestat_pages pages = { 0 };

    if (syscall(CACHESTAT_CALL, fd, &range, &pages, 0) == 0)
        return os_value(pages.cached * (uint64_t)sysconf(_SC_PAGESIZE));
    return os_unknown(errno == EPERM    ? no_permission
                      : errno == ENOSYS ? no_call
                                        : "cachestat does not work on this file");
}

/* May this process ask for the pages of the file?  The rule that Linux applies to mincore. */
static bool may_know(int fd)
{
    char path[40];
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    if (geteuid() == 0 || st.st_uid == geteuid())
        return true;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return access(path, W_OK) == 0;
}

struct mw_os_value pagecache_by_mincore(int fd, uint64_t offset, uint64_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char resident[WINDOW / 4096];
    uint64_t n_cached = 0;

    if (!may_know(fd))
        return os_unknown(no_permission);
    for (uint64_t at = 0; at < size; at += WINDOW) {
        size_t bytes = size - at < WINDOW ? (size_t)(size - at) : WINDOW;
        void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)(offset + at));
        bool is_known;

        if (map == MAP_FAILED)
            return os_unknown("the file cannot be mapped");
        is_known = mincore(map, bytes, resident) == 0;
        munmap(map, bytes);
        if (!is_known)
            return os_unknown("mincore does not work on this file");
        for (size_t i = 0; i < (bytes + page - 1) / page; i++)
            n_cached += resident[i] & 1;
    }
    return os_value(n_cached * page);
}

struct mw_os_value pagecache_bytes_at(int fd, uint64_t offset, uint64_t bytes)
{
    struct mw_os_value v = pagecache_by_cachestat(fd, offset, bytes);

    /* A sandbox may refuse the newer call with EPERM. */
    if (v.why_not != NULL && (v.why_not != no_permission || may_know(fd)))
        v = pagecache_by_mincore(fd, offset, bytes);
    return v;
}

struct mw_os_value pagecache_bytes(int fd, uint64_t size)
{
    return pagecache_bytes_at(fd, 0, size);
}
