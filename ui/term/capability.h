/*
 * capability.h - what terminfo says of the terminal that was opened.  (Its header has names
 * that clash with ours, so it is asked here alone.)
 */
#ifndef MEMWALL_UI_TERM_CAPABILITY_H
#define MEMWALL_UI_TERM_CAPABILITY_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of a string capability, behind text[0 .. used); returns how many are used then. */
size_t capability_add(char *text, size_t used, size_t size, const char *name);
bool capability_is_rgb(void);

#endif
