/*
 * clock.h - the monotonic clock, and waiting on it.
 *
 * Every time in memwall that is not a date is read here, so times taken in different
 * rooms can be subtracted.  Setting the date does not move this clock.
 */
#ifndef MEMWALL_ENGINE_BASE_CLOCK_H
#define MEMWALL_ENGINE_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_ns(void);

/* Processor time of this thread, in nanoseconds. */
uint64_t clock_thread_ns(void);

/* The same as clock_ns() in seconds. */
double clock_s(void);

/* Initialise a condition variable whose waits end by this clock. */
void clock_cond_init(pthread_cond_t *cond);

/*
 * Wait until cond, initialised with clock_cond_init(), is signalled or the clock reaches
 * until_ns; lock is held.  Returns false once the time is reached.  May also wake for no
 * reason, so the caller checks what it waits for in a loop.
 */
bool clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

#endif
