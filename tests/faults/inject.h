/*
 * inject.h - system calls that fail on request.
 *
 * The linker's --wrap sends every call of the engine through these functions.  Counters are
 * atomic, because readers call from threads of their own.
 */
#ifndef MEMWALL_TESTS_FAULTS_INJECT_H
#define MEMWALL_TESTS_FAULTS_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct inject {
    /* pread and reads of io_uring */
    atomic_int read_error;    /* errno of a failed read; 0: none fails */
    atomic_int read_skip;     /* reads that succeed first */
    atomic_int read_times;    /* reads that fail then */
    atomic_uint short_one_in; /* reads return less than requested now and then; 0: never */
    atomic_bool of_copies;    /* only reads of files in a folder "copy" fail */
    atomic_bool reads_wait;   /* pread waits until it is false again */
    atomic_int direct_us;     /* extra time of pread on a file that was opened with O_DIRECT */

    /* fsync */
    atomic_int sync_error; /* errno of one that failed; 0: none fails */
    atomic_int sync_skip, sync_times;

    /* flock */
    atomic_int lock_error;     /* errno of all of them; 0: they work */
    atomic_bool locks_of_nfs;  /* the lock of a writer needs a descriptor that may write */
    void (*meanwhile)(void);   /* called once before the next lock of a writer, without a lock */
    atomic_bool is_other_user; /* geteuid */

    /* io_uring */
    atomic_int init_error;     /* errno of io_uring_queue_init_params */
    atomic_int register_error; /* errno of both registrations */
    atomic_int enter_error;    /* errno of submitting */
    atomic_int enter_skip;     /* calls that succeed first */
    atomic_int enter_times;    /* calls that fail then; INT_MAX: all */

    /* the n-th call from now that takes memory or a thread fails; negative: none */
    atomic_int resource_skip;
    atomic_bool resource_lasts; /* all calls after it fail, too */
    atomic_bool resource_gone;  /* they do now */
    atomic_int n_alloc; /* number of calls of malloc, calloc, realloc and free */
};

extern struct inject inject;

void inject_nothing(void);

#endif
