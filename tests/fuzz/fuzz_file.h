/*
 * fuzz_file.h - the bytes of an input as an open file, which is rewritten for each input.
 */
#ifndef MEMWALL_TESTS_FUZZ_FUZZ_FILE_H
#define MEMWALL_TESTS_FUZZ_FUZZ_FILE_H

#include <sys/mman.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* Returns one descriptor for all inputs; -1: the system has none. */
static inline int fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;

    if (fd < 0)
        fd = memfd_create("input", MFD_CLOEXEC);
    /* Cut after writing: the pages of the last input are used again. */
    if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size) != 0)
        return -1;
    return fd;
}

#endif
