#include "config.h"

#include "engine/machine/psi.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct mw_os_value psi_parse(const char *text)
{
    static const char head[] = "some avg10=";
    const char *at = strstr(text, head);
    uint64_t whole, hundredths = 0;
    char *end;

    if (at == NULL || !isdigit((unsigned char)at[sizeof head - 1]))
        return os_unknown("unknown format of the pressure file");
    whole = strtoull(at + sizeof head - 1, &end, 10);
    /* There are always two digits.  The decimal mark of strtod depends on the locale. */
    if (end[0] == '.' && isdigit((unsigned char)end[1]) && isdigit((unsigned char)end[2]))
        hundredths = (uint64_t)((end[1] - '0') * 10 + end[2] - '0');
    return os_value(whole * 100 + hundredths);
}

struct mw_os_value psi_some10(int fd)
{
    char text[512];

    if (fd < 0)
        return os_unknown("this kernel has no pressure figures");
    if (kernel_file_read(fd, text, sizeof text) <= 0)
        return os_unknown(errno == EOPNOTSUPP
                              ? "pressure figures are disabled (boot with psi=1)"
                              : "the pressure file cannot be read");
    return psi_parse(text);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=41818994": the number at the end of the line. */
static bool total_of(const char *text, const char *kind, uint64_t *us)
{
    static const char key[] = " total=";
    const char *line = strstr(text, kind), *at = line != NULL ? strstr(line, key) : NULL;

    if (at == NULL || !isdigit((unsigned char)at[sizeof key - 1]))
        return false;
    *us = strtoull(at + sizeof key - 1, NULL, 10);
    return true;
}

bool psi_parse_total(const char *text, struct psi_total *out)
{
    *out = (struct psi_total){ 0 };
    if (!total_of(text, "some avg10=", &out->some_us))
        return false;
    (void)total_of(text, "full avg10=", &out->full_us); /* older kernels have none of processors */
    return true;
}

bool psi_read_total(int fd, struct psi_total *out)
{
    char text[512];

    *out = (struct psi_total){ 0 };
    return fd >= 0 && kernel_file_read(fd, text, sizeof text) > 0 && psi_parse_total(text, out);
}
