/*
 * set_unpack_wide.h - K-quants for vectors of 64 bytes: two runs of a span at once, and the
 * scales of four rows at once.  set_mul_rows.h uses it in place of set_unpack.h for the types
 * below.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_UNPACK_WIDE_H
#define MEMWALL_ENGINE_COMPUTE_SET_UNPACK_WIDE_H

#include "engine/compute/set_unpack_tile.h"

/* `low` in the first 32 bytes, `high` in the others */
INLINE vb two_halves(char low, char high)
{
    return _mm512_inserti64x4(vb_all(low), _mm256_set1_epi8(high), 1);
}

/* 32 bytes, twice */
INLINE vb load_twice(const uint8_t *p)
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const void *)p));
}

/*
 * A step of Q4_K and Q5_K: 4 runs.  The low nibbles of 64 bytes are the first and the third,
 * the high nibbles the second and the fourth.
 */
INLINE void wide_q4_k(const uint8_t *q, const uint8_t *high, int step, vb *w)
{
    const vi first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const vi second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    vb v = vb_load(q + 64 * step), even = vb_and(v, vb_all(15)), odd = vb_high_nibbles(v);

    if (high != NULL) { /* bit b of byte i is the fifth bit of value i of run b */
        vb bits = load_twice(high);
        vb of_even = two_halves((char)(1 << (4 * step)), (char)(4 << (4 * step)));
        vb of_odd = two_halves((char)(2 << (4 * step)), (char)(8 << (4 * step)));

        even =
            _mm512_mask_add_epi8(even, _mm512_test_epi8_mask(bits, of_even), even, vb_all(16));
        odd = _mm512_mask_add_epi8(odd, _mm512_test_epi8_mask(bits, of_odd), odd, vb_all(16));
    }
    w[0] = _mm512_permutex2var_epi64(even, first, odd);
    w[1] = _mm512_permutex2var_epi64(even, second, odd);
}

/* Runs 2 * step and 2 * step + 1 of Q6_K. */
INLINE vb wide_q6_k(const struct block_q6_k *p, int step)
{
    vb v = vb_load(p->q + 64 * (step / 2)), high = load_twice(p->high + 32 * (step / 2));

    v = step % 2 == 0 ? vb_and(v, vb_all(15)) : vb_high_nibbles(v);
    high = step % 2 == 0 ? _mm512_sllv_epi64(high, _mm512_setr_epi64(4, 4, 4, 4, 2, 2, 2, 2))
                         : _mm512_srlv_epi64(high, _mm512_setr_epi64(0, 0, 0, 0, 2, 2, 2, 2));
    return _mm512_or_si512(v, vb_and(high, vb_all(0x30)));
}

/* Unpack a step of one row.  Returns false if the type is not in this file. */
INLINE bool unpack_wide(enum tensor_type type, const uint8_t *p, int step, vb *w)
{
    const struct block_q4_k *q4 = (const void *)p;
    const struct block_q5_k *q5 = (const void *)p;

    switch ((int)type) {
    case TYPE_Q4_K: wide_q4_k(q4->q, NULL, step, w); return true;
    case TYPE_Q5_K: wide_q4_k(q5->q, q5->high, step, w); return true;
    case TYPE_Q6_K: w[0] = wide_q6_k((const void *)p, step); return true;
    default: return false;
    }
}

/* 16 bytes from offset `at` of each of 4 rows. */
INLINE vb four_rows(const uint8_t *const *p, size_t at)
{
    vb v = _mm512_castsi128_si512((__m128i)load_16(p[0] + at));

    v = _mm512_inserti32x4(v, (__m128i)load_16(p[1] + at), 1);
    v = _mm512_inserti32x4(v, (__m128i)load_16(p[2] + at), 2);
    return _mm512_inserti32x4(v, (__m128i)load_16(p[3] + at), 3);
}

/* From rows of four times 4 bytes: byte 16i + 4g + r = byte g of dword i of row r. */
INLINE vb bytes_by_group(vb rows)
{
    const vi dwords = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);

    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(dwords, rows),
                               _mm512_broadcast_i32x4(bytes));
}

/* 16 signed bytes, from byte 16i on, as floats */
#define FLOATS_OF(v, i) vf_of_vi(_mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(v, i)))

/* Scales and minima of Q4_K and Q5_K: q4_k_scales of set_unpack.h for four rows. */
INLINE void wide_q4_k_scales(const uint8_t *const *p, vf *s, vf *m)
{
    const vi shift = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 0, 4));
    const vi low =
        _mm512_broadcast_i32x4(_mm_setr_epi32(0x3f3f3f3f, 0x3f3f3f3f, 0x0f0f0f0f, 0x0f0f0f0f));
    const vi top = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 0x30303030, 0x30303030));
    vb head = four_rows(p, 0); /* d and dmin, then 3 dwords of scales: a, b, c */
    vi abcc = _mm512_shuffle_epi32(head, _MM_PERM_DDCB);
    vi ab = _mm512_shuffle_epi32(head, _MM_PERM_CBAA);
    vi of_rows = _mm512_setr_epi32(0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12);
    vi d = _mm512_permutexvar_epi32(of_rows, head);
    vb bytes =
        bytes_by_group(_mm512_or_si512(_mm512_and_si512(_mm512_srlv_epi32(abcc, shift), low),
                                       _mm512_and_si512(_mm512_srli_epi32(ab, 2), top)));

    s[0] = vf_mul(FLOATS_OF(bytes, 0), vf_of_low_f16(d, true));
    s[1] = vf_mul(FLOATS_OF(bytes, 2), vf_of_low_f16(d, true));
    m[0] = vf_mul(FLOATS_OF(bytes, 1), vf_of_high_f16(d, true));
    m[1] = vf_mul(FLOATS_OF(bytes, 3), vf_of_high_f16(d, true));
}

INLINE void wide_q6_k_scales(const uint8_t *const *p, vf *s)
{
    enum { D = offsetof(struct block_q6_k, d) };
    vb bytes = bytes_by_group(four_rows(p, offsetof(struct block_q6_k, scales)));
    __m128i h =
        _mm_setr_epi16((short)load_u16(p[0] + D), (short)load_u16(p[1] + D),
                       (short)load_u16(p[2] + D), (short)load_u16(p[3] + D), 0, 0, 0, 0);
    vf d = _mm512_broadcast_f32x4(_mm_cvtph_ps(h));

    s[0] = vf_mul(FLOATS_OF(bytes, 0), d);
    s[1] = vf_mul(FLOATS_OF(bytes, 1), d);
    s[2] = vf_mul(FLOATS_OF(bytes, 2), d);
    s[3] = vf_mul(FLOATS_OF(bytes, 3), d);
}

#undef FLOATS_OF

/* Scales and minima of a span of 4 rows, as scales_of_four.  Returns false if the type is not
 * in this file. */
INLINE bool wide_scales(enum tensor_type type, const uint8_t *const *p, vf *s, vf *m)
{
    switch ((int)type) {
    case TYPE_Q4_K:
    case TYPE_Q5_K: wide_q4_k_scales(p, s, m); return true;
    case TYPE_Q6_K: wide_q6_k_scales(p, s); return true;
    default: return false;
    }
}

#endif
