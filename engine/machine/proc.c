#include "config.h"

#include "engine/machine/proc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char no_file[] = "cannot be read from /proc";
static const char no_field[] = "not reported by this kernel";

void proc_open(struct proc *p, const char *root)
{
    p->status = kernel_file_open(root, "/proc/self/status");
    p->stat = kernel_file_open(root, "/proc/self/stat");
    p->meminfo = kernel_file_open(root, "/proc/meminfo");
    p->vmstat = kernel_file_open(root, "/proc/vmstat");
    p->zfs = kernel_file_open(root, "/proc/spl/kstat/zfs/arcstats");
}

void proc_close(struct proc *p)
{
    kernel_file_close(p->status);
    kernel_file_close(p->stat);
    kernel_file_close(p->meminfo);
    kernel_file_close(p->vmstat);
    kernel_file_close(p->zfs);
    *p = (struct proc){ -1, -1, -1, -1, -1 };
}

static struct mw_os_value field(const char *text, long n, const char *key)
{
    uint64_t value;

    if (n <= 0)
        return os_unknown(no_file);
    return kernel_file_field(text, key, &value) ? os_value(value) : os_unknown(no_field);
}

/* Get field 12 of /proc/self/stat.  The command in field 2 may contain spaces and brackets, so
 * count from the last closing bracket, where field 3 follows. */
static struct mw_os_value major_faults(const char *text)
{
    const char *at = strrchr(text, ')');

    if (at == NULL)
        return os_unknown(no_field);
    at++;
    for (int i = 3; i < 12 && at != NULL; i++)
        at = strchr(at + 1, ' ');
    return at != NULL ? os_value(strtoull(at, NULL, 10)) : os_unknown(no_field);
}

void proc_read_self(const struct proc *p, struct proc_self *out)
{
    char text[KERNEL_FILE_MAX];
    long n = kernel_file_read(p->status, text, sizeof text);

    out->rss = field(text, n, "VmRSS");
    out->rss_anon = field(text, n, "RssAnon");
    out->rss_file = field(text, n, "RssFile");
    out->rss_shmem = field(text, n, "RssShmem");
    out->rss_peak = field(text, n, "VmHWM");
    out->swapped = field(text, n, "VmSwap");
    out->page_tables = field(text, n, "VmPTE");
    n = kernel_file_read(p->stat, text, sizeof text);
    out->majflt = n > 0 ? major_faults(text) : os_unknown(no_file);
}

/* Get the number of a line "size 4 21474836480": name, type, value. */
static bool kstat_field(const char *text, const char *name, uint64_t *value)
{
    size_t n = strlen(name);
    unsigned type;

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && line[n] == ' ')
            return sscanf(line + n, " %u %" SCNu64, &type, value) == 2;
    }
    return false;
}

/*
 * Add the part of the ZFS cache (ARC) that gives way to the available memory.  It shrinks down
 * to c_min.  In a container with a /proc of its own, the cache is that of the host and does not
 * fit the memory that is in use there; then it does not count.
 */
static void add_zfs_cache(const struct proc *p, struct proc_system *out)
{
    char text[KERNEL_FILE_MAX];
    uint64_t size, least;

    out->zfs_cache = os_unknown("ZFS is not in use");
    out->zfs_stays = 0;
    if (p->zfs < 0 || out->total.why_not != NULL || out->available.why_not != NULL)
        return;
    if (kernel_file_read(p->zfs, text, sizeof text) <= 0 || !kstat_field(text, "size", &size)) {
        out->zfs_cache = os_unknown(no_field);
        return;
    }
    if (out->available.value > out->total.value ||
        size > out->total.value - out->available.value) {
        out->zfs_cache = os_unknown("the cache is not in this memory");
        return;
    }
    if (!kstat_field(text, "c_min", &least)) {
        out->zfs_cache = os_unknown(no_field);
        out->zfs_stays = size;
        return;
    }
    out->zfs_stays = size < least ? size : least;
    out->zfs_cache = os_value(size - out->zfs_stays);
    out->available.value += out->zfs_cache.value;
}

/* Huge pages of the default size that are reserved and not in use. */
static uint64_t free_huge_pages(const char *text)
{
    uint64_t n, size;

    return kernel_file_field(text, "HugePages_Free", &n) &&
                   kernel_file_field(text, "Hugepagesize", &size) && size > 0 &&
                   n <= UINT64_MAX / size
               ? n * size
               : 0;
}

void proc_read_system(const struct proc *p, struct proc_system *out)
{
    char text[KERNEL_FILE_MAX];
    long n = kernel_file_read(p->meminfo, text, sizeof text);
    struct mw_os_value swap_free;

    out->total = field(text, n, "MemTotal");
    out->available = field(text, n, "MemAvailable");
    add_zfs_cache(p, out);
    out->huge_free = n > 0 ? free_huge_pages(text) : 0;
    out->cached = field(text, n, "Cached");
    out->swap_used = field(text, n, "SwapTotal");
    swap_free = field(text, n, "SwapFree");
    if (swap_free.why_not != NULL)
        out->swap_used = swap_free;
    else if (out->swap_used.why_not == NULL)
        out->swap_used.value -=
            swap_free.value < out->swap_used.value ? swap_free.value : out->swap_used.value;
    n = kernel_file_read(p->vmstat, text, sizeof text);
    out->refaults = field(text, n, "workingset_refault_file");
    if (out->refaults.why_not ==
        no_field) /* before Linux 5.9 one counter for both kinds of pages */
        out->refaults = field(text, n, "workingset_refault");
}
