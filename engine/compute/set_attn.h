/*
 * set_attn.h - attention over one block of stored positions.
 *
 * The scores are a small matrix product with keys as rows and queries as columns, so they
 * have the order of additions of set_mul_float.h.  Weighted values are summed over positions
 * in rising order, a few vectors of the head at a time for all queries of a group.
 *
 * Rows of keys and values are far apart if there are several key heads, so the prefetcher of
 * the CPU does not recognise them.  Each row that is read prefetches the row of the next block,
 * a piece at a time, because a burst of prefetches makes the loads of this block wait.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_ATTN_H
#define MEMWALL_ENGINE_COMPUTE_SET_ATTN_H

#include "engine/compute/kernels.h"
#include "engine/compute/set_curves.h"
#include "engine/compute/set_mul_float.h"

#define ATTN_GROUP 32                 /* queries per call of gather */
#define V_PIECE    64                 /* values of a quantised row that are decoded at once */
#define V_VECTORS  (VN == 16 ? 4 : 2) /* a tile has V_VECTORS of the head */
#define V_QUERIES  4                  /* for V_QUERIES queries */
#define K_COLS     (TILE_COLS < 4 ? TILE_COLS : 4) /* queries of a tile of scores */

/* Decode n values of a quantised row, a multiple of 32: the bits of set_dequant(). */
INLINE void widen_row(enum tensor_type type, const uint8_t *row, float *dst, size_t n)
{
    struct span_traits t = traits_of(type);

    if (type != TYPE_Q8_0) {
        dequant_blocks(type, row, dst, n);
        return;
    }
    for (; n >= 32; n -= 32, row += t.bytes / 8, dst += 32)
        UNROLL
    for (size_t i = 0; i < 32; i += 16)
        dequant_16(t, row + t.scale_bytes + i, f32_of_half(row), 0, dst + i);
}

/* Turn the scores s[32] into weights exp(s - max); see attn in kernels.h. */
static float set_soften(float *s, size_t n_pos, float scale, float cap, float *m, float *l)
{
    vf v[ATTN_BLOCK / VN];
    vf top = vf_all(*m), sum = vf_zero();

    for (size_t j = n_pos; j < ATTN_BLOCK; j++)
        s[j] = -INFINITY;
    for (size_t i = 0; i < ATTN_BLOCK / VN; i++) {
        v[i] = vf_mul(vf_load(s + i * VN), vf_all(scale));
        if (cap > 0)
            v[i] = vf_mul(vf_all(cap), vf_tanh(vf_div(v[i], vf_all(cap))));
        vf_store(s + i * VN, v[i]);
    }
    for (size_t j = n_pos; j < ATTN_BLOCK; j++) /* again: the cap made them finite */
        s[j] = -INFINITY;
    for (size_t i = 0; i < ATTN_BLOCK / VN; i++)
        top = vf_max(top, vf_load(s + i * VN));

    float new_m = vf_top(top);
    float shrink[VN];

    for (size_t i = 0; i < ATTN_BLOCK / VN; i++) {
        v[i] = vf_exp(vf_sub(vf_load(s + i * VN), vf_all(new_m)));
        vf_store(s + i * VN, v[i]);
        sum = vf_add(sum, v[i]);
    }
    if (new_m == *m) { /* the common case */
        *l += vf_sum(sum);
        return 1;
    }
    vf_store(shrink, vf_exp(vf_all(*m - new_m)));
    *l = *l * shrink[0] + vf_sum(sum);
    *m = new_m;
    return shrink[0];
}

/*
 * acc[i][d ..] = acc[i][d ..] * shrink[i] + sum_j p[i][j] * v[j][d ..] for n_i queries and
 * n_v vectors of the head.  If n_v is 1, n is the number of values left in the head.
 */
INLINE void gather_tile(enum tensor_type type, bool fetches, size_t n_i, size_t n_v, size_t n,
                        const float *p, const float *shrink, const uint8_t *v, size_t v_stride,
                        size_t d, size_t n_pos, float *acc, size_t ld_acc)
{
    vf sum[V_QUERIES * V_VECTORS];
    bool is_part = n_v == 1 && n < VN;
    size_t value_bytes = type == TYPE_F16 ? 2 : 4;

    UNROLL
    for (size_t i = 0; i < n_i; i++)
        UNROLL
    for (size_t e = 0; e < n_v; e++) {
        const float *a = acc + i * ld_acc + e * VN;

        sum[i * n_v + e] = vf_mul(is_part ? vf_load_part(a, n) : vf_load(a), vf_all(shrink[i]));
    }
    for (size_t j = 0; j < n_pos; j++) {
        const uint8_t *row = v + j * v_stride;

        if (fetches)
            fetch_ahead(row + ATTN_BLOCK * v_stride + d * value_bytes, n_v * VN * value_bytes);
        UNROLL
        for (size_t e = 0; e < n_v; e++) {
            vf x = is_part ? load_weights_part(type, row, d, n)
                           : load_weights(type, row, d + e * VN);

            UNROLL
            for (size_t i = 0; i < n_i; i++)
                sum[i * n_v + e] = vf_fma(vf_all(p[i * ATTN_BLOCK + j]), x, sum[i * n_v + e]);
        }
    }
    UNROLL
    for (size_t i = 0; i < n_i; i++)
        UNROLL
    for (size_t e = 0; e < n_v; e++) {
        float *a = acc + i * ld_acc + e * VN;

        if (is_part)
            vf_store_part(a, sum[i * n_v + e], n);
        else
            vf_store(a, sum[i * n_v + e]);
    }
}

/* n_v vectors from value d on for n_q queries; see gather_tile. */
INLINE void gather_vectors(enum tensor_type type, bool fetches, size_t n_q, size_t n_v,
                           size_t n, const float *p, const float *shrink, const uint8_t *v,
                           size_t v_stride, size_t d, size_t n_pos, float *acc, size_t ld_acc)
{
    size_t i = 0;

    if (fetches && n_q >= V_QUERIES) {
        gather_tile(type, true, V_QUERIES, n_v, n, p, shrink, v, v_stride, d, n_pos, acc,
                    ld_acc);
        i = V_QUERIES;
    }
    for (; i + V_QUERIES <= n_q; i += V_QUERIES)
        gather_tile(type, false, V_QUERIES, n_v, n, p + i * ATTN_BLOCK, shrink + i, v, v_stride,
                    d, n_pos, acc + i * ld_acc, ld_acc);
    for (; i < n_q; i++)
        gather_tile(type, false, 1, n_v, n, p + i * ATTN_BLOCK, shrink + i, v, v_stride, d,
                    n_pos, acc + i * ld_acc, ld_acc);
}

/* Values d .. d + n - 1 of every row for n_q queries.  acc is at value d of the first. */
INLINE void gather_values(enum tensor_type type, bool fetches, size_t n_q, const float *p,
                          const float *shrink, const uint8_t *v, size_t v_stride, size_t d,
                          size_t n, size_t n_pos, float *acc, size_t ld_acc)
{
    size_t e = 0;

    for (; e + V_VECTORS * VN <= n; e += V_VECTORS * VN)
        gather_vectors(type, fetches, n_q, V_VECTORS, n - e, p, shrink, v, v_stride, d + e,
                       n_pos, acc + e, ld_acc);
    for (; e < n; e += VN)
        gather_vectors(type, fetches, n_q, 1, n - e, p, shrink, v, v_stride, d + e, n_pos,
                       acc + e, ld_acc);
}

/* Quantised values are decoded a piece of the head at a time, once for all queries. */
INLINE void gather_blocks(enum tensor_type type, bool fetches, size_t n_q, const float *p,
                          const float *shrink, const uint8_t *v, size_t v_stride, size_t dv,
                          size_t n_pos, float *acc)
{
    size_t block_bytes = traits_of(type).bytes / 8;
    float wide[ATTN_BLOCK * V_PIECE];

    for (size_t d = 0; d < dv; d += V_PIECE) {
        size_t n = at_most(dv - d, V_PIECE), n_block = (n + 31) / 32;

        for (size_t j = 0; j < n_pos; j++) {
            const uint8_t *row = v + j * v_stride + d / 32 * block_bytes;

            if (fetches)
                fetch_ahead(row + ATTN_BLOCK * v_stride, n_block * block_bytes);
            widen_row(type, row, wide + j * V_PIECE, n_block * 32);
        }
        gather_values(TYPE_F32, false, n_q, p, shrink, (const uint8_t *)wide,
                      V_PIECE * sizeof *wide, 0, n, n_pos, acc + d, dv);
    }
}

static void gather(enum kv_type vt, bool fetches, size_t n_q, const float *p,
                   const float *shrink, const uint8_t *v, size_t v_stride, size_t dv,
                   size_t n_pos, float *acc)
{
    switch (vt) {
    case KV_F32:
        gather_values(TYPE_F32, fetches, n_q, p, shrink, v, v_stride, 0, dv, n_pos, acc, dv);
        return;
    case KV_F16:
        gather_values(TYPE_F16, fetches, n_q, p, shrink, v, v_stride, 0, dv, n_pos, acc, dv);
        return;
    case KV_Q8_0:
        gather_blocks(TYPE_Q8_0, fetches, n_q, p, shrink, v, v_stride, dv, n_pos, acc);
        return;
    case KV_Q4_0:
        gather_blocks(TYPE_Q4_0, fetches, n_q, p, shrink, v, v_stride, dv, n_pos, acc);
        return;
    case KV_TYPE_COUNT: break;
    }
}

/* Scores of n_r rows from row r on and n_c queries from query c on, as in mul_tile.  The same
 * rows of the next block are prefetched piece by piece: in a burst, they would keep the loads
 * of this block waiting. */
INLINE void score_tile(enum tensor_type type, size_t n_r, size_t n_c, const struct product *p,
                       const uint8_t *ahead, size_t c)
{
    vf acc[TILE_ROWS * K_COLS];
    size_t k = 0, step = at_most(p->n_k, 4 * VN), bytes = type == TYPE_F16 ? 2 : 4;

    UNROLL
    for (size_t i = 0; i < n_r * n_c; i++)
        acc[i] = vf_zero();
    for (; k < p->n_k; k += step) {
        if (ahead != NULL)
            for (size_t i = 0; i < n_r; i++)
                fetch_ahead(ahead + i * p->w_stride + k * bytes, step * bytes);
        add_tile(type, n_r, n_c, p->w + k * bytes, p->w_stride, p->x + c * p->ldx + k, p->ldx,
                 at_most(p->n_k - k, step), acc);
    }
    fold_tile(acc, n_r, n_c, p->y + c * p->ldy, p->ldy);
}

INLINE void score_rows(enum tensor_type type, bool is_float, size_t n_r,
                       const struct product *p, size_t r, bool fetches)
{
    float wide[TILE_ROWS * MUL_DEPTH];
    struct product rows = *p;
    const uint8_t *ahead;

    rows.w += r * p->w_stride;
    rows.y += r;
    ahead = is_float && fetches ? rows.w + ATTN_BLOCK * p->w_stride : NULL;
    if (!is_float) {
        for (size_t i = 0; i < n_r; i++) {
            const uint8_t *row = rows.w + i * p->w_stride;

            if (fetches)
                fetch_ahead(row + ATTN_BLOCK * p->w_stride,
                            p->n_k / 32 * (traits_of(type).bytes / 8));
            widen_row(type, row, wide + i * MUL_DEPTH, (p->n_k + 31) / 32 * 32);
        }
        rows.w = (const uint8_t *)wide;
        rows.w_stride = MUL_DEPTH * sizeof *wide;
    }
#define SCORES_OF_TYPE(n_r, n_c, ...)                                                          \
    score_tile(is_float ? type : TYPE_F32, n_r, n_c, __VA_ARGS__)
    for (size_t c = 0; c < p->n_col; c += K_COLS)
        WITH_COLS(at_most(p->n_col - c, K_COLS), SCORES_OF_TYPE, n_r, &rows,
                  c == 0 ? ahead : NULL, c)
#undef SCORES_OF_TYPE
}

INLINE void score_block(enum tensor_type type, bool is_float, const struct product *p,
                        bool fetches)
{
    size_t r = 0;

    for (; r + TILE_ROWS <= p->n_row; r += TILE_ROWS)
        score_rows(type, is_float, TILE_ROWS, p, r, fetches);
    for (; r < p->n_row; r++)
        score_rows(type, is_float, 1, p, r, false);
}

static void score(enum kv_type kt, const struct product *p, bool fetches)
{
    switch (kt) {
    case KV_F32: score_block(TYPE_F32, true, p, fetches); return;
    case KV_F16: score_block(TYPE_F16, true, p, fetches); return;
    case KV_Q8_0:
        if (p->n_k > MUL_DEPTH)
            mul_blocks(TYPE_Q8_0, p);
        else
            score_block(TYPE_Q8_0, false, p, fetches);
        return;
    case KV_Q4_0:
        if (p->n_k > MUL_DEPTH)
            mul_blocks(TYPE_Q4_0, p);
        else
            score_block(TYPE_Q4_0, false, p, fetches);
        return;
    case KV_TYPE_COUNT: break;
    }
}

static void set_attn(enum kv_type kt, enum kv_type vt, const float *q, size_t n_q,
                     const void *k, size_t k_stride, const void *v, size_t v_stride,
                     size_t n_pos, size_t dk, size_t dv, float scale, float cap, float *m,
                     float *l, float *acc)
{
    float s[ATTN_GROUP * ATTN_BLOCK], shrink[ATTN_GROUP];

    if (n_pos == 0)
        return;
    for (size_t i = 0; i < n_q; i += ATTN_GROUP) {
        size_t n = at_most(n_q - i, ATTN_GROUP);
        struct product scores = { .w = k,
                                  .w_stride = k_stride,
                                  .n_row = n_pos,
                                  .n_k = dk,
                                  .x = q + i * dk,
                                  .ldx = dk,
                                  .n_col = n,
                                  .y = s,
                                  .ldy = ATTN_BLOCK };

        score(kt, &scores, i == 0);
        for (size_t j = 0; j < n; j++)
            shrink[j] = set_soften(s + j * ATTN_BLOCK, n_pos, scale, cap, m + i + j, l + i + j);
        gather(vt, i == 0, n, s, shrink, v, v_stride, dv, n_pos, acc + i * dv);
    }
}

#endif
