/*
 * set_mul_q8.c - matrix times columns of 8-bit numbers.
 *
 * Both sides are integers with a scale for each 16 or 32 values.  Products of neighbours are
 * summed exactly, and multiply-adds of floats apply the scales.  set_mul_rows.h and
 * set_mul_lanes.h define how, and the order of additions.
 */
#include "config.h"

#include <math.h>

#include "engine/compute/ways.h"
#include "engine/compute/set_mul_float.h"

struct q8_product {
    const uint8_t *w;
    size_t w_stride, n_row, n_k;
    const uint8_t *x;
    size_t x_stride, n_col;
    float *y;
    size_t ldy;
    struct fetch_way fetch; /* how weights are prefetched, for one column */
    size_t few, panel, lane, amx_from; /* columns: ways.h */
};

/* Span i of column c. */
INLINE const struct act_q8 *column_span(const struct q8_product *p, size_t c, size_t i)
{
    return (const struct act_q8 *)(const void *)(p->x + c * p->x_stride) + i;
}

#ifdef DOT_TAKES_255 /* the vectors have the operations for four rows */
#include "engine/compute/set_mul_rows.h"
#if VN == 16
#include "engine/compute/set_interleaved.h"
#endif
#else
#include "engine/compute/set_mul_lanes.h"
#endif

/* A function per type: in one function of all types gcc allocates registers so badly that
 * products with many columns take 10 % longer. */
#define MUL_Q8(TYPE, name, ...)                                                                \
    static NOINLINE void mul_q8_##name(const struct q8_product *p)                             \
    {                                                                                          \
        mul_q8(TYPE_##TYPE, p);                                                                \
    }
BLOCK_TYPES(MUL_Q8)

#define CALL_MUL_Q8(TYPE, name, ...)                                                           \
    case TYPE_##TYPE: mul_q8_##name(p); return;

static void mul_columns(enum tensor_type type, const struct q8_product *p)
{
    switch (type) {
        BLOCK_TYPES(CALL_MUL_Q8)
        FLOAT_TYPES(CASE_OF)
        OTHER_TYPES(CASE_OF)
        break;
    }
    assert(false && "only blocks are multiplied with columns of 8 bits");
}

/* Pack block b of a span, 32 values. */
INLINE void pack_q8_block(const float *x, size_t b, struct act_q8 *to)
{
    vf top = vf_zero(), poison = vf_zero();

    UNROLL
    for (size_t j = 0; j < 32; j += VN) {
        top = vf_max(top, vf_abs(vf_load(x + j)));
        poison = vf_fma(vf_load(x + j), vf_zero(), poison); /* 0 if all are finite */
    }

    float amax = vf_top(top);
    float scale = vf_sum(poison) == 0 ? act_q8_scale(amax) : NAN;
    vf inverse = vf_all(scale > 0 ? 127 / amax : 0);

    UNROLL
    for (size_t half = 0; half < 2; half++) {
        vf sum = vf_zero();

        UNROLL
        for (size_t j = 16 * half; j < 16 * half + 16; j += VN) {
            vf v = scale > 0 ? vf_round(vf_mul(vf_load(x + j), inverse)) : vf_zero();

            vf_store_i8(to->q + 32 * b + j, v);
            sum = vf_add(sum, v); /* exact: whole numbers */
        }
        to->d[2 * b + half] = scale;
        to->dsum[2 * b + half] = scale * vf_sum(sum);
        to->less[2 * b + half] = -128 * (int32_t)vf_sum(sum);
    }
}

/* Pack a column.  The bytes equal those of kernels_generic.c. */
void set_pack_q8(const float *x, size_t n_k, void *dst)
{
    const size_t n_padded = act_q8_spans(n_k) * ACT_Q8_SPAN;
    struct act_q8 *spans = dst;

    for (size_t k = 0; k < n_padded; k += 32) {
        struct act_q8 *to = &spans[k / ACT_Q8_SPAN];
        const size_t b = k % ACT_Q8_SPAN / 32;
        float end[32] = { 0 };

        if (k + 32 <= n_k) {
            pack_q8_block(x + k, b, to);
            continue;
        }
        if (k < n_k)
            memcpy(end, x + k, (n_k - k) * sizeof *x);
        pack_q8_block(end, b, to);
    }
}

static struct q8_product product_of(const struct matmul *m, bool is_interleaved)
{
    return (struct q8_product){ .w = m->w,
                                .w_stride = (size_t)tensor_row_bytes(m->type, m->n_k),
                                .n_row = m->n_row,
                                .n_k = m->n_k,
                                .x = m->x,
                                .x_stride = m->x_stride,
                                .n_col = m->n_col,
                                .y = m->y,
                                .ldy = m->ldy,
                                .fetch = ways_fetch(is_interleaved, m->type),
                                .few = ways_cols(WAY_FEW_COLS),
                                .panel = ways_cols(WAY_PANEL_COLS),
                                .lane = ways_cols(WAY_LANE_COLS),
                                .amx_from = ways_cols(WAY_AMX_COLS) };
}

void set_mul_q8(const struct matmul *m)
{
    struct q8_product p = product_of(m, false);

    mul_columns(m->type, &p);
}

#ifdef HAS_INTERLEAVED
void set_mul_interleaved(const struct matmul *m)
{
    struct q8_product p = product_of(m, true);

    mul_interleaved_columns(m->type, &p);
}
#endif
