/*
 * statistics.h - medians, spreads, and the significance of a difference.
 */
#ifndef MEMWALL_SRC_BASE_STATISTICS_H
#define MEMWALL_SRC_BASE_STATISTICS_H

#include <stddef.h>

/* The median; NAN if n is 0.  Sorts x. */
double median(double *x, size_t n);
/* Half the distance between the largest and the smallest value; NAN if n is 0. */
double half_range(const double *x, size_t n);

/*
 * Welch's t-test of two samples whose variances may differ.
 *
 *     t  = (mean(b) - mean(a)) / sqrt(var(a) / n + var(b) / m)
 *     df = (var(a)/n + var(b)/m)^2 / ((var(a)/n)^2 / (n - 1) + (var(b)/m)^2 / (m - 1))
 *
 * p is the probability of a difference at least as large if both samples had the same mean: two
 * tails of Student's distribution with df degrees of freedom.
 */
struct welch {
    double t, df, p; /* NAN: a sample has fewer than two values */
};
struct welch welch_test(const double *a, size_t n, const double *b, size_t m);

#endif
