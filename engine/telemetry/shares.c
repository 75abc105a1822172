/* See shares.h. */
#include "config.h"

#include "engine/telemetry/shares.h"

#include <stddef.h>

static double sum_of(const struct mw_shares *s)
{
    return s->disk + s->memory + s->arithmetic + s->attention + s->others + s->fixed;
}

void mw_shares_scale(struct mw_shares *s)
{
    double sum = sum_of(s);

    if (!(sum > 0))
        return;
    s->disk /= sum;
    s->rows /= sum;
    s->memory /= sum;
    s->arithmetic /= sum;
    s->attention /= sum;
    s->others /= sum;
    s->fixed /= sum;
}

/* Rows do not overlap with computing, so for them the larger share of the time binds. */
static bool disk_binds(const struct mw_shares *s, double sum)
{
    double products = s->memory + s->arithmetic;

    return s->disk - s->rows >= SHARES_DISK * sum ||
           (s->disk > 0 && s->disk >= products && s->disk >= s->attention);
}

enum mw_binds mw_shares_bind(const struct mw_shares *s, double *share)
{
    double sum = sum_of(s), products = s->memory + s->arithmetic, part;
    enum mw_binds binds;

    if (share != NULL)
        *share = 0;
    if (!(sum > 0))
        return MW_BINDS_NONE;
    if (s->others >= SHARES_OTHERS * sum && s->others > s->disk) {
        binds = MW_BINDS_OTHERS;
        part = s->others;
    } else if (disk_binds(s, sum)) {
        binds = MW_BINDS_DISK;
        part = s->disk;
    } else if (s->attention > products) {
        binds = MW_BINDS_KV;
        part = s->attention;
    } else {
        /* More cores would help arithmetic, and what it does beside reads from memory. */
        binds = s->memory >= SHARES_MEMORY * products ? MW_BINDS_MEMORY : MW_BINDS_COMPUTE;
        part = binds == MW_BINDS_MEMORY ? s->memory : products;
    }
    if (share != NULL)
        *share = part / sum;
    return binds;
}
