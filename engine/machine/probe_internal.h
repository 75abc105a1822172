/*
 * probe_internal.h - threads that measure together, in slices.
 *
 * A crew runs the same function on each of its threads until its time is over.
 *
 *     probe.c           the crew and its slices
 *     probe_disk.c      functions that read a file
 *     probe_memory.c    functions that read memory, alone and beside the disk
 */
#ifndef MEMWALL_ENGINE_MACHINE_PROBE_INTERNAL_H
#define MEMWALL_ENGINE_MACHINE_PROBE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/machine/load.h"
#include "engine/machine/probe.h"
#include "engine/machine/slices.h"

#define PROBE_ALIGN ((uint64_t)4096) /* enough for direct reads on every device */

struct probe_crew;
typedef void probe_crew_fn(struct probe_crew *c, int i);

struct probe_crew {
    const struct probe_options *options;
    probe_crew_fn *fn;
    void *mapping;
    unsigned char *buffer;
    uint64_t buffer_bytes; /* of all threads */
    double end_s;
    _Atomic uint64_t bytes;
    _Atomic int error; /* errno of the first read that failed */
    _Atomic uint64_t error_at;
    int n;
    int n_at_once; /* of them, which have a processor at the same time */

    /* disk */
    int fd;
    bool is_direct;
    bool takes_cached; /* read blocks that the page cache has, too */
    uint64_t block_bytes, n_block;
    uint64_t run, n_run, stride; /* blocks of a run, complete runs, and from run to run */
    _Atomic uint64_t next;
    uint64_t end; /* `next` stops here */
    /* Complete reads.  full_s and full_bytes are the time and the bytes at the moment when as
     * many were complete as are kept in flight: before that, the rate is not yet steady. */
    _Atomic uint64_t n_read;
    double full_s;
    uint64_t full_bytes;
    _Atomic uint64_t read_ns; /* processor time of the reads */

    /* memory */
    _Atomic uint64_t n_met;  /* arrivals at the points where the threads wait for each other */
    _Atomic bool is_ending;  /* a thread has left, so the others no longer wait for it */
    _Atomic uint64_t sum_ns; /* of all threads, while they read */
};

struct probe_member {
    struct probe_crew *crew;
    int i;
    pthread_t thread;
};

/* Whether the time is over, a read failed, or the caller cancelled. */
bool probe_is_over(const struct probe_crew *c);

/* Map the buffer of a crew, of c->buffer_bytes. */
int probe_map(struct probe_crew *c, struct err *e);
void probe_unmap(struct probe_crew *c);

/* Start n threads of the crew.  Returns how many started, with errno of a failure. */
int probe_start(struct probe_crew *c, struct probe_member *members, int n);

/* Begin a slice. */
void probe_prepare(struct probe_crew *c, int n, double end_s);

/* Run fn on n threads for the given time: one slice, which is added to *out and *slices. */
int probe_run_slice(struct probe_crew *c, int n, double seconds, struct probe_rate *out,
                    struct slices *slices, struct err *e);

/*
 * The rate of a slice.  Of disks it is without the time until the first reads are done: a disk
 * may report all reads in flight together, and in a short slice the first of these groups
 * counts for much.  Of memory it is without the time in which buffers were dropped from the
 * caches.
 */
double probe_slice_rate(const struct probe_crew *c, double start_s, double end_s);

/* Set the rate, the spread and the load from the slices until now. */
void probe_set_rate(struct probe_rate *out, const struct slices *slices,
                    const struct load *load);

/* ---- probe_disk.c ---- */

/* Open the file of fd once more, for direct or for buffered reads.  Returns -1 with *e. */
int probe_open_again(int fd, bool is_direct, struct err *e);

/* Set the blocks of a file and the size of the buffer for `depth` of them, and drop the file from
 * the page cache.  Returns -1 with *e, as probe_disk() does. */
int probe_set_blocks(struct probe_crew *c, int fd, uint32_t depth, size_t block_bytes,
                     struct err *e);

/*
 * Read blocks until the crew is over or block c->end is reached: the function of thread i.
 * Looking for blocks that are not in the page cache takes processor time, too: after a file was
 * written, more than reading the few that are left.  So only that of the reads is counted.
 */
void probe_read_blocks(struct probe_crew *c, int i);

#endif
