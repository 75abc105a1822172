/*
 * proc.h - figures that Linux reports for this process and for the whole machine.
 *
 * RSS is split into anonymous memory and pages of files, because only anonymous memory is
 * certainly ours.  File pages count while they are mapped and touched.  Page cache read with
 * read(2) and kernel memory never count.  Linux keeps the counters of /proc/self/status per
 * CPU, so they may be wrong by about 100 KiB.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PROC_H
#define MEMWALL_ENGINE_MACHINE_PROC_H

#include "engine/machine/kernel_file.h"

struct proc {
    int status, stat, meminfo, vmstat, zfs; /* descriptors, or -1 */
};

struct proc_self {
    struct mw_os_value rss, rss_anon, rss_file, rss_shmem, rss_peak;
    struct mw_os_value swapped;     /* of this process */
    struct mw_os_value page_tables; /* kernel memory for its mappings */
    struct mw_os_value majflt;      /* page faults that waited for a device since its start */
};

struct proc_system {
    /* available includes zfs_cache: memory that the cache of ZFS gives back when other programs
     * need it.  Linux counts it as used.  Not valid without ZFS. */
    struct mw_os_value total, available, zfs_cache, cached, swap_used;
    /* Memory that is not available and that no program uses: the part of the cache of ZFS that
     * stays, or all of it if its least size is unknown, and huge pages that are reserved. */
    uint64_t zfs_stays, huge_free;
    struct mw_os_value refaults; /* file pages read again shortly after their eviction */
};

void proc_open(struct proc *p, const char *root);
void proc_close(struct proc *p);

void proc_read_self(const struct proc *p, struct proc_self *out);
void proc_read_system(const struct proc *p, struct proc_system *out);

#endif
