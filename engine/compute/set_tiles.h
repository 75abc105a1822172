/*
 * set_tiles.h - tiles of rows and columns: their sizes, and the sums of their lanes.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_TILES_H
#define MEMWALL_ENGINE_COMPUTE_SET_TILES_H

#include "engine/compute/set_unpack.h"

#define ROWS_OF_ONE  4                   /* rows with one column, or few */
#define COLUMN_CACHE ((size_t)448 << 10) /* bytes of columns per group */

/*
 * How far ahead streams are prefetched, in bytes, into the first-level cache.  Packed, from
 * memory, two threads, AVX-512: 1, 4 and 8 columns become 1.1, 1.4 and 1.1 times as fast.
 * 768 and 3072 bytes gain less.  SSE4.1 is limited by arithmetic and gains nothing.
 */
#define ROWS_AHEAD (VN > 4 ? 1536 : 0)

/* fn(n_r, n_c, ...) with n_c <= TILE_COLS as a constant */
#if TILE_COLS == 3
#define WITH_COLS(n_c, fn, n_r, ...)                                                           \
    switch (n_c) {                                                                             \
    case 1: fn(n_r, 1, __VA_ARGS__); break;                                                    \
    case 2: fn(n_r, 2, __VA_ARGS__); break;                                                    \
    default: fn(n_r, 3, __VA_ARGS__); break;                                                   \
    }
#else
#define WITH_COLS(n_c, fn, n_r, ...)                                                           \
    switch (n_c) {                                                                             \
    case 1: fn(n_r, 1, __VA_ARGS__); break;                                                    \
    case 2: fn(n_r, 2, __VA_ARGS__); break;                                                    \
    case 3: fn(n_r, 3, __VA_ARGS__); break;                                                    \
    case 4: fn(n_r, 4, __VA_ARGS__); break;                                                    \
    case 5: fn(n_r, 5, __VA_ARGS__); break;                                                    \
    default: fn(n_r, 6, __VA_ARGS__); break;                                                   \
    }
#endif

INLINE size_t at_most(size_t n, size_t limit)
{
    return n < limit ? n : limit;
}

/* The first part of n columns in even parts of at most `most`; 0 without columns. */
INLINE size_t even_part(size_t n, size_t most)
{
    const size_t n_part = (n + most - 1) / most;

    return n_part > 1 ? (n + n_part - 1) / n_part : n;
}

/* How many of n_col columns are multiplied with all rows first: those that fit the
 * second-level cache. */
INLINE size_t near_cols(size_t n_col, size_t ldx)
{
    size_t n = COLUMN_CACHE / (ldx * sizeof(float) + 1);

    return even_part(n_col, n < TILE_COLS ? TILE_COLS : n);
}

/* y[c * ldy + r * n_between] = the sum of the lanes of acc[r * n_c + c] */
INLINE void fold_tile(const vf *acc, size_t n_r, size_t n_c, float *y, size_t ldy,
                      size_t n_between)
{
    size_t from = 0;

#ifdef HAS_SUM_4X4
    if (n_r == 4)
        UNROLL
    for (; from + 2 < n_c; from += 4) {
        const size_t last = at_most(n_c - from, 4) - 1;
        float t[16];
        vf a[16];

        UNROLL
        for (size_t i = 0; i < 16; i++)
            a[i] = acc[i / 4 * n_c + from + at_most(i % 4, last)];
        vf_sum_4x4(a, 4, t, 4);
        UNROLL
        for (size_t i = 0; i <= last; i++)
            UNROLL
        for (size_t r = 0; r < 4; r++)
            y[(from + i) * ldy + r * n_between] = t[4 * i + r];
    }
#endif
    UNROLL
    for (size_t r = 0; r < n_r; r++)
        UNROLL
    for (size_t c = from; c < n_c; c++)
        y[c * ldy + r * n_between] = vf_sum(acc[r * n_c + c]);
}

#endif
