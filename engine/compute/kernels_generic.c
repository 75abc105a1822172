/*
 * kernels_generic.c - the definition of every kernel, in plain C.  It also runs on CPUs
 * that no other set supports.
 *
 * Order of additions: value k of a row is added to partial sum k % LANES, in rising k, and
 * the partial sums are folded in halves at the end.  Compilers can turn the partial sums
 * into vectors of any width without changing the result.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "engine/compute/dequant.h"
#include "engine/compute/kernel_sets.h"
#include "engine/compute/kv_types.h"
#include "engine/compute/packed.h"
#include "engine/compute/quants.h"

#define LANES 16  /* partial sums of one dot product */
#define TILE  256 /* values decoded at once: a multiple of every type's block */
#define GROUP 8   /* columns or queries that share a decoded tile */

/* sum[k % LANES] += w[k] * x[k] */
static void dot_add(const float *restrict w, const float *restrict x, size_t n,
                    float *restrict sum)
{
    size_t k = 0;

    for (; k + LANES <= n; k += LANES)
        for (int j = 0; j < LANES; j++)
            sum[j] += w[k + j] * x[k + j];
    for (; k < n; k++)
        sum[k % LANES] += w[k] * x[k];
}

static float fold(const float *sum)
{
    float s[LANES];

    memcpy(s, sum, sizeof s);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            s[j] += s[j + half];
    return s[0];
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Columns */

/* Returns max |x|, or NaN if a value is not finite. */
static float largest(const float *x, size_t n)
{
    float amax = 0;

    for (size_t j = 0; j < n; j++) {
        if (!isfinite(x[j]))
            return NAN;
        amax = fmaxf(amax, fabsf(x[j]));
    }
    return amax;
}

static void pack_q8(const float *x, size_t n_k, void *dst)
{
    struct act_q8 *spans = dst;

    memset(dst, 0, act_bytes(ACT_Q8, n_k));
    for (size_t block = 0; block < n_k; block += 32) {
        size_t n = min_size(32, n_k - block);
        float amax = largest(x + block, n);
        float scale = act_q8_scale(amax);
        float sum[2] = { 0 };
        struct act_q8 *to = &spans[block / ACT_Q8_SPAN];
        size_t at = block % ACT_Q8_SPAN;

        for (size_t j = 0; j < n && scale > 0; j++) {
            to->q[at + j] = (int8_t)rintf(x[block + j] * (127 / amax));
            sum[j / 16] += to->q[at + j];
        }
        for (size_t half = 0; half < 2; half++) {
            to->d[at / 16 + half] = scale;
            to->dsum[at / 16 + half] = scale * sum[half];
            to->less[at / 16 + half] = -128 * (int32_t)sum[half];
        }
    }
}

static void act_pack(enum act_form form, const float *x, size_t n_k, void *dst)
{
    size_t bytes = act_bytes(ACT_F32, n_k);

    if (form == ACT_Q8) {
        pack_q8(x, n_k, dst);
        return;
    }
    memcpy(dst, x, n_k * sizeof *x);
    memset((char *)dst + n_k * sizeof *x, 0, bytes - n_k * sizeof *x);
}

/* Returns values k .. k + n - 1 of a packed column.  k is a multiple of TILE. */
static const float *column_tile(enum act_form form, const void *column, size_t k, size_t n,
                                float *tile)
{
    if (form == ACT_F32)
        return (const float *)column + k;
    for (size_t j = 0; j < n; j++)
        tile[j] = act_q8_value(column, k + j);
    return tile;
}

/* Matrix times columns */

/* Row r of a product and at most GROUP columns from c on */
static void mul_row(const struct matmul *m, size_t r, size_t c, size_t n_col)
{
    const uint8_t *w = (const uint8_t *)m->w + r * (size_t)tensor_row_bytes(m->type, m->n_k);
    const uint8_t *x = (const uint8_t *)m->x + c * m->x_stride;
    float sum[GROUP][LANES] = { { 0 } };
    float wt[TILE], xt[TILE];

    for (size_t k = 0; k < m->n_k; k += TILE) {
        size_t n = min_size(TILE, m->n_k - k);

        dequant_row(m->type, w + tensor_row_bytes(m->type, k), wt, n);
        for (size_t j = 0; m->scales.w != NULL && j < n; j++)
            wt[j] *= weight_scale(&m->scales, r, k + j);
        for (size_t j = 0; j < n_col; j++)
            dot_add(wt, column_tile(m->form, x + j * m->x_stride, k, n, xt), n, sum[j]);
    }
    for (size_t j = 0; j < n_col; j++)
        m->y[(c + j) * m->ldy + r] = fold(sum[j]);
}

static void mul(const struct matmul *m)
{
    for (size_t r = 0; r < m->n_row; r++)
        for (size_t c = 0; c < m->n_col; c += GROUP)
            mul_row(m, r, c, min_size(GROUP, m->n_col - c));
}

static void mul_packed(const struct packed_block *b, size_t first, const struct matmul *m)
{
    uint16_t packed[PACKED_SPAN];
    float wt[PACKED_SPAN];

    for (size_t r = 0; r < m->n_row; r++)
        for (size_t c = 0; c < m->n_col; c += GROUP) {
            const float *x = (const float *)m->x + c * (m->x_stride / sizeof *x);
            size_t n_c = min_size(GROUP, m->n_col - c);
            float sum[GROUP][LANES] = { { 0 } };

            for (size_t span = 0; span < b->n_span; span++) {
                size_t n = packed_span(b, first + r, span, packed);

                dequant_row(TYPE_BF16, packed, wt, n);
                for (size_t j = 0; j < n_c; j++)
                    dot_add(wt, x + j * (m->x_stride / sizeof *x) + span * PACKED_SPAN, n, sum[j]);
            }
            for (size_t j = 0; j < n_c; j++)
                m->y[(c + j) * m->ldy + r] = fold(sum[j]);
        }
}

static void unpack(const struct packed_block *w, size_t row, size_t k, size_t n, float *dst)
{
    uint16_t packed[PACKED_SPAN];

    for (size_t i = 0; i < n; i += PACKED_SPAN) {
        (void)packed_span(w, row, (k + i) / PACKED_SPAN, packed);
        dequant_row(TYPE_BF16, packed, dst + i, min_size(PACKED_SPAN, n - i));
    }
}

/* Vectors */

static void rms_norm(const float *x, const float *w, size_t n, float eps, float *out)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];

    float s = 1 / sqrtf((float)(sum / (double)n) + eps);

    for (size_t i = 0; i < n; i++)
        out[i] = w != NULL ? x[i] * s * w[i] : x[i] * s;
}

/* The tanh form of gelu, with which the models were trained. */
static void gelu_mul(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = gate[i];
        float u = 0.797884561f * (x + 0.044715f * x * x * x); /* sqrt(2 / pi) */

        gate[i] = 0.5f * x * (1 + tanhf(u)) * up[i];
    }
}

static void silu_mul(float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++)
        gate[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
}

static void sigmoid_mul(float *x, const float *gate, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = x[i] / (1 + expf(-gate[i]));
}

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

static void scale(float *x, float s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] *= s;
}

static void softcap(float *x, float cap, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = cap * tanhf(x[i] / cap);
}

/* Replace pairs of values 1, 2, 4 ... apart by their sum and their difference. */
static void rotate(float *x, size_t n, size_t run)
{
    float scale_by = 1 / sqrtf((float)run);

    for (size_t half = 1; half < run; half *= 2)
        for (size_t i = 0; i < n; i += 2 * half)
            for (size_t j = i; j < i + half; j++) {
                float a = x[j], b = x[j + half];

                x[j] = a + b;
                x[j + half] = a - b;
            }
    scale(x, scale_by, n);
}

/* Attention */

/* s[i][j] = q_i . k_j for at most GROUP queries */
static void scores(enum kv_type kt, const float *q, size_t n_q, const uint8_t *k,
                   size_t k_stride, size_t n_pos, size_t dk, float s[GROUP][ATTN_BLOCK])
{
    float tile[TILE];

    for (size_t j = 0; j < n_pos; j++) {
        float sum[GROUP][LANES] = { { 0 } };

        for (size_t d = 0; d < dk; d += TILE) {
            size_t n = min_size(TILE, dk - d);

            kv_row_load(kt, k + j * k_stride, d, tile, n);
            for (size_t i = 0; i < n_q; i++)
                dot_add(tile, q + i * dk + d, n, sum[i]);
        }
        for (size_t i = 0; i < n_q; i++)
            s[i][j] = fold(sum[i]);
    }
}

/*
 * Turn the scores of one query into weights exp(s - max) and update the running maximum and
 * sum.  Returns the factor for the sums so far.
 */
static float soften(float *s, size_t n_pos, float scale_by, float cap, float *m, float *l)
{
    float top = *m, sum = 0;

    for (size_t j = 0; j < n_pos; j++) {
        s[j] *= scale_by;
        if (cap > 0)
            s[j] = cap * tanhf(s[j] / cap);
        top = fmaxf(top, s[j]);
    }

    float shrink = expf(*m - top);

    for (size_t j = 0; j < n_pos; j++) {
        s[j] = expf(s[j] - top);
        sum += s[j];
    }
    *l = *l * shrink + sum;
    *m = top;
    return shrink;
}

/* acc_i = acc_i * shrink_i + sum_j p[i][j] * v_j for at most GROUP queries */
static void gather(enum kv_type vt, float p[GROUP][ATTN_BLOCK], const float *shrink, size_t n_q,
                   const uint8_t *v, size_t v_stride, size_t n_pos, size_t dv, float *acc)
{
    float tile[TILE];

    for (size_t i = 0; i < n_q; i++)
        scale(acc + i * dv, shrink[i], dv);
    for (size_t j = 0; j < n_pos; j++)
        for (size_t d = 0; d < dv; d += TILE) {
            size_t n = min_size(TILE, dv - d);

            kv_row_load(vt, v + j * v_stride, d, tile, n);
            for (size_t i = 0; i < n_q; i++)
                for (size_t e = 0; e < n; e++)
                    acc[i * dv + d + e] += p[i][j] * tile[e];
        }
}

static void attn(const struct attn_block *a)
{
    if (a->n_pos == 0)
        return;
    for (size_t i = 0; i < a->n_q; i += GROUP) {
        size_t n = min_size(GROUP, a->n_q - i);
        float s[GROUP][ATTN_BLOCK];
        float shrink[GROUP];

        scores(a->k_type, a->q + i * a->dk, n, a->k, a->k_stride, a->n_pos, a->dk, s);
        for (size_t g = 0; g < n; g++)
            shrink[g] = soften(s[g], a->n_pos, a->scale, a->cap, a->m + i + g, a->l + i + g);
        gather(a->v_type, s, shrink, n, a->v, a->v_stride, a->n_pos, a->dv, a->acc + i * a->dv);
    }
}

/* Gated delta rule */

static float dot(const float *a, const float *b, size_t n)
{
    float sum[LANES] = { 0 };

    dot_add(a, b, n, sum);
    return fold(sum);
}

static void delta(const struct delta_step *d)
{
    const float *from = d->from;
    float *to = d->to;

    for (size_t r = 0; r < d->dv; r++, from += d->dk, to += d->dk) {
        float change = d->beta * (d->v[r] - d->decay * dot(from, d->k, d->dk));

        for (size_t i = 0; i < d->dk; i++)
            to[i] = d->decay * from[i] + change * d->k[i];
        d->out[r] = dot(to, d->q, d->dk);
    }
}

const struct kernels kernels_generic = {
    .name = "generic",
    .dequant = dequant_row,
    .act_pack = act_pack,
    .mul = mul,
    .mul_packed = mul_packed,
    .unpack = unpack,
    .rms_norm = rms_norm,
    .gelu_mul = gelu_mul,
    .silu_mul = silu_mul,
    .sigmoid_mul = sigmoid_mul,
    .add = add,
    .scale = scale,
    .softcap = softcap,
    .rotate = rotate,
    .kv_store = kv_row_store,
    .attn = attn,
    .delta = delta,
};
