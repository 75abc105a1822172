/*
 * cgroup.h - the memory control group that this process lives in, version 1 or 2.
 *
 *     /sys/fs/cgroup/memory          the mount; its root is level n - 1
 *         /system.slice
 *             /memwall.scope         our group, level 0: usage, peak, statistics
 *
 * The limit that counts is the smallest of all levels; memory.high counts as one too,
 * since above it the kernel throttles.  A process may be told a path that does not exist
 * below the mount (namespaces): then the mount's root is taken.  If /proc/self/cgroup cannot
 * be read, the roots of the usual mounts are tried, which is where a container sees its group.
 *
 * The charge is that of the group.  If other processes live in it, the figure is not
 * ours, and is_alone says so.
 */
#ifndef MEMWALL_ENGINE_MACHINE_CGROUP_H
#define MEMWALL_ENGINE_MACHINE_CGROUP_H

#include <stdbool.h>

#include "engine/machine/kernel_file.h"

#define CGROUP_LEVELS 16

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

struct cgroup_level {
    int limit, high, usage, stat; /* descriptors; -1: this level has no such file */
};

struct cgroup {
    enum cgroup_version version;
    char folder[KERNEL_PATH_MAX]; /* our group, without the root of tests */
    size_t mount_len;             /* of it, the mount */
    int n_level;
    struct cgroup_level level[CGROUP_LEVELS];
    int peak, kernel, procs;
    int pressure_memory, pressure_io; /* version 2 only */
};

struct cgroup_memory {
    struct mw_os_value charged, peak;
    struct mw_os_value limit;    /* smallest of all levels; not valid: there is none */
    struct mw_os_value kernel;   /* part of charged: page tables, sockets, io_uring … */
    struct mw_os_value file;     /* part of charged: page cache, mapped or not */
    struct mw_os_value refaults; /* of the group's file pages */
    struct mw_os_value room;     /* what can still be charged before a limit, cache that can
                                    be dropped included; not valid: no limit */
    bool is_alone;               /* no other process is in the group */
    struct cgroup_tightest {     /* the limit that room comes from, if room is valid */
        int level;
        bool is_high; /* version 2: memory.high, not memory.max */
        uint64_t limit;
    } tightest;
};

/* Find the group and open its files.  Always succeeds: version says what was found. */
void cgroup_open(struct cgroup *c, const char *root);
void cgroup_close(struct cgroup *c);

void cgroup_read_memory(const struct cgroup *c, struct cgroup_memory *out);

/* The folder of a level inside the hierarchy, "/a/b" or "/", for messages. */
void cgroup_level_name(const struct cgroup *c, int level, char *buf, size_t n);

/* CPUs that the quota of all levels leaves, 0: no quota. */
double cgroup_cpu_quota(const char *root);

#endif
