/*
 * os_value.h - a figure that Linux reports, or the reason why it is not available.
 */
#ifndef MEMWALL_ENGINE_MACHINE_OS_VALUE_H
#define MEMWALL_ENGINE_MACHINE_OS_VALUE_H

#include <stdint.h>

struct mw_os_value {
    uint64_t value;
    const char *why_not; /* NULL if value is valid, else a short static reason */
};

#define MW_MAX_THREAD 128 /* threads whose CPU time is read */

/* The CPU time of one thread. */
struct mw_thread {
    char name[16];
    double busy; /* share of the time between the last two readings, 0 to 1 */
};

#endif
