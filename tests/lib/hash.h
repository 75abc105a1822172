/*
 * hash.h - one number for a row of values, to compare rows without keeping them.
 */
#ifndef MEMWALL_TESTS_LIB_HASH_H
#define MEMWALL_TESTS_LIB_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t hash_of(const float *x, size_t n)
{
    const unsigned char *byte = (const unsigned char *)x;
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < n * sizeof *x; i++)
        h = (h ^ byte[i]) * 0x100000001b3u;
    return h;
}

#endif
