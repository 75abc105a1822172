/*
 * visible.h - which characters people can see, for names and messages.
 *
 * Names in model files, of files and of folders may have characters that reorder a line, hide a
 * part of it or look like nothing.  They never help a reader and can make a name look like
 * another one.  All outputs that quote such a name share this rule.  Text of a chat has its own
 * (ui/words/clean.h), because some languages and emoji need joiners and selectors.
 */
#ifndef MEMWALL_ENGINE_BASE_VISIBLE_H
#define MEMWALL_ENGINE_BASE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does cp hide or reorder text, or look like nothing?  Blanks do not. */
bool visible_hides(uint32_t cp);

/* Can people see cp, or see that it is a blank?  Returns false for characters that hide, for
 * controls, and for those that have no meaning of their own (private use, unassigned). */
bool visible_is(uint32_t cp);

/* Is every character of s[0 .. n) visible?  Broken UTF-8 is not. */
bool visible_all(const char *s, size_t n);

/*
 * Copy s[0 .. n) as one line into dst[0 .. size), with a NUL, cut between characters.
 * Characters that hide are left out, a separator of lines becomes a blank, and '?' replaces
 * broken UTF-8 and the others that cannot be seen.  dst may be s.  Returns the length.
 */
size_t visible_line(char *dst, size_t size, const char *s, size_t n);

#endif
