/*
 * set_curves.h - exp, tanh, the activation functions made of them, and norms.
 *
 * exp and tanh are written here because they then take a few instructions per vector and give
 * the same bits on every machine with the same set.  Both are accurate to 2 units in the last
 * place.  The polynomials are those of the Cephes library.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_SET_CURVES_H
#define MEMWALL_ENGINE_COMPUTE_SET_CURVES_H

#include <math.h>
#include <stddef.h>

#include VECTORS

/*
 * exp(x) = 2^n * exp(r) with whole n and |r| <= ln(2) / 2.  The result is 0 below about -104
 * and infinity above 89.  NaN stays NaN.
 */
INLINE vf vf_exp(vf x)
{
    x = vf_max(vf_all(-120), x);
    x = vf_min(vf_all(120), x);

    vf n = vf_round(vf_mul(x, vf_all(1.44269504f)));
    vf r = vf_fma(n, vf_all(-0.693359375f), x); /* ln 2 in two parts */
    r = vf_fma(n, vf_all(2.12194440e-4f), r);

    vf p = vf_all(1.9875691500e-4f);
    p = vf_fma(p, r, vf_all(1.3981999507e-3f));
    p = vf_fma(p, r, vf_all(8.3334519073e-3f));
    p = vf_fma(p, r, vf_all(4.1665795894e-2f));
    p = vf_fma(p, r, vf_all(1.6666665459e-1f));
    p = vf_fma(p, r, vf_all(5.0000001201e-1f));
    p = vf_fma(p, vf_mul(r, r), r);
    return vf_ldexp(vf_add(p, vf_all(1)), n);
}

/* A polynomial in x^2 near 0, otherwise 1 - 2 / (exp(2x) + 1). */
INLINE vf vf_tanh(vf x)
{
    vf a = vf_abs(x), z = vf_mul(x, x);
    vf p = vf_all(-5.70498872745e-3f);

    p = vf_fma(p, z, vf_all(2.06390887954e-2f));
    p = vf_fma(p, z, vf_all(-5.37397155531e-2f));
    p = vf_fma(p, z, vf_all(1.33314422036e-1f));
    p = vf_fma(p, z, vf_all(-3.33332819422e-1f));

    vf near = vf_fma(vf_mul(p, z), x, x);
    vf e = vf_exp(vf_add(a, a));
    vf far = vf_sub(vf_all(1), vf_div(vf_all(2), vf_add(e, vf_all(1))));

    return vf_if_less(a, vf_all(0.625f), near, vf_copysign(far, x));
}

/* x * sigmoid(2u) equals x / 2 * (1 + tanh(u)) and does not cancel. */
INLINE vf vf_gelu(vf x)
{
    vf cubic = vf_fma(vf_mul(vf_mul(x, x), x), vf_all(0.044715f), x);
    vf u2 = vf_mul(cubic, vf_all(-1.59576912f)); /* -2 sqrt(2 / pi) */

    return vf_div(x, vf_add(vf_all(1), vf_exp(u2)));
}

INLINE vf vf_silu(vf x)
{
    return vf_div(x, vf_add(vf_all(1), vf_exp(vf_sub(vf_zero(), x))));
}

#endif
