/*
 * cpu_cache.h - memory that no cache of the processors holds, for measuring.
 *
 * A buffer that was just read is still in the last-level cache if it fits there, and some
 * servers have a gigabyte of it.  A probe of memory drops its buffer from the caches first.
 */
#ifndef MEMWALL_ENGINE_BASE_CPU_CACHE_H
#define MEMWALL_ENGINE_BASE_CPU_CACHE_H

#include <stdbool.h>
#include <stddef.h>

/* Write these bytes back to memory and drop them from the caches of all processors.  Their values
 * stay the same.  Takes about half as long as reading them.  Returns false, having done nothing,
 * where a program cannot. */
bool cpu_cache_drop(const void *p, size_t n);

#endif
