/*
 * probe.h - measure the bandwidth of the disk and of memory in a second or two.
 *
 * Predictions and verdicts are based on these limits.  The results depend on other load on
 * the machine; the caller stores them per machine and file system, with their time.  Buffers
 * are mapped during the call, up to the bytes that the caller allows, and are part of the
 * budget like everything else.
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
    double seconds;                /* how long to measure; the call takes a little longer */
    double more_seconds;           /* at most this much longer if the result is doubtful */
    uint64_t buffer_bytes;         /* the maximum for buffers */
    uint64_t first;                /* begin with this block, so that calls read other blocks */
    const _Atomic bool *cancelled; /* ends the probe early when true; may be NULL */
};

/*
 * Everything is measured in PROBE_SLICES slices or more.  A rate is doubtful if its slices are
 * more than PROBE_SPREAD apart, or other programs used more than PROBE_LOAD of the processors.
 */
#define PROBE_SLICES 4
#define PROBE_SPREAD 0.2
#define PROBE_LOAD   0.25

struct probe_rate {
    double bytes_s; /* median of the slices; 0 if nothing was measured */
    uint64_t bytes; /* moved in that time */
    double seconds;
    double cpu_s;   /* processor time of the reads for each byte of a disk; 0: unknown */
    double spread;  /* slices_spread() */
    double load;    /* load_of_others(); negative: unknown */
    bool is_cached; /* the page cache had all blocks, so they were read in spite of it */
};

/* Returns whether the slices are too far apart, the machine was too busy, or the blocks came from
 * the page cache. */
bool probe_is_doubtful(const struct probe_rate *r);

/*
 * Read blocks of the open file fd with `depth` reads in flight.  A block has block_bytes, or
 * less if buffer_bytes does not allow it.  Each block is read once, in runs that are spread
 * over the whole file.  The file is dropped from the page cache first.  Pages that are mapped
 * by others cannot be dropped, nor dirty ones, which a direct read would write first: blocks
 * with such pages are left out unless there are no others.  Buffered reads drop each block
 * after it was read.  A small file may be read completely before the time is over.
 *
 * Returns 0, or -1 with *e: ERR_UNSUPPORTED if the file does not support direct reads,
 * ERR_BUDGET if no block fits into buffer_bytes, ERR_CANCELLED, or the error of a read.
 */
int probe_disk(int fd, bool is_direct, uint32_t depth, size_t block_bytes,
               const struct probe_options *options, struct probe_rate *out, struct err *e);

/*
 * The same for direct and for buffered reads in turn, options->seconds each.  No block is read
 * twice, so neither kind gains from blocks that the other left in a cache of the disk or the
 * host.  *direct is 0 if the file does not support direct reads.  *buffered is 0 if the page
 * cache keeps all blocks, because reading them would measure memory.
 */
int probe_disk_both(int fd, uint32_t depth, size_t block_bytes,
                    const struct probe_options *options, struct probe_rate *direct,
                    struct probe_rate *buffered, struct err *e);

/*
 * Let the kernel map windows of the file and read their pages, one after the other, as programs
 * do that map their models.  Pages are dropped from the page cache first and afterwards.
 */
int probe_mapped(int fd, const struct probe_options *options, struct probe_rate *out,
                 struct err *e);

/*
 * Sum a buffer repeatedly with n_thread threads, each as four streams, which is the fastest
 * plain reading found.  The buffer is dropped from the caches before each sum, or a cache would
 * be measured in part: with one of 480 MiB, 160 MiB seemed 1.2 times as fast as memory, and
 * 48 MiB 1.5 times.
 */
int probe_memory(int n_thread, const struct probe_options *options, struct probe_rate *out,
                 struct err *e);

/*
 * Fetch small pages of fresh memory with one thread and write them, a MiB at a time, for as long as
 * options say or until the buffer is used up: so the keys and values of a saved chat get theirs.
 * Where a virtual machine's host keeps page tables of its own, this takes longer than reading most
 * disks: 13 us for a page, 0.3 GB/s.  -1 with *e: there is no memory.
 */
int probe_fresh(const struct probe_options *options, double *bytes_s, struct err *e);

/*
 * How much the disk and memory slow each other: what a disk delivers goes through memory, and
 * the host of a virtual disk needs processors for it.  Slices of the disk alone, of memory
 * alone and of both are measured in turn, with reads as for probe_disk().  If both have work,
 * they take max(disk, memory) + *out * min(disk, memory), where disk and memory are the times
 * of each alone: 0 if they do not disturb each other, and 1 if they work one after the other.
 *
 * *out is 0 if buffer_bytes allows only a buffer that a cache could hold, or the file is small.
 * Returns 0, or -1 with *e as probe_disk() does.
 */
int probe_contention(int fd, bool is_direct, uint32_t depth, size_t block_bytes, int n_thread,
                     const struct probe_options *options, double *out, struct err *e);

#endif
