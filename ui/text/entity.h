/*
 * entity.h - decodes HTML entities: all numeric ones and the names that texts use.
 */
#ifndef MEMWALL_UI_TEXT_ENTITY_H
#define MEMWALL_UI_TEXT_ENTITY_H

#include <stddef.h>

/* Decode s[0 .. n), from & to ;.  Returns the length of out in bytes; 0: unknown. */
size_t entity_decode(const char *s, size_t n, char out[8]);

#endif
