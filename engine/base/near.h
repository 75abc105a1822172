/*
 * near.h - find the name that a mistyped word was meant to be.
 */
#ifndef MEMWALL_ENGINE_BASE_NEAR_H
#define MEMWALL_ENGINE_BASE_NEAR_H

#include <stddef.h>

/* The nearest name so far.  Begin with { .word = ..., .len = ... }. */
struct near {
    const char *word;
    size_t len;
    const char *name; /* NULL: none is near */
    int distance;
};

/* Compare the word with a name, which must live as long as n is used.  Names that begin with
 * the word are nearest.  Others are near with one typing error, in long words with two. */
void near_try(struct near *n, const char *name);

#endif
