/*
 * set_unpack_steps.h - types of 256 for vectors of 16 and 32 bytes: the bytes of a step, with a
 * group in each 16 bytes as they are loaded, and the scales of four rows at once.
 * set_mul_rows.h, which has the terms, uses it in place of set_unpack.h for the types below.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_UNPACK_STEPS_H
#define MEMWALL_ENGINE_COMPUTE_SET_UNPACK_STEPS_H

#include "engine/compute/set_unpack_tile.h"

/*
 * Groups of 32 values: the runs from b on.  The bits of run b are `shift` places up in 32 bytes
 * that start at p, those of the next run `more` places further.  They are moved to place
 * `left`.
 */
INLINE void bits_of_runs(const uint8_t *p, int shift, int more, char mask, int left, vb *w)
{
    UNROLL
    for (int h = 0; h < 2; h++)
        w[h] = vb_and(vb_shift_pieces(vb_same_pieces(p + 16 * h), shift - left, more),
                      vb_all((char)(mask << left)));
}

INLINE void step_of_q4_k(const uint8_t *q, int b, vb *w)
{
    bits_of_runs(q + 32 * (b / 2), 4 * (b % 2), 4, 15, 0, w);
}

INLINE void step_of_q5_k(const struct block_q5_k *p, int b, vb *w)
{
    vb fifth[2];

    step_of_q4_k(p->q, b, w);
    bits_of_runs(p->high, b, 1, 1, 4, fifth);
    w[0] = vb_or(w[0], fifth[0]);
    w[1] = vb_or(w[1], fifth[1]);
}

/* Groups of 16 values: half `h` of run b, and what follows. */

INLINE vb step_of_q2_k(const uint8_t *q, int b, int h)
{
    return bits_at(vb_load(q + 32 * (b / 4) + 16 * h), 2 * (b % 4), 3, 0);
}

INLINE vb step_of_q3_k(const struct block_q3_k *p, int b, int h)
{
    return vb_or(step_of_q2_k(p->q, b, h), bits_at(vb_load(p->high + 16 * h), b, 1, 2));
}

INLINE vb step_of_q6_k(const struct block_q6_k *p, int b, int h)
{
    vb q = vb_load(p->q + 64 * (b / 4) + 32 * (b % 2) + 16 * h);
    vb high = vb_load(p->high + 32 * (b / 4) + 16 * h);

    return vb_or(bits_at(q, 4 * (b % 4 / 2), 15, 0), bits_at(high, 2 * (b % 4), 3, 4));
}

/* Unpack a step of one row.  Returns false if the type is not in this file. */
INLINE bool unpack_wide(enum tensor_type type, const uint8_t *p, int step, vb *w)
{
    const struct block_q4_k *q4 = (const void *)p;
    const struct block_q2_k *q2 = (const void *)p;
    const struct block_tq2_0 *tq2 = (const void *)p;
    const int group = GROUPS * step, b = by_16(type) ? group / 2 : group, h = group % 2;

    switch ((int)type) {
    case TYPE_Q2_K: w[0] = step_of_q2_k(q2->q, b, h); return true;
    case TYPE_Q3_K: w[0] = step_of_q3_k((const void *)p, b, h); return true;
    case TYPE_Q4_K: step_of_q4_k(q4->q, b, w); return true;
    case TYPE_Q5_K: step_of_q5_k((const void *)p, b, w); return true;
    case TYPE_Q6_K: w[0] = step_of_q6_k((const void *)p, b, h); return true;
    case TYPE_TQ2_0: bits_of_runs(tq2->q + 32 * (b / 4), 2 * (b % 4), 2, 3, 0, w); return true;
    default: return false;
    }
}

/* Lane 4g + r of v[j] = dword j of the 16 bytes at offset `at` of row r. */
INLINE void load_four(const uint8_t *const *p, size_t at, vi *v)
{
    UNROLL
    for (int r = 0; r < 4; r++)
        v[r] = vb_same_pieces(p[r] + at);
    vi_transpose(v);
}

/*
 * s[step] = d times the groups' bytes, of which a dword has 4, or half as many.  A byte at the
 * top of a lane needs no sign extension; the number is then 2^24 times as large.
 */
INLINE void scales_of_bytes(enum tensor_type type, const vi *bytes, vf d, vf *s)
{
    const int n_step = (by_16(type) ? 16 : 8) / GROUPS;

    d = vf_mul(d, vf_all(0x1p-24f));
    UNROLL
    for (int step = 0; step < n_step; step++) {
        int group = GROUPS * step;

        s[step] = vf_mul(vf_of_vi(vi_top_bytes(bytes[group / 4], group % 4)), d);
    }
}

INLINE void four_q4_k_scales(enum tensor_type type, const uint8_t *const *p, vf *s, vf *m)
{
    vi head[4], sc[2], mn[2];

    load_four(p, 0, head);
    q4_k_scale_bytes(head, sc, mn);
    scales_of_bytes(type, sc, vf_of_low_f16(head[0], true), s);
    scales_of_bytes(type, mn, vf_of_high_f16(head[0], true), m);
}

/* The f16 at offset `at` of each row */
INLINE vf four_f16(const uint8_t *const *p, size_t at)
{
    return vf_of_low_f16(vi_four(load_u16(p[0] + at), load_u16(p[1] + at), load_u16(p[2] + at),
                                 load_u16(p[3] + at)),
                         true);
}

INLINE void four_q2_k_scales(const uint8_t *const *p, vf *s, vf *m)
{
    vi bytes[4], sc[4], mn[4];

    load_four(p, offsetof(struct block_q2_k, scales), bytes);
    UNROLL
    for (int i = 0; i < 4; i++) {
        sc[i] = vb_and(bytes[i], vb_all(15));
        mn[i] = vb_high_nibbles(bytes[i]);
    }
    scales_of_bytes(TYPE_Q2_K, sc, four_f16(p, offsetof(struct block_q2_k, d)), s);
    scales_of_bytes(TYPE_Q2_K, mn, four_f16(p, offsetof(struct block_q2_k, dmin)), m);
}

INLINE void four_q3_k_scales(const uint8_t *const *p, vf *s)
{
    vi v[4], sc[4]; /* v[1], v[2]: nibbles, v[3]: two bits each */

    load_four(p, offsetof(struct block_q3_k, scales) - 4, v);
    UNROLL
    for (int i = 0; i < 4; i++) {
        vi low = v[1 + i % 2];

        low = i < 2 ? vb_and(low, vb_all(15)) : vb_high_nibbles(low);
        sc[i] = vb_add(vb_or(low, bits_at(v[3], 2 * i, 3, 4)), vb_all(-32));
    }
    scales_of_bytes(TYPE_Q3_K, sc, four_f16(p, offsetof(struct block_q3_k, d)), s);
}

/* Scales and minima of a span of 4 rows, as scales_of_four.  Returns false if the type is not
 * in this file. */
INLINE bool wide_scales(enum tensor_type type, const uint8_t *const *p, vf *s, vf *m)
{
    vi bytes[4];

    switch ((int)type) {
    case TYPE_Q2_K: four_q2_k_scales(p, s, m); return true;
    case TYPE_Q3_K: four_q3_k_scales(p, s); return true;
    case TYPE_Q4_K:
    case TYPE_Q5_K: four_q4_k_scales(type, p, s, m); return true;
    case TYPE_Q6_K:
        load_four(p, offsetof(struct block_q6_k, scales), bytes);
        scales_of_bytes(type, bytes, four_f16(p, offsetof(struct block_q6_k, d)), s);
        return true;
    default: return false;
    }
}

#endif
