/*
 * vec_sse41.h - vectors of 4 floats or 16 bytes (SSE4.1, SSSE3), for x86 CPUs without AVX2:
 * old ones, and small ones that were sold until recently.  vec_avx512.h explains the names.
 *
 * There are no instructions for fused multiply-add or for f16.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_SSE41_H
#define MEMWALL_ENGINE_COMPUTE_VEC_SSE41_H

#include <smmintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <tmmintrin.h>

#include "engine/compute/half.h"
#include "engine/compute/vec.h"

#define VN 4

/* Registers: 9 sums, 3 columns, 1 row, 1 product. */
#define TILE_ROWS 3
#define TILE_COLS 3

/* Rows per round of 8-bit products. */
#define Q8_ROWS 1

typedef __m128 vf;
typedef __m128i vi;
typedef __m128i vb;

INLINE vf vf_zero(void)
{
    return _mm_setzero_ps();
}

INLINE vf vf_all(float v)
{
    return _mm_set1_ps(v);
}

INLINE vf vf_load(const void *p)
{
    return _mm_loadu_ps(p);
}

INLINE void vf_store(float *p, vf v)
{
    _mm_storeu_ps(p, v);
}

INLINE vf vf_load_part(const void *p, size_t n)
{
    float f[VN] = { 0 };

    memcpy(f, p, n * sizeof *f);
    return _mm_loadu_ps(f);
}

INLINE void vf_store_part(float *p, vf v, size_t n)
{
    float f[VN];

    _mm_storeu_ps(f, v);
    memcpy(p, f, n * sizeof *f);
}

/* 4 values of 16 bits, each in the low half of a lane. */
INLINE __m128i four_halves(const void *p)
{
    return _mm_cvtepu16_epi32(_mm_loadl_epi64(p));
}

INLINE __m128i first_halves(const void *p, size_t n)
{
    uint16_t h[VN] = { 0 };

    memcpy(h, p, n * sizeof *h);
    return four_halves(h);
}

INLINE vf vf_of_bf16(__m128i h)
{
    return _mm_castsi128_ps(_mm_slli_epi32(h, 16));
}

INLINE vf vf_load_bf16(const void *p)
{
    return vf_of_bf16(four_halves(p));
}

INLINE vf vf_load_bf16_part(const void *p, size_t n)
{
    return vf_of_bf16(first_halves(p, n));
}

/* Packed BF16: vec.h explains it. */
typedef __m128i vp;

INLINE vp vp_exponents(uint8_t largest)
{
    return (vp)packed_exponents(largest);
}

INLINE void vp_widen(vp exponents, const uint8_t *rests, const uint8_t *codes, bool high, vf *w)
{
    UNROLL
    for (int i = 0; i < 4; i++) {
        __m128i e = _mm_shuffle_epi8(exponents, (vp)packed_codes(codes + 8 * (i & 2), high));
        __m128i s = _mm_cvtepi8_epi16(_mm_loadl_epi64((const void *)(rests + 8 * i)));
        __m128i wide =
            i % 2 == 0 ? _mm_cvtepu8_epi16(e) : _mm_unpackhi_epi8(e, _mm_setzero_si128());
        __m128i v =
            _mm_or_si128(_mm_andnot_si128(_mm_set1_epi16(0x7f80), s), _mm_slli_epi16(wide, 7));

        w[i] = _mm_castsi128_ps(_mm_slli_epi32(v, 16));
        w[i + 4] = _mm_castsi128_ps(_mm_and_si128(v, _mm_set1_epi32(-65536)));
    }
}

/*
 * Shifting left by 13 bits puts exponent and fraction in place, and multiplying by 2^112
 * corrects the bias, also for subnormals.  Infinity and NaN then get the largest exponent.
 */
INLINE vf vf_of_f16(__m128i h)
{
    __m128i sign = _mm_slli_epi32(_mm_and_si128(h, _mm_set1_epi32(0x8000)), 16);
    __m128i rest = _mm_and_si128(h, _mm_set1_epi32(0x7fff));
    __m128i is_special = _mm_cmpgt_epi32(rest, _mm_set1_epi32(0x7bff));
    vf v = _mm_mul_ps(_mm_castsi128_ps(_mm_slli_epi32(rest, 13)), vf_all(0x1p112f));
    __m128i special = _mm_and_si128(is_special, _mm_set1_epi32(0x7f800000));

    return _mm_castsi128_ps(_mm_or_si128(_mm_or_si128(_mm_castps_si128(v), special), sign));
}

INLINE vf vf_load_f16(const void *p)
{
    return vf_of_f16(four_halves(p));
}

INLINE vf vf_load_f16_part(const void *p, size_t n)
{
    return vf_of_f16(first_halves(p, n));
}

INLINE void vf_store_f16(void *p, vf v)
{
    float f[VN];

    _mm_storeu_ps(f, v);
    for (size_t i = 0; i < VN; i++)
        store_u16((uint8_t *)p + 2 * i, f16_of_f32(f[i]));
}

INLINE float f32_of_half(const uint8_t *p)
{
    return _mm_cvtss_f32(vf_of_f16(_mm_cvtsi32_si128(load_u16(p))));
}

INLINE vf vf_load_u8(const uint8_t *p)
{
    return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)load_u32(p))));
}

INLINE vf vf_load_i8(const uint8_t *p)
{
    return _mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128((int)load_u32(p))));
}

INLINE vf vf_add(vf a, vf b)
{
    return _mm_add_ps(a, b);
}

INLINE vf vf_sub(vf a, vf b)
{
    return _mm_sub_ps(a, b);
}

INLINE vf vf_mul(vf a, vf b)
{
    return _mm_mul_ps(a, b);
}

INLINE vf vf_div(vf a, vf b)
{
    return _mm_div_ps(a, b);
}

/* With two roundings. */
INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm_add_ps(_mm_mul_ps(a, b), c);
}

INLINE vf vf_max(vf a, vf b)
{
    return _mm_max_ps(a, b);
}

INLINE vf vf_min(vf a, vf b)
{
    return _mm_min_ps(a, b);
}

INLINE vf vf_abs(vf a)
{
    return _mm_andnot_ps(vf_all(-0.0f), a);
}

INLINE vf vf_copysign(vf a, vf b)
{
    return _mm_or_ps(vf_abs(a), _mm_and_ps(b, vf_all(-0.0f)));
}

INLINE vf vf_if_less(vf a, vf b, vf x, vf y)
{
    return _mm_blendv_ps(y, x, _mm_cmplt_ps(a, b));
}

INLINE vf vf_round(vf a)
{
    return _mm_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* 2^n for n in -126 .. 127 */
INLINE vf power_of_2(__m128i n)
{
    return _mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(n, _mm_set1_epi32(127)), 23));
}

INLINE vf vf_ldexp(vf a, vf n)
{
    __m128i whole = _mm_cvtps_epi32(n);
    __m128i half = _mm_srai_epi32(whole, 1);

    return vf_mul(vf_mul(a, power_of_2(half)), power_of_2(_mm_sub_epi32(whole, half)));
}

INLINE float vf_sum(vf v)
{
    v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}

INLINE float vf_top(vf v)
{
    v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    return _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps(v, v, 1)));
}

INLINE vf vf_of_vi(vi a)
{
    return _mm_cvtepi32_ps(a);
}

INLINE void vf_store_i8(int8_t *p, vf a)
{
    __m128i h = _mm_packs_epi32(_mm_cvtps_epi32(a), _mm_setzero_si128());
    int32_t four = _mm_cvtsi128_si32(_mm_packs_epi16(h, h));

    memcpy(p, &four, sizeof four);
}

INLINE vb vb_load(const void *p)
{
    return _mm_loadu_si128(p);
}

INLINE void vb_store(void *p, vb v)
{
    _mm_storeu_si128(p, v);
}

INLINE vi vb_dot(vb w, vb x)
{
    return _mm_madd_epi16(_mm_maddubs_epi16(w, x), _mm_set1_epi16(1));
}

/* |w| is at most 128 and |x| at most 127, so the sum of two products fits 16 bits. */
INLINE vi vb_dot_signed(vb w, vb x)
{
    return vb_dot(_mm_abs_epi8(w), _mm_sign_epi8(x, w));
}

#define RUNS_PER_CHUNK 0 /* half a run */

INLINE vb vb_of_half_run(const u8x32 *run, int half)
{
    uint8_t b[32];

    memcpy(b, run, sizeof b);
    return vb_load(b + 16 * half);
}

INLINE u8x32 lookup_16(const int8_t *table, u8x32 index)
{
    __m128i t = vb_load(table);
    uint8_t i[32];

    memcpy(i, &index, sizeof i);
    return join_16((u8x16)_mm_shuffle_epi8(t, vb_load(i)),
                   (u8x16)_mm_shuffle_epi8(t, vb_load(i + 16)));
}

/* 16 bytes from 16 bits */
INLINE u8x16 spread_16_bits(uint32_t bits, char value)
{
    __m128i byte_of = _mm_set_epi64x(0x0101010101010101, 0);
    __m128i bit_of = _mm_set1_epi64x((long long)0x8040201008040201);
    __m128i b = _mm_shuffle_epi8(_mm_cvtsi32_si128((int)bits), byte_of);

    b = _mm_cmpeq_epi8(_mm_and_si128(b, bit_of), bit_of);
    return (u8x16)_mm_and_si128(b, _mm_set1_epi8(value));
}

INLINE u8x32 spread_bits(uint32_t bits, char value)
{
    return join_16(spread_16_bits(bits, value), spread_16_bits(bits >> 16, value));
}

#define NS (16 / VN)

INLINE void scales_of_i8(u8x16 sc, float d, vf *s)
{
    __m128i b = (__m128i)sc;

    s[0] = vf_mul(vf_all(d), vf_of_vi(_mm_cvtepi8_epi32(b)));
    s[1] = vf_mul(vf_all(d), vf_of_vi(_mm_cvtepi8_epi32(_mm_srli_si128(b, 4))));
    s[2] = vf_mul(vf_all(d), vf_of_vi(_mm_cvtepi8_epi32(_mm_srli_si128(b, 8))));
    s[3] = vf_mul(vf_all(d), vf_of_vi(_mm_cvtepi8_epi32(_mm_srli_si128(b, 12))));
}

INLINE void scales_of_f16(u16x8 h, vf *s)
{
    __m128i low = _mm_unpacklo_epi16((__m128i)h, (__m128i)h);
    __m128i high = _mm_unpackhi_epi16((__m128i)h, (__m128i)h);

    s[0] = vf_of_f16(_mm_cvtepu16_epi32(low));
    s[1] = vf_of_f16(_mm_cvtepu16_epi32(_mm_srli_si128(low, 8)));
    s[2] = vf_of_f16(_mm_cvtepu16_epi32(high));
    s[3] = vf_of_f16(_mm_cvtepu16_epi32(_mm_srli_si128(high, 8)));
}

INLINE vf scales_of_chunk(const vf *s, int c)
{
    return vf_all(s[c / 4][c % 4]);
}

#endif
