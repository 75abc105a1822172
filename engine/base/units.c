#include "config.h"

#include "engine/base/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int units_parse_size(const char *text, uint64_t whole, uint64_t *bytes, struct err *e)
{
    static const struct {
        const char *name;
        double factor;
    } suffixes[] = {
        { "", 1 },         { "B", 1 },        { "K", 0x1p10 },   { "KB", 0x1p10 },
        { "KiB", 0x1p10 }, { "M", 0x1p20 },   { "MB", 0x1p20 },  { "MiB", 0x1p20 },
        { "G", 0x1p30 },   { "GB", 0x1p30 },  { "GiB", 0x1p30 }, { "T", 0x1p40 },
        { "TB", 0x1p40 },  { "TiB", 0x1p40 },
    };
    char *end;
    double value;

    if (!isdigit((unsigned char)text[0]) && text[0] != '.')
        return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a size (512M, 2G or 50%%)", text);
    value = strtod(text, &end);
    while (*end == ' ')
        end++;
    if (strcmp(end, "%") == 0) {
        if (whole == 0 || value > 100)
            return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a percentage of the memory",
                           text);
        *bytes = (uint64_t)(value / 100 * (double)whole);
        return 0;
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (strcasecmp(end, suffixes[i].name) != 0)
            continue;
        value *= suffixes[i].factor;
        if (!(value < 0x1p62))
            break;
        *bytes = (uint64_t)value;
        return 0;
    }
    return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a size (512M, 2G or 50%%)", text);
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

char *units_size(char *buf, size_t n, uint64_t bytes)
{
    static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB" };
    double value = (double)bytes / 1024;
    size_t i = 0;

    if (bytes < 1024) {
        snprintf(buf, n, "%u B", (unsigned)bytes);
        return buf;
    }
    while (value >= 1023.5 && i + 1 < sizeof names / sizeof names[0]) {
        value /= 1024;
        i++;
    }
    snprintf(buf, n, "%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, names[i]);
    return buf;
}
