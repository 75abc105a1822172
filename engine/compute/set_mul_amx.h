/*
 * set_mul_amx.h - the unpacked spans of set_mul_tile.h times many columns, with tiles of AMX.
 *
 * A tile register holds 16 rows of 64 bytes.  One instruction multiplies two of them:
 *
 *     left      the 32 bytes of a group of up to 16 columns, a column in a row
 *     right     the 8 dwords of the group, each of 16 rows of weights side by side
 *     product   int32 sums, a column in a row, with the 16 rows of weights side by side
 *
 * Columns have this layout as they are packed, and weights in struct tile_span, so nothing is
 * moved.  The sums are exact, and scales are applied in the order of set_mul_rows.h, so the
 * results have the bits of the other AVX-512 sets.  The partial sums of a row do not depend on
 * each other, so several groups of one are added while it stays in a register.
 *
 * The weights are signed, so no column needs its sums for an offset (tile_offset).
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_MUL_AMX_H
#define MEMWALL_ENGINE_COMPUTE_SET_MUL_AMX_H

#include "engine/compute/set_unpack_tile.h"

#if HAS_AMX
#define AMX_COLS   16                        /* of a product */
#define AMX_GROUPS (8 * TILE_SPANS / GROUPS) /* of a partial sum, in the spans of a tile */

/* The operand of LDTILECFG: tiles 0 to 3 are products, 4 and 5 columns, 6 and 7 weights. */
struct tile_shapes {
    uint8_t palette, start_row, unused[14];
    uint16_t row_bytes[16];
    uint8_t n_row[16];
};

_Static_assert(sizeof(struct tile_shapes) == 64, "LDTILECFG reads 64 bytes");
_Static_assert(AMX_GROUPS == 4, "there are four tiles for products");

/* Shape the tiles for n_c columns.  AMX_RELEASE ends their use. */
INLINE void amx_shape(size_t n_c)
{
    struct tile_shapes s = { .palette = 1 };

    UNROLL
    for (size_t t = 0; t < 8; t++) {
        s.row_bytes[t] = t == 4 || t == 5 ? 32 : 64;
        s.n_row[t] = t >= 6 ? 8 : (uint8_t)n_c;
    }
    _tile_loadconfig(&s);
}

#define AMX_RELEASE() _tile_release()

/* gcc does not know that a tile is loaded from memory. */
#define AMX_LOAD(tile, from, stride)                                                           \
    do {                                                                                       \
        __asm__ volatile("" ::: "memory");                                                     \
        _tile_loadd(tile, from, stride);                                                       \
    } while (0)

/* Multiply a group: columns from x on, x_stride bytes apart, and a vector of rows. */
#define AMX_MULTIPLY(product, columns, weights, x, x_stride, w, to)                            \
    do {                                                                                       \
        AMX_LOAD(columns, x, x_stride);                                                        \
        AMX_LOAD(weights, w, sizeof(vb[TILE_VECTORS]));                                        \
        _tile_zero(product);                                                                   \
        _tile_dpbssd(product, columns, weights);                                               \
        _tile_stored(product, to, 64);                                                         \
    } while (0)

/* At most AMX_COLS columns from c on, and n spans from span i on. */
struct amx_part {
    const struct q8_product *p;
    size_t i, n, c, n_c;
};

/* Add the groups of partial sum g to the sums of the columns, for vector v of the rows. */
INLINE void amx_add(const struct amx_part *a, const struct tile_span *t, size_t n, size_t g,
                    size_t v, struct tile_sums *sums)
{
    const size_t stride = a->p->x_stride;
    _Alignas(64) int32_t dot[AMX_GROUPS][AMX_COLS][VN];
    const int8_t *x[AMX_GROUPS];
    const vb *w[AMX_GROUPS];
    const char *d[AMX_GROUPS];
    vf s[AMX_GROUPS];

    UNROLL
    for (size_t j = 0; j < n; j++) {
        const size_t span = (g + j * GROUPS) / 8, at = (g + j * GROUPS) % 8;
        const struct act_q8 *columns = column_span(a->p, a->c, a->i + span);

        x[j] = columns->q + 32 * at;
        d[j] = (const char *)&columns->d[2 * at];
        w[j] = &t[span].w[8 * at][v];
        s[j] = t[span].s[at][v];
    }
    AMX_MULTIPLY(0, 4, 6, x[0], stride, w[0], dot[0]);
    AMX_MULTIPLY(1, 5, 7, x[1], stride, w[1], dot[1]);
    if (n == AMX_GROUPS) {
        AMX_MULTIPLY(2, 4, 6, x[2], stride, w[2], dot[2]);
        AMX_MULTIPLY(3, 5, 7, x[3], stride, w[3], dot[3]);
    }
    for (size_t c = 0; c < a->n_c; c++) {
        vf sum = sums[c].of[g][v];

        UNROLL
        for (size_t j = 0; j < n; j++)
            sum = vf_fma(vf_of_vi(vb_load(dot[j][c])),
                         vf_mul(s[j], vf_bits(vi_all_at(d[j] + c * stride))), sum);
        sums[c].of[g][v] = sum;
    }
}

/* Prefetch part `step` of n_step of the weights that are unpacked next. */
INLINE void amx_fetch(const struct tile_next *next, size_t step, size_t n_step)
{
    const size_t lines = (next->bytes + 63) / 64;

    for (size_t i = 0; i < next->n; i++)
        for (size_t k = lines * step / n_step; k < lines * (step + 1) / n_step; k++)
            __builtin_prefetch(next->from[i] + 64 * k, 0, 2);
}

/* Add spans i .. i + n - 1 of n_v vectors of rows, unpacked, to the sums of the columns. */
INLINE void amx_add_spans(size_t n_v, const struct tile *t, size_t i, size_t n,
                          const struct tile_span *span, const struct tile_next *next,
                          struct tile_sums *sums)
{
    size_t shaped = 0;

    for (size_t at = 0, n_c; at < t->n_c; at += n_c) {
        n_c = even_part(t->n_c - at, AMX_COLS);
        if (n_c != shaped)
            amx_shape(n_c);
        shaped = n_c;

        const struct amx_part a = { t->p, i, n, t->c + at, n_c };

        for (size_t v = 0; v < n_v; v++)
            for (size_t g = 0; g < GROUPS; g++) {
                if (at == 0)
                    amx_fetch(next, v * GROUPS + g, n_v * GROUPS);
                if (n == TILE_SPANS)
                    amx_add(&a, span, AMX_GROUPS, g, v, sums + at);
                else
                    amx_add(&a, span, AMX_GROUPS / TILE_SPANS, g, v, sums + at);
            }
    }
}
#else
#define AMX_RELEASE() ((void)0)

/* Only called if tiles_take() a type, which they do not without AMX. */
INLINE void amx_add_spans(size_t n_v, const struct tile *t, size_t i, size_t n,
                          const struct tile_span *span, const struct tile_next *next,
                          struct tile_sums *sums)
{
    (void)n_v, (void)t, (void)i, (void)n, (void)span, (void)next, (void)sums;
}
#endif

#endif
