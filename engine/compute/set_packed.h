/*
 * set_packed.h - products of packed BF16 weights (packed.h).
 *
 * Up to PACKED_COLS columns, weights are widened in registers, for TILE_COLS columns at a time,
 * and added in the order of set_mul_float.h: lane k % VN in rising k.  With more columns,
 * set_mul_float.h widens them to floats in memory.  Both give the bits of plain BF16.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_PACKED_H
#define MEMWALL_ENGINE_COMPUTE_SET_PACKED_H

#include "engine/compute/packed.h"
#include "engine/compute/set_unpack.h"

#define ROWS_OF_ONE  4               /* rows with one column, or few */
#define PACKED_COLS  (2 * TILE_COLS) /* few columns */
#define HALF_VECTORS (32 / VN)       /* of half a group */

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

/* Half h of the group at p, as floats in rising k. */
INLINE void widen_half(vp exponents, const uint8_t *p, size_t h, vf *w)
{
    vp_widen(exponents, p + 32 * h, p + 64, h == 1, w);
}

/* Values of a span without patches. */
INLINE void widen_groups(uint32_t head, const uint8_t *p, size_t n, float *dst)
{
    vp exponents = vp_exponents((uint8_t)head);
    vf w[HALF_VECTORS];

    for (size_t i = 0; i < n; i += 32, p += i % PACKED_GROUP == 0 ? PACKED_BYTES : 0) {
        widen_half(exponents, p, i / 32 % 2, w);
        UNROLL
        for (size_t v = 0; v < HALF_VECTORS; v++)
            vf_store(dst + i + v * VN, w[v]);
    }
}

static NOINLINE void widen_raw(const uint8_t *groups, const uint32_t *rest, size_t n,
                               float *dst)
{
    uint16_t w[PACKED_SPAN];

    memcpy(w, groups, packed_stride(n));
    memcpy((uint8_t *)w + packed_stride(n), rest, n * sizeof *w - packed_stride(n));
    for (size_t i = 0; i < n; i += VN)
        vf_store(dst + i, vf_load_bf16(w + i));
}

/* Values of a span with patches, or raw. */
static NOINLINE void widen_patched(const struct packed_block *b, uint32_t head,
                                   const uint8_t *p, size_t n, float *dst)
{
    const uint32_t *patch = b->patches + (head >> 9) - 1;

    if (head & PACKED_RAW) {
        widen_raw(p, patch, n, dst);
        return;
    }
    widen_groups(head, p, n, dst);
    for (uint32_t i = 1; i <= patch[0]; i++) {
        uint32_t bits = patch[i] << 16;

        memcpy(dst + (patch[i] >> 16), &bits, sizeof bits);
    }
}

/* Values k .. k + n - 1 of a row; k is a multiple of PACKED_SPAN, n of PACKED_GROUP. */
static void set_unpack(const struct packed_block *b, size_t row, size_t k, size_t n, float *dst)
{
    const uint32_t *head = b->heads + row * b->n_span + k / PACKED_SPAN;
    const uint8_t *p = b->groups + row * b->stride + packed_stride(k);

    for (size_t i = 0; i < n; i += PACKED_SPAN, head++, p += packed_stride(PACKED_SPAN)) {
        size_t now = n - i < PACKED_SPAN ? n - i : PACKED_SPAN;

        if (*head >> 8 == 0)
            widen_groups(*head, p, now, dst + i);
        else
            widen_patched(b, *head, p, now, dst + i);
    }
}

/* sums[c] += the n values of a span with patches * x[c] */
static NOINLINE void add_patched(const struct packed_block *b, uint32_t head, const uint8_t *p,
                                 size_t n, size_t n_c, const float *x, size_t ldx, vf *sums)
{
    float w[PACKED_SPAN];

    widen_patched(b, head, p, n, w);
    for (size_t c = 0; c < n_c; c++)
        for (size_t k = 0; k < n; k += VN)
            sums[c] = vf_fma(vf_load(w + k), vf_load(x + c * ldx + k), sums[c]);
}

/* acc[r * n_c + c] += n values of a span of n_r rows, `step` bytes apart, * x[c] */
INLINE void add_packed(size_t n_r, size_t n_c, const vp *exponents, const uint8_t *p,
                       size_t step, size_t n, const float *x, size_t ldx, vf *acc)
{
    for (size_t k = 0; k < n; k += PACKED_GROUP, p += PACKED_BYTES)
        UNROLL
    for (size_t h = 0; h < 2; h++)
        UNROLL
    for (size_t r = 0; r < n_r; r++) {
        vf w[HALF_VECTORS];

        widen_half(exponents[r], p + r * step, h, w);
        UNROLL
        for (size_t v = 0; v < HALF_VECTORS; v++)
            UNROLL
        for (size_t c = 0; c < n_c; c++)
            acc[r * n_c + c] =
                vf_fma(w[v], vf_load(x + c * ldx + k + 32 * h + v * VN), acc[r * n_c + c]);
    }
}

/* The same for one row, whose span may have patches.  add_patched() gets a copy of the sums:
 * with a pointer to acc, the compiler would keep acc in memory. */
INLINE void add_any(size_t n_c, const struct packed_block *b, uint32_t head, vp exponents,
                    const uint8_t *p, size_t n, const float *x, size_t ldx, vf *acc)
{
    vf sums[TILE_COLS];

    if (head >> 8 == 0) {
        add_packed(1, n_c, &exponents, p, 0, n, x, ldx, acc);
        return;
    }
    UNROLL
    for (size_t c = 0; c < n_c; c++)
        sums[c] = acc[c];
    add_patched(b, head, p, n, n_c, x, ldx, sums);
    UNROLL
    for (size_t c = 0; c < n_c; c++)
        acc[c] = sums[c];
}

/* n_r rows from r on, n_between rows apart, times n_c columns. */
INLINE void mul_packed_tile(size_t n_r, size_t n_c, const struct packed_block *b, size_t r,
                            size_t n_between, const float *x, size_t ldx, float *y, size_t ldy)
{
    const uint32_t *heads = b->heads + r * b->n_span;
    const uint8_t *p = b->groups + r * b->stride;
    const size_t step = n_between * b->stride, head_step = n_between * b->n_span;
    vf acc[ROWS_OF_ONE * TILE_COLS];

    UNROLL
    for (size_t i = 0; i < n_r * n_c; i++)
        acc[i] = vf_zero();
    for (size_t k = 0; k < b->n_k; k += PACKED_SPAN, heads++, p += packed_stride(PACKED_SPAN)) {
        size_t n = b->n_k - k < PACKED_SPAN ? b->n_k - k : PACKED_SPAN;
        uint32_t any = 0;
        vp exponents[ROWS_OF_ONE];

        UNROLL
        for (size_t i = 0; i < n_r; i++) {
            any |= heads[i * head_step];
            exponents[i] = vp_exponents((uint8_t)heads[i * head_step]);
        }
        if (any >> 8 == 0) {
            add_packed(n_r, n_c, exponents, p, step, n, x + k, ldx, acc);
            continue;
        }
        UNROLL
        for (size_t i = 0; i < n_r; i++)
            add_any(n_c, b, heads[i * head_step], exponents[i], p + i * step, n, x + k, ldx,
                    acc + i * n_c);
    }
    UNROLL
    for (size_t i = 0; i < n_r; i++)
        UNROLL
    for (size_t c = 0; c < n_c; c++)
        y[c * ldy + r + i * n_between] = vf_sum(acc[i * n_c + c]);
}

/* Rows from .. to - 1 times n_col columns, in ROWS_OF_ONE long streams as in set_mul_rows.h. */
static void mul_packed_few(const struct packed_block *b, size_t from, size_t to, const float *x,
                           size_t ldx, size_t n_col, float *y, size_t ldy)
{
    const size_t part = (to - from) / ROWS_OF_ONE;

    for (size_t r = from; r < from + part; r++)
        for (size_t c = 0; c < n_col; c += TILE_COLS)
            WITH_COLS(at_most(n_col - c, TILE_COLS), mul_packed_tile, ROWS_OF_ONE, b, r, part,
                      x + c * ldx, ldx, y + c * ldy, ldy)
    for (size_t r = from + part * ROWS_OF_ONE; r < to; r++)
        for (size_t c = 0; c < n_col; c += TILE_COLS)
            WITH_COLS(at_most(n_col - c, TILE_COLS), mul_packed_tile, 1, b, r, 1, x + c * ldx,
                      ldx, y + c * ldy, ldy)
}

#endif
