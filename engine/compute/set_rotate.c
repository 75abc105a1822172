/*
 * set_rotate.c - the Walsh-Hadamard transform.
 *
 * Every step replaces pairs of values by their sum and their difference.  Steps have the
 * order of kernels_generic.c, so all sets give the same bits.  Steps within a vector come
 * first and need one permutation each.  Two steps between vectors are done at once, which
 * halves the loads and stores.
 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "engine/compute/kernel_set.h"
#include VECTORS

/* Lane i gets the value of lane i ^ s. */
#define PAIR_4(i, s) (i) ^ (s), ((i) + 1) ^ (s), ((i) + 2) ^ (s), ((i) + 3) ^ (s)
#if VN == 16
#define PARTNERS(v, s)                                                                         \
    __builtin_shufflevector(v, v, PAIR_4(0, s), PAIR_4(4, s), PAIR_4(8, s), PAIR_4(12, s))
#elif VN == 8
#define PARTNERS(v, s) __builtin_shufflevector(v, v, PAIR_4(0, s), PAIR_4(4, s))
#else
#define PARTNERS(v, s) __builtin_shufflevector(v, v, PAIR_4(0, s))
#endif

/* Lane i has 1 if bit s of i is clear, otherwise -1.  Multiplying by it is exact. */
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

/*
 * The steps between values `half` and, if n_step is 2, 2 * half apart.  If is_first, the
 * steps within vectors come before them.  The last steps of a run scale it.
 */
INLINE void rotate_steps(float *x, size_t run, size_t half, int n_step, bool is_first, vf scale)
{
    size_t width = half << n_step;
    vf by = width == run ? scale : vf_all(1);

    for (size_t i = 0; i < run; i += width)
        for (size_t j = i; j < i + half; j += VN) {
            vf v[4], sum[4];

            UNROLL
            for (size_t k = 0; k < (size_t)1 << n_step; k++) {
                v[k] = vf_load(x + j + k * half);
                if (is_first)
                    v[k] = rotate_lanes(v[k]);
            }
            UNROLL
            for (size_t k = 0; k < (size_t)1 << n_step; k += 2) {
                sum[k] = vf_add(v[k], v[k + 1]);
                sum[k + 1] = vf_sub(v[k], v[k + 1]);
            }
            if (n_step == 2) {
                v[0] = vf_add(sum[0], sum[2]);
                v[1] = vf_add(sum[1], sum[3]);
                v[2] = vf_sub(sum[0], sum[2]);
                v[3] = vf_sub(sum[1], sum[3]);
            }
            UNROLL
            for (size_t k = 0; k < (size_t)1 << n_step; k++)
                vf_store(x + j + k * half, vf_mul(n_step == 2 ? v[k] : sum[k], by));
        }
}

void set_rotate(float *x, size_t n, size_t run)
{
    const vf scale = vf_all(1 / sqrtf((float)run));

    for (float *end = x + n; x < end; x += run) {
        size_t half = VN;

        if (half * 4 > run) {
            rotate_steps(x, run, half, 1, true, scale);
            continue;
        }
        rotate_steps(x, run, half, 2, true, scale);
        for (half *= 4; half * 4 <= run; half *= 4)
            rotate_steps(x, run, half, 2, false, scale);
        if (half < run)
            rotate_steps(x, run, half, 1, false, scale);
    }
}
