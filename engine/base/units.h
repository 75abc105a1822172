/*
 * units.h - sizes, rates and numbers as people type and read them.  KiB, MiB and GiB are
 * powers of 1024 everywhere; K, M and G of a size typed by the user mean the same.  Rates are
 * in MB/s and GB/s, powers of 1000, as on the box of a disk.
 */
#ifndef MEMWALL_ENGINE_BASE_UNITS_H
#define MEMWALL_ENGINE_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/*
 * Parse "512M", "1.5G", "2GiB", "300000000", or "50%" of whole bytes; whole 0 refuses
 * percentages.  Returns 0 with *bytes, or -1 with *e (ERR_ARGUMENT) and *bytes unchanged.
 */
int units_parse_size(const char *text, uint64_t whole, uint64_t *bytes, struct err *e);

/* Parse a number of bytes per second: "20M" and "20 MB/s" are 20 million, "20 MiB/s" is a
 * little more.  Returns false and leaves *bytes unchanged for any other text. */
bool units_parse_rate(const char *text, uint64_t *bytes);

/*
 * Parse an integer from low to high: decimal digits only, or with k_allowed "32k" for
 * 32 * 1024.  Returns false and leaves *out unchanged for any other text or number.
 */
bool units_parse_whole(const char *text, bool k_allowed, uint64_t low, uint64_t high,
                       uint64_t *out);

/* Parse a finite decimal number from low to high: "0.8", "1e-3".  Returns false and leaves
 * *out unchanged for anything else. */
bool units_parse_number(const char *text, double low, double high, double *out);

/* Write "1.46 GiB", "512 MiB", "17 B": at most 10 characters.  Returns buf. */
char *units_size(char *buf, size_t n, uint64_t bytes);

/* The same, but never more, or never less, than there is: a budget that is too small is always
 * below what is needed.  units_parse_size() takes both. */
char *units_size_down(char *buf, size_t n, uint64_t bytes);
char *units_size_up(char *buf, size_t n, uint64_t bytes);

/* Write a number of bytes in the unit of another size, which units_size() wrote, and with its
 * digits: "0.40" beside "1.12 GiB".  Returns buf. */
char *units_size_like(char *buf, size_t n, uint64_t bytes, const char *size);

/* Write a budget as --memory takes it, with the figures of units_size(): "600M", "1.15G".  If it
 * has more figures than those, it is in MiB, rounded up: "1472M".  Returns buf. */
char *units_option(char *buf, size_t n, uint64_t bytes);

/* Write "23.4 MB/s", "1.5 GB/s": at most 15 characters.  Returns buf. */
char *units_rate(char *buf, size_t n, double bytes_s);

/* Write a ratio as a change: "+12 %", "-3 %", and "0 %" for what rounds to it.  Returns buf. */
char *units_change(char *buf, size_t n, double ratio);

/* Round a prediction to two digits: 38168 to 38000, 1.894 to 1.9. */
double units_two_digits(double value);
/* The digits after the point that show two digits of it. */
int units_two_decimals(double value);

/* Round up to a multiple of a power of two. */
static inline uint64_t align_up(uint64_t n, uint64_t a)
{
    return (n + a - 1) & ~(a - 1);
}

static inline uint64_t align_down(uint64_t n, uint64_t a)
{
    return n & ~(a - 1);
}

/* A huge page, where pages have 4 KiB. */
#define HUGE_BYTES (2 * MIB)

/*
 * The bytes that a buffer for direct reads should have, so that it has huge pages to its
 * end.  A read into small pages has a segment for each of them.  In a ring of 3.9 MiB, half of
 * the slots were in small pages, and a virtual disk gave 1.9 GB/s instead of 3.5.
 */
static inline uint64_t whole_huge_pages(uint64_t bytes)
{
    uint64_t rest = bytes % HUGE_BYTES;

    if (bytes < HUGE_BYTES || rest == 0 || bytes > UINT64_MAX - HUGE_BYTES)
        return bytes;
    return bytes - rest + HUGE_BYTES;
}

#endif
