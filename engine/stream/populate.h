/*
 * populate.h - fetches memory from the kernel before it is used, on threads of its own.
 *
 *     base                ready            target             held
 *      | populated         | being populated | not yet          |
 *
 * The kernel maps and clears a page when it is first touched.  A direct read into new memory
 * does that inside the system call that submits it, page after page, and the other reads wait.
 * In a virtual machine the host has to find the page as well: there one thread got 0.25 to
 * 0.45 GB/s with small and with huge pages alike, a ninth of the disk's rate, and four threads
 * 1.4 GB/s, since a thread whose page the host is fetching leaves its CPU to others.  On a
 * machine of its own one thread gets several GB/s.
 *
 * So a few threads do it ahead of the reads.  They have the usual priority: on a busy machine
 * with a lower one they got no further than the reads.  Nothing depends on them: memory that is
 * not ready works too, more slowly.  Where the kernel cannot populate (before Linux 5.14),
 * everything counts as ready.
 */
#ifndef MEMWALL_ENGINE_STREAM_POPULATE_H
#define MEMWALL_ENGINE_STREAM_POPULATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/units.h"

/* More add nothing, and each of them takes memory. */
enum { POPULATE_THREADS = 4 };

/* Stacks of the threads, as far as they are touched, and the kernel's part of a thread. */
#define POPULATE_BYTES (POPULATE_THREADS * 32 * KIB)

/* The beginning of an area.  Zeroed: nothing is populated. */
struct populate_range {
    unsigned char *base;
    uint64_t next, target; /* populate from next to target */
    _Atomic uint64_t ready;
    bool is_listed;
    struct populate_range *after; /* in the list */
};

struct populator {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct populate_range *first; /* in the order in which they were first used */
    pthread_t threads[POPULATE_THREADS];
    int n_thread, n_named; /* threads that run; of them, those that have an index */
    struct {
        const struct populate_range *range; /* NULL: the thread is idle */
        uint64_t at;
    } busy[POPULATE_THREADS];
    bool is_closing;
};

void populator_open(struct populator *p); /* starts no thread yet */
/* Join the threads.  Every range is forgotten. */
void populator_close(struct populator *p);

/*
 * Populate the first `target` bytes of the range, which are readable and writable.  Returns at
 * once.  As long as a few megabytes are enough, the caller's thread populates them instead.  A
 * smaller target than before means that the rest is about to be given back: it is no longer
 * ready, and when the call returns no thread works there.
 */
void populate_to(struct populator *p, struct populate_range *r, unsigned char *base,
                 uint64_t target);

/* The area is about to be unmapped.  Safe on a range that was never used. */
void populate_forget(struct populator *p, struct populate_range *r);

/* How many bytes at the beginning of the range are populated.  From any thread. */
static inline uint64_t populate_ready(const struct populate_range *r)
{
    return atomic_load_explicit(&r->ready, memory_order_acquire);
}

#endif
