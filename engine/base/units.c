#include "config.h"

#include "engine/base/units.h"

#include <ctype.h>
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
            return err_set(e, ERR_ARGUMENT, "\"%.40s\" is not a share of the memory", text);
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
