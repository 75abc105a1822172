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

/* Columns up to which packed weights are widened in registers. */
#define PACKED_COLS TILE_COLS

/* 8-bit products: each 4 bytes of a column are spread once for 4 vectors of rows, whose weights
 * come from the first-level cache. */
#define TILE_VECTORS 4

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

/* 4 values of 16 bits, each in the high half of a lane */
INLINE __m128i four_halves(const void *p)
{
    return _mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64(p));
}

INLINE __m128i first_halves(const void *p, size_t n)
{
    uint16_t h[VN] = { 0 };

    memcpy(h, p, n * sizeof *h);
    return four_halves(h);
}

INLINE vf vf_load_bf16(const void *p)
{
    return _mm_castsi128_ps(four_halves(p));
}

INLINE vf vf_load_bf16_part(const void *p, size_t n)
{
    return _mm_castsi128_ps(first_halves(p, n));
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

INLINE void vf_store_f16(void *p, vf v)
{
    float f[VN];

    _mm_storeu_ps(f, v);
    for (size_t i = 0; i < VN; i++)
        store_u16((uint8_t *)p + 2 * i, f16_of_f32(f[i]));
}

INLINE vf vf_abs(vf a)
{
    return _mm_andnot_ps(vf_all(-0.0f), a);
}

INLINE vf vf_copysign(vf a, vf b)
{
    return _mm_or_ps(vf_abs(a), _mm_and_ps(b, vf_all(-0.0f)));
}

/*
 * The f16 in the high half of each lane.  Shifting right by 3 bits puts exponent and fraction
 * in place, and multiplying by 2^112 corrects the bias, also for subnormals.  Infinity and NaN
 * have the largest exponent before that.
 *
 * A multiplication with a subnormal float takes 40 cycles on family 26 of AMD, and more on
 * other CPUs.  The scales of K-quants are often small enough: Q4_K took 1.7 times as long.  If
 * is_small, an exponent of 0 is therefore made 1, and what this adds is subtracted.
 */
INLINE vf vf_of_high_f16(vi a, bool is_small)
{
    const vi mask = _mm_set1_epi32(0x0f800000), bias = _mm_set1_epi32(112 << 23);
    vi v = _mm_and_si128(_mm_srai_epi32(a, 3), _mm_set1_epi32((int)0x8fffe000));
    vi exponent = _mm_and_si128(v, mask);
    vi special = _mm_and_si128(_mm_cmpeq_epi32(exponent, mask), bias);

    if (!is_small)
        return _mm_mul_ps(_mm_castsi128_ps(_mm_add_epi32(v, special)), vf_all(0x1p112f));

    vi is_0 = _mm_cmpeq_epi32(exponent, _mm_setzero_si128());
    vi more = _mm_and_si128(is_0, _mm_set1_epi32(1 << 23));

    v = _mm_add_epi32(_mm_add_epi32(v, bias), _mm_add_epi32(special, more));
    more = _mm_and_si128(v, _mm_and_si128(is_0, _mm_set1_epi32((int)0xff800000)));
    return vf_copysign(_mm_sub_ps(_mm_castsi128_ps(v), _mm_castsi128_ps(more)),
                       _mm_castsi128_ps(a)); /* 0 - 0 has no sign */
}

/* The same in the low half */
INLINE vf vf_of_low_f16(vi a, bool is_small)
{
    return vf_of_high_f16(_mm_slli_epi32(a, 16), is_small);
}

INLINE vf vf_load_f16(const void *p)
{
    return vf_of_high_f16(four_halves(p), false);
}

INLINE vf vf_load_f16_part(const void *p, size_t n)
{
    return vf_of_high_f16(first_halves(p, n), false);
}

INLINE float f32_of_half(const uint8_t *p)
{
    return _mm_cvtss_f32(vf_of_low_f16(_mm_cvtsi32_si128(load_u16(p)), true));
}

INLINE vf vf_all_f16(const uint8_t *p)
{
    return vf_all(f32_of_half(p));
}

/* E4M3.  Its bits are those of a float with a shorter fraction, divided by 2^120.  Few weights
 * are so small that this float is subnormal, which would be slow. */
#define F8_UNIT 1.0f

INLINE vf vf_load_f8(const void *p)
{
    int four;

    memcpy(&four, p, sizeof four);

    __m128i w = _mm_slli_epi32(_mm_cvtepi8_epi32(_mm_cvtsi32_si128(four)), 20);

    return _mm_mul_ps(_mm_castsi128_ps(_mm_and_si128(w, _mm_set1_epi32((int)0x87f00000))),
                      _mm_set1_ps(0x1p120f));
}

INLINE vf vf_load_u8(const uint8_t *p)
{
    return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)load_u32(p))));
}

INLINE vf vf_load_i8(const uint8_t *p)
{
    return _mm_cvtepi32_ps(_mm_cvtepi8_epi32(_mm_cvtsi32_si128((int)load_u32(p))));
}

/* Turning the highest bit of 4 over subtracts 8, in two's complement. */
INLINE vf vf_of_nibbles(const uint8_t *p, bool high, vf scale)
{
    __m128i b = _mm_xor_si128(_mm_cvtepi8_epi32(_mm_cvtsi32_si128((int)load_u32(p))),
                              _mm_set1_epi32(~0x77));

    if (high)
        return _mm_mul_ps(_mm_cvtepi32_ps(_mm_srai_epi32(b, 4)), scale);
    return _mm_mul_ps(_mm_cvtepi32_ps(_mm_slli_epi32(b, 28)),
                      _mm_mul_ps(scale, vf_all(0x1p-28f)));
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

INLINE vf vf_fnma(vf a, vf b, vf c)
{
    return _mm_sub_ps(c, _mm_mul_ps(a, b));
}

INLINE vf vf_max(vf a, vf b)
{
    return _mm_max_ps(a, b);
}

INLINE vf vf_min(vf a, vf b)
{
    return _mm_min_ps(a, b);
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

INLINE vb vb_all(char b)
{
    return _mm_set1_epi8(b);
}

INLINE vb vb_and(vb a, vb b)
{
    return _mm_and_si128(a, b);
}

INLINE vb vb_or(vb a, vb b)
{
    return _mm_or_si128(a, b);
}

INLINE vb vb_xor(vb a, vb b)
{
    return _mm_xor_si128(a, b);
}

INLINE vb vb_add(vb a, vb b)
{
    return _mm_add_epi8(a, b);
}

INLINE vb vb_high_nibbles(vb a)
{
    return vb_and(_mm_srli_epi16(a, 4), vb_all(15));
}

INLINE vi vi_zero(void)
{
    return _mm_setzero_si128();
}

INLINE vi vi_add(vi a, vi b)
{
    return _mm_add_epi32(a, b);
}

INLINE vi vi_sub(vi a, vi b)
{
    return _mm_sub_epi32(a, b);
}

INLINE vi vi_shift_left(vi a, int n)
{
    return _mm_slli_epi32(a, n);
}

INLINE vi vi_shift_right(vi a, int n)
{
    return _mm_srli_epi32(a, n);
}

INLINE vi vi_divide(vi a, int n)
{
    return _mm_srai_epi32(a, n);
}

INLINE vi vi_byte(vi a, int b)
{
    return _mm_and_si128(vi_shift_right(a, 8 * b), _mm_set1_epi32(255));
}

INLINE vi vi_signed_byte(vi a, int b)
{
    return _mm_srai_epi32(vi_shift_left(a, 24 - 8 * b), 24);
}

INLINE vi vi_all_at(const void *p)
{
    int32_t i;

    memcpy(&i, p, sizeof i);
    return _mm_set1_epi32(i);
}

INLINE vb vb_dword_of_16(const int8_t *p, int n)
{
    vb v = vb_load(p);

    switch (n) {
    case 0: return _mm_shuffle_epi32(v, 0x00);
    case 1: return _mm_shuffle_epi32(v, 0x55);
    case 2: return _mm_shuffle_epi32(v, 0xaa);
    default: return _mm_shuffle_epi32(v, 0xff);
    }
}

INLINE vf vf_bits(vi a)
{
    return _mm_castsi128_ps(a);
}

#define DOT_TAKES_255 0

INLINE vi vb_pairs(vb w, vb x)
{
    return _mm_maddubs_epi16(w, x);
}

INLINE vi vi_add_words(vi a, vi b)
{
    return _mm_add_epi16(a, b);
}

INLINE vi vi_of_words(vi a)
{
    return _mm_madd_epi16(a, _mm_set1_epi16(1));
}

INLINE vb vb_turn(vb x, vb w)
{
    return _mm_sign_epi8(x, w);
}

INLINE vb vb_abs(vb a)
{
    return _mm_abs_epi8(a);
}

INLINE vb vb_pieces(const uint8_t *p, size_t step)
{
    (void)step;
    return vb_load(p);
}

INLINE vb vb_same_pieces(const void *p)
{
    return vb_load(p);
}

INLINE vb vb_shift_pieces(vb v, int n, int more)
{
    (void)more;
    return n >= 0 ? _mm_srli_epi32(v, n) : _mm_slli_epi32(v, -n);
}

INLINE void vb_halves_of_runs(const void *p, vb *half)
{
    half[0] = vb_load(p);
    half[1] = vb_load((const char *)p + 16);
}

INLINE void vb_split_runs(vb first, vb second, vb *half)
{
    half[0] = first;
    half[1] = second;
}

INLINE vb vb_lookup(vb table, vb i)
{
    return _mm_shuffle_epi8(table, i);
}

INLINE void vb_add_fifth_bits(vb head, int at, vb *w)
{
    const vb bits = _mm_set1_epi64x((long long)0x8040201008040201);

    UNROLL
    for (int i = 0; i < 2; i++) {
        vb of = _mm_set_epi64x((at + 2 * i + 1) * 0x0101010101010101,
                               (at + 2 * i) * 0x0101010101010101);
        vb spread = _mm_shuffle_epi8(head, of);

        spread = _mm_cmpeq_epi8(vb_and(spread, bits), bits);
        w[i] = vb_or(w[i], vb_and(spread, vb_all(16)));
    }
}

INLINE vb vb_fifth_bits(vi a, int n)
{
    const vb byte = _mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c);
    const vi bit = _mm_set1_epi32(n % 8 == 0 ? 0x08040201 : (int)0x80402010);
    vb spread = _mm_shuffle_epi8(a, vb_add(byte, vb_all((char)(n / 8))));

    return vb_and(_mm_cmpeq_epi8(vb_and(spread, bit), bit), vb_all(16));
}

INLINE vi vi_low_lanes(vi a, vi b)
{
    return _mm_unpacklo_epi32(a, b);
}

INLINE vi vi_high_lanes(vi a, vi b)
{
    return _mm_unpackhi_epi32(a, b);
}

INLINE vi vi_low_pairs(vi a, vi b)
{
    return _mm_unpacklo_epi64(a, b);
}

INLINE vi vi_high_pairs(vi a, vi b)
{
    return _mm_unpackhi_epi64(a, b);
}

INLINE vi vi_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm_setr_epi32((int)a, (int)b, (int)c, (int)d);
}

INLINE vi vi_heads(const uint8_t *const *p, size_t at, size_t step)
{
    (void)step;
    return vi_four(load_u32(p[0] + at), load_u32(p[1] + at), load_u32(p[2] + at),
                   load_u32(p[3] + at));
}

INLINE vi vi_top_bytes(vi a, int first)
{
    return _mm_shuffle_epi8(a, _mm_setr_epi8(-1, -1, -1, (char)first, -1, -1, -1,
                                             (char)(first + 4), -1, -1, -1, (char)(first + 8),
                                             -1, -1, -1, (char)(first + 12)));
}

INLINE vi vi_of_groups(const void *of_span, bool by_16, int step, int odd)
{
    return vi_all_at((const char *)of_span + 4 * ((by_16 ? 1 : 2) * step + odd));
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

INLINE vf vf_of_low_e8m0(vi a)
{
    vi e = _mm_and_si128(a, _mm_set1_epi32(255));
    vi normal = vi_shift_left(vi_sub(e, _mm_set1_epi32(1)), 23);
    vi small = vi_add(vi_shift_left(e, 21), _mm_set1_epi32(0x00200000)); /* e is 0 or 1 */

    return vf_bits(_mm_blendv_epi8(normal, small, _mm_cmplt_epi32(e, _mm_set1_epi32(2))));
}

#define NS (16 / VN)

INLINE void vi_transpose(vi *v)
{
    vi a = vi_low_lanes(v[0], v[1]), b = vi_low_lanes(v[2], v[3]);
    vi c = vi_high_lanes(v[0], v[1]), d = vi_high_lanes(v[2], v[3]);

    v[0] = vi_low_pairs(a, b);
    v[1] = vi_high_pairs(a, b);
    v[2] = vi_low_pairs(c, d);
    v[3] = vi_high_pairs(c, d);
}

/* A step is one group. */
INLINE void vf_four_rows(bool by_16, vf row[4][NS], vf *out)
{
    UNROLL
    for (int i = 0; i < NS; i++) {
        vi v[4];

        UNROLL
        for (int r = 0; r < 4; r++)
            v[r] = _mm_castps_si128(row[r][i]);
        vi_transpose(v);
        UNROLL
        for (int j = 0; j < 4; j++)
            if (by_16)
                out[4 * i + j] = vf_bits(v[j]);
            else if (j % 2 == 0)
                out[2 * i + j / 2] = vf_bits(v[j]);
    }
}

INLINE void vf_fold_groups(vf a, float *y)
{
    vf_store(y, a);
}

INLINE vf vf_fold_sums(const vf *a, size_t step)
{
    (void)step;
    return a[0];
}

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

    s[0] = vf_of_high_f16(_mm_unpacklo_epi16(low, low), true);
    s[1] = vf_of_high_f16(_mm_unpackhi_epi16(low, low), true);
    s[2] = vf_of_high_f16(_mm_unpacklo_epi16(high, high), true);
    s[3] = vf_of_high_f16(_mm_unpackhi_epi16(high, high), true);
}

#endif
