/*
 * set_attn.h - attention over one block of stored positions.
 *
 * The scores are a small matrix product with keys as rows and queries as columns, so they
 * have the order of additions of set_mul_float.h.  Weighted values are summed over positions
 * in rising order, a few vectors of the head at a time for all queries of a group.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_ATTN_H
#define MEMWALL_ENGINE_COMPUTE_SET_ATTN_H

#include "engine/compute/kernels.h"
#include "engine/compute/set_curves.h"
#include "engine/compute/set_mul_float.h"

#define ATTN_GROUP 8  /* queries per call of gather */
#define V_PIECE    64 /* values of a quantised row that are decoded at once */
#define V_VECTORS  2  /* a tile has V_VECTORS of the head for V_QUERIES queries */
#define V_QUERIES  4

INLINE enum tensor_type type_of_kv(enum kv_type t)
{
    static const enum tensor_type same[KV_TYPE_COUNT] = { TYPE_F32, TYPE_F16, TYPE_Q8_0,
                                                          TYPE_Q4_0 };

    return same[t];
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
INLINE void gather_tile(enum tensor_type type, size_t n_i, size_t n_v, size_t n, const float *p,
                        const float *shrink, const uint8_t *v, size_t v_stride, size_t d,
                        size_t n_pos, float *acc, size_t ld_acc)
{
    vf sum[V_QUERIES * V_VECTORS];
    bool is_part = n_v == 1 && n < VN;

    UNROLL
    for (size_t i = 0; i < n_i; i++)
        UNROLL
    for (size_t e = 0; e < n_v; e++) {
        const float *a = acc + i * ld_acc + e * VN;

        sum[i * n_v + e] = vf_mul(is_part ? vf_load_part(a, n) : vf_load(a), vf_all(shrink[i]));
    }
    for (size_t j = 0; j < n_pos; j++) {
        const uint8_t *row = v + j * v_stride;

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

/* Values d .. d + n - 1 of every row for n_q queries.  acc is at value d of the first. */
INLINE void gather_values(enum tensor_type type, size_t n_q, const float *p,
                          const float *shrink, const uint8_t *v, size_t v_stride, size_t d,
                          size_t n, size_t n_pos, float *acc, size_t ld_acc)
{
    size_t e = 0;

    while (e < n) {
        bool is_wide = n - e >= (size_t)V_VECTORS * VN;
        size_t i = 0;

        for (; i + V_QUERIES <= n_q && is_wide; i += V_QUERIES)
            gather_tile(type, V_QUERIES, V_VECTORS, n - e, p + i * ATTN_BLOCK, shrink + i, v,
                        v_stride, d + e, n_pos, acc + i * ld_acc + e, ld_acc);
        for (; i < n_q; i++) {
            if (is_wide)
                gather_tile(type, 1, V_VECTORS, n - e, p + i * ATTN_BLOCK, shrink + i, v,
                            v_stride, d + e, n_pos, acc + i * ld_acc + e, ld_acc);
            else
                gather_tile(type, 1, 1, n - e, p + i * ATTN_BLOCK, shrink + i, v, v_stride,
                            d + e, n_pos, acc + i * ld_acc + e, ld_acc);
        }
        e += is_wide ? (size_t)V_VECTORS * VN : VN;
    }
}

static void gather(enum kv_type vt, size_t n_q, const float *p, const float *shrink,
                   const uint8_t *v, size_t v_stride, size_t dv, size_t n_pos, float *acc)
{
    float wide[ATTN_BLOCK * V_PIECE];

    if (vt == KV_F32) {
        gather_values(TYPE_F32, n_q, p, shrink, v, v_stride, 0, dv, n_pos, acc, dv);
        return;
    }
    if (vt == KV_F16) {
        gather_values(TYPE_F16, n_q, p, shrink, v, v_stride, 0, dv, n_pos, acc, dv);
        return;
    }
    for (size_t d = 0; d < dv; d += V_PIECE) {
        size_t n = at_most(dv - d, V_PIECE);
        size_t at = kv_row_bytes(vt, d);

        for (size_t j = 0; j < n_pos; j++)
            set_dequant(type_of_kv(vt), v + j * v_stride + at, wide + j * V_PIECE,
                        (n + 31) / 32 * 32);
        gather_values(TYPE_F32, n_q, p, shrink, (const uint8_t *)wide, V_PIECE * sizeof *wide,
                      0, n, n_pos, acc + d, dv);
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

        mul_float_columns(type_of_kv(kt), &scores);
        for (size_t j = 0; j < n; j++)
            shrink[j] = set_soften(s + j * ATTN_BLOCK, n_pos, scale, cap, m + i + j, l + i + j);
        gather(vt, n, s, shrink, v, v_stride, dv, n_pos, acc + i * dv);
    }
}

#endif
