/*
 * random_text.h - random texts for tests of invariants.  They follow from a seed that a failed
 * test prints.
 */
#ifndef MEMWALL_TESTS_LIB_RANDOM_TEXT_H
#define MEMWALL_TESTS_LIB_RANDOM_TEXT_H

#include <stddef.h>
#include <string.h>

#include "tests/lib/chance.h"

/* Characters that are hard to draw: wide, joined, combining, right to left, hidden, broken. */
static const char *const chance_pieces[] = {
    "a",
    "Z",
    "7",
    " ",
    " ",
    " ",
    "-",
    ",",
    ".",
    "(",
    "word",
    "longerword",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\xe4\xb8\xad",
    "\xe3\x80\x82",
    "\xe3\x80\x8c",
    "\xed\x95\x9c",
    "\xf0\x9f\x98\x80",
    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
    "\xe2\x9d\xa4\xef\xb8\x8f",
    "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
    "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd",
    "e\xcc\x81",
    "\xcc\x81",
    "\xd7\xa9\xd7\x9c",
    "\xd8\xb3",
    "\xe2\x80\xae",
    "\xe2\x80\x8b",
    "\xe2\x80\x8d",
    "\x1b[31m",
    "\x07",
    "\x7f",
    "\xc2\x9b",
    "\xe2\x80\xa8",
    "\xef\xbf\xbe",
    "\xee\x80\x80",
    "\xff",
    "\xe4\xb8",
    "\xf0\x9f",
    "\xc0\xaf",
    "\xed\xa0\x80",
    "\xe3\x80\x80",
    "\xc2\xa0",
};

/* Write about n bytes to buf[0 .. n + 32).  Returns their number. */
static inline size_t chance_text(struct chance *c, char *buf, size_t n)
{
    size_t used = 0;

    while (used < n) {
        const char *piece =
            chance_pieces[chance_below(c, sizeof chance_pieces / sizeof chance_pieces[0])];

        memcpy(buf + used, piece, strlen(piece));
        used += strlen(piece);
    }
    return used;
}

#endif
