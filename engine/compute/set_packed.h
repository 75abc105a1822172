/*
 * set_packed.h - products of packed BF16 weights (packed.h).
 *
 * With one column, weights are widened in registers and added in the order of
 * set_mul_float.h: lane k % VN in rising k.  With more, they are widened to floats once for
 * all columns.  Both give the bits of plain BF16.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_PACKED_H
#define MEMWALL_ENGINE_COMPUTE_SET_PACKED_H

#include "engine/compute/packed.h"
#include "engine/compute/set_unpack.h"

#define ROWS_OF_ONE  4         /* rows with one column */
#define HALF_VECTORS (32 / VN) /* of half a group */

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

static NOINLINE void widen_raw(const uint8_t *groups, const uint32_t *rest, size_t n, float *dst)
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

/* acc += the n values of a span with patches * x */
static NOINLINE vf add_patched(const struct packed_block *b, uint32_t head, const uint8_t *p,
                               size_t n, const float *x, vf acc)
{
    float w[PACKED_SPAN];

    widen_patched(b, head, p, n, w);
    for (size_t k = 0; k < n; k += VN)
        acc = vf_fma(vf_load(w + k), vf_load(x + k), acc);
    return acc;
}

/* acc[r] += n values of a span of n_r rows * x; the rows are `step` bytes apart. */
INLINE void add_packed(size_t n_r, const vp *exponents, const uint8_t *p, size_t step, size_t n,
                       const float *x, vf *acc)
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
            acc[r] = vf_fma(w[v], vf_load(x + k + 32 * h + v * VN), acc[r]);
    }
}

/* n_r rows from r on, n_between rows apart, times one column. */
INLINE void mul_packed_rows(size_t n_r, const struct packed_block *b, size_t r,
                            size_t n_between, const float *x, float *y)
{
    const uint32_t *heads = b->heads + r * b->n_span;
    const uint8_t *p = b->groups + r * b->stride;
    const size_t step = n_between * b->stride, head_step = n_between * b->n_span;
    vf acc[ROWS_OF_ONE];

    UNROLL
    for (size_t i = 0; i < n_r; i++)
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
            add_packed(n_r, exponents, p, step, n, x + k, acc);
            continue;
        }
        UNROLL
        for (size_t i = 0; i < n_r; i++)
            if (heads[i * head_step] >> 8 != 0)
                acc[i] = add_patched(b, heads[i * head_step], p + i * step, n, x + k, acc[i]);
            else
                add_packed(1, &exponents[i], p + i * step, 0, n, x + k, &acc[i]);
    }
    UNROLL
    for (size_t i = 0; i < n_r; i++)
        y[r + i * n_between] = vf_sum(acc[i]);
}

/* Rows from .. to - 1 of a packed block times one column, in ROWS_OF_ONE long streams. */
static void mul_packed_column(const struct packed_block *b, size_t from, size_t to,
                              const float *x, float *y)
{
    const size_t part = (to - from) / ROWS_OF_ONE;

    for (size_t r = from; r < from + part; r++)
        mul_packed_rows(ROWS_OF_ONE, b, r, part, x, y);
    for (size_t r = from + part * ROWS_OF_ONE; r < to; r++)
        mul_packed_rows(1, b, r, 1, x, y);
}

#endif
