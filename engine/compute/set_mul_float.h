/*
 * set_mul_float.h - matrix times columns of floats.
 *
 * Order of additions: lane k % VN of a vector adds w[k] * x[k] in rising k with fused
 * multiply-add, and the lanes are folded in halves at the end.  A tile has one such vector
 * per row and column, so tiles of any size give the same bits.
 *
 * Floats are widened as they are loaded, once for all columns of a tile, and multiplied with
 * their scale if the type has scales.  Blocks are decoded
 * to a small buffer, MUL_DEPTH values of TILE_ROWS rows at a time, while the sums of up to
 * WAITING_COLS columns are in memory.
 *
 * Columns are multiplied in groups that fit the second-level cache, each with all rows.  The
 * columns of a group are split evenly among tiles, 8 to 4 and 4: narrow tiles take longer.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_MUL_FLOAT_H
#define MEMWALL_ENGINE_COMPUTE_SET_MUL_FLOAT_H

#include <stdbool.h>

#include "engine/compute/kernel_set.h"
#include "engine/compute/packed.h"
#include "engine/compute/set_tiles.h"

#define MUL_DEPTH    512
#define STREAM_COLS  32 /* neighbouring rows are as fast with more */
#define WAITING_COLS (4 * TILE_COLS)

/* Rows are w_stride bytes apart, columns ldx floats.  The result is y[c * ldy + r]. */
struct product {
    const uint8_t *w;
    size_t w_stride, n_row, n_k;
    const float *x;
    size_t ldx, n_col;
    float *y;
    size_t ldy;
    struct weight_scales scales;       /* of F8_E4M3 */
    const struct packed_block *packed; /* instead of w: its rows from `first` on; else NULL */
    size_t first;
};

/*
 * Prefetch n bytes into the second-level cache.  Several rows are read at a time, and they
 * end before the hardware prefetcher recognises the streams.
 */
INLINE void fetch_ahead(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 64)
        __builtin_prefetch(p + i, 0, 2);
}

/* Prefetch values k .. k + VN - 1 of n_r rows; if they are half a line, of every other row. */
INLINE void fetch_rows_ahead(enum tensor_type type, size_t n_r, const uint8_t *w,
                             size_t w_stride, size_t k)
{
    const size_t bytes = type == TYPE_F32 ? 4 : type == TYPE_F8_E4M3 ? 1 : 2;
    const size_t step = VN * bytes < 64 && n_r % 2 == 0 ? 2 : 1;

    if (step == 2)
        w += k / VN % 2 * w_stride;
    UNROLL
    for (size_t r = 0; r < n_r; r += step)
        __builtin_prefetch(w + r * w_stride + k * bytes, 0, 3);
}

/* acc[r * n_c + c] += w[r][0 .. n) * x[c][0 .. n)
 * Prefetches `ahead` bytes further, if not 0.  unit: of each row, see load_scaled(). */
INLINE void add_scaled_tile(enum tensor_type type, size_t n_r, size_t n_c, const uint8_t *w,
                            size_t w_stride, const float *x, size_t ldx, size_t n, size_t ahead,
                            const vf *unit, vf *acc)
{
    vf xc[TILE_COLS];
    size_t k = 0;

    for (; k + VN <= n; k += VN) {
        if (ahead != 0)
            fetch_rows_ahead(type, n_r, w + ahead, w_stride, k);
        UNROLL
        for (size_t c = 0; c < n_c; c++)
            xc[c] = vf_load(x + c * ldx + k);
        UNROLL
        for (size_t r = 0; r < n_r; r++) {
            vf wr = load_scaled(type, w + r * w_stride, k, unit[r]);

            UNROLL
            for (size_t c = 0; c < n_c; c++)
                acc[r * n_c + c] = vf_fma(wr, xc[c], acc[r * n_c + c]);
        }
    }
    if (k == n)
        return;
    UNROLL
    for (size_t c = 0; c < n_c; c++)
        xc[c] = vf_load_part(x + c * ldx + k, n - k);
    UNROLL
    for (size_t r = 0; r < n_r; r++) {
        vf wr = load_scaled_part(type, w + r * w_stride, k, n - k, unit[r]);

        UNROLL
        for (size_t c = 0; c < n_c; c++)
            acc[r * n_c + c] = vf_fma(wr, xc[c], acc[r * n_c + c]);
    }
}

/* The same of weights without scales. */
INLINE void add_tile(enum tensor_type type, size_t n_r, size_t n_c, const uint8_t *w,
                     size_t w_stride, const float *x, size_t ldx, size_t n, size_t ahead,
                     vf *acc)
{
    vf unit[ROWS_OF_ONE];

    UNROLL
    for (size_t r = 0; r < n_r; r++)
        unit[r] = vf_all(F8_UNIT);
    add_scaled_tile(type, n_r, n_c, w, w_stride, x, ldx, n, ahead, unit, acc);
}

/* n_r rows from r on, n_between rows apart, times n_c columns from c on. */
INLINE void mul_tile(enum tensor_type type, size_t n_r, size_t n_c, const struct product *p,
                     size_t r, size_t n_between, size_t c)
{
    const size_t ahead = n_r > 1 && n_c > 1 ? ROWS_AHEAD : 0;
    const bool is_scaled = type == TYPE_F8_E4M3 && p->scales.w != NULL;
    const uint8_t *w = p->w + r * p->w_stride;
    const float *x = p->x + c * p->ldx;
    vf acc[ROWS_OF_ONE * TILE_COLS], unit[ROWS_OF_ONE];

    UNROLL
    for (size_t i = 0; i < n_r * n_c; i++)
        acc[i] = vf_zero();
    if (!is_scaled)
        add_tile(type, n_r, n_c, w, n_between * p->w_stride, x, p->ldx, p->n_k, ahead, acc);
    for (size_t k = 0; is_scaled && k < p->n_k; k += p->scales.cols) {
        UNROLL
        for (size_t i = 0; i < n_r; i++)
            unit[i] = vf_all(F8_UNIT * weight_scale(&p->scales, r + i * n_between, k));
        add_scaled_tile(type, n_r, n_c, w + k, n_between * p->w_stride, x + k, p->ldx,
                        at_most(p->n_k - k, p->scales.cols), ahead, unit, acc);
    }
    fold_tile(acc, n_r, n_c, p->y + c * p->ldy + r, p->ldy, n_between);
}

/* Add n values of decoded rows to sums[c * TILE_ROWS + r]. */
INLINE void add_waiting(size_t n_r, size_t n_c, const float *w, const float *x, size_t ldx,
                        size_t n, vf *sums)
{
    vf acc[TILE_ROWS * TILE_COLS];

    UNROLL
    for (size_t i = 0; i < n_r * n_c; i++)
        acc[i] = sums[i % n_c * TILE_ROWS + i / n_c];
    add_tile(TYPE_F32, n_r, n_c, (const uint8_t *)w, MUL_DEPTH * sizeof *w, x, ldx, n, 0, acc);
    UNROLL
    for (size_t i = 0; i < n_r * n_c; i++)
        sums[i % n_c * TILE_ROWS + i / n_c] = acc[i];
}

/* Row r of each of n_r parts of `part` rows, times columns from .. to - 1. */
INLINE void mul_row_parts(enum tensor_type type, size_t n_r, const struct product *p, size_t r,
                          size_t part, size_t from, size_t to)
{
#define TILE_OF_TYPE(n_r, n_c, ...) mul_tile(type, n_r, n_c, __VA_ARGS__)
    for (size_t c = from, n_c; c < to; c += n_c) {
        n_c = even_part(to - c, TILE_COLS);
        WITH_COLS(n_c, TILE_OF_TYPE, n_r, p, r, part, c)
    }
#undef TILE_OF_TYPE
}

/*
 * The rows of a tile are long streams, as in set_mul_rows.h.  BF16 from memory, 1536 values a
 * row, two threads: 2 columns are 2.1 times as fast as with neighbouring rows, 4 columns 1.5.
 */
INLINE void mul_floats(enum tensor_type type, const struct product *p)
{
    const size_t n_r = p->n_col == 1 ? ROWS_OF_ONE : TILE_ROWS, part = p->n_row / n_r;
    const bool streams = p->n_col <= STREAM_COLS;

    for (size_t c = 0, n_c; c < p->n_col; c += n_c) {
        n_c = near_cols(p->n_col - c, p->ldx);
        for (size_t r = 0; r < part; r++)
            if (p->n_col == 1)
                mul_tile(type, ROWS_OF_ONE, 1, p, r, part, 0);
            else
                mul_row_parts(type, TILE_ROWS, p, streams ? r : r * n_r, streams ? part : 1, c,
                              c + n_c);
        for (size_t r = part * n_r; r < p->n_row; r++)
            mul_row_parts(type, 1, p, r, 1, c, c + n_c);
    }
}

/* Values k .. k + n - 1 of rows r .. r + n_r - 1. */
INLINE void dequant_rows(enum tensor_type type, size_t n_r, const struct product *p, size_t r,
                         size_t k, size_t n, bool fetches, float *buf)
{
    const uint8_t *w = p->w + r * p->w_stride + k / SPAN * traits_of(type).bytes;

    /* A row of keys may end within a block; the rest of the block is zeros. */
    for (size_t i = 0; i < n_r; i++)
        set_dequant(type, w + i * p->w_stride, buf + i * MUL_DEPTH, (n + 31) / 32 * 32);
    for (size_t i = 0; i < n_r && fetches; i++)
        fetch_ahead(w + (i + 2 * n_r) * p->w_stride, MUL_DEPTH / SPAN * traits_of(type).bytes);
}

/* The same, packed.  With prefetching, 8 and 12 columns take 0.9 times as long (AVX2). */
INLINE void unpack_rows(size_t n_r, const struct product *p, size_t r, size_t k, size_t n,
                        bool fetches, float *buf)
{
    const struct packed_block *b = p->packed;
    const uint8_t *next = b->groups + (p->first + r + n_r) * b->stride + packed_stride(k);

    for (size_t i = 0; i < n_r; i++) {
        if (fetches)
            fetch_ahead(next + i * b->stride, packed_stride(n));
        set_unpack(b, p->first + r + i, k, n, buf + i * MUL_DEPTH);
    }
}

/* Rows r .. r + n_r - 1 and at most WAITING_COLS columns from c on. */
INLINE void mul_widened(enum tensor_type type, size_t n_r, const struct product *p, size_t r,
                        size_t c, size_t n_c)
{
    vf sums[WAITING_COLS * TILE_ROWS];
    float buf[TILE_ROWS * MUL_DEPTH];

    for (size_t i = 0; i < n_c * TILE_ROWS; i++)
        sums[i] = vf_zero();
    for (size_t k = 0; k < p->n_k; k += MUL_DEPTH) {
        size_t n = at_most(p->n_k - k, MUL_DEPTH);

        if (p->packed != NULL)
            unpack_rows(n_r, p, r, k, n, c == 0, buf);
        else
            dequant_rows(type, n_r, p, r, k, n, c == 0, buf);
        for (size_t j = 0; j < n_c; j += TILE_COLS)
            WITH_COLS(at_most(n_c - j, TILE_COLS), add_waiting, n_r, buf,
                      p->x + (c + j) * p->ldx + k, p->ldx, n, sums + j * TILE_ROWS)
    }
    for (size_t j = 0; j < n_c; j++)
        for (size_t i = 0; i < n_r; i++)
            p->y[(c + j) * p->ldy + r + i] = vf_sum(sums[j * TILE_ROWS + i]);
}

static __attribute__((unused)) void mul_blocks(enum tensor_type type, const struct product *p)
{
    for (size_t c = 0; c < p->n_col; c += WAITING_COLS) {
        size_t n_c = at_most(p->n_col - c, WAITING_COLS);
        size_t r = 0;

        for (; r + TILE_ROWS <= p->n_row; r += TILE_ROWS)
            mul_widened(type, TILE_ROWS, p, r, c, n_c);
        for (; r < p->n_row; r++)
            mul_widened(type, 1, p, r, c, n_c);
    }
}

#endif
