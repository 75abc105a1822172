#include "config.h"

#include "engine/base/clock.h"

#include <time.h>

#define NS_PER_S 1000000000u

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double clock_s(void)
{
    return (double)clock_ns() / NS_PER_S;
}

void clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

bool clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
    struct timespec until = { .tv_sec = (time_t)(until_ns / NS_PER_S),
                              .tv_nsec = (long)(until_ns % NS_PER_S) };

    return pthread_cond_timedwait(cond, lock, &until) == 0;
}
