/*
 * vec_neon.h - vectors of 4 floats or 16 bytes (ARMv8.0).  With the dot product extension
 * the dot products of bytes take fewer instructions and give the same integers.
 * vec_avx512.h explains the names.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_NEON_H
#define MEMWALL_ENGINE_COMPUTE_VEC_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/compute/half.h"
#include "engine/compute/vec.h"

#define VN 4

/* Registers: 24 sums, 6 columns, 1 row. */
#define TILE_ROWS 4
#define TILE_COLS 6

/* Columns up to which packed weights are widened in registers. */
#define PACKED_COLS (2 * TILE_COLS)

/* Rows per round of 8-bit products. */
#define Q8_ROWS 2

typedef float32x4_t vf;
typedef int32x4_t vi;
typedef int8x16_t vb;

INLINE vf vf_zero(void)
{
    return vdupq_n_f32(0);
}

INLINE vf vf_all(float v)
{
    return vdupq_n_f32(v);
}

INLINE vf vf_load(const void *p)
{
    return vreinterpretq_f32_u8(vld1q_u8(p));
}

INLINE void vf_store(float *p, vf v)
{
    vst1q_f32(p, v);
}

INLINE vf vf_load_part(const void *p, size_t n)
{
    float f[VN] = { 0 };

    memcpy(f, p, n * sizeof *f);
    return vld1q_f32(f);
}

INLINE void vf_store_part(float *p, vf v, size_t n)
{
    float f[VN];

    vst1q_f32(f, v);
    memcpy(p, f, n * sizeof *f);
}

INLINE uint16x4_t first_halves(const void *p, size_t n)
{
    uint16_t h[VN] = { 0 };

    memcpy(h, p, n * sizeof *h);
    return vld1_u16(h);
}

INLINE uint16x4_t four_halves(const void *p)
{
    return vreinterpret_u16_u8(vld1_u8(p));
}

INLINE vf vf_load_bf16(const void *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(four_halves(p), 16));
}

INLINE vf vf_load_bf16_part(const void *p, size_t n)
{
    return vreinterpretq_f32_u32(vshll_n_u16(first_halves(p, n), 16));
}

/* Packed BF16: vec.h explains it. */
typedef uint8x16_t vp;

INLINE vp vp_exponents(uint8_t largest)
{
    return (vp)packed_exponents(largest);
}

INLINE void vp_widen(vp exponents, const uint8_t *rests, const uint8_t *codes, bool high, vf *w)
{
    UNROLL
    for (int i = 0; i < 4; i++) {
        uint8x8_t c = vld1_u8(codes + 8 * i);
        uint8x8_t e = vqtbl1_u8(exponents, high ? vshr_n_u8(c, 4) : vand_u8(c, vdup_n_u8(15)));
        uint16x8_t s =
            vreinterpretq_u16_s16(vmovl_s8(vreinterpret_s8_u8(vld1_u8(rests + 8 * i))));
        uint32x4_t v = vreinterpretq_u32_u16(
            vorrq_u16(vbicq_u16(s, vdupq_n_u16(0x7f80)), vshll_n_u8(e, 7)));

        w[i] = vreinterpretq_f32_u32(vshlq_n_u32(v, 16));
        w[i + 4] = vreinterpretq_f32_u32(vandq_u32(v, vdupq_n_u32(0xffff0000)));
    }
}

INLINE vf vf_load_f16(const void *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(four_halves(p)));
}

INLINE vf vf_load_f16_part(const void *p, size_t n)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(first_halves(p, n)));
}

INLINE void vf_store_f16(void *p, vf v)
{
    vst1_u8(p, vreinterpret_u8_f16(vcvt_f16_f32(v)));
}

INLINE float f32_of_half(const uint8_t *p)
{
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(load_u16(p)))), 0);
}

/* See vec_avx512.h. */
#define F8_UNIT 256.0f

INLINE vf vf_load_f8(const void *p)
{
    int8_t eight[8] = { 0 };

    memcpy(eight, p, VN);

    uint16x4_t w = vreinterpret_u16_s16(vget_low_s16(vmovl_s8(vld1_s8(eight))));

    w = vand_u16(vshl_n_u16(w, 7), vdup_n_u16(0xbf80));
    return vcvt_f32_f16(vreinterpret_f16_u16(w));
}

INLINE vf vf_load_u8(const uint8_t *p)
{
    uint16x8_t h = vmovl_u8(vcreate_u8(load_u32(p)));

    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(h)));
}

INLINE vf vf_load_i8(const uint8_t *p)
{
    int16x8_t h = vmovl_s8(vcreate_s8(load_u32(p)));

    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(h)));
}

INLINE vf vf_all_f16(const uint8_t *p)
{
    return vf_all(f32_of_half(p));
}

INLINE vf vf_of_nibbles(const uint8_t *p, bool high, vf scale)
{
    uint32_t b = load_u32(p);
    uint16x8_t h = vmovl_u8(vcreate_u8((high ? b >> 4 : b) & 0x0f0f0f0f));
    int32x4_t i = vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(h)));

    return vmulq_f32(vcvtq_f32_s32(vsubq_s32(i, vdupq_n_s32(8))), scale);
}

INLINE vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}

INLINE vf vf_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}

INLINE vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}

INLINE vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}

INLINE vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

/* NaN if either is NaN */
INLINE vf vf_max(vf a, vf b)
{
    return vmaxq_f32(a, b);
}

INLINE vf vf_min(vf a, vf b)
{
    return vminq_f32(a, b);
}

INLINE vf vf_abs(vf a)
{
    return vabsq_f32(a);
}

INLINE vf vf_copysign(vf a, vf b)
{
    return vbslq_f32(vdupq_n_u32(0x80000000), b, a);
}

INLINE vf vf_if_less(vf a, vf b, vf x, vf y)
{
    return vbslq_f32(vcltq_f32(a, b), x, y);
}

INLINE vf vf_round(vf a)
{
    return vrndnq_f32(a);
}

/* 2^n for n in -126 .. 127 */
INLINE vf power_of_2(vi n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

INLINE vf vf_ldexp(vf a, vf n)
{
    vi whole = vcvtnq_s32_f32(n);
    vi half = vshrq_n_s32(whole, 1);

    return vf_mul(vf_mul(a, power_of_2(half)), power_of_2(vsubq_s32(whole, half)));
}

INLINE float vf_sum(vf v)
{
    float32x2_t b = vadd_f32(vget_low_f32(v), vget_high_f32(v));

    return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
}

INLINE float vf_top(vf v)
{
    return vmaxvq_f32(v);
}

INLINE vf vf_of_vi(vi a)
{
    return vcvtq_f32_s32(a);
}

INLINE void vf_store_i8(int8_t *p, vf a)
{
    int16x4_t h = vqmovn_s32(vcvtnq_s32_f32(a));
    int8x8_t b = vqmovn_s16(vcombine_s16(h, h));
    int32_t four = vget_lane_s32(vreinterpret_s32_s8(b), 0);

    memcpy(p, &four, sizeof four);
}

INLINE vb vb_load(const void *p)
{
    return vreinterpretq_s8_u8(vld1q_u8(p));
}

INLINE void vb_store(void *p, vb v)
{
    vst1q_u8(p, vreinterpretq_u8_s8(v));
}

/* |w| is at most 128 and |x| at most 127, so a product fits 16 bits. */
#ifdef __ARM_FEATURE_DOTPROD
INLINE vi vb_dot_signed(vb w, vb x)
{
    return vdotq_s32(vdupq_n_s32(0), w, x);
}
#else
INLINE vi vb_dot_signed(vb w, vb x)
{
    vi low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)));
    vi high = vpaddlq_s16(vmull_s8(vget_high_s8(w), vget_high_s8(x)));

    return vpaddq_s32(low, high);
}
#endif

INLINE vi vb_dot(vb w, vb x)
{
    return vb_dot_signed(w, x);
}

#define RUNS_PER_CHUNK 0 /* half a run */

INLINE vb vb_of_half_run(const u8x32 *run, int half)
{
    uint8_t b[32];

    memcpy(b, run, sizeof b);
    return vreinterpretq_s8_u8(vld1q_u8(b + 16 * half));
}

INLINE u8x32 lookup_16(const int8_t *table, u8x32 index)
{
    uint8x16_t t = vld1q_u8((const uint8_t *)table);
    uint8_t i[32];

    memcpy(i, &index, sizeof i);
    return join_16((u8x16)vqtbl1q_u8(t, vld1q_u8(i)), (u8x16)vqtbl1q_u8(t, vld1q_u8(i + 16)));
}

/* 16 bytes from 16 bits */
INLINE u8x16 spread_16_bits(uint32_t bits, char value)
{
    uint8x16_t bit_of = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint8x16_t b = vcombine_u8(vdup_n_u8((uint8_t)bits), vdup_n_u8((uint8_t)(bits >> 8)));

    return (u8x16)vandq_u8(vtstq_u8(b, bit_of), vdupq_n_u8((uint8_t)value));
}

INLINE u8x32 spread_bits(uint32_t bits, char value)
{
    return join_16(spread_16_bits(bits, value), spread_16_bits(bits >> 16, value));
}

#define NS (16 / VN)

INLINE void scales_of_i8(u8x16 sc, float d, vf *s)
{
    int8x16_t b = (int8x16_t)sc;
    int16x8_t low = vmovl_s8(vget_low_s8(b)), high = vmovl_s8(vget_high_s8(b));

    s[0] = vf_mul(vf_all(d), vf_of_vi(vmovl_s16(vget_low_s16(low))));
    s[1] = vf_mul(vf_all(d), vf_of_vi(vmovl_s16(vget_high_s16(low))));
    s[2] = vf_mul(vf_all(d), vf_of_vi(vmovl_s16(vget_low_s16(high))));
    s[3] = vf_mul(vf_all(d), vf_of_vi(vmovl_s16(vget_high_s16(high))));
}

INLINE void scales_of_f16(u16x8 h, vf *s)
{
    uint16x8_t low = vzip1q_u16((uint16x8_t)h, (uint16x8_t)h);
    uint16x8_t high = vzip2q_u16((uint16x8_t)h, (uint16x8_t)h);

    s[0] = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(low)));
    s[1] = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(low)));
    s[2] = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(high)));
    s[3] = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(high)));
}

INLINE vf scales_of_chunk(const vf *s, int c)
{
    return vf_all(s[c / 4][c % 4]);
}

#endif
