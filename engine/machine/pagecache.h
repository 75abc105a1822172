/*
 * pagecache.h - how much of a file is in the page cache.
 *
 * Uses cachestat(2) if Linux has it (6.5), else mincore(2) on windows of a mapping.  For a
 * process that neither owns the file nor may write it, mincore reports every page as resident
 * since Linux 5.2, and cachestat fails since 6.14.  Permission is therefore checked first: the
 * result is then unknown instead of wrong.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PAGECACHE_H
#define MEMWALL_ENGINE_MACHINE_PAGECACHE_H

#include <stdint.h>

#include "engine/machine/os_value.h"

/* Returns the bytes of an open file that are cached, in whole pages. */
struct mw_os_value pagecache_bytes(int fd, uint64_t size);

/* The same for a part of the file; offset is a multiple of the page size. */
struct mw_os_value pagecache_bytes_at(int fd, uint64_t offset, uint64_t bytes);

/* The two methods alone. */
struct mw_os_value pagecache_by_cachestat(int fd, uint64_t offset, uint64_t bytes);
struct mw_os_value pagecache_by_mincore(int fd, uint64_t offset, uint64_t size);

#endif
