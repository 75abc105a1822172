/*
 * bpe.h - byte pair encoding of one run of symbols.
 *
 * Always the pair of lowest rank, among equal ones the leftmost, until no pair merges.
 * Ranks of neighbouring pairs are in an array at the index of their left symbol; above it
 * stand the minima of 16, of 256, ... of them:
 *
 *     level 2        [ 7 ]
 *     level 1   [ 7 ][ 9 ][ 31 ]
 *     ranks     12 - 7 40 ...        - : no pair begins here
 *
 * The next merge is found from the top, and a merge changes three places and the few
 * minima above them: O(n log n) like a heap, but half its memory (12.8 bytes a symbol)
 * and its next place is nearly always beside the last one.  10 MB of one letter take a
 * fifth of the time that a binary heap needs.
 */
#ifndef MEMWALL_ENGINE_TEXT_BPE_H
#define MEMWALL_ENGINE_TEXT_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/text/pairs.h"

#define BPE_LEVELS 8
#define BPE_SMALL  256 /* symbols that need no mapping */

/* The working memory for runs; start from { 0 } and end with bpe_free. */
struct bpe {
    uint32_t *id;   /* [cap] symbols of the run, to be filled by the caller */
    uint32_t *rank; /* [cap] of the pair that begins at this symbol */
    uint16_t *fwd;  /* [cap] at a symbol's first place: how many it covers */
    uint16_t *back; /* [cap] at its last place: the same */
    uint32_t *level[BPE_LEVELS];
    size_t cap;
    struct arena large;
    uint32_t small_id[BPE_SMALL], small_rank[BPE_SMALL + 16];
    uint16_t small_fwd[BPE_SMALL], small_back[BPE_SMALL];
    uint32_t small_level[BPE_SMALL / 16 + 16 + 16];
};

/* Grow the buffers for a run of n symbols; the contents of id are lost. */
int bpe_reserve(struct bpe *b, size_t n, struct err *e);

/* Merge id[0..n) in place.  Returns the number of symbols left. */
size_t bpe_run(struct bpe *b, const struct pairs *pairs, size_t n);

void bpe_free(struct bpe *b);

#endif
