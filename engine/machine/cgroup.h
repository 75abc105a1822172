/*
 * cgroup.h - the memory control group of this process, version 1 or 2.
 *
 *     /sys/fs/cgroup/memory          the mount; its root is level n - 1
 *         /system.slice
 *             /memwall.scope         our group, level 0: usage, peak, statistics
 *
 * The effective limit is the smallest one of all levels.  memory.high counts as a limit
 * too, because Linux throttles processes above it.  With namespaces the path of a process
 * may not exist below the mount; then the group is taken to be the mount's root.  If
 * /proc/self/cgroup cannot be read, the roots of the usual mounts are tried, because a
 * container sees its own group there.
 *
 * The charge is that of the whole group.  If is_alone is false, other processes are in the
 * group and the charge is not ours.
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
    char folder[KERNEL_PATH_MAX]; /* of our group; starts with the mount, without the root */
    size_t mount_len;             /* length of the mount in folder */
    int n_level;
    struct cgroup_level level[CGROUP_LEVELS];
    int peak, kernel, procs;
    int pressure_memory, pressure_io; /* version 2 only */
};

struct cgroup_memory {
    struct mw_os_value charged, peak;
    struct mw_os_value limit;    /* the smallest of all levels; not valid if none is set */
    struct mw_os_value kernel;   /* part of charged: page tables, sockets, io_uring … */
    struct mw_os_value file;     /* part of charged: page cache, mapped or not */
    struct mw_os_value refaults; /* of the group's file pages */
    struct mw_os_value room;     /* bytes that can still be charged, including file cache that
                                    can be dropped; not valid if no limit is set */
    bool is_alone;               /* no other process is in the group */
    struct cgroup_tightest {     /* the limit that determines room, if room is valid */
        int level;
        bool is_high; /* memory.high and not memory.max (version 2) */
        uint64_t limit;
    } tightest;
};

/* Find the group and open its files.  Sets version to CGROUP_NONE if there is no group. */
void cgroup_open(struct cgroup *c, const char *root);
void cgroup_close(struct cgroup *c);

void cgroup_read_memory(const struct cgroup *c, struct cgroup_memory *out);

/* Write the folder of a level within the hierarchy to buf, "/a/b" or "/", for messages. */
void cgroup_level_name(const struct cgroup *c, int level, char *buf, size_t n);

/* Returns the number of CPUs that the quotas of all levels allow; 0 without a quota; -1 if no
 * level reports one. */
double cgroup_cpu_quota(const char *root);

/* Returns how often the quotas of all levels have stopped processes, or -1 if unknown. */
double cgroup_cpu_throttled(const char *root);

#endif
