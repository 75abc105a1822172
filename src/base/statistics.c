/* See statistics.h. */
#include "config.h"

#include "src/base/statistics.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median(double *x, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(x, n, sizeof *x, compare);
    return n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

double half_range(const double *x, size_t n)
{
    double least, most;

    if (n == 0)
        return NAN;
    least = most = x[0];
    for (size_t i = 1; i < n; i++) {
        least = fmin(least, x[i]);
        most = fmax(most, x[i]);
    }
    return (most - least) / 2;
}

static double mean(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* The variance of the population, estimated from a sample of at least two. */
static double variance(const double *x, size_t n)
{
    double m = mean(x, n), sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (x[i] - m) * (x[i] - m);
    return sum / (double)(n - 1);
}

/* The continued fraction of the incomplete beta function, by the method of Lentz.  Converges
 * quickly for x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), h;

    d = 1 / (fabs(d) < tiny ? tiny : d);
    h = d;
    for (int m = 1; m <= 300; m++) {
        for (int is_odd = 0; is_odd <= 1; is_odd++) {
            double k = is_odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                              : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));

            d = 1 + k * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + k / c;
            c = fabs(c) < tiny ? tiny : c;
            h *= d * c;
        }
        if (fabs(d * c - 1) < 1e-14)
            break;
    }
    return h;
}

/* The regularised incomplete beta function. */
static double beta(double a, double b, double x)
{
    double front;

    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

struct welch welch_test(const double *a, size_t n, const double *b, size_t m)
{
    struct welch w = { NAN, NAN, NAN };
    double va, vb, difference;

    if (n < 2 || m < 2)
        return w;
    va = variance(a, n) / (double)n;
    vb = variance(b, m) / (double)m;
    difference = mean(b, m) - mean(a, n);
    if (va + vb <= 0) { /* no noise at all: equal, or certainly different */
        w.df = (double)(n + m - 2);
        w.t = difference == 0 ? 0 : difference > 0 ? INFINITY : -INFINITY;
        w.p = difference == 0 ? 1 : 0;
        return w;
    }
    w.t = difference / sqrt(va + vb);
    w.df = (va + vb) * (va + vb) / (va * va / (double)(n - 1) + vb * vb / (double)(m - 1));
    w.p = beta(w.df / 2, 0.5, w.df / (w.df + w.t * w.t));
    return w;
}
