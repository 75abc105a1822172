/*
 * capability.h - terminfo capabilities of the open terminal.  <term.h> defines names that
 * clash with ours, so only capability.c includes it.
 */
#ifndef MEMWALL_UI_TERM_CAPABILITY_H
#define MEMWALL_UI_TERM_CAPABILITY_H

#include <stdbool.h>
#include <stddef.h>

/* Append the bytes of a string capability to text[0 .. used).  Returns the new length. */
size_t capability_add(char *text, size_t used, size_t size, const char *name);
bool capability_is_rgb(void);

#endif
