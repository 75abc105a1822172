/*
 * bpe.h - byte pair encoding of one run of symbols.
 *
 * Each round merges the pair of lowest rank, and the leftmost among equal ranks, until no
 * pair merges.  An array holds the rank of each neighbouring pair at the index of its left
 * symbol.  Higher levels hold the minima of 16, of 256, ... ranks:
 *
 *     level 2        [ 7 ]
 *     level 1   [ 7 ][ 9 ][ 31 ]
 *     ranks     12 - 7 40 ...        - : no pair begins here
 *
 * The search for the next merge starts at the top level.  A merge changes three ranks and
 * the few minima above them.  This is O(n log n) like a heap, but takes half the memory
 * (12.8 bytes per symbol), and the next merge is nearly always close to the last one.
 * 10 MB of one letter take a fifth of the time that a binary heap needs.
 */
#ifndef MEMWALL_ENGINE_TEXT_BPE_H
#define MEMWALL_ENGINE_TEXT_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/text/pairs.h"

#define BPE_LEVELS 8
#define BPE_SMALL  256 /* longest run that needs no mapping */

/* Working memory for runs.  Start from { 0 }, end with bpe_free. */
struct bpe {
    uint32_t *id;   /* [cap] symbols of the run, filled in by the caller */
    uint32_t *rank; /* [cap] rank of the pair that begins at this symbol */
    uint16_t *fwd;  /* [cap] at a symbol's first position: number of positions it covers */
    uint16_t *back; /* [cap] the same number at its last position */
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
