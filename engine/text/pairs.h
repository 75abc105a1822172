/*
 * pairs.h - the merges of a vocabulary: pairs of neighbouring tokens, with rank and result.
 *
 * The table is a flat hash table of 64-bit entries.  Each packs left id, right id and rank,
 * so a lookup that finds nothing (the common case) touches one or two cache lines.  A list
 * indexed by rank holds the merged ids.  Gemma: 514,906 merges in 5.9 + 2.1 MB.
 *
 * The set of seams contains the pair (last character of left, first character of right) of
 * every merge.  If two neighbouring characters of a text are not in the set, no merge can
 * join them, so the text may be cut between them without changing an id.  English text is
 * cut at every word, which keeps the memory for merging small.
 */
#ifndef MEMWALL_ENGINE_TEXT_PAIRS_H
#define MEMWALL_ENGINE_TEXT_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/keyed_hash.h"

#define NO_RANK UINT32_MAX

struct pair {
    uint32_t left, right, merged;
};

struct pairs {
    uint64_t *slot;
    uint32_t n_slot;
    unsigned id_bits, rank_bits;
    struct hash_key key;
    uint32_t *merged; /* [n_merge] */
    uint32_t n_merge;
};

/* Returns the number of bytes that pairs_start takes from its arena. */
size_t pairs_bytes(uint32_t n_merge);

/* Make an empty table for n_merge merges of ids below n_token. */
int pairs_start(struct pairs *p, struct arena *a, uint32_t n_token, uint32_t n_merge,
                struct err *e);

/* Add the merge of this rank.  A pair that is already in the table keeps its rank. */
void pairs_add(struct pairs *p, uint32_t rank, const struct pair *pair);

/* Returns the slot where the search for a pair begins. */
static inline uint64_t pairs_slot(const struct pairs *p, uint64_t key)
{
    return (keyed_mix(&p->key, key) >> 32) * p->n_slot >> 32;
}

/* Fetch the memory that pairs_add() will need for a pair. */
static inline void pairs_fetch(const struct pairs *p, const struct pair *pair)
{
    uint64_t key = (uint64_t)pair->left << p->id_bits | pair->right;

    __builtin_prefetch(&p->slot[pairs_slot(p, key)]);
}

static inline uint32_t pairs_rank(const struct pairs *p, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)left << p->id_bits | right;
    uint64_t i = pairs_slot(p, key);

    for (;;) {
        uint64_t entry = p->slot[i];

        if (entry >> p->rank_bits == key)
            return (uint32_t)(entry & (((uint64_t)1 << p->rank_bits) - 1));
        if (entry == UINT64_MAX)
            return NO_RANK;
        if (++i == p->n_slot)
            i = 0;
    }
}

/* Index bits of the set of seams.  Pairs of bytes are exact.  Pairs of code points are hashed;
 * a collision can only prevent a cut. */
#define SEAM_BITS_BYTES 16
#define SEAM_BITS_CHARS 20

static inline uint32_t seam_of_chars(uint32_t before, uint32_t after)
{
    return (before * 0x9e3779b1u ^ after * 0x85ebca6bu) >> (32 - SEAM_BITS_CHARS);
}

static inline uint32_t seam_of_bytes(unsigned char before, unsigned char after)
{
    return (uint32_t)before << 8 | after;
}

static inline void seam_set(uint64_t *seams, uint32_t at)
{
    seams[at / 64] |= (uint64_t)1 << at % 64;
}

static inline bool seam_has(const uint64_t *seams, uint32_t at)
{
    return (seams[at / 64] >> at % 64 & 1) != 0;
}

#endif
