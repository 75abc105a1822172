/* turns.h - what benchmarks share: the median of turns, and plain reading to compare with. */
#ifndef MEMWALL_TESTS_BENCH_TURNS_H
#define MEMWALL_TESTS_BENCH_TURNS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts t. */
static inline double median(double *t, size_t n)
{
    qsort(t, n, sizeof *t, by_size);
    return t[n / 2];
}

typedef uint64_t pair __attribute__((vector_size(16), aligned(1)));

/*
 * Read n bytes as four streams, the fastest way found: with one stream the prefetcher of the
 * CPU does not run far enough ahead, and one thread reads half as much.
 */
static inline uint64_t read_streams(const uint8_t *p, size_t n)
{
    size_t quarter = n / 4 / sizeof(pair) * sizeof(pair);
    const uint8_t *q = p + quarter, *r = q + quarter, *s = r + quarter;
    pair a = { 0 }, b = a, c = a, d = a;

    for (size_t i = 0; i < quarter; i += sizeof(pair)) {
        a ^= *(const pair *)(const void *)(p + i);
        b ^= *(const pair *)(const void *)(q + i);
        c ^= *(const pair *)(const void *)(r + i);
        d ^= *(const pair *)(const void *)(s + i);
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1];
}

#endif
