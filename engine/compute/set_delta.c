/*
 * set_delta.c - one step of the gated delta rule.
 *
 * A few rows of the state are computed at a time: their sums do not wait for each other, and
 * they share the loads of k and q.  Each row has its own order of additions, the same for any
 * number of rows.
 */
#include "config.h"

#include <stddef.h>

#include "engine/compute/kernel_set.h"
#include VECTORS

#define DELTA_ROWS 4

/* out[r] = the sum of a[r][i] * b[i], with two partial sums that hide each other's latency. */
INLINE void delta_dots(size_t n_r, const float *a, const float *b, size_t n, float *out)
{
    vf even[DELTA_ROWS], odd[DELTA_ROWS];
    size_t i = 0;

    UNROLL
    for (size_t r = 0; r < n_r; r++)
        even[r] = odd[r] = vf_zero();
    for (; i + 2 * VN <= n; i += 2 * VN) {
        vf b0 = vf_load(b + i), b1 = vf_load(b + i + VN);

        UNROLL
        for (size_t r = 0; r < n_r; r++) {
            even[r] = vf_fma(vf_load(a + r * n + i), b0, even[r]);
            odd[r] = vf_fma(vf_load(a + r * n + i + VN), b1, odd[r]);
        }
    }
    for (; i < n; i += VN) {
        size_t part = n - i < VN ? n - i : VN;

        UNROLL
        for (size_t r = 0; r < n_r; r++)
            even[r] =
                vf_fma(vf_load_part(a + r * n + i, part), vf_load_part(b + i, part), even[r]);
    }
    UNROLL
    for (size_t r = 0; r < n_r; r++)
        out[r] = vf_sum(vf_add(even[r], odd[r]));
}

/* to[r] = decay * from[r] + change[r] * k;  out[r] = the sum of to[r][i] * q[i]; n_r rows from
 * `first` on. */
INLINE void delta_update(size_t n_r, const struct delta_step *d, size_t first,
                         const float *change)
{
    const float *from = d->from + first * d->dk, *q = d->q, *k = d->k;
    float *to = d->to + first * d->dk, *out = d->out + first;
    vf by = vf_all(d->decay), even[DELTA_ROWS], odd[DELTA_ROWS];
    size_t n = d->dk, i = 0;

    UNROLL
    for (size_t r = 0; r < n_r; r++)
        even[r] = odd[r] = vf_zero();
    for (; i + 2 * VN <= n; i += 2 * VN) {
        vf k0 = vf_load(k + i), k1 = vf_load(k + i + VN);
        vf q0 = vf_load(q + i), q1 = vf_load(q + i + VN);

        UNROLL
        for (size_t r = 0; r < n_r; r++) {
            size_t at = r * n + i;
            vf add = vf_all(change[r]);
            vf a = vf_fma(k0, add, vf_mul(vf_load(from + at), by));
            vf b = vf_fma(k1, add, vf_mul(vf_load(from + at + VN), by));

            vf_store(to + at, a);
            vf_store(to + at + VN, b);
            even[r] = vf_fma(a, q0, even[r]);
            odd[r] = vf_fma(b, q1, odd[r]);
        }
    }
    for (; i < n; i += VN) {
        size_t part = n - i < VN ? n - i : VN;

        UNROLL
        for (size_t r = 0; r < n_r; r++) {
            size_t at = r * n + i;
            vf a = vf_fma(vf_load_part(k + i, part), vf_all(change[r]),
                          vf_mul(vf_load_part(from + at, part), by));

            vf_store_part(to + at, a, part);
            even[r] = vf_fma(a, vf_load_part(q + i, part), even[r]);
        }
    }
    UNROLL
    for (size_t r = 0; r < n_r; r++)
        out[r] = vf_sum(vf_add(even[r], odd[r]));
}

INLINE void delta_rows(size_t n_r, const struct delta_step *d, size_t first)
{
    float change[DELTA_ROWS];

    delta_dots(n_r, d->from + first * d->dk, d->k, d->dk, change);
    UNROLL
    for (size_t r = 0; r < n_r; r++)
        change[r] = d->beta * (d->v[first + r] - d->decay * change[r]);
    delta_update(n_r, d, first, change);
}

void set_delta(const struct delta_step *d)
{
    size_t r = 0;

    for (; r + DELTA_ROWS <= d->dv; r += DELTA_ROWS)
        delta_rows(DELTA_ROWS, d, r);
    for (; r < d->dv; r++)
        delta_rows(1, d, r);
}
