/*
 * vec_avx2.h - vectors of 8 floats or 32 bytes (AVX2, FMA, F16C).  vec_avx512.h explains the
 * names.
 *
 * AVX2 has no masks for 16-bit values, so parts of such vectors are copied through a small
 * array.  This happens once per row, and only if rows are not a multiple of 8.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_AVX2_H
#define MEMWALL_ENGINE_COMPUTE_VEC_AVX2_H

#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "engine/compute/half.h"
#include "engine/compute/vec.h"

#define VN 8

/* Registers: 12 sums, 3 columns, 1 row. */
#define TILE_ROWS 4
#define TILE_COLS 3

/* Rows per round of 8-bit products. */
#define Q8_ROWS 4

typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vb;

INLINE vf vf_zero(void)
{
    return _mm256_setzero_ps();
}

INLINE vf vf_all(float v)
{
    return _mm256_set1_ps(v);
}

INLINE vf vf_load(const void *p)
{
    return _mm256_loadu_ps(p);
}

INLINE void vf_store(float *p, vf v)
{
    _mm256_storeu_ps(p, v);
}

INLINE __m256i first_lanes(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE vf vf_load_part(const void *p, size_t n)
{
    return _mm256_maskload_ps(p, first_lanes(n));
}

INLINE void vf_store_part(float *p, vf v, size_t n)
{
    _mm256_maskstore_ps(p, first_lanes(n), v);
}

INLINE vf vf_of_bf16(__m128i h)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

INLINE vf vf_load_bf16(const void *p)
{
    return vf_of_bf16(_mm_loadu_si128(p));
}

INLINE __m128i first_halves(const void *p, size_t n)
{
    uint16_t h[VN] = { 0 };

    memcpy(h, p, n * sizeof *h);
    return _mm_loadu_si128((const void *)h);
}

INLINE vf vf_load_bf16_part(const void *p, size_t n)
{
    return vf_of_bf16(first_halves(p, n));
}

INLINE vf vf_load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}

INLINE vf vf_load_f16_part(const void *p, size_t n)
{
    return _mm256_cvtph_ps(first_halves(p, n));
}

INLINE void vf_store_f16(void *p, vf v)
{
    _mm_storeu_si128(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

INLINE float f32_of_half(const uint8_t *p)
{
    return _cvtsh_ss(load_u16(p));
}

INLINE vf vf_load_u8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p)));
}

INLINE vf vf_load_i8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p)));
}

INLINE vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

INLINE vf vf_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}

INLINE vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

INLINE vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INLINE vf vf_max(vf a, vf b)
{
    return _mm256_max_ps(a, b);
}

INLINE vf vf_min(vf a, vf b)
{
    return _mm256_min_ps(a, b);
}

INLINE vf vf_abs(vf a)
{
    return _mm256_andnot_ps(vf_all(-0.0f), a);
}

INLINE vf vf_copysign(vf a, vf b)
{
    return _mm256_or_ps(vf_abs(a), _mm256_and_ps(b, vf_all(-0.0f)));
}

INLINE vf vf_if_less(vf a, vf b, vf x, vf y)
{
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

INLINE vf vf_round(vf a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* 2^n for n in -126 .. 127 */
INLINE vf power_of_2(__m256i n)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* In two steps, because 2^n can overflow where the result does not. */
INLINE vf vf_ldexp(vf a, vf n)
{
    __m256i whole = _mm256_cvtps_epi32(n);
    __m256i half = _mm256_srai_epi32(whole, 1);

    return vf_mul(vf_mul(a, power_of_2(half)), power_of_2(_mm256_sub_epi32(whole, half)));
}

INLINE float vf_sum(vf v)
{
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

INLINE float vf_top(vf v)
{
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}

INLINE vf vf_of_vi(vi a)
{
    return _mm256_cvtepi32_ps(a);
}

INLINE void vf_store_i8(int8_t *p, vf a)
{
    __m256i whole = _mm256_cvtps_epi32(a);
    __m128i h =
        _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));

    _mm_storel_epi64((void *)p, _mm_packs_epi16(h, h));
}

INLINE vb vb_load(const void *p)
{
    return _mm256_loadu_si256(p);
}

INLINE void vb_store(void *p, vb v)
{
    _mm256_storeu_si256(p, v);
}

INLINE vi vb_dot(vb w, vb x)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1));
}

/* |w| is at most 128 and |x| at most 127, so the sum of two products fits 16 bits. */
INLINE vi vb_dot_signed(vb w, vb x)
{
    return vb_dot(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
}

#define RUNS_PER_CHUNK 1

INLINE vb vb_of_runs(const u8x32 *run)
{
    return (vb)run[0];
}

INLINE u8x32 lookup_16(const int8_t *table, u8x32 index)
{
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table));

    return (u8x32)_mm256_shuffle_epi8(t, (__m256i)index);
}

INLINE u8x32 spread_bits(uint32_t bits, char value)
{
    __m256i byte_of = _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101,
                                         0x0202020202020202, 0x0303030303030303);
    __m256i bit_of = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i b = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte_of);

    b = _mm256_cmpeq_epi8(_mm256_and_si256(b, bit_of), bit_of);
    return (u8x32)_mm256_and_si256(b, _mm256_set1_epi8(value));
}

#define NS (16 / VN)

INLINE void scales_of_i8(u8x16 sc, float d, vf *s)
{
    __m128i b = (__m128i)sc;

    s[0] = vf_mul(vf_all(d), vf_of_vi(_mm256_cvtepi8_epi32(b)));
    s[1] = vf_mul(vf_all(d), vf_of_vi(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(b, b))));
}

INLINE void scales_of_f16(u16x8 h, vf *s)
{
    s[0] = _mm256_cvtph_ps(_mm_unpacklo_epi16((__m128i)h, (__m128i)h));
    s[1] = _mm256_cvtph_ps(_mm_unpackhi_epi16((__m128i)h, (__m128i)h));
}

INLINE vf scales_of_chunk(const vf *s, int c)
{
    vi lanes = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);

    return _mm256_permutevar8x32_ps(s[c / 4],
                                    _mm256_add_epi32(lanes, _mm256_set1_epi32(2 * (c % 4))));
}

#endif
