/*
 * checksum.h - a fast sum that finds damaged bytes.
 *
 * It detects every change of up to eight neighbouring bytes, and any other change but for one
 * in about 2^64.  It does not protect against a person who changes a file on purpose: readers
 * check the values, too.
 */
#ifndef MEMWALL_ENGINE_BASE_CHECKSUM_H
#define MEMWALL_ENGINE_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* The sum of n bytes, the same in every run on machines with the same byte order. */
uint64_t checksum(const void *bytes, size_t n);

#endif
