/*
 * proc.h - what the kernel counts for this process and for the whole machine.
 *
 * RSS is split into anonymous memory and pages of files, because only the first is
 * surely ours: file pages count while they are mapped and touched, page cache read by
 * read(2) and kernel memory never count.  The counters behind /proc/self/status are kept
 * per CPU and may be off by some 100 KiB.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PROC_H
#define MEMWALL_ENGINE_MACHINE_PROC_H

#include "engine/machine/kernel_file.h"

struct proc {
    int status, stat, meminfo, vmstat; /* descriptors; -1: not there */
};

struct proc_self {
    struct mw_os_value rss, rss_anon, rss_file, rss_shmem, rss_peak;
    struct mw_os_value swapped;     /* of this process */
    struct mw_os_value page_tables; /* kernel memory that maps it */
    struct mw_os_value majflt;      /* faults that waited for a device, since it started */
};

struct proc_system {
    struct mw_os_value total, available, cached, swap_used;
    struct mw_os_value refaults; /* file pages read again soon after they were evicted */
};

void proc_open(struct proc *p, const char *root);
void proc_close(struct proc *p);

void proc_read_self(const struct proc *p, struct proc_self *out);
void proc_read_system(const struct proc *p, struct proc_system *out);

#endif
