#include "config.h"

#include "ui/dash/figure.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/numbers.h"

static struct figure right(const char *text, int width)
{
    struct figure f;

    snprintf(f.text, sizeof f.text, "%*s", width, text);
    return f;
}

/* Format three digits and a point, or a whole number, or one with K, M, …, in 5 columns. */
static struct figure three_digits(double value, int width)
{
    static const char steps[] = "kMGTP";
    const char *step = steps;
    char text[FIGURE_MAX];

    if (!(value >= 0))
        return right("-", width);
    if (value < 99999.5) {
        snprintf(text, sizeof text, "%.*f", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value);
        return right(text, width);
    }
    for (value /= 1000; value >= 9999.5 && step[1] != '\0'; value /= 1000)
        step++;
    if (value >= 9999.5)
        return right(">", width);
    snprintf(text, sizeof text, "%.0f%c", value, *step);
    return right(text, width);
}

struct figure figure_size8(uint64_t bytes)
{
    char text[FIGURE_MAX];

    return right(units_size(text, sizeof text, bytes), 8);
}

struct figure figure_os8(struct mw_os_value v)
{
    return v.why_not == NULL ? figure_size8(v.value) : right("-", 8);
}

struct figure figure_budget8(const struct mw_sample *s)
{
    return s->run.budget_bytes > 0 ? figure_size8(s->run.budget_bytes) : right("-", 8);
}

struct figure figure_rate5(double per_second)
{
    return three_digits(per_second, 5);
}

struct figure figure_rate6(double measured, double predicted)
{
    char text[FIGURE_MAX];
    double rough = units_two_digits(predicted);

    if (measured >= 0 || !(rough > 0))
        return right(figure_rate5(measured).text, 6);
    if (rough < 99999.5)
        snprintf(text, sizeof text, "~%.*f", units_two_decimals(rough), rough);
    else
        snprintf(text, sizeof text, "~%s", figure_trim(figure_rate5(rough).text));
    return right(text, 6);
}

const char *figure_trim(const char *text)
{
    return text + strspn(text, " ");
}

double figure_disk_unit(const struct mw_sample *s, const char **name)
{
    bool is_slow = s->disk_limit > 0 && s->disk_limit < 100000000;

    *name = is_slow ? "MB/s" : "GB/s";
    return is_slow ? 1e6 : 1e9;
}

struct figure figure_percent5(double share)
{
    char text[FIGURE_MAX];

    if (!(share >= 0) || share > 9.99)
        return right("-", 5);
    snprintf(text, sizeof text, "%.0f %%", share * 100);
    return right(text, 5);
}

struct figure figure_count7(uint64_t n)
{
    char text[FIGURE_MAX];

    if (n < 1000000)
        numbers_count(text, sizeof text, n);
    else
        snprintf(text, sizeof text, "%.2fM", (double)n / 1e6);
    return right(text, 7);
}

struct figure figure_time7(double seconds)
{
    char text[FIGURE_MAX];
    unsigned whole;

    if (!(seconds >= 0) || seconds > 359999)
        return right("-", 7);
    whole = (unsigned)(seconds + 0.5);
    if (seconds < 0.0995)
        snprintf(text, sizeof text, "%.0f ms", seconds * 1e3);
    else if (seconds < 59.95)
        snprintf(text, sizeof text, "%.1f s", seconds);
    else if (whole < 3600)
        snprintf(text, sizeof text, "%u:%02u m", whole / 60, whole % 60);
    else
        snprintf(text, sizeof text, "%u:%02u h", whole / 3600, whole / 60 % 60);
    return right(text, 7);
}

struct figure figure_left10(double seconds)
{
    char text[FIGURE_MAX];
    double minutes = round(seconds / 60);

    if (!(seconds >= 0) || seconds > 359999)
        return right("-", 10);
    if (seconds < 59.5)
        snprintf(text, sizeof text, "%.0f s", seconds);
    else if (minutes < 60)
        snprintf(text, sizeof text, "%.0f min", minutes);
    else
        snprintf(text, sizeof text, "%.0f h %2.0f min", floor(minutes / 60), fmod(minutes, 60));
    return right(text, 10);
}

struct figure figure_ms6(uint64_t ns)
{
    return three_digits((double)ns / 1e6, 6);
}

struct figure figure_ms4(double ns)
{
    char text[FIGURE_MAX];

    if (!(ns >= 0))
        return right("-", 4);
    if (ns < 9.95e6)
        snprintf(text, sizeof text, "%.1f", ns / 1e6);
    else if (ns < 9999.5e6)
        snprintf(text, sizeof text, "%.0f", ns / 1e6);
    else if (ns < 999.5e9)
        snprintf(text, sizeof text, "%.0fs", ns / 1e9);
    else
        return right(">", 4);
    return right(text, 4);
}
