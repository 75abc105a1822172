/*
 * vec_avx2.h - vectors of 8 floats or 32 bytes (AVX2, FMA, F16C).  vec_avx512.h explains the
 * names.  With AVX-VNNI, dot products of bytes take fewer instructions and give the same
 * integers.
 *
 * AVX2 has no masks for 16-bit values, so parts of such vectors are copied through a small
 * array.  This happens once per row, and only if rows are not a multiple of 8.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_AVX2_H
#define MEMWALL_ENGINE_COMPUTE_VEC_AVX2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "engine/compute/half.h"
#include "engine/compute/vec.h"

#define VN 8

/* Registers: 12 sums, 3 columns, 1 row. */
#define TILE_ROWS 4
#define TILE_COLS 3

/* Columns up to which packed weights are widened in registers. */
#define PACKED_COLS (2 * TILE_COLS)

/* 8-bit products, registers: 8 of weights, 2 scales and minima, 2 sums. */
#define TILE_VECTORS 1

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

/* Packed BF16: vec.h explains it. */
typedef __m128i vp;

INLINE vp vp_exponents(uint8_t largest)
{
    return (vp)packed_exponents(largest);
}

INLINE void vp_widen(vp exponents, const uint8_t *rests, const uint8_t *codes, bool high, vf *w)
{
    UNROLL
    for (int i = 0; i < 2; i++) {
        __m128i e = _mm_shuffle_epi8(exponents, (vp)packed_codes(codes + 16 * i, high));
        __m256i s = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(rests + 16 * i)));
        __m256i v = _mm256_or_si256(_mm256_andnot_si256(_mm256_set1_epi16(0x7f80), s),
                                    _mm256_slli_epi16(_mm256_cvtepu8_epi16(e), 7));

        w[i] = _mm256_castsi256_ps(_mm256_slli_epi32(v, 16));
        w[i + 2] = _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(-65536)));
    }
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

/* See vec_avx512.h. */
#define F8_UNIT 256.0f

INLINE vf vf_load_f8(const void *p)
{
    __m128i w = _mm_cvtepi8_epi16(_mm_loadl_epi64(p));

    return _mm256_cvtph_ps(
        _mm_and_si128(_mm_slli_epi16(w, 7), _mm_set1_epi16((short)0xbf80)));
}

INLINE vf vf_all_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(_mm_set1_epi16((short)load_u16(p)));
}

INLINE vf vf_load_u8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p)));
}

INLINE vf vf_load_i8(const uint8_t *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p)));
}

INLINE vf vf_of_nibbles(const uint8_t *p, bool high, vf scale)
{
    __m256i b = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));

    b = high ? _mm256_srli_epi32(b, 4) : _mm256_and_si256(b, _mm256_set1_epi32(15));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(b, _mm256_set1_epi32(8))), scale);
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

/* c - a * b with one rounding */
INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
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

/* y[i] = vf_sum(a[i]) for 8 vectors, with 3 operations per vector */
#define HAS_SUM_8 1

INLINE void vf_sum_8(const vf *a, float *y)
{
    vf b[4], c[2];

    /* A vector of b has 2 sums of 4 lanes, of c 4 of 2. */
    UNROLL
    for (int i = 0; i < 4; i++) {
        vf one = a[i], other = a[i + 4];

        b[i] =
            vf_add(_mm256_blend_ps(one, other, 0xf0), _mm256_permute2f128_ps(one, other, 0x21));
    }
    UNROLL
    for (int i = 0; i < 2; i++)
        c[i] = vf_add(_mm256_blend_ps(b[2 * i], b[2 * i + 1], 0xcc),
                      _mm256_shuffle_ps(b[2 * i], b[2 * i + 1], 0x4e));
    vf_store(y,
             vf_add(_mm256_shuffle_ps(c[0], c[1], 0x88), _mm256_shuffle_ps(c[0], c[1], 0xdd)));
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

INLINE vb vb_all(char b)
{
    return _mm256_set1_epi8(b);
}

INLINE vb vb_and(vb a, vb b)
{
    return _mm256_and_si256(a, b);
}

INLINE vb vb_or(vb a, vb b)
{
    return _mm256_or_si256(a, b);
}

INLINE vb vb_xor(vb a, vb b)
{
    return _mm256_xor_si256(a, b);
}

INLINE vb vb_add(vb a, vb b)
{
    return _mm256_add_epi8(a, b);
}

INLINE vb vb_high_nibbles(vb a)
{
    return vb_and(_mm256_srli_epi16(a, 4), vb_all(15));
}

INLINE vi vi_zero(void)
{
    return _mm256_setzero_si256();
}

INLINE vi vi_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}

INLINE vi vi_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}

INLINE vi vi_shift_left(vi a, int n)
{
    return _mm256_slli_epi32(a, n);
}

INLINE vi vi_shift_right(vi a, int n)
{
    return _mm256_srli_epi32(a, n);
}

INLINE vi vi_divide(vi a, int n)
{
    return _mm256_srai_epi32(a, n);
}

INLINE vi vi_byte(vi a, int b)
{
    return _mm256_and_si256(vi_shift_right(a, 8 * b), _mm256_set1_epi32(255));
}

INLINE vi vi_signed_byte(vi a, int b)
{
    return _mm256_srai_epi32(vi_shift_left(a, 24 - 8 * b), 24);
}

INLINE vi vi_all_at(const void *p)
{
    int32_t i;

    memcpy(&i, p, sizeof i);
    return _mm256_set1_epi32(i);
}

INLINE vb vb_dword_of_16(const int8_t *p, int n)
{
    return vi_all_at(p + 4 * n);
}

INLINE vf vf_bits(vi a)
{
    return _mm256_castsi256_ps(a);
}

#ifdef __AVXVNNI__
#define DOT_TAKES_255 1

INLINE vi vb_dot_add(vi sum, vb w, vb x)
{
    return _mm256_dpbusd_avx_epi32(sum, w, x);
}
#else
#define DOT_TAKES_255 0

INLINE vi vb_pairs(vb w, vb x)
{
    return _mm256_maddubs_epi16(w, x);
}
#endif

INLINE vi vi_add_words(vi a, vi b)
{
    return _mm256_add_epi16(a, b);
}

INLINE vi vi_of_words(vi a)
{
    return _mm256_madd_epi16(a, _mm256_set1_epi16(1));
}

INLINE vb vb_turn(vb x, vb w)
{
    return _mm256_sign_epi8(x, w);
}

INLINE vb vb_abs(vb a)
{
    return _mm256_abs_epi8(a);
}

INLINE vb vb_pieces(const uint8_t *p, size_t step)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)p)),
                                   _mm_loadu_si128((const void *)(p + step)), 1);
}

INLINE void vb_split_runs(vb first, vb second, vb *half)
{
    half[0] = _mm256_permute2x128_si256(first, second, 0x20);
    half[1] = _mm256_permute2x128_si256(first, second, 0x31);
}

INLINE vb vb_same_pieces(const void *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(p));
}

INLINE vb vb_shift_pieces(vb v, int n, int more)
{
    const int low = n >= 0 ? n : -n, high = n >= 0 ? n + more : -n - more;
    const vi by = _mm256_setr_epi32(low, low, low, low, high, high, high, high);

    return n >= 0 ? _mm256_srlv_epi32(v, by) : _mm256_sllv_epi32(v, by);
}

INLINE void vb_halves_of_runs(const void *p, vb *half)
{
    half[0] = vb_pieces(p, 32);
    half[1] = vb_pieces((const uint8_t *)p + 16, 32);
}

INLINE vb vb_lookup(vb table, vb i)
{
    return _mm256_shuffle_epi8(table, i);
}

INLINE void vb_add_fifth_bits(vb head, int at, vb *w)
{
    const vb bits = _mm256_set1_epi64x((long long)0x8040201008040201);

    UNROLL
    for (int i = 0; i < 2; i++) {
        __m128i of = _mm_set_epi64x((at + 2 * i + 1) * 0x0101010101010101,
                                    (at + 2 * i) * 0x0101010101010101);
        vb spread = _mm256_shuffle_epi8(head, _mm256_broadcastsi128_si256(of));

        spread = _mm256_cmpeq_epi8(vb_and(spread, bits), bits);
        w[i] = vb_or(w[i], vb_and(spread, vb_all(16)));
    }
}

INLINE vb vb_fifth_bits(vi a, int n)
{
    const __m128i byte = _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c);
    const vi bit = _mm256_set1_epi32(n % 8 == 0 ? 0x08040201 : (int)0x80402010);
    vb spread = _mm256_shuffle_epi8(
        a, vb_add(_mm256_broadcastsi128_si256(byte), vb_all((char)(n / 8))));

    return vb_and(_mm256_cmpeq_epi8(vb_and(spread, bit), bit), vb_all(16));
}

INLINE void vi_transpose(vi *v)
{
    vi a = _mm256_unpacklo_epi32(v[0], v[1]), b = _mm256_unpacklo_epi32(v[2], v[3]);
    vi c = _mm256_unpackhi_epi32(v[0], v[1]), d = _mm256_unpackhi_epi32(v[2], v[3]);

    v[0] = _mm256_unpacklo_epi64(a, b);
    v[1] = _mm256_unpackhi_epi64(a, b);
    v[2] = _mm256_unpacklo_epi64(c, d);
    v[3] = _mm256_unpackhi_epi64(c, d);
}

INLINE vi vi_low_lanes(vi a, vi b)
{
    return _mm256_unpacklo_epi32(a, b);
}

INLINE vi vi_high_lanes(vi a, vi b)
{
    return _mm256_unpackhi_epi32(a, b);
}

INLINE vi vi_low_pairs(vi a, vi b)
{
    return _mm256_unpacklo_epi64(a, b);
}

INLINE vi vi_high_pairs(vi a, vi b)
{
    return _mm256_unpackhi_epi64(a, b);
}

INLINE vi vi_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm256_broadcastsi128_si256(_mm_setr_epi32((int)a, (int)b, (int)c, (int)d));
}

INLINE vi vi_heads(const uint8_t *const *p, size_t at, size_t step)
{
    vi a = vi_low_lanes(vb_pieces(p[0] + at, step), vb_pieces(p[1] + at, step));
    vi b = vi_low_lanes(vb_pieces(p[2] + at, step), vb_pieces(p[3] + at, step));

    return vi_low_pairs(a, b);
}

INLINE vi vi_top_bytes(vi a, int first)
{
    const vi of_first =
        _mm256_setr_epi8(-1, -1, -1, 0, -1, -1, -1, 4, -1, -1, -1, 8, -1, -1, -1, 12, -1, -1,
                         -1, 1, -1, -1, -1, 5, -1, -1, -1, 9, -1, -1, -1, 13);

    return _mm256_shuffle_epi8(
        a, _mm256_add_epi8(of_first, _mm256_set1_epi32(first * 0x01000000)));
}

INLINE vi vi_of_groups(const void *of_span, bool by_16, int step, int odd)
{
    const int first = by_16 ? step % 2 * 2 : odd, second = first + (by_16 ? 1 : 2);
    const vi lanes =
        _mm256_setr_epi32(first, first, first, first, second, second, second, second);
    vb four = vb_same_pieces((const char *)of_span + 16 * (by_16 ? step / 2 : step));

    return _mm256_castps_si256(_mm256_permutevar_ps(_mm256_castsi256_ps(four), lanes));
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

INLINE vf vf_of_low_f16(vi a, bool is_small)
{
    vi low = vb_and(a, _mm256_set1_epi32(0xffff));
    vi packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);

    (void)is_small;
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}

INLINE vf vf_of_high_f16(vi a, bool is_small)
{
    return vf_of_low_f16(vi_shift_right(a, 16), is_small);
}

INLINE vf vf_of_low_e8m0(vi a)
{
    vi e = vb_and(a, _mm256_set1_epi32(255));
    vi normal = vi_shift_left(vi_sub(e, _mm256_set1_epi32(1)), 23);
    vi small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);

    return vf_bits(
        _mm256_blendv_epi8(normal, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e)));
}

/* See vec_avx512.h.  Lanes 4p .. 4p + 3 of a vector of four rows are 4 of their groups. */
INLINE void vf_four_rows(bool by_16, vf row[4][NS], vf *out)
{
    UNROLL
    for (int i = 0; i < NS; i++) {
        vi v[4];

        UNROLL
        for (int r = 0; r < 4; r++)
            v[r] = _mm256_castps_si256(row[r][i]);
        vi_transpose(v);
        if (by_16) { /* groups 0, 4 | 1, 5 | 2, 6 | 3, 7 */
            out[4 * i] = vf_bits(_mm256_permute2x128_si256(v[0], v[1], 0x20));
            out[4 * i + 1] = vf_bits(_mm256_permute2x128_si256(v[2], v[3], 0x20));
            out[4 * i + 2] = vf_bits(_mm256_permute2x128_si256(v[0], v[1], 0x31));
            out[4 * i + 3] = vf_bits(_mm256_permute2x128_si256(v[2], v[3], 0x31));
        } else {
            out[2 * i] = vf_bits(_mm256_permute2x128_si256(v[0], v[2], 0x20));
            out[2 * i + 1] = vf_bits(_mm256_permute2x128_si256(v[0], v[2], 0x31));
        }
    }
}

INLINE void vf_fold_groups(vf a, float *y)
{
    _mm_storeu_ps(y, _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)));
}

INLINE vf vf_fold_sums(const vf *a, size_t step)
{
    return vf_add(a[0], a[step]);
}

#endif
