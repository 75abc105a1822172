/*
 * kernel_file.h - small text files of /proc and /sys, read again and again.
 *
 * Opened once, read with pread from the start, parsed in the caller's buffer: nothing is
 * allocated per reading.  All paths go through a root ("" for the real system), so that
 * tests read trees of their own.
 */
#ifndef MEMWALL_ENGINE_MACHINE_KERNEL_FILE_H
#define MEMWALL_ENGINE_MACHINE_KERNEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/machine/os_value.h"

#define KERNEL_FILE_MAX 16384 /* bytes read of a file; the longest here is vmstat */
#define KERNEL_PATH_MAX 1024

/* Read-only, close on exec.  -1 if it cannot be opened, or if root and path are too long. */
int kernel_file_open(const char *root, const char *path);
/* The same for a name inside a folder. */
int kernel_file_open_in(const char *root, const char *folder, const char *name);

/* Close it if it was opened. */
void kernel_file_close(int fd);

/* Fill buf and end it with NUL; what does not fit is left out.  Returns the length, or -1
 * (closed file, unreadable now). */
long kernel_file_read(int fd, char *buf, size_t n);

/* All of a file whose size is not bounded by us, at most n - 1 bytes, opened for this. */
long kernel_file_slurp(const char *root, const char *path, char *buf, size_t n);

/*
 * The number behind key at the start of a line: "VmRSS:   1764 kB" (times 1024 with kB)
 * or "pgmajfault 12".  false if there is none.
 */
bool kernel_file_field(const char *text, const char *key, uint64_t *value);

/* A file that is one number, or "max": UINT64_MAX. */
bool kernel_file_number(int fd, uint64_t *value);

/* Valid, and not valid with a static reason. */
struct mw_os_value os_value(uint64_t value);
struct mw_os_value os_unknown(const char *why_not);

#endif
