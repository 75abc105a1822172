/*
 * os_value.h - a figure of the kernel, or the reason why there is none.
 */
#ifndef MEMWALL_ENGINE_MACHINE_OS_VALUE_H
#define MEMWALL_ENGINE_MACHINE_OS_VALUE_H

#include <stdint.h>

struct mw_os_value {
    uint64_t value;
    const char *why_not; /* NULL: valid; else a short static reason */
};

#endif
