#include "config.h"

#include "engine/base/numbers.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/units.h"

uint64_t numbers_whole(double value)
{
    const double most = 9223372036854775808.0;

    return value >= most ? (uint64_t)most : value > 0 ? (uint64_t)value : 0;
}

char *numbers_count(char *buf, size_t n, uint64_t value)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    size_t used = 0;

    buf[0] = '\0';
    for (int i = 0; i < len && used < n; i++)
        used += (size_t)snprintf(buf + used, n - used, "%s%c",
                                 i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
    return buf;
}

char *numbers_parameters(char *buf, size_t n, uint64_t count)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = { { 1e12, "T" }, { 1e9, "B" }, { 1e6, "M" }, { 1e3, "K" } };

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        double x = (double)count / units[i].unit;

        if (x < 0.9995)
            continue;
        snprintf(buf, n, "%.*f %s", x < 9.995 ? 2 : x < 99.95 ? 1 : 0, x, units[i].name);
        return buf;
    }
    snprintf(buf, n, "%llu", (unsigned long long)count);
    return buf;
}

char *numbers_time(char *buf, size_t n, double s)
{
    if (!(s > 0)) /* also not-a-number */
        s = 0;
    if (s > 1e9)
        s = 1e9;
    if (s < 0.0995)
        snprintf(buf, n, "%.0f ms", s * 1000);
    else if (s < 9.95)
        snprintf(buf, n, "%.1f s", s);
    else if (s < 59.5)
        snprintf(buf, n, "%.0f s", s);
    else if (s < 599.5)
        snprintf(buf, n, "%d min %d s", (int)(round(s) / 60), (int)fmod(round(s), 60));
    else if (s < 3570)
        snprintf(buf, n, "%.0f min", s / 60);
    else
        snprintf(buf, n, "%.0f h %.0f min", floor(round(s / 60) / 60), fmod(round(s / 60), 60));
    return buf;
}

char *numbers_measured(char *buf, size_t n, double per_s)
{
    double unit = 1;

    if (!(per_s > 0)) /* also not-a-number */
        per_s = 0;
    if (per_s > 1e12)
        per_s = 1e12;
    if (per_s < 99.95) {
        int digits = per_s > 0 && per_s < 0.0995 ? 3 : per_s < 9.995 ? 2 : 1;

        snprintf(buf, n, "%.*f", digits, per_s);
        return buf;
    }
    while (per_s / unit >= 999.5)
        unit *= 10;
    return numbers_count(buf, n, (uint64_t)(round(per_s / unit) * unit));
}

char *numbers_rough(char *buf, size_t n, double per_s)
{
    double rounded = units_two_digits(per_s > 1e12 ? 1e12 : per_s);

    if (rounded >= 9.95)
        return numbers_count(buf, n, (uint64_t)rounded);
    snprintf(buf, n, "%.*f", units_two_decimals(rounded), rounded);
    return buf;
}

char *numbers_predicted(char *buf, size_t n, double per_s, bool is_doubtful)
{
    char rate[24];

    snprintf(buf, n, "~%s%s", numbers_rough(rate, sizeof rate, per_s), is_doubtful ? "?" : "");
    return buf;
}
