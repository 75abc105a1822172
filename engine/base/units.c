#include "config.h"

#include "engine/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Parse the unit of bytes: "", "M", "MB" or "MiB".  M is kilo * kilo bytes, MiB always 2^20.
 * Returns 0 for another text. */
static double unit_bytes(const char *unit, double kilo)
{
    static const char letters[] = "KMGT";
    const char *letter =
        unit[0] != '\0' ? strchr(letters, toupper((unsigned char)unit[0])) : NULL;
    const char *rest = unit + (letter != NULL);
    bool is_binary = letter != NULL && strcasecmp(rest, "iB") == 0;

    if (!is_binary && rest[0] != '\0' && strcasecmp(rest, "B") != 0)
        return 0;
    return letter == NULL ? 1 : pow(is_binary ? 1024 : kilo, (double)(letter - letters + 1));
}

/* Parse a decimal number and the blanks after it; *end is the rest. */
static bool parse_decimal(const char *text, double *value, char **end)
{
    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return false;
    *value = strtod(text, end);
    while (**end == ' ')
        ++*end;
    return *end != text;
}

int units_parse_size(const char *text, uint64_t whole, uint64_t *bytes, struct err *e)
{
    double value, unit;
    char *end;

    if (!parse_decimal(text, &value, &end))
        return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a size (512M, 2G or 50%%)", text);
    if (strcmp(end, "%") == 0) {
        if (whole == 0 || value > 100)
            return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a percentage of the memory",
                           text);
        *bytes = (uint64_t)(value / 100 * (double)whole);
        return 0;
    }
    unit = unit_bytes(end, 1024);
    if (unit == 0 || !(value * unit < 0x1p62))
        return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a size (512M, 2G or 50%%)", text);
    *bytes = (uint64_t)(value * unit);
    return 0;
}

bool units_parse_rate(const char *text, uint64_t *bytes)
{
    double value, unit;
    char name[8];
    char *end;
    size_t n;

    if (!parse_decimal(text, &value, &end))
        return false;
    n = strcspn(end, "/");
    if (n >= sizeof name || (end[n] == '/' && strcmp(end + n, "/s") != 0))
        return false;
    memcpy(name, end, n);
    name[n] = '\0';
    unit = unit_bytes(name, 1000);
    if (unit == 0 || !(value * unit < 0x1p62))
        return false;
    *bytes = (uint64_t)(value * unit);
    return true;
}

bool units_parse_whole(const char *text, bool k_allowed, uint64_t low, uint64_t high,
                       uint64_t *out)
{
    char *end;
    unsigned long long n;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno != 0)
        return false;
    if (k_allowed && (*end == 'k' || *end == 'K')) {
        if (__builtin_mul_overflow(n, 1024ULL, &n))
            return false;
        end++;
    }
    if (*end != '\0' || n < low || n > high)
        return false;
    *out = n;
    return true;
}

bool units_parse_number(const char *text, double low, double high, double *out)
{
    char *end;
    double value;

    /* strtod also accepts "nan", "inf", hexadecimal digits and leading spaces. */
    if (text[0] == '\0' || text[strspn(text, "0123456789.eE+-")] != '\0')
        return false;
    errno = 0;
    value = strtod(text, &end);
    if (*end != '\0' || errno != 0 || !isfinite(value) || value < low || value > high)
        return false;
    *out = value;
    return true;
}

/* The digits after the point of a size. */
static int size_decimals(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

/* Write a size that `to` rounds to the digits that are shown. */
static char *size_text(char *buf, size_t n, uint64_t bytes, double (*to)(double))
{
    static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
    double value = (double)bytes / 1024, unit;
    size_t i = 0;

    if (bytes < 1024) {
        snprintf(buf, n, "%u B", (unsigned)bytes);
        return buf;
    }
    while (value >= 1023.5 && i + 1 < sizeof names / sizeof names[0]) {
        value /= 1024;
        i++;
    }
    unit = pow(10, size_decimals(value));
    value = to(value * unit) / unit;
    if (value >= 1023.5 && i + 1 < sizeof names / sizeof names[0]) {
        value /= 1024;
        i++;
    }
    snprintf(buf, n, "%.*f %s", size_decimals(value), value, names[i]);
    return buf;
}

char *units_size(char *buf, size_t n, uint64_t bytes)
{
    return size_text(buf, n, bytes, rint);
}

char *units_size_down(char *buf, size_t n, uint64_t bytes)
{
    return size_text(buf, n, bytes, floor);
}

char *units_size_up(char *buf, size_t n, uint64_t bytes)
{
    return size_text(buf, n, bytes, ceil);
}

char *units_size_like(char *buf, size_t n, uint64_t bytes, const char *size)
{
    static const char letters[] = "KMGTP";
    const char *unit = strchr(size, ' ') + 1, *point = strchr(size, '.');
    const char *letter = strchr(letters, unit[0]);
    double by = letter != NULL ? pow(1024, (double)(letter - letters + 1)) : 1;

    snprintf(buf, n, "%.*f", point != NULL ? (int)(unit - point) - 2 : 0, (double)bytes / by);
    return buf;
}

char *units_option(char *buf, size_t n, uint64_t bytes)
{
    struct err ignored = ERR_INIT;
    uint64_t shown = 0;
    char text[16];
    size_t len;

    units_size(text, sizeof text, bytes);
    if (units_parse_size(text, 0, &shown, &ignored) != 0 || shown != bytes || bytes < MIB) {
        snprintf(buf, n, "%lluM", (unsigned long long)(bytes / MIB + (bytes % MIB != 0)));
        return buf;
    }
    len = strcspn(text, " ");
    snprintf(buf, n, "%.*s", (int)len, text);
    if (strchr(buf, '.') != NULL) {
        size_t end = strlen(buf);

        while (buf[end - 1] == '0')
            end--;
        end -= buf[end - 1] == '.';
        buf[end] = '\0';
    }
    snprintf(buf + strlen(buf), n - strlen(buf), "%c", text[len + 1]);
    return buf;
}

char *units_rate(char *buf, size_t n, double bytes_s)
{
    static const struct {
        double bytes_s;
        const char *name;
    } units[] = { { 1, "B/s" }, { 1e3, "kB/s" }, { 1e6, "MB/s" }, { 1e9, "GB/s" },
                  { 1e12, "TB/s" } };
    size_t i = bytes_s > 0 ? 0 : 2;

    while (bytes_s >= 999.5 * units[i].bytes_s && i + 1 < sizeof units / sizeof units[0])
        i++;
    snprintf(buf, n, "%.3g %s", bytes_s / units[i].bytes_s, units[i].name);
    return buf;
}

char *units_change(char *buf, size_t n, double ratio)
{
    double percent = round((ratio - 1) * 100);

    if (percent > -0.5 && percent < 0.5) /* also minus zero */
        snprintf(buf, n, "0 %%");
    else
        snprintf(buf, n, "%+.0f %%", percent);
    return buf;
}

double units_two_digits(double value)
{
    double unit;

    if (!(value > 0) || !isfinite(value))
        return 0;
    unit = pow(10, floor(log10(value)) - 1);
    return unit < 1 ? round(value / unit) / round(1 / unit) : round(value / unit) * unit;
}

int units_two_decimals(double value)
{
    double rounded = units_two_digits(value);

    return rounded >= 9.95 ? 0 : rounded >= 0.995 ? 1 : rounded >= 0.0995 ? 2 : 3;
}
