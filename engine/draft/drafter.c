#include "config.h"

#include "engine/draft/drafter.h"

void drafter_free(struct drafter *d)
{
    if (d != NULL)
        d->calls->free(d);
}

void drafter_rewind(struct drafter *d, const uint32_t *ids, uint32_t n)
{
    if (d != NULL)
        d->calls->rewind(d, ids, n);
}

uint64_t drafter_used(const struct drafter *d)
{
    return d != NULL ? d->calls->used(d) : 0;
}
