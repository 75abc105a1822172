/*
 * set_rotate.h - the Walsh-Hadamard transform.
 *
 * Every step replaces pairs of values by their sum and their difference, and the steps
 * follow the order of the definition, so a set gives the definition's bits.  Steps within a
 * vector come first and take one exchange of lanes each.  Steps between vectors are taken
 * two at a time, which halves the loads and stores.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_ROTATE_H
#define MEMWALL_ENGINE_COMPUTE_SET_ROTATE_H

#include <math.h>
#include <stddef.h>

#include VECTORS

/* Each lane gets the value of the lane whose number differs in the bit s. */
#define PAIR_4(i, s) (i) ^ (s), ((i) + 1) ^ (s), ((i) + 2) ^ (s), ((i) + 3) ^ (s)
#if VN == 16
#define PARTNERS(v, s)                                                                         \
    __builtin_shufflevector(v, v, PAIR_4(0, s), PAIR_4(4, s), PAIR_4(8, s), PAIR_4(12, s))
#elif VN == 8
#define PARTNERS(v, s) __builtin_shufflevector(v, v, PAIR_4(0, s), PAIR_4(4, s))
#else
#define PARTNERS(v, s) __builtin_shufflevector(v, v, PAIR_4(0, s))
#endif

/* Lane i: 1 if the bit s of i is clear, else -1.  A product with it is exact. */
#define SIGN(i, s)    ((i) & (s)) != 0 ? -1.0f : 1.0f
#define SIGNS_4(i, s) SIGN(i, s), SIGN((i) + 1, s), SIGN((i) + 2, s), SIGN((i) + 3, s)
#define SIGNS(s)                                                                               \
    {                                                                                          \
        SIGNS_4(0, s), SIGNS_4(4, s), SIGNS_4(8, s), SIGNS_4(12, s)                            \
    }
static const float lane_signs[4][16] = { SIGNS(1), SIGNS(2), SIGNS(4), SIGNS(8) };

/* The lower of two lanes becomes lower + upper, the upper becomes lower - upper. */
INLINE vf rotate_lanes(vf v)
{
    v = vf_fma(v, vf_load(lane_signs[0]), PARTNERS(v, 1));
    v = vf_fma(v, vf_load(lane_signs[1]), PARTNERS(v, 2));
#if VN >= 8
    v = vf_fma(v, vf_load(lane_signs[2]), PARTNERS(v, 4));
#endif
#if VN >= 16
    v = vf_fma(v, vf_load(lane_signs[3]), PARTNERS(v, 8));
#endif
    return v;
}

/* The steps between values half and, if n_step is 2, 2 * half apart. */
INLINE void rotate_steps(float *x, size_t run, size_t half, int n_step, vf scale)
{
    size_t width = half << n_step;

    for (size_t i = 0; i < run; i += width)
        for (size_t j = i; j < i + half; j += VN) {
            vf a = vf_load(x + j), b = vf_load(x + j + half);
            vf low = vf_add(a, b), high = vf_sub(a, b);

            if (n_step == 2) {
                vf c = vf_load(x + j + 2 * half), d = vf_load(x + j + 3 * half);
                vf low2 = vf_add(c, d), high2 = vf_sub(c, d);

                vf_store(x + j + 2 * half, vf_mul(vf_sub(low, low2), scale));
                vf_store(x + j + 3 * half, vf_mul(vf_sub(high, high2), scale));
                low = vf_add(low, low2);
                high = vf_add(high, high2);
            }
            vf_store(x + j, vf_mul(low, scale));
            vf_store(x + j + half, vf_mul(high, scale));
        }
}

static void set_rotate(float *x, size_t n, size_t run)
{
    const vf scale = vf_all(1 / sqrtf((float)run)), one = vf_all(1);

    for (float *end = x + n; x < end; x += run) {
        size_t half = VN;

        for (size_t i = 0; i < run; i += VN)
            vf_store(x + i, rotate_lanes(vf_load(x + i)));
        for (; half * 4 <= run; half *= 4)
            rotate_steps(x, run, half, 2, half * 4 == run ? scale : one);
        if (half < run)
            rotate_steps(x, run, half, 1, scale);
    }
}

#endif
