/*
 * set_packed.h - products of packed BF16 weights (packed.h).  set_mul_float.c includes it.
 *
 * Up to PACKED_COLS columns, weights are widened in registers, again for each TILE_COLS of
 * them, and added in the order of set_mul_float.h: lane k % VN in rising k.  With more
 * columns, set_mul_float.h widens them to floats in memory.  Both give the bits of plain BF16.
 *
 * Of normal weights, one span in 50 has patches, so 8 % of the spans of four rows.  Only the
 * groups with patches are widened to memory, where the patches are put in.  With whole spans
 * in memory, 4 and 6 columns took 1.2 and 1.3 times as long from the cache.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_PACKED_H
#define MEMWALL_ENGINE_COMPUTE_SET_PACKED_H

#include "engine/compute/packed.h"
#include "engine/compute/set_mul_float.h"

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
void set_unpack(const struct packed_block *b, size_t row, size_t k, size_t n, float *dst)
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

/* Rows that are multiplied together: the span that begins at p, and its heads. */
struct packed_rows {
    const uint32_t *heads, *patches;
    size_t head_step; /* from row to row */
    const uint8_t *p;
    size_t step;
    size_t n; /* weights of the span */
};

/* Bit g: group g of a row has patches, or is raw. */
static NOINLINE uint32_t patched_groups(const struct packed_rows *s, size_t n_r)
{
    const uint32_t all = (1u << s->n / PACKED_GROUP) - 1;
    uint32_t bits = 0;

    for (size_t r = 0; r < n_r; r++) {
        uint32_t head = s->heads[r * s->head_step];

        if (head >> 8 == 0)
            continue;
        if (head & PACKED_RAW)
            return all;

        const uint32_t *patch = s->patches + (head >> 9) - 1;

        for (uint32_t i = 1; i <= patch[0]; i++)
            bits |= 1u << (patch[i] >> 16) / PACKED_GROUP;
    }
    return bits;
}

/* w[r][0 .. PACKED_GROUP) = group g of the rows, with patches */
static NOINLINE void widen_rows(const struct packed_rows *s, size_t n_r, size_t g, float *w)
{
    for (size_t r = 0; r < n_r; r++, w += PACKED_GROUP) {
        uint32_t head = s->heads[r * s->head_step];
        const uint8_t *p = s->p + r * s->step;

        widen_groups(head, p + g * PACKED_BYTES, PACKED_GROUP, w);
        if (head >> 8 == 0)
            continue;

        const uint32_t *patch = s->patches + (head >> 9) - 1;

        if (head & PACKED_RAW) {
            float span[PACKED_SPAN];

            widen_raw(p, patch, s->n, span);
            memcpy(w, span + g * PACKED_GROUP, PACKED_GROUP * sizeof *w);
            continue;
        }
        for (uint32_t i = 1; i <= patch[0]; i++)
            if ((patch[i] >> 16) / PACKED_GROUP == g) {
                uint32_t bits = patch[i] << 16;

                memcpy(w + (patch[i] >> 16) % PACKED_GROUP, &bits, sizeof bits);
            }
    }
}

/* acc[r * n_c + c] += group g, which has patches, * x[c] */
INLINE void add_patched(const struct packed_rows *s, size_t n_r, size_t n_c, size_t g,
                        const float *x, size_t ldx, vf *acc)
{
    float w[ROWS_OF_ONE * PACKED_GROUP];

    widen_rows(s, n_r, g, w);
    for (size_t k = 0; k < PACKED_GROUP; k += VN)
        UNROLL
    for (size_t c = 0; c < n_c; c++) {
        vf xc = vf_load(x + c * ldx + k);

        UNROLL
        for (size_t r = 0; r < n_r; r++)
            acc[r * n_c + c] = vf_fma(vf_load(w + r * PACKED_GROUP + k), xc, acc[r * n_c + c]);
    }
}

/* Prefetch half a group of a stream. */
INLINE void fetch_half(size_t n_r, const uint8_t *p, size_t h)
{
    if (n_r > 1 && ROWS_AHEAD != 0)
        __builtin_prefetch(p + ROWS_AHEAD + h * PACKED_BYTES / 2, 0, 3);
}

/*
 * acc[r * n_c + c] += n values of a span of n_r rows, `step` bytes apart, * x[c]
 *
 * With few vectors in half a group, all rows are widened first and share the loads of a column:
 * 6 columns are then 1.3 times as fast as row by row, because the 24 sums stay in registers.
 * With 4 vectors and 16 registers (AVX2), they do not, and 3 columns are 5 % slower.
 */
INLINE void add_packed(size_t n_r, size_t n_c, const vp *exponents, const uint8_t *p,
                       size_t step, size_t n, const float *x, size_t ldx, vf *acc)
{
    const size_t n_together = HALF_VECTORS > 2 ? 1 : n_r;

    for (size_t k = 0; k < n; k += PACKED_GROUP, p += PACKED_BYTES)
        UNROLL
    for (size_t h = 0; h < 2; h++)
        UNROLL
    for (size_t r0 = 0; r0 < n_r; r0 += n_together) {
        vf w[ROWS_OF_ONE][HALF_VECTORS];

        UNROLL
        for (size_t r = 0; r < n_together; r++) {
            fetch_half(n_r, p + (r0 + r) * step, h);
            widen_half(exponents[r0 + r], p + (r0 + r) * step, h, w[r]);
        }
        UNROLL
        for (size_t v = 0; v < HALF_VECTORS; v++)
            UNROLL
        for (size_t c = 0; c < n_c; c++) {
            vf xc = vf_load(x + c * ldx + k + 32 * h + v * VN);

            UNROLL
            for (size_t r = 0; r < n_together; r++)
                acc[(r0 + r) * n_c + c] = vf_fma(w[r][v], xc, acc[(r0 + r) * n_c + c]);
        }
    }
}

/* acc[r * n_c + c] += a span of n_r rows * x[c] */
INLINE void add_span_of(const struct packed_rows *s, size_t n_r, size_t n_c, const float *x,
                        size_t ldx, vf *acc)
{
    uint32_t any = 0, patched = 0;
    vp exponents[ROWS_OF_ONE];

    UNROLL
    for (size_t r = 0; r < n_r; r++) {
        uint32_t head = s->heads[r * s->head_step];

        any |= head;
        exponents[r] = vp_exponents((uint8_t)head);
    }
    if (any >> 8 != 0)
        patched = patched_groups(s, n_r);
    for (size_t k = 0; k < s->n; k += PACKED_GROUP, patched &= patched - 1) {
        size_t end = patched == 0 ? s->n : (size_t)__builtin_ctz(patched) * PACKED_GROUP;

        add_packed(n_r, n_c, exponents, s->p + packed_stride(k), s->step, end - k, x + k, ldx,
                   acc);
        k = end;
        if (k < s->n)
            add_patched(s, n_r, n_c, k / PACKED_GROUP, x + k, ldx, acc);
    }
}

/* n_r rows of the product from r on, n_between rows apart, times n_c columns from c on. */
INLINE void mul_packed_tile(size_t n_r, size_t n_c, const struct product *p, size_t r,
                            size_t n_between, size_t c)
{
    const struct packed_block *b = p->packed;
    const size_t row = p->first + r;
    struct packed_rows s = { .heads = b->heads + row * b->n_span,
                             .patches = b->patches,
                             .head_step = n_between * b->n_span,
                             .p = b->groups + row * b->stride,
                             .step = n_between * b->stride };
    const float *x = p->x + c * p->ldx;
    vf acc[ROWS_OF_ONE * TILE_COLS];

    UNROLL
    for (size_t i = 0; i < n_r * n_c; i++)
        acc[i] = vf_zero();
    for (size_t k = 0; k < b->n_k; k += PACKED_SPAN) {
        s.n = at_most(b->n_k - k, PACKED_SPAN);
        add_span_of(&s, n_r, n_c, x + k, p->ldx, acc);
        s.heads++;
        s.p += packed_stride(PACKED_SPAN);
    }
    fold_tile(acc, n_r, n_c, p->y + c * p->ldy + r, p->ldy, n_between);
}

/* n_r rows of the product from r on, n_between rows apart, times n_col columns from c on. */
INLINE void mul_packed_rows(size_t n_r, const struct product *p, size_t r, size_t n_between,
                            size_t c, size_t n_col)
{
    const size_t end = c + n_col;

    for (size_t n_c; c < end; c += n_c) {
        n_c = even_part(end - c, TILE_COLS);
        WITH_COLS(n_c, mul_packed_tile, n_r, p, r, n_between, c)
    }
}

/* At most PACKED_COLS columns, in ROWS_OF_ONE long streams as in set_mul_rows.h. */
static void mul_packed_streams(const struct product *p)
{
    const size_t part = p->n_row / ROWS_OF_ONE;

    for (size_t c = 0, near; c < p->n_col; c += near) {
        near = near_cols(p->n_col - c, p->ldx);
        for (size_t r = 0; r < part; r++)
            mul_packed_rows(ROWS_OF_ONE, p, r, part, c, near);
        for (size_t r = part * ROWS_OF_ONE; r < p->n_row; r++)
            mul_packed_rows(1, p, r, 1, c, near);
    }
}

#endif
