/*
 * entity.h - what &amp; and its like stand for: the few that texts use, and all numbers.
 */
#ifndef MEMWALL_UI_TEXT_ENTITY_H
#define MEMWALL_UI_TEXT_ENTITY_H

#include <stddef.h>

/* s[0 .. n) from & to ;.  Returns the length in bytes of what it stands for; 0: not one that is
 * known. */
size_t entity_decode(const char *s, size_t n, char out[8]);

#endif
