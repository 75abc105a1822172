#include "config.h"

#include "engine/machine/proc.h"

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
}

void proc_close(struct proc *p)
{
    kernel_file_close(p->status);
    kernel_file_close(p->stat);
    kernel_file_close(p->meminfo);
    kernel_file_close(p->vmstat);
    *p = (struct proc){ -1, -1, -1, -1 };
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

void proc_read_system(const struct proc *p, struct proc_system *out)
{
    char text[KERNEL_FILE_MAX];
    long n = kernel_file_read(p->meminfo, text, sizeof text);
    struct mw_os_value swap_free;

    out->total = field(text, n, "MemTotal");
    out->available = field(text, n, "MemAvailable");
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
