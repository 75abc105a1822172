/*
 * fetch.h - how products of one column prefetch their weights.
 *
 * Processors differ.  On Zen, bytes that are read once belong into the first-level cache only; on
 * a Xeon that takes twice as long.  So a way is data: each layout of weights has a list of them,
 * one for the make of the processor to begin with, and one that was measured.  No result depends
 * on the way.
 */
#ifndef MEMWALL_ENGINE_COMPUTE_FETCH_H
#define MEMWALL_ENGINE_COMPUTE_FETCH_H

#include <stddef.h>
#include <stdint.h>

enum fetch_hint {
    FETCH_NONE,
    FETCH_ONCE,   /* into the first-level cache only, for bytes that are read once */
    FETCH_FIRST,  /* into the first-level cache and all larger ones */
    FETCH_SECOND, /* into the second-level cache */
    FETCH_BOTH,   /* the same, and half as far into the first level: interleaved weights */
};

/* The layouts of weights that have ways of their own. */
enum fetch_layout {
    FETCH_ROWS,        /* as in the file */
    FETCH_INTERLEAVED, /* sixteen rows side by side */
    FETCH_LAYOUTS
};

struct fetch_way {
    enum fetch_hint hint;
    uint32_t ahead; /* bytes */
};

#define FETCH_WAYS 7 /* at most, of a layout */

/* Returns the number of ways of a layout. */
int fetch_count(enum fetch_layout layout);

/* Returns the index of the way that products use now: that of the make until another is chosen. */
int fetch_chosen(enum fetch_layout layout);
int fetch_of_make(enum fetch_layout layout);

/* Choose way i, for all threads.  Any thread; products that run meanwhile may use either. */
void fetch_choose(enum fetch_layout layout, int i);

/* Returns the chosen way. */
struct fetch_way fetch_way(enum fetch_layout layout);

/* Describe way i: "into the second-level cache, 1536 bytes ahead".  Returns buf. */
char *fetch_text(enum fetch_layout layout, int i, char *buf, size_t n);

#endif
