/*
 * set_mul_tile.h - matrix times many columns of 8-bit numbers.
 *
 * A tile is TILE_LANES rows, one to a lane.  Its spans are unpacked a few at a time
 * (set_unpack_tile.h).  The bytes of 32 values then stay in registers while column after
 * column is multiplied with them: 4 bytes of a column in all lanes times 4 bytes of each row
 * give sums of the rows, which nothing has to bring together.
 *
 * Additions have the order of set_mul_rows.h: group g of each step is added to partial sum
 * g % GROUPS.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_MUL_TILE_H
#define MEMWALL_ENGINE_COMPUTE_SET_MUL_TILE_H

#include "engine/compute/set_unpack_tile.h"

#define TILE_SPANS 2  /* unpacked at a time */
#define NEAR_COLS  32 /* columns whose sums stay in the first-level cache */

/* The partial sums of a column. */
struct tile_sums {
    vf of[GROUPS][TILE_VECTORS];
};

/* Columns c .. c + n_c - 1 of a product, and the rows from r on. */
struct tile {
    const struct q8_product *p;
    size_t r, c, n_c;
};

/* Weights that are unpacked next: `bytes` from each of n addresses. */
struct tile_next {
    const uint8_t *from[TILE_VECTORS];
    size_t n, bytes;
};

/* 32 values of a tile. */
struct tile_run {
    vb w[8][TILE_VECTORS];
    vf s[2][TILE_VECTORS], m[2][TILE_VECTORS]; /* the second if they are for 16 values */
};

/*
 * Add the products of n dwords of the rows and a column.  Eight of them are two sums of four where
 * there are registers for it.  In one sum, each product waits for the one before, and the processor
 * does not look far enough ahead to fill the time: 64 columns took 1.05 to 1.09 times as long on
 * Zen 5, 8 columns 1.03 to 1.06.
 */
#if DOT_TAKES_255
INLINE void add_dots(enum tensor_type type, size_t n_v, const vb (*w)[TILE_VECTORS],
                     const int8_t *q, int n, vi *dot)
{
    const bool is_split = VN == 16 && n == 8;
    vi sum[2][TILE_VECTORS];

    (void)type;
    UNROLL
    for (size_t v = 0; v < n_v; v++) {
        sum[0][v] = dot[v];
        sum[1][v] = vi_zero();
    }
    UNROLL
    for (int j = 0; j < n; j++) {
        const int at = is_split ? j / 2 + j % 2 * 4 : j; /* of both sums in turn */
        vb x = vb_dword_of_16(q + at / 4 * 16, at % 4);
        vi *to = sum[is_split ? j % 2 : 0];

        UNROLL
        for (size_t v = 0; v < n_v; v++)
            to[v] = vb_dot_add(to[v], w[at][v], x);
    }
    UNROLL
    for (size_t v = 0; v < n_v; v++)
        dot[v] = is_split ? vi_add(sum[0][v], sum[1][v]) : sum[0][v];
}
#else
INLINE void add_dots(enum tensor_type type, size_t n_v, const vb (*w)[TILE_VECTORS],
                     const int8_t *q, int n, vi *dot)
{
    const int per_word = sums_per_word(type);

    vi words[TILE_VECTORS];

    UNROLL
    for (int j = 0; j < n; j++) {
        vb x = vb_dword_of_16(q + j / 4 * 16, j % 4);

        UNROLL
        for (size_t v = 0; v < n_v; v++) {
            vi pairs = dot_pairs(type, w[j][v], x);

            words[v] = j % per_word == 0 ? pairs : vi_add_words(words[v], pairs);
            if ((j + 1) % per_word == 0 || j + 1 == n)
                dot[v] = vi_add(dot[v], vi_of_words(words[v]));
        }
    }
}
#endif

/* Add 32 values of one column: run b of a span, n_v vectors of rows.  offset: of the bytes. */
INLINE void add_run(enum tensor_type type, int offset, size_t n_v, const struct tile_run *u,
                    const struct act_q8 *x, int b, struct tile_sums *sums)
{
    const int n_half = by_16(type) ? 2 : 1;

    UNROLL
    for (int h = 0; h < n_half; h++) {
        vf *sum = sums->of[(n_half * b + h) % GROUPS];
        vi start = vi_zero(), dot[TILE_VECTORS];

        if (offset != 0) {
            start = vi_all_at(x->less + 2 * b + h);
            if (n_half == 1)
                start = vi_add(start, vi_all_at(x->less + 2 * b + 1));
            if (offset != 128)
                start = vi_divide(start, __builtin_ctz(128u / (unsigned)offset));
        }
        UNROLL
        for (size_t v = 0; v < n_v; v++)
            dot[v] = start;
        add_dots(type, n_v, u->w + 4 * h, x->q + 32 * b + 16 * h, 8 / n_half, dot);

        vf d = vf_all(x->d[2 * b]), dsum = vf_zero();

        if (traits_of(type).has_minima) {
            dsum = vf_all(x->dsum[2 * b + h]);
            if (n_half == 1)
                dsum = vf_add(dsum, vf_all(x->dsum[2 * b + 1]));
        }
        UNROLL
        for (size_t v = 0; v < n_v; v++) {
            sum[v] = vf_fma(vf_of_vi(dot[v]), vf_mul(u->s[h][v], d), sum[v]);
            if (traits_of(type).has_minima)
                sum[v] = vf_fnma(u->m[h][v], dsum, sum[v]);
        }
    }
}

/* Add run b of span i to the sums of n_c columns. */
INLINE void add_columns(enum tensor_type type, size_t n_v, const struct tile_span *t, int b,
                        const struct q8_product *p, size_t i, size_t c, size_t n_c,
                        struct tile_sums *sums)
{
    struct tile_run u;
    const int n_half = by_16(type) ? 2 : 1;

    UNROLL
    for (size_t v = 0; v < n_v; v++) {
        UNROLL
        for (int j = 0; j < 8; j++)
            u.w[j][v] = t->w[8 * b + j][v];
        UNROLL
        for (int h = 0; h < n_half; h++) {
            u.s[h][v] = t->s[n_half * b + h][v];
            if (traits_of(type).has_minima)
                u.m[h][v] = t->m[n_half * b + h][v];
        }
    }
    for (size_t j = 0; j < n_c; j++)
        add_run(type, tile_offset(type), n_v, &u, column_span(p, c + j, i), b, &sums[j]);
}

/*
 * Prefetch a part of the next tile, which follows in memory.  A span has n_v + 8 parts: one
 * before each vector of rows is unpacked, and one before each run is multiplied.  With a span
 * at once the CPU waits for memory: 8 columns take 1.5 to 1.8 times as long (AVX-512 VNNI).
 */
INLINE void fetch_next(enum tensor_type type, const struct tile *t, size_t n_v, size_t i,
                       size_t part)
{
    const size_t bytes = n_v * VN * traits_of(type).bytes; /* of a span */
    const uint8_t *next = t->p->w + (t->r + n_v * VN) * t->p->w_stride + i * bytes;
    const size_t lines = (bytes + 63) / 64, n = n_v + 8;

    for (size_t k = lines * part / n; k < lines * (part + 1) / n; k++)
        __builtin_prefetch(next + 64 * k, 0, 2);
}

#include "engine/compute/set_mul_amx.h"

/* Add spans i .. i + n - 1 of n_v vectors of rows, unpacked, to the sums of the columns. */
INLINE void add_spans(enum tensor_type type, size_t n_v, const struct tile *t, size_t i,
                      size_t n, const struct tile_span *span, struct tile_sums *sums)
{
    if (tiles_take(type)) {
        const size_t bytes = n_v * VN * traits_of(type).bytes;
        const uint8_t *next = t->p->w + (t->r + n_v * VN) * t->p->w_stride + i * bytes;

        amx_add_spans(n_v, t, i, n, span,
                      &(struct tile_next){ { next }, t->c == 0 ? 1 : 0, n * bytes }, sums);
        return;
    }
    const size_t near = even_part(t->n_c, NEAR_COLS);

    for (size_t j = 0; j < t->n_c; j += near)
        for (size_t s = 0; s < n; s++)
            for (int b = 0; b < 8; b++) {
                if (t->c + j == 0)
                    fetch_next(type, t, n_v, i + s, n_v + (size_t)b);
                add_columns(type, n_v, &span[s], b, t->p, i + s, t->c + j,
                            at_most(t->n_c - j, near), sums + j);
            }
}

/* Copy the ends of rows, shorter than a span, to spans filled with zeros. */
static NOINLINE struct rows copy_ends(struct span_traits t, size_t n_k, struct rows p,
                                      union span end[VN])
{
    memset(end, 0, VN * sizeof end[0]);
    for (size_t r = 0; r < VN; r++)
        memcpy(&end[r], p.first + r * p.stride, n_k % SPAN / 32 * (t.bytes / 8));
    return (struct rows){ (const uint8_t *)end, sizeof end[0] };
}

INLINE void store_tile(const struct tile *t, size_t n_v, const struct tile_sums *sums)
{
    for (size_t j = 0; j < t->n_c; j++) {
        float *y = t->p->y + (t->c + j) * t->p->ldy + t->r;

        UNROLL
        for (size_t v = 0; v < n_v; v++)
            vf_store(y + v * VN, vf_fold_sums(&sums[j].of[0][v], TILE_VECTORS));
    }
}

/* Unpack span i of n_v vectors of rows. */
INLINE void unpack_span(enum tensor_type type, size_t n_v, const struct tile *t, size_t i,
                        struct tile_span *out)
{
    const struct q8_product *p = t->p;

    for (size_t v = 0; v < n_v; v++) {
        if (t->c == 0 && !tiles_take(type))
            fetch_next(type, t, n_v, i, v);

        struct rows rows = { p->w + (t->r + v * VN) * p->w_stride + i * traits_of(type).bytes,
                             p->w_stride };
        union span end[VN];

        if ((i + 1) * SPAN > p->n_k)
            rows = copy_ends(traits_of(type), p->n_k, rows, end);
        unpack_tile(type, rows, out, v);
    }
}

/* n_v vectors of rows. */
INLINE void mul_tile_q8(enum tensor_type type, size_t n_v, const struct tile *t)
{
    const struct q8_product *p = t->p;
    const size_t n_span = (p->n_k + SPAN - 1) / SPAN;
    struct tile_span span[TILE_SPANS];
    struct tile_sums sums[WAYS_PANEL_MOST];

    for (size_t j = 0; j < t->n_c; j++)
        for (size_t g = 0; g < GROUPS; g++)
            for (size_t v = 0; v < n_v; v++)
                sums[j].of[g][v] = vf_zero();
    for (size_t i = 0; i < n_span; i += TILE_SPANS) {
        const size_t n = at_most(n_span - i, TILE_SPANS);

        for (size_t s = 0; s < n; s++)
            unpack_span(type, n_v, t, i + s, &span[s]);
        add_spans(type, n_v, t, i, n, span, sums);
    }
    store_tile(t, n_v, sums);
}

/* All rows, at least VN, times columns c .. c + n_c - 1.  The last tile may overlap the one
 * before it. */
INLINE void mul_panel(enum tensor_type type, const struct q8_product *p, size_t c, size_t n_c)
{
    struct tile t = { .p = p, .c = c, .n_c = n_c };

    for (; t.r + TILE_LANES <= p->n_row; t.r += TILE_LANES)
        mul_tile_q8(type, TILE_VECTORS, &t);
    for (; t.r < p->n_row; t.r += VN) {
        t.r = at_most(t.r, p->n_row - VN);
        mul_tile_q8(type, 1, &t);
    }
    AMX_RELEASE();
}

#endif
