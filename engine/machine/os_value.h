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

#endif
