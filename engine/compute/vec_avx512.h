/*
 * vec_avx512.h - vectors of 16 floats or 64 bytes (AVX-512 F, BW, DQ, VL).  With VNNI the
 * dot products of bytes take fewer instructions and give the same integers, and so do tiles of
 * AMX (set_mul_amx.h).
 *
 * Every vec_*.h defines the same names, and the set_*.h use nothing else:
 *   vf, vi, vb   vectors of VN floats, VN int32, 4 * VN bytes
 *   *_part       the first n lanes; memory past them is neither read nor written
 */
#ifndef MEMWALL_ENGINE_COMPUTE_VEC_AVX512_H
#define MEMWALL_ENGINE_COMPUTE_VEC_AVX512_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

#include "engine/compute/half.h"
#include "engine/compute/vec.h"

#define VN 16

/* Registers: 24 sums, 6 columns, 1 row. */
#define TILE_ROWS 4
#define TILE_COLS 6

/* Columns up to which packed weights are widened in registers. */
#define PACKED_COLS SIZE_MAX

/* 8-bit products, registers: 16 of weights, 4 scales and minima, 2 sums. */
#define TILE_VECTORS 2

#ifdef __AMX_INT8__
#define HAS_AMX 1
#endif

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

/* Packed BF16: vec.h explains it. */
typedef __m512i vp;

INLINE vp vp_exponents(uint8_t largest)
{
    __m128i steps = _mm_loadu_si128((const void *)packed_steps);

    return _mm512_slli_epi16(
        _mm512_subs_epu16(_mm512_set1_epi16(largest),
                          _mm512_cvtepu8_epi16(_mm256_broadcastsi128_si256(steps))),
        7);
}

/* The table has each exponent twice, so a fifth bit of the index does not matter. */
INLINE void vp_widen(vp exponents, const uint8_t *rests, const uint8_t *codes, bool high, vf *w)
{
    __m512i c = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)codes));
    __m512i s = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)rests));
    __m512i e = _mm512_permutexvar_epi16(high ? _mm512_srli_epi16(c, 4) : c, exponents);
    __m512i v = _mm512_ternarylogic_epi32(s, e, _mm512_set1_epi16(0x7f80), 0xdc);

    w[0] = _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
    w[1] = _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(-65536)));
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

/* E4M3, divided by F8_UNIT: its bits are those of an f16 with a shorter fraction. */
#define F8_UNIT 256.0f

INLINE vf vf_load_f8(const void *p)
{
    __m256i w = _mm256_cvtepi8_epi16(_mm_loadu_si128(p));

    w = _mm256_and_si256(_mm256_slli_epi16(w, 7), _mm256_set1_epi16((short)0xbf80));
    return _mm512_cvtph_ps(w);
}

/* The f16 at p in all lanes */
INLINE vf vf_all_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)load_u16(p)));
}

/* (the low or the high half of each of VN bytes - 8) * scale */
INLINE vf vf_of_nibbles(const uint8_t *p, bool high, vf scale)
{
    __m512i i = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
    vf table = _mm512_mul_ps(
        _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7), scale);

    return _mm512_permutexvar_ps(high ? _mm512_srli_epi32(i, 4) : i, table); /* uses 4 bits */
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

/* c - a * b with one rounding */
INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
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

INLINE vb vb_all(char b)
{
    return _mm512_set1_epi8(b);
}

INLINE vb vb_and(vb a, vb b)
{
    return _mm512_and_si512(a, b);
}

INLINE vb vb_xor(vb a, vb b)
{
    return _mm512_xor_si512(a, b);
}

INLINE vb vb_high_nibbles(vb a)
{
    return vb_and(_mm512_srli_epi16(a, 4), vb_all(15));
}

INLINE vi vi_zero(void)
{
    return _mm512_setzero_si512();
}

INLINE vi vi_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}

#ifdef __AVX512VNNI__
#define DOT_TAKES_255 1

/* sum + the sums of w * x over 4 neighbours.  w is unsigned. */
INLINE vi vb_dot_add(vi sum, vb w, vb x)
{
    return _mm512_dpbusd_epi32(sum, w, x);
}
#else
#define DOT_TAKES_255 0

/* Sums of w * x over 2 neighbours, in 16 bits.  w is unsigned, at most 128, and |x| at most
 * 127, so that a sum fits. */
INLINE vi vb_pairs(vb w, vb x)
{
    return _mm512_maddubs_epi16(w, x);
}

#endif

INLINE vi vi_add_words(vi a, vi b)
{
    return _mm512_add_epi16(a, b);
}

/* Sums of 2 neighbours of 16 bits */
INLINE vi vi_of_words(vi a)
{
    return _mm512_madd_epi16(a, _mm512_set1_epi16(1));
}

/* x, negated where w is below 0 */
INLINE vb vb_turn(vb x, vb w)
{
    return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
}

INLINE vb vb_abs(vb a)
{
    return _mm512_abs_epi8(a);
}

/* 16 bytes from each of p, p + step ... */
INLINE vb vb_pieces(const uint8_t *p, size_t step)
{
    vb v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)p));

    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, _mm_loadu_si128((const void *)(p + step)));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, _mm_loadu_si128((const void *)(p + 2 * step)));
    return _mm512_mask_broadcast_i32x4(v, 0xf000,
                                       _mm_loadu_si128((const void *)(p + 3 * step)));
}

/* From two vectors of runs of 32 bytes: the first, and the second halves of the runs. */
INLINE void vb_split_runs(vb first, vb second, vb *half)
{
    half[0] = _mm512_shuffle_i32x4(first, second, 0x88);
    half[1] = _mm512_shuffle_i32x4(first, second, 0xdd);
}

/* The same from memory: runs from p on. */
INLINE void vb_halves_of_runs(const void *p, vb *half)
{
    vb_split_runs(vb_load(p), vb_load((const char *)p + 64), half);
}

/* The 16 bytes at p in each piece */
INLINE vb vb_same_pieces(const void *p)
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128(p));
}

/* table[i] for each byte i below 16 */
INLINE vb vb_lookup(vb table, vb i)
{
    return _mm512_shuffle_epi8(table, i);
}

/* Add 16 to byte b of w[0] and w[1] if bits b and 16 + b are set in the 4 bytes of its piece
 * of `head` that start at byte `at`. */
INLINE void vb_add_fifth_bits(vb head, int at, vb *w)
{
    vb bits = _mm512_set1_epi64((long long)0x8040201008040201);

    UNROLL
    for (int i = 0; i < 2; i++) {
        __m128i of = _mm_set_epi64x((at + 2 * i + 1) * 0x0101010101010101,
                                    (at + 2 * i) * 0x0101010101010101);
        vb spread = _mm512_shuffle_epi8(head, _mm512_broadcast_i32x4(of));

        w[i] =
            _mm512_mask_add_epi8(w[i], _mm512_test_epi8_mask(spread, bits), w[i], vb_all(16));
    }
}

/* Lanes of a and b in turn: the two low ones of each 16 bytes, and the two high ones */
INLINE vi vi_low_lanes(vi a, vi b)
{
    return _mm512_unpacklo_epi32(a, b);
}

INLINE vi vi_high_lanes(vi a, vi b)
{
    return _mm512_unpackhi_epi32(a, b);
}

/* The same with pairs of lanes: one of a, one of b */
INLINE vi vi_low_pairs(vi a, vi b)
{
    return _mm512_unpacklo_epi64(a, b);
}

INLINE vi vi_high_pairs(vi a, vi b)
{
    return _mm512_unpackhi_epi64(a, b);
}

/* Lane 4g + r = 4 bytes at p[r] + at + g * step. */
INLINE vi vi_heads(const uint8_t *const *p, size_t at, size_t step)
{
    vi a = vi_low_lanes(vb_pieces(p[0] + at, step), vb_pieces(p[1] + at, step));
    vi b = vi_low_lanes(vb_pieces(p[2] + at, step), vb_pieces(p[3] + at, step));

    return vi_low_pairs(a, b);
}

/* Transpose 4 x 4 lanes in each 16 bytes: lane j of v[i] and lane i of v[j] change places. */
INLINE void vi_transpose(vi *v)
{
    vi a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpacklo_epi32(v[2], v[3]);
    vi c = _mm512_unpackhi_epi32(v[0], v[1]), d = _mm512_unpackhi_epi32(v[2], v[3]);

    v[0] = _mm512_unpacklo_epi64(a, b);
    v[1] = _mm512_unpackhi_epi64(a, b);
    v[2] = _mm512_unpacklo_epi64(c, d);
    v[3] = _mm512_unpackhi_epi64(c, d);
}

/* The same 4 bytes in all lanes */
INLINE vi vi_all_at(const void *p)
{
    int32_t i;

    memcpy(&i, p, sizeof i);
    return _mm512_set1_epi32(i);
}

/* Dword n of the 16 bytes at p in all lanes */
INLINE vb vb_dword_of_16(const int8_t *p, int n)
{
    return vi_all_at(p + 4 * n);
}

INLINE vf vf_bits(vi a)
{
    return _mm512_castsi512_ps(a);
}

INLINE vb vb_or(vb a, vb b)
{
    return _mm512_or_si512(a, b);
}

INLINE vb vb_add(vb a, vb b)
{
    return _mm512_add_epi8(a, b);
}

INLINE vi vi_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}

INLINE vi vi_shift_left(vi a, int n)
{
    return _mm512_slli_epi32(a, (unsigned)n);
}

/* Shifts in zeros. */
INLINE vi vi_shift_right(vi a, int n)
{
    return _mm512_srli_epi32(a, (unsigned)n);
}

/* Byte b of each lane, without and with a sign */
INLINE vi vi_byte(vi a, int b)
{
    return _mm512_and_si512(vi_shift_right(a, 8 * b), _mm512_set1_epi32(255));
}

INLINE vi vi_signed_byte(vi a, int b)
{
    return _mm512_srai_epi32(vi_shift_left(a, 24 - 8 * b), 24);
}

/* Byte i of a lane = 16 if bit n + i of the lane is set, otherwise 0; i < 4. */
INLINE vb vb_fifth_bits(vi a, int n)
{
    const __m128i byte = _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c);
    const vi bit = _mm512_set1_epi32(n % 8 == 0 ? 0x08040201 : (int)0x80402010);
    vb spread = _mm512_shuffle_epi8(
        a, _mm512_add_epi8(_mm512_broadcast_i32x4(byte), vb_all((char)(n / 8))));

    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(spread, bit), vb_all(16));
}

/* a / 2^n, rounded down */
INLINE vi vi_divide(vi a, int n)
{
    return _mm512_srai_epi32(a, (unsigned)n);
}

/* The sum of the partial sums a[0], a[step] ..., as vf_fold_groups adds them. */
INLINE vf vf_fold_sums(const vf *a, size_t step)
{
    return vf_add(vf_add(a[0], a[2 * step]), vf_add(a[step], a[3 * step]));
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

/* The f16 in the low, and in the high half of each lane.  Tell if many are subnormal. */
INLINE vf vf_of_low_f16(vi a, bool is_small)
{
    (void)is_small;
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a));
}

INLINE vf vf_of_high_f16(vi a, bool is_small)
{
    return vf_of_low_f16(_mm512_srli_epi32(a, 16), is_small);
}

/* half_of_e8m0 of the lowest byte of each lane */
INLINE vf vf_of_low_e8m0(vi a)
{
    vi e = _mm512_and_si512(a, _mm512_set1_epi32(255));
    vi normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
    vi small = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);

    return _mm512_castsi512_ps(
        _mm512_mask_mov_epi32(normal, _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2)), small));
}

INLINE vf vf_load_e8m0(const uint8_t *p)
{
    return vf_of_low_e8m0(_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p)));
}

/*
 * From the 16 scales of each of 4 rows: lane 4g + r of out[step] is the scale of group g of
 * the step in row r.  Groups of 32 values have two equal scales.
 */
INLINE void vf_four_rows(bool by_16, vf row[4][NS], vf *out)
{
    typedef double vd __attribute__((vector_size(64)));
    vf a[2], b[2];

    a[0] = row[0][0], a[1] = row[1][0], b[0] = row[2][0], b[1] = row[3][0];
#define OF_TWO(p, ...) (vd) __builtin_shufflevector(p[0], p[1], __VA_ARGS__)
#define LOW            0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH           8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define EVEN           0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
    vd first = by_16 ? OF_TWO(a, LOW) : OF_TWO(a, EVEN);
    vd second = by_16 ? OF_TWO(b, LOW) : OF_TWO(b, EVEN);

    out[0] = (vf)__builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
    out[1] = (vf)__builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
    if (!by_16)
        return;
    first = OF_TWO(a, HIGH);
    second = OF_TWO(b, HIGH);
    out[2] = (vf)__builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11);
    out[3] = (vf)__builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15);
#undef OF_TWO
#undef LOW
#undef HIGH
#undef EVEN
}

/* Lanes 4g .. 4g + 3 = the value of group g of a step, from 16 values per span.  Groups of 32
 * values have two, `odd` chooses one. */
INLINE vi vi_of_groups(const void *of_span, bool by_16, int step, int odd)
{
    vi lanes = by_16 ? _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3)
                     : _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6);

    lanes = _mm512_add_epi32(lanes, _mm512_set1_epi32(step * (by_16 ? 4 : 8) + odd));
    return _mm512_permutexvar_epi32(lanes, _mm512_loadu_si512(of_span));
}

/* y[r] = the sum of lanes 4g + r */
INLINE void vf_fold_groups(vf a, float *y)
{
    __m256 two = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));

    _mm_storeu_ps(y, _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps(two, 1)));
}

#endif
