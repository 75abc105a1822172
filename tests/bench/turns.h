/* turns.h - the parts that benchmarks share: the median of turns, plain reading to compare
 * with, passes without their logits, and the end after an error. */
#ifndef MEMWALL_TESTS_BENCH_TURNS_H
#define MEMWALL_TESTS_BENCH_TURNS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/base/err.h"

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

/* For mw_session_eval(). */
static inline int ignore_row(void *ctx, uint32_t pos, const float *logits, struct err *e)
{
    (void)ctx;
    (void)pos;
    (void)logits;
    (void)e;
    return 0;
}

/* Returns the exit status. */
static inline int bench_fail(const char *name, const struct err *e)
{
    char text[600];

    err_text(e, text, sizeof text);
    fprintf(stderr, "%s: %s\n", name, text);
    return 1;
}

#endif
