/*
 * vec_neon.h - vectors of 4 floats or 16 bytes (ARMv8.0).  With the extensions for dot products
 * and for products of matrices (i8mm), products of bytes take fewer instructions and give the
 * same integers.
 * vec_avx512.h explains the names.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_NEON_H
#define MEMWALL_ENGINE_COMPUTE_VEC_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/compute/half.h"
#include "engine/compute/quants.h"
#include "engine/compute/vec.h"

#define VN 4

/* Registers: 24 sums, 6 columns, 1 row. */
#define TILE_ROWS 4
#define TILE_COLS 6

/* Columns up to which packed weights are widened in registers. */
#define PACKED_COLS (2 * TILE_COLS)

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

INLINE vb vb_less(vb w, int8_t offset)
{
    return vsubq_s8(w, vdupq_n_s8(offset));
}

INLINE vi vi_zero(void)
{
    return vdupq_n_s32(0);
}

/* Add products of 16 bytes.  Each lane gets those of 4 neighbours or, without the extension, of
 * other places: only the sum of all lanes is defined.  |w| is at most 128 and |x| at most 127, so
 * two products fit 16 bits. */
INLINE vi vb_dot_add(vi sum, vb w, vb x)
{
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(sum, w, x);
#else
    return vpadalq_s16(sum, vmlal_high_s8(vmull_s8(vget_low_s8(w), vget_low_s8(x)), w, x));
#endif
}

/* The sums of the lanes of four vectors. */
INLINE vi vi_fold(vi a, vi b, vi c, vi d)
{
    return vpaddq_s32(vpaddq_s32(a, b), vpaddq_s32(c, d));
}

/* to[i] has lane i of each vector. */
INLINE void vf_transpose(vf a, vf b, vf c, vf d, vf *to)
{
    vf ac0 = vzip1q_f32(a, c), ac1 = vzip2q_f32(a, c);
    vf bd0 = vzip1q_f32(b, d), bd1 = vzip2q_f32(b, d);

    to[0] = vzip1q_f32(ac0, bd0);
    to[1] = vzip2q_f32(ac0, bd0);
    to[2] = vzip1q_f32(ac1, bd1);
    to[3] = vzip2q_f32(ac1, bd1);
}

/* to[i] has dword i of the 16 bytes at each p[j] + at. */
INLINE void vb_dwords(const uint8_t *const *p, size_t at, vb *to)
{
    vf row[VN], dwords[VN];

    UNROLL
    for (int j = 0; j < VN; j++)
        row[j] = vf_load(p[j] + at);
    vf_transpose(row[0], row[1], row[2], row[3], dwords);
    UNROLL
    for (int i = 0; i < VN; i++)
        to[i] = vreinterpretq_s8_f32(dwords[i]);
}

/* Byte b of each lane, without and with a sign */
INLINE vf vf_of_byte(vb v, int b)
{
    return vcvtq_f32_u32(vreinterpretq_u32_s8(v) >> (8 * b) & 255);
}

INLINE vf vf_of_signed_byte(vb v, int b)
{
    return vcvtq_f32_s32(vreinterpretq_s32_s8(v) << (24 - 8 * b) >> 24);
}

/* The f16 in the low, and in the high half of each lane, and in 64 bits */
INLINE vf vf_of_low_f16(vb v)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(vreinterpretq_u32_s8(v))));
}

INLINE vf vf_of_high_f16(vb v)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vshrn_n_u32(vreinterpretq_u32_s8(v), 16)));
}

INLINE vf vf_of_four_f16(uint64_t four)
{
    return vcvt_f32_f16(vcreate_f16(four));
}

INLINE vi vi_load(const int32_t *p)
{
    return vld1q_s32(p);
}

INLINE vi vi_add(vi a, vi b)
{
    return vaddq_s32(a, b);
}

/* The sums of neighbours of a, then of b */
INLINE vi vi_pair_sums(vi a, vi b)
{
    return vpaddq_s32(a, b);
}

/* a / 2^n, rounded down */
INLINE vi vi_divide(vi a, int n)
{
    return a >> n;
}

/* Lane i in all lanes.  A multiplication takes it from there. */
INLINE vf vf_lane(vf v, int i)
{
    return vdupq_n_f32(v[i]);
}

INLINE vi vi_lane(vi v, int i)
{
    return vdupq_n_s32(v[i]);
}

INLINE vb vb_zip_64(vb a, vb b, bool high)
{
    int64x2_t x = vreinterpretq_s64_s8(a), y = vreinterpretq_s64_s8(b);

    return vreinterpretq_s8_s64(high ? vzip2q_s64(x, y) : vzip1q_s64(x, y));
}

/*
 * Products of many columns (set_mul_lanes.h).  lanes_lay() arranges 32 bytes of four rows.
 * lanes_sum() multiplies them with COLS_TOGETHER columns: sum[1] has the sums of all 32 values,
 * or, with halves, of the last 16, and sum[0] those of the first 16.  The others spread the
 * scales of four rows and of the columns as the sums are, and return results with rows in the
 * lanes.
 */
#define WEIGHTS_LAID 8

#ifdef __ARM_FEATURE_MATMUL_INT8
/* smmla multiplies 8 bytes of two rows with 8 bytes of two columns.  A sum has row 0 and both
 * columns, then row 1. */
#define COLS_TOGETHER 2
#define SUMS          2 /* rows 0 and 1, rows 2 and 3 */

INLINE void lanes_lay(vb w[VN][2], vb *to)
{
    UNROLL
    for (int i = 0; i < WEIGHTS_LAID; i++) {
        const int pair = i / 4 * 2, half = i / 2 % 2;

        to[i] = vb_zip_64(w[pair][half], w[pair + 1][half], i % 2 != 0);
    }
}

INLINE void lanes_sum(const vb *w, const struct act_q8 *const *x, int b, bool halves,
                      vi sum[2][SUMS])
{
    UNROLL
    for (int half = 0; half < 2; half++) {
        const vb c0 = vb_load(x[0]->q + 32 * b + 16 * half);
        const vb c1 = vb_load(x[1]->q + 32 * b + 16 * half);
        const vb low = vb_zip_64(c0, c1, false), high = vb_zip_64(c0, c1, true);

        UNROLL
        for (int k = 0; k < SUMS; k++) {
            vi before = half == 0 || halves ? vi_zero() : sum[0][k];

            before = vmmlaq_s32(before, w[4 * k + 2 * half], low);
            sum[half][k] = vmmlaq_s32(before, w[4 * k + 2 * half + 1], high);
        }
    }
}

INLINE void lanes_spread(vf s, vf *to)
{
    to[0] = vzip1q_f32(s, s);
    to[1] = vzip2q_f32(s, s);
}

INLINE vf lanes_column_scale(const struct act_q8 *const *x, int g)
{
    return vzip1q_f32(vf_all(x[0]->d[g]), vf_all(x[1]->d[g]));
}

INLINE void lanes_results(const vf *acc, vf *y)
{
    y[0] = vuzp1q_f32(acc[0], acc[1]);
    y[1] = vuzp2q_f32(acc[0], acc[1]);
}
#else
#define COLS_TOGETHER 1
#define SUMS          1

INLINE void lanes_spread(vf s, vf *to)
{
    to[0] = s;
}

INLINE vf lanes_column_scale(const struct act_q8 *const *x, int g)
{
    return vf_all(x[0]->d[g]);
}

INLINE void lanes_results(const vf *acc, vf *y)
{
    y[0] = acc[0];
}

#ifdef __ARM_FEATURE_DOTPROD
/* Vector i has bytes 4 i .. 4 i + 3 of the four rows, which sdot multiplies with those of the
 * column. */
INLINE void lanes_lay(vb w[VN][2], vb *to)
{
    UNROLL
    for (int half = 0; half < 2; half++) {
        vf dwords[VN];

        vf_transpose(vreinterpretq_f32_s8(w[0][half]), vreinterpretq_f32_s8(w[1][half]),
                     vreinterpretq_f32_s8(w[2][half]), vreinterpretq_f32_s8(w[3][half]), dwords);
        UNROLL
        for (int i = 0; i < VN; i++)
            to[VN * half + i] = vreinterpretq_s8_f32(dwords[i]);
    }
}

INLINE void lanes_sum(const vb *w, const struct act_q8 *const *x, int b, bool halves,
                      vi sum[2][SUMS])
{
    UNROLL
    for (int half = 0; half < 2; half++) {
        const vb q = vb_load(x[0]->q + 32 * b + 16 * half);
        vi v = half == 0 || halves ? vi_zero() : sum[0][0];

        v = vdotq_laneq_s32(v, w[4 * half], q, 0);
        v = vdotq_laneq_s32(v, w[4 * half + 1], q, 1);
        v = vdotq_laneq_s32(v, w[4 * half + 2], q, 2);
        sum[half][0] = vdotq_laneq_s32(v, w[4 * half + 3], q, 3);
    }
}
#else
/* Vectors 2 j and 2 j + 1 are the bytes of row j. */
INLINE void lanes_lay(vb w[VN][2], vb *to)
{
    UNROLL
    for (int i = 0; i < WEIGHTS_LAID; i++)
        to[i] = w[i / 2][i % 2];
}

INLINE void lanes_sum(const vb *w, const struct act_q8 *const *x, int b, bool halves,
                      vi sum[2][SUMS])
{
    const vb low = vb_load(x[0]->q + 32 * b), high = vb_load(x[0]->q + 32 * b + 16);
    vi first[VN], last[VN];

    UNROLL
    for (int j = 0; j < VN; j++) {
        first[j] = vb_dot_add(vi_zero(), w[2 * j], low);
        last[j] = vb_dot_add(halves ? vi_zero() : first[j], w[2 * j + 1], high);
    }
    sum[0][0] = halves ? vi_fold(first[0], first[1], first[2], first[3]) : vi_zero();
    sum[1][0] = vi_fold(last[0], last[1], last[2], last[3]);
}
#endif
#endif

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

#endif
