/*
 * inject.h - system calls that fail when a test wants it.
 *
 * Linked in with the linker's --wrap: every call from the engine goes through here.
 * Counters are atomic, since readers call from threads of their own.
 */
#ifndef MEMWALL_TESTS_FAULTS_INJECT_H
#define MEMWALL_TESTS_FAULTS_INJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct inject {
    /* pread and reads of io_uring */
    atomic_int read_error;    /* errno, 0: none … */
    atomic_int read_skip;     /* … after so many reads … */
    atomic_int read_times;    /* … and then for so many */
    atomic_uint short_one_in; /* bring less than wanted, now and then; 0: never */
    atomic_bool reads_wait;   /* hold pread back until it is false again */
    atomic_int direct_us;     /* that pread takes longer from a file opened with O_DIRECT */

    /* io_uring */
    atomic_int init_error;     /* of io_uring_queue_init_params */
    atomic_int register_error; /* of both registrations */
    atomic_int enter_error;    /* of submitting … */
    atomic_int enter_skip;     /* … after so many … */
    atomic_int enter_times;    /* … and then for this many calls; INT_MAX: all */

    /* whatever takes memory or a thread: the n-th call from now fails; < 0: none */
    atomic_int resource_skip;
    atomic_int n_alloc; /* calls of malloc, calloc, realloc and free so far */
};

extern struct inject inject;

void inject_nothing(void);

#endif
