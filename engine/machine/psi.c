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
