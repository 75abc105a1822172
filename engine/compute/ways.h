/*
 * ways.h - what differs between processors in products with columns of 8 bits, as data.
 *
 * On Zen, bytes that are read once belong into the first-level cache only; on a Xeon that takes
 * twice as long.  So there is a table of choices, each with a few ways: one for the make of the
 * processor to begin with, and one that was measured (model/way_rates.h).  No result depends on
 * them.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_WAYS_H
#define MEMWALL_ENGINE_COMPUTE_WAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/format/tensor_type.h"

struct kernels;

enum fetch_hint {
    FETCH_NONE,
    FETCH_ONCE,   /* into the first-level cache only, for bytes that are read once */
    FETCH_FIRST,  /* into the first-level cache and all larger ones */
    FETCH_SECOND, /* into the second-level cache */
    FETCH_BOTH,   /* the same, and half as far into the first level: interleaved weights */
};

/* How weights of one column are prefetched. */
struct fetch_way {
    enum fetch_hint hint;
    uint32_t ahead; /* bytes */
};

enum way_choice {
    /* How weights of one column are prefetched, as in the file: those of at most 5 bits, of 6 and
     * of 8.  The fewer bits, the more arithmetic for each line of memory. */
    WAY_FILE_5,
    WAY_FILE_6,
    WAY_FILE_8,
    /* The same, sixteen rows side by side. */
    WAY_INTERLEAVED_5,
    WAY_INTERLEAVED_6,
    WAY_INTERLEAVED_8,
    /* Numbers of columns at which products take another path. */
    WAY_FEW_COLS,   /* up to which rows of the file are multiplied four at a time */
    WAY_PANEL_COLS, /* that share unpacked rows of the file, at most */
    WAY_LANE_COLS,  /* that are multiplied with all interleaved rows first, at most */
    WAY_AMX_COLS,   /* from which tiles of AMX multiply interleaved rows */
    WAY_CHOICES
};

#define WAYS_MOST 7 /* of a choice */

/* The most of these columns that a way has. */
#define WAYS_FEW_MOST   8
#define WAYS_PANEL_MOST 256
#define WAYS_LANE_MOST  128

/* Whether products of these kernels depend on the choice. */
bool ways_matter(enum way_choice c, const struct kernels *k);

/* Returns the number of ways. */
int ways_count(enum way_choice c);

/* Returns the index of the way in use: that of the make until another is chosen. */
int ways_chosen(enum way_choice c);
int ways_of_make(enum way_choice c);

/* Choose way i, for all threads.  Any thread; products that run meanwhile may use either.  An i
 * that there is not changes nothing. */
void ways_choose(enum way_choice c, int i);

/* Returns the way in use to prefetch weights of a type. */
struct fetch_way ways_fetch(bool is_interleaved, enum tensor_type type);

/* Returns the number of columns in use, of a choice of columns. */
size_t ways_cols(enum way_choice c);

/* Describe way i: "into the second-level cache, 1536 bytes ahead".  Returns buf. */
char *ways_text(enum way_choice c, int i, char *buf, size_t n);

#endif
