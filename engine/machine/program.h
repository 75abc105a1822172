/*
 * program.h - the files of this program and of its shared libraries.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PROGRAM_H
#define MEMWALL_ENGINE_MACHINE_PROGRAM_H

#include <stdint.h>

/*
 * Returns the maximum page cache of the program's file and its shared libraries, in bytes and
 * whole pages.  The first start reads them from disk and is charged for every page that Linux
 * reads, including read-ahead.  Read-ahead depends on the device and may read a whole file, so
 * the whole size of each file counts.  The result does not depend on the pages that are cached
 * now.  Works without /proc.
 */
uint64_t program_file_bytes(void);

#endif
