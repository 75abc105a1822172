/*
 * thread_use.h - the CPU time of each thread of this process.
 *
 * Linux counts CPU time in ticks of 10 ms, so readings should be at least half a second apart:
 * a share is then exact to 2 %.  Threads that spin while they wait count as busy.  The kernel
 * threads of io_uring, whose names begin with "iou-", are threads of the process, too.
 */
#ifndef MEMWALL_ENGINE_MACHINE_THREAD_USE_H
#define MEMWALL_ENGINE_MACHINE_THREAD_USE_H

#include <dirent.h>
#include <stdint.h>

#include "engine/machine/os_value.h"

struct thread_use {
    DIR *folder;   /* NULL: it cannot be read */
    uint64_t t_ns; /* of the last reading; 0: none */
    uint32_t n;
    struct thread_ticks {
        unsigned long id;
        uint64_t ticks;
    } thread[MW_MAX_THREAD];
};

/* root is "", or a tree that replaces the system in tests. */
void thread_use_open(struct thread_use *u, const char *root);
void thread_use_close(struct thread_use *u);

/* Fill in names and shares since the last reading.  Returns the number of threads; 0 for the
 * first reading.  Threads above MW_MAX_THREAD are left out. */
uint32_t thread_use_read(struct thread_use *u, struct mw_thread out[MW_MAX_THREAD]);

#endif
