/*
 * program.h - the files that this program consists of: its own and those of its libraries.
 */
#ifndef MEMWALL_ENGINE_MACHINE_PROGRAM_H
#define MEMWALL_ENGINE_MACHINE_PROGRAM_H

#include <stdint.h>

/*
 * Returns how many bytes of page cache the program's own file and its shared libraries can
 * take at most, in whole pages.  A first start reads them from disk and is charged for every
 * page that the kernel reads, with all that it reads ahead.  Read-ahead depends on the device
 * and may bring in a whole file, so each file counts with its whole size.  The result is the
 * same whether or not the pages are cached now.  It does not need /proc.
 */
uint64_t program_file_bytes(void);

#endif
