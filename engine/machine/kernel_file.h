/*
 * kernel_file.h - small text files of /proc and /sys, read again and again.
 *
 * A file is opened once, read with pread from its start and parsed in the caller's buffer,
 * so reading allocates nothing.  All paths begin with a root, which is "" for the real
 * system; tests use their own tree.
 */
#ifndef MEMWALL_ENGINE_MACHINE_KERNEL_FILE_H
#define MEMWALL_ENGINE_MACHINE_KERNEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/machine/os_value.h"

#define KERNEL_FILE_MAX 16384 /* bytes read of a file; vmstat is the longest one */
#define KERNEL_PATH_MAX 1024

/* Open a file read-only and close-on-exec.  Returns -1 if it cannot be opened or if root and
 * path are too long. */
int kernel_file_open(const char *root, const char *path);
/* The same for a name inside a folder. */
int kernel_file_open_in(const char *root, const char *folder, const char *name);

/* Close fd unless it is -1. */
void kernel_file_close(int fd);

/* Fill buf, cut the text if it does not fit, and end it with NUL.  Returns the length, or -1
 * if the file cannot be read. */
long kernel_file_read(int fd, char *buf, size_t n);

/* Open a file, read at most n - 1 bytes as above, and close it. */
long kernel_file_slurp(const char *root, const char *path, char *buf, size_t n);

/*
 * Find the number that follows key at the start of a line: "VmRSS:   1764 kB" (multiplied
 * by 1024 because of kB) or "pgmajfault 12".  Returns false if there is none.
 */
bool kernel_file_field(const char *text, const char *key, uint64_t *value);

/* Read a file that contains one number, or "max" for UINT64_MAX. */
bool kernel_file_number(int fd, uint64_t *value);

/* Make a valid value, and an invalid one with a static reason. */
struct mw_os_value os_value(uint64_t value);
struct mw_os_value os_unknown(const char *why_not);

#endif
