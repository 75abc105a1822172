/*
 * ticks.h - the numbers beside the axis of a chart: round values that enclose the data, and
 * their text.
 *
 * Round depends on the unit.  Bytes step by powers of two, seconds by the parts of a minute and
 * an hour, tokens by powers of two from 512 on, and other numbers by 1, 2 or 5 times a power of
 * ten.
 */
#ifndef MEMWALL_UI_CHART_TICKS_H
#define MEMWALL_UI_CHART_TICKS_H

#include <stdbool.h>
#include <stddef.h>

enum chart_unit {
    CHART_NUMBER,
    CHART_BYTES,   /* "512 MiB" */
    CHART_SECONDS, /* "5 ms", "30 s", "2 min" */
    CHART_TOKENS,  /* "800", "4k" */
    CHART_SHARE,   /* 0 to 1, as "50 %" */
    CHART_NAMES,   /* whole numbers from 0 on that stand for names */
};

#define TICKS_MAX 32

/* at[0] and at[n - 1] are the ends of the axis, except for names, which have half a step of
 * space on both sides. */
struct ticks {
    double low, high;
    bool is_log;
    double step; /* of a linear axis; 0: of a logarithmic one */
    int n;
    double at[TICKS_MAX];
};

/* Returns 1, 2 or 5 times a power of ten at or above value; 1 if value is not above 0. */
double tick_round_up(double value);

/* Choose ticks of a linear axis that encloses low to high, with about `want` steps (2 to 16).
 */
void ticks_linear(double low, double high, enum chart_unit unit, int want, struct ticks *out);
/* The same for a logarithmic axis; 0 < low <= high. */
void ticks_log(double low, double high, enum chart_unit unit, int want, struct ticks *out);
/* One tick for each of n > 0 names. */
void ticks_names(int n, struct ticks *out);

/* Returns the place of a value on the axis, 0 at its low end and 1 at its high end, or NAN if
 * the axis has no place for it. */
double ticks_place(const struct ticks *t, double value);

/* Write a value: with the digits that tell ticks of this step apart, or with three digits if
 * step is 0.  At most 15 characters.  Returns buf. */
#define TICK_TEXT 16
char *tick_text(char buf[TICK_TEXT], enum chart_unit unit, double value, double step);

#endif
