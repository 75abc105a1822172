/*
 * vec_avx512.h - vectors of 16 floats or 64 bytes (AVX-512 F, BW, DQ, VL).  With VNNI the
 * dot products of bytes take fewer instructions and give the same integers.
 *
 * Every vec_*.h defines the same names, and the set_*.h use nothing else:
 *   vf, vi, vb   vectors of VN floats, VN int32, 4 * VN bytes
 *   *_part       the first n lanes; memory past them is neither read nor written
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_AVX512_H
#define MEMWALL_ENGINE_COMPUTE_VEC_AVX512_H

#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "engine/compute/half.h"
#include "engine/compute/vec.h"

#define VN 16

/* Registers: 24 sums, 6 columns, 1 row. */
#define TILE_ROWS 4
#define TILE_COLS 6

/* Rows per round of 8-bit products. */
#define Q8_ROWS 4

typedef __m512 vf;
typedef __m512i vi;
typedef __m512i vb;

INLINE vf vf_zero(void)
{
    return _mm512_setzero_ps();
}

INLINE vf vf_all(float v)
{
    return _mm512_set1_ps(v);
}

INLINE vf vf_load(const void *p)
{
    return _mm512_loadu_ps(p);
}

INLINE void vf_store(float *p, vf v)
{
    _mm512_storeu_ps(p, v);
}

INLINE __mmask16 first_lanes(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

INLINE vf vf_load_part(const void *p, size_t n)
{
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}

INLINE void vf_store_part(float *p, vf v, size_t n)
{
    _mm512_mask_storeu_ps(p, first_lanes(n), v);
}

INLINE vf vf_of_bf16(__m256i h)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

INLINE vf vf_load_bf16(const void *p)
{
    return vf_of_bf16(_mm256_loadu_si256(p));
}

INLINE vf vf_load_bf16_part(const void *p, size_t n)
{
    return vf_of_bf16(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

INLINE vf vf_load_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}

INLINE vf vf_load_f16_part(const void *p, size_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), p));
}

INLINE float f32_of_half(const uint8_t *p)
{
    return _cvtsh_ss(load_u16(p));
}

/* Rounds to the nearest, halves to even. */
INLINE void vf_store_f16(void *p, vf v)
{
    _mm256_storeu_si256(p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

INLINE vf vf_load_u8(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p)));
}

INLINE vf vf_load_i8(const uint8_t *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p)));
}

INLINE vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

INLINE vf vf_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}

INLINE vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

INLINE vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

/* a * b + c with one rounding */
INLINE vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* b if either is NaN */
INLINE vf vf_max(vf a, vf b)
{
    return _mm512_max_ps(a, b);
}

INLINE vf vf_min(vf a, vf b)
{
    return _mm512_min_ps(a, b);
}

INLINE vf vf_abs(vf a)
{
    return _mm512_abs_ps(a);
}

/* |a| with the sign of b */
INLINE vf vf_copysign(vf a, vf b)
{
    return _mm512_or_ps(vf_abs(a), _mm512_and_ps(b, vf_all(-0.0f)));
}

/* a < b ? x : y */
INLINE vf vf_if_less(vf a, vf b, vf x, vf y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

INLINE vf vf_round(vf a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* a * 2^n for whole n; 0 or infinity outside the range of float */
INLINE vf vf_ldexp(vf a, vf n)
{
    return _mm512_scalef_ps(a, n);
}

/* Add lanes i and i + 8, then + 4, + 2 and + 1. */
INLINE float vf_sum(vf v)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/*
 * y[c * ldy + r] = vf_sum(a[r * ld + c]) for r, c < 4.  16 sums at once take 3 operations per
 * vector instead of 8.
 */
#define HAS_SUM_4X4 1

INLINE void vf_sum_4x4(const vf *a, size_t ld, float *y, size_t ldy)
{
    vf b[8], c[4], d[2], sums;

    /* A vector of b has 2 sums of 8 lanes, of c 4 of 4, of d 8 of 2. */
    UNROLL
    for (int i = 0; i < 8; i++) {
        vf even = a[i / 2 * ld + i % 2 * 2], odd = a[i / 2 * ld + i % 2 * 2 + 1];

        b[i] = vf_add(_mm512_shuffle_f32x4(even, odd, 0x44),
                      _mm512_shuffle_f32x4(even, odd, 0xee));
    }
    UNROLL
    for (int i = 0; i < 4; i++)
        c[i] = vf_add(_mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0x88),
                      _mm512_shuffle_f32x4(b[2 * i], b[2 * i + 1], 0xdd));
    UNROLL
    for (int i = 0; i < 2; i++)
        d[i] = vf_add(_mm512_shuffle_ps(c[2 * i], c[2 * i + 1], 0x44),
                      _mm512_shuffle_ps(c[2 * i], c[2 * i + 1], 0xee));
    sums = vf_add(_mm512_shuffle_ps(d[0], d[1], 0x88), _mm512_shuffle_ps(d[0], d[1], 0xdd));
    _mm_storeu_ps(y, _mm512_castps512_ps128(sums));
    _mm_storeu_ps(y + ldy, _mm512_extractf32x4_ps(sums, 1));
    _mm_storeu_ps(y + 2 * ldy, _mm512_extractf32x4_ps(sums, 2));
    _mm_storeu_ps(y + 3 * ldy, _mm512_extractf32x4_ps(sums, 3));
}

INLINE float vf_top(vf v)
{
    return _mm512_reduce_max_ps(v);
}

/* Bytes and integers */

INLINE vf vf_of_vi(vi a)
{
    return _mm512_cvtepi32_ps(a);
}

/* Store VN values as int8.  They are whole and in range. */
INLINE void vf_store_i8(int8_t *p, vf a)
{
    _mm_storeu_si128((void *)p, _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(a)));
}

INLINE vb vb_load(const void *p)
{
    return _mm512_loadu_si512(p);
}

INLINE void vb_store(void *p, vb v)
{
    _mm512_storeu_si512(p, v);
}

/* Sums of w * x over 4 neighbours, w in 0 .. 127. */
INLINE vi vb_dot(vb w, vb x)
{
#ifdef __AVX512VNNI__
    return _mm512_dpbusd_epi32(_mm512_setzero_si512(), w, x);
#else
    return _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1));
#endif
}

/* The same for w in -128 .. 127 and x in -127 .. 127. */
INLINE vi vb_dot_signed(vb w, vb x)
{
    vb turned = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);

    return vb_dot(_mm512_abs_epi8(w), turned);
}

/* A vector of bytes holds this many runs of 32. */
#define RUNS_PER_CHUNK 2

INLINE vb vb_of_runs(const u8x32 *run)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512((__m256i)run[0]), (__m256i)run[1], 1);
}

/* table[i] for each byte i below 16 */
INLINE u8x32 lookup_16(const int8_t *table, u8x32 index)
{
    __m256i t = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)table));

    return (u8x32)_mm256_shuffle_epi8(t, (__m256i)index);
}

/* `value` in byte i if bit i is set, otherwise 0 */
INLINE u8x32 spread_bits(uint32_t bits, char value)
{
    return (u8x32)_mm256_maskz_set1_epi8(bits, value);
}

/* Vectors for the 16 scales of 256 values. */
#define NS (16 / VN)

/* s = d * sc */
INLINE void scales_of_i8(u8x16 sc, float d, vf *s)
{
    s[0] = vf_mul(vf_all(d), vf_of_vi(_mm512_cvtepi8_epi32((__m128i)sc)));
}

/* Each of 8 f16, twice. */
INLINE void scales_of_f16(u16x8 h, vf *s)
{
    __m128i low = _mm_unpacklo_epi16((__m128i)h, (__m128i)h);
    __m128i high = _mm_unpackhi_epi16((__m128i)h, (__m128i)h);

    s[0] = _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
}

/* The scale of each lane of chunk c. */
INLINE vf scales_of_chunk(const vf *s, int c)
{
    vi lanes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);

    return _mm512_permutexvar_ps(_mm512_add_epi32(lanes, _mm512_set1_epi32(4 * c)), s[0]);
}

#endif
