/*
 * units.h - sizes as people type and read them.  One rule everywhere: KiB, MiB,
 * GiB are powers of 1024; K, M, G typed by a person mean the same.
 */
#ifndef MEMWALL_ENGINE_BASE_UNITS_H
#define MEMWALL_ENGINE_BASE_UNITS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/*
 * "512M", "1.5G", "2GiB", "300000000", or "50%" of whole (bytes; 0 refuses percent).
 * Returns 0 with *bytes, or -1 with *e (ERR_ARGUMENT) and *bytes untouched.
 */
int units_parse_size(const char *text, uint64_t whole, uint64_t *bytes, struct err *e);

/* "1.46 GiB", "512 MiB", "17 B": at most 10 characters.  Returns buf. */
char *units_size(char *buf, size_t n, uint64_t bytes);

/* Round up to a multiple of a power of two. */
static inline uint64_t align_up(uint64_t n, uint64_t a)
{
    return (n + a - 1) & ~(a - 1);
}

static inline uint64_t align_down(uint64_t n, uint64_t a)
{
    return n & ~(a - 1);
}

#endif
