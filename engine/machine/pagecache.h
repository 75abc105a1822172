/*
 * pagecache.h - how much of a file lies in the page cache.
 *
 * cachestat(2) where the kernel has it (6.5), else mincore(2) over windows of a mapping.
 * Since 5.2 mincore does not refuse who may neither own nor write the file but calls
 * every page resident, and cachestat refuses since 6.14: so permission is checked first
 * and the answer is then "not known" and never a wrong number.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PAGECACHE_H
#define MEMWALL_ENGINE_MACHINE_PAGECACHE_H

#include <stdint.h>

#include "engine/machine/os_value.h"

/* Bytes of the file behind fd that are cached, in whole pages. */
struct mw_os_value pagecache_bytes(int fd, uint64_t size);

/* The two ways, for tests and for kernels that have only the second. */
struct mw_os_value pagecache_by_cachestat(int fd);
struct mw_os_value pagecache_by_mincore(int fd, uint64_t size);

#endif
