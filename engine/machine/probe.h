/*
 * probe.h - what this machine's disk and memory give, measured in a second or two.
 *
 * The limits that predictions and verdicts stand on.  Results depend on what else the
 * machine does; who calls keeps them (per machine and file system) and says when they
 * were taken.  Buffers are mapped for the time of the call, at most as many bytes as the
 * caller allows, and count against the budget like everything else.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PROBE_H
#define MEMWALL_ENGINE_MACHINE_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

#define PROBE_DEPTH_MAX   16
#define PROBE_THREADS_MAX 256

struct probe_options {
    double seconds;                /* to measure for; a little more passes */
    uint64_t buffer_bytes;         /* at most for buffers */
    const _Atomic bool *cancelled; /* NULL, or ends the probe early when it becomes true */
};

struct probe_rate {
    double bytes_s; /* 0: nothing was measured */
    uint64_t bytes; /* moved in that time */
    double seconds;
};

/*
 * Read blocks of block_bytes (less if the buffers do not allow it) of the open file fd, each
 * once, at places spread over the whole file, with `depth` reads in flight.  Buffered reads
 * drop the file from the page cache before and each block after.  A small file may be read
 * before the time is over.
 * Returns 0; -1 with *e: ERR_UNSUPPORTED where the file takes no direct reads, ERR_BUDGET
 * if buffer_bytes allow no block, ERR_CANCELLED, or a failed read.
 */
int probe_disk(int fd, bool is_direct, uint32_t depth, size_t block_bytes,
               const struct probe_options *options, struct probe_rate *out, struct err *e);

/*
 * The same for direct and for buffered reads in turn, options->seconds each.  No block is read
 * twice, so neither kind gains from what the other left in a cache of the disk or the host.
 * *direct is 0 if the file takes no direct reads, and *buffered if the page cache keeps pages
 * of the file that cannot be dropped (dirty, or mapped by others): they would measure memory.
 */
int probe_disk_both(int fd, uint32_t depth, size_t block_bytes,
                    const struct probe_options *options, struct probe_rate *direct,
                    struct probe_rate *buffered, struct err *e);

/*
 * Sum a buffer with n_thread threads, again and again: the most that any kernel can take
 * from memory.  A buffer that is not much larger than the last-level cache measures that
 * instead: 64 MiB is a good size.
 */
int probe_memory(int n_thread, const struct probe_options *options, struct probe_rate *out,
                 struct err *e);

#endif
