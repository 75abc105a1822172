/*
 * kernel_set.h - all functions of one set.
 *
 * A kernels_*.c defines VECTORS as the name of its vec_*.h, includes this file, and makes
 * its struct kernels with KERNEL_SET(name).
 */
#ifndef MEMWALL_ENGINE_COMPUTE_KERNEL_SET_H
#define MEMWALL_ENGINE_COMPUTE_KERNEL_SET_H

#include "engine/compute/kernels.h"
#include "engine/compute/kv_types.h"
#include "engine/compute/set_attn.h"
#include "engine/compute/set_delta.h"
#include "engine/compute/set_mul_q8.h"
#include "engine/compute/set_rotate.h"

static void set_act_pack(enum act_form form, const float *x, size_t n_k, void *dst)
{
    size_t bytes = act_bytes(ACT_F32, n_k);

    if (form == ACT_Q8) {
        pack_q8(x, n_k, dst);
        return;
    }
    memcpy(dst, x, n_k * sizeof *x);
    memset((char *)dst + n_k * sizeof *x, 0, bytes - n_k * sizeof *x);
}

static struct q8_product q8_product_of(enum tensor_type type, const void *w, size_t n_row,
                                       size_t n_k, const void *x, size_t x_stride,
                                       size_t n_col, float *y, size_t ldy)
{
    return (struct q8_product){ .w = w,
                                .w_stride = (size_t)tensor_row_bytes(type, n_k),
                                .n_row = n_row,
                                .n_k = n_k,
                                .x = x,
                                .x_stride = x_stride,
                                .n_col = n_col,
                                .y = y,
                                .ldy = ldy };
}

static void set_mul(enum tensor_type type, enum act_form form, const void *w, size_t n_row,
                    size_t n_k, const void *x, size_t x_stride, size_t n_col, float *y,
                    size_t ldy)
{
    size_t w_stride = (size_t)tensor_row_bytes(type, n_k);

    if (form == ACT_F32) {
        struct product p = { .w = w,
                             .w_stride = w_stride,
                             .n_row = n_row,
                             .n_k = n_k,
                             .x = x,
                             .ldx = x_stride / sizeof(float),
                             .n_col = n_col,
                             .y = y,
                             .ldy = ldy };

        mul_float_columns(type, &p);
    } else {
        struct q8_product p = q8_product_of(type, w, n_row, n_k, x, x_stride, n_col, y, ldy);

        mul_q8_columns(type, &p);
    }
}

#ifdef HAS_INTERLEAVED
static void set_mul_interleaved(enum tensor_type type, const void *w, size_t n_row, size_t n_k,
                                const void *x, size_t x_stride, size_t n_col, float *y,
                                size_t ldy)
{
    struct q8_product p = q8_product_of(type, w, n_row, n_k, x, x_stride, n_col, y, ldy);

    mul_interleaved_columns(type, &p);
}
#else
#define set_mul_interleaved NULL
#endif

/* The CPU rounds to f16; kv_types.c stores the other types. */
static void set_kv_store(enum kv_type type, const float *src, size_t n, void *dst)
{
    uint8_t *p = dst;
    size_t i = 0;

    if (type != KV_F16) {
        kv_row_store(type, src, n, dst);
        return;
    }
    for (; i + VN <= n; i += VN)
        vf_store_f16(p + 2 * i, vf_load(src + i));
    if (i < n)
        kv_row_store(KV_F16, src + i, n - i, p + 2 * i);
}

#define KERNEL_SET(set_name)                                                                   \
    {                                                                                          \
        .name = set_name, .dequant = set_dequant, .act_pack = set_act_pack, .mul = set_mul,    \
        .mul_packed = set_mul_packed, .unpack = set_unpack, .rms_norm = set_rms_norm,          \
        .gelu_mul = set_gelu_mul, .silu_mul = set_silu_mul, .sigmoid_mul = set_sigmoid_mul,    \
        .delta = set_delta, .add = set_add, .scale = set_scale, .softcap = set_softcap,        \
        .rotate = set_rotate, .kv_store = set_kv_store, .attn = set_attn,                      \
        .mul_interleaved = set_mul_interleaved,                                                \
    }

#endif
