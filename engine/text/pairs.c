#include "config.h"

#include "engine/text/pairs.h"

#include <string.h>

/* A third of the slots is free.  A failed lookup then takes about 5 probes, which are in one or
 * two cache lines. */
static uint32_t slots_for(uint32_t n_merge)
{
    return n_merge + n_merge / 2 + 16;
}

size_t pairs_bytes(uint32_t n_merge)
{
    return arena_size((size_t)slots_for(n_merge) * 8) + arena_size((size_t)n_merge * 4);
}

static unsigned bits_for(uint32_t n)
{
    unsigned bits = 1;

    while (bits < 32 && (uint64_t)1 << bits < (uint64_t)n + 1)
        bits++;
    return bits;
}

int pairs_start(struct pairs *p, struct arena *a, uint32_t n_token, uint32_t n_merge,
                struct err *e)
{
    *p = (struct pairs){ .n_merge = n_merge, .n_slot = slots_for(n_merge), .key = *hash_key() };
    p->id_bits = bits_for(n_token);
    p->rank_bits = bits_for(n_merge);
    if (2 * p->id_bits + p->rank_bits > 63)
        return err_set(e, ERR_UNSUPPORTED,
                       "a vocabulary of %u tokens and %u merges is too large", n_token,
                       n_merge);
    p->slot = arena_take(a, (size_t)p->n_slot * 8, e);
    p->merged = arena_take(a, (size_t)n_merge * 4, e);
    if (p->slot == NULL || p->merged == NULL)
        return -1;
    memset(p->slot, 0xff, (size_t)p->n_slot * 8);
    return 0;
}

void pairs_add(struct pairs *p, uint32_t rank, const struct pair *pair)
{
    uint64_t key = (uint64_t)pair->left << p->id_bits | pair->right;
    uint64_t i = pairs_slot(p, key);

    p->merged[rank] = pair->merged;
    while (p->slot[i] != UINT64_MAX) {
        if (p->slot[i] >> p->rank_bits == key)
            return;
        if (++i == p->n_slot)
            i = 0;
    }
    p->slot[i] = key << p->rank_bits | rank;
}
