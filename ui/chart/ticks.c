/* See ticks.h. */
#include "config.h"

#include "ui/chart/ticks.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

double tick_round_up(double value)
{
    double power = value > 0 ? pow(10, floor(log10(value))) : 1;
    double digit = value / power;

    if (!(value > 0))
        return 1;
    return power * (digit <= 1 + 1e-9 ? 1 : digit <= 2 + 1e-9 ? 2 : digit <= 5 + 1e-9 ? 5 : 10);
}

static double power_of_two(double value)
{
    double power = exp2(ceil(log2(value) - 1e-9));

    return power < 1 ? 1 : power;
}

static double round_seconds(double value)
{
    static const double steps[] = { 10,   15,   30,   60,    120,   300,   600,  900,
                                    1800, 3600, 7200, 10800, 21600, 43200, 86400 };

    if (value <= 5)
        return tick_round_up(value);
    for (size_t i = 0; i < LENGTH(steps); i++)
        if (value <= steps[i])
            return steps[i];
    return 86400 * tick_round_up(value / 86400);
}

static double step_for(double value, enum chart_unit unit)
{
    switch (unit) {
    case CHART_BYTES: return power_of_two(value);
    case CHART_SECONDS: return round_seconds(value);
    case CHART_TOKENS: return value > 500 ? power_of_two(value) : fmax(1, tick_round_up(value));
    case CHART_NAMES: return 1;
    case CHART_NUMBER:
    case CHART_SHARE: break;
    }
    return tick_round_up(value);
}

void ticks_linear(double low, double high, enum chart_unit unit, int want, struct ticks *out)
{
    double first;

    assert(want >= 2 && want <= 16 && low <= high);
    if (high - low < 1e-9 * fmax(fabs(low), fabs(high)) || high <= low)
        high = low + (low != 0 ? fabs(low) : 1);
    *out = (struct ticks){ .step = step_for((high - low) / want, unit) };
    first = floor(low / out->step + 1e-9);
    for (int i = 0; i < TICKS_MAX; i++) {
        out->at[out->n++] = (first + i) * out->step;
        if (out->at[i] >= high - 1e-9 * out->step)
            break;
    }
    out->low = out->at[0];
    out->high = out->at[out->n - 1];
}

/* --- logarithmic --- */

/* The ticks are factor * 10^(i / parts), or base^i with steps of `by` powers. */
struct log_steps {
    const double *digit; /* within one power of base, from 1 on */
    int n_digit;
    double base;
    int by;
};

static double log_tick(const struct log_steps *s, int i)
{
    int power = i >= 0 ? i / s->n_digit : -((s->n_digit - 1 - i) / s->n_digit);

    return s->digit[i - power * s->n_digit] * pow(s->base, (double)power * s->by);
}

static int log_index(const struct log_steps *s, double value, bool up)
{
    double unit = log(s->base) * s->by;
    int i = (int)floor(log(value) / unit) * s->n_digit - 1;

    while (log_tick(s, i + 1) <= value * (1 + 1e-9))
        i++;
    return up && log_tick(s, i) < value * (1 - 1e-9) ? i + 1 : i;
}

void ticks_log(double low, double high, enum chart_unit unit, int want, struct ticks *out)
{
    static const double one[] = { 1 }, all[] = { 1, 2, 5 };
    bool is_binary = unit == CHART_BYTES || unit == CHART_TOKENS;
    struct log_steps s = { is_binary ? one : all, is_binary ? 1 : 3, is_binary ? 2 : 10, 1 };
    int first = 0, last = 0;

    assert(want >= 2 && want <= 16 && low > 0 && low <= high);
    for (;;) {
        first = log_index(&s, low, false);
        last = log_index(&s, high, true);
        if (last == first)
            last++;
        if (last - first <= want + 1 || s.by > 64)
            break;
        if (s.n_digit > 1)
            s = (struct log_steps){ one, 1, 10, 1 };
        else
            s.by++;
    }
    *out = (struct ticks){ .is_log = true };
    for (int i = first; i <= last && out->n < TICKS_MAX; i++)
        out->at[out->n++] = log_tick(&s, i);
    out->low = out->at[0];
    out->high = out->at[out->n - 1];
}

void ticks_names(int n, struct ticks *out)
{
    assert(n > 0);
    *out = (struct ticks){ .low = -0.5, .high = n - 0.5, .step = 1 };
    for (int i = 0; i < n && i < TICKS_MAX; i++)
        out->at[out->n++] = i;
}

double ticks_place(const struct ticks *t, double value)
{
    if (!isfinite(value) || (t->is_log && value <= 0))
        return NAN;
    if (t->is_log)
        return log(value / t->low) / log(t->high / t->low);
    return (value - t->low) / (t->high - t->low);
}

/* --- text --- */

/* Write value / by with the decimals of step / by, or with three digits and no zeros at the end
 * if step is 0. */
static void scaled(char buf[TICK_TEXT], double value, double step, double by, const char *unit)
{
    int n = 0, decimals = 0;

    value /= by;
    step /= by;
    if (step > 0)
        while (decimals < 6 &&
               fabs(step * pow(10, decimals) - round(step * pow(10, decimals))) > 1e-6)
            decimals++;
    else if (value != 0)
        decimals = (int)fmax(0, fmin(6, 2 - floor(log10(fabs(value)) + 1e-9)));
    n = snprintf(buf, TICK_TEXT, "%.*f", decimals, value);
    if (n >= TICK_TEXT)
        n = TICK_TEXT - 1;
    if (step <= 0 && decimals > 0) {
        while (buf[n - 1] == '0')
            n--;
        n -= buf[n - 1] == '.';
    }
    snprintf(buf + n, (size_t)(TICK_TEXT - n), "%s", unit);
}

static void number(char buf[TICK_TEXT], double value, double step)
{
    double size = fabs(value);

    if (size >= 1e15)
        snprintf(buf, TICK_TEXT, "%.2g", value);
    else if (size >= 1e9)
        scaled(buf, value, step, 1e9, "G");
    else if (size >= 1e6)
        scaled(buf, value, step, 1e6, "M");
    else if (size >= 1e5)
        scaled(buf, value, step, 1e3, "k");
    else
        scaled(buf, value, step, 1, "");
}

static void bytes(char buf[TICK_TEXT], double value)
{
    static const char *const units[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB" };
    double by = 1;
    size_t i = 0;

    while (fabs(value) / by >= 1024 && i + 1 < LENGTH(units)) {
        by *= 1024;
        i++;
    }
    scaled(buf, fmin(value, 9999 * by), 0, by, value == 0 ? "" : units[i]);
}

static void seconds(char buf[TICK_TEXT], double value, double step)
{
    if (value >= 7200)
        scaled(buf, value, fmod(step, 3600) > 0 ? 0 : step, 3600, " h");
    else if (value >= 120)
        scaled(buf, value, fmod(step, 60) > 0 ? 0 : step, 60, " min");
    else if (value >= 1)
        scaled(buf, value, step, 1, " s");
    else if (value == 0)
        snprintf(buf, TICK_TEXT, "0");
    else
        scaled(buf, value, step, 1e-3, " ms");
}

static void tokens(char buf[TICK_TEXT], double value)
{
    if (value >= 1024 && fmod(value, 256) == 0)
        scaled(buf, fmin(value, 1e12), 0, 1024, "k");
    else
        number(buf, value, 1);
}

char *tick_text(char buf[TICK_TEXT], enum chart_unit unit, double value, double step)
{
    buf[0] = '\0';
    if (!isfinite(value))
        return buf;
    switch (unit) {
    case CHART_BYTES: bytes(buf, value); break;
    case CHART_SECONDS: seconds(buf, value, step); break;
    case CHART_TOKENS: tokens(buf, value); break;
    case CHART_SHARE: scaled(buf, value * 100, step * 100, 1, " %"); break;
    case CHART_NUMBER:
    case CHART_NAMES: number(buf, value, step); break;
    }
    return buf;
}
