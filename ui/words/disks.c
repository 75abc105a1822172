#include "config.h"

#include "ui/words/disks.h"

#include <stdio.h>

#include "engine/base/units.h"

/* The mean rate of a disk while it had reads. */
static double rate_of(const struct mw_sample *s, int disk)
{
    return s->io.disk_ns[disk] > 0
               ? (double)s->io.disk_bytes[disk] * 1e9 / (double)s->io.disk_ns[disk]
               : 0;
}

char *disks_text(const struct mw_sample *s, char *buf, size_t n)
{
    char model[24], mirror[24];

    buf[0] = '\0';
    if (s->io.mirror == MW_MIRROR_NONE || s->io.disk_ns[0] == 0)
        return buf;
    units_rate(model, sizeof model, rate_of(s, 0));
    units_rate(mirror, sizeof mirror, rate_of(s, 1));
    if (s->io.mirror == MW_MIRROR_LOST)
        snprintf(buf, n, "model %s, mirror lost", model);
    else
        snprintf(buf, n, "model %s, mirror %s", model, mirror);
    return buf;
}
