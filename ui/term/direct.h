/*
 * direct.h - a terminfo entry with true colour, made from the terminal's own.
 *
 * ncurses sends colours as RGB only if the entry of the terminal says so.  Entries that do,
 * such as xterm-direct, are in a package that few machines have, while nearly every terminal
 * shows RGB, and says so in COLORTERM.  So this copies the entry with other colours: RGB,
 * 16777216 colours, and sequences with 38;2 and 48;2.
 *
 * ncurses reads the copy from the variable TERMINFO itself, as "hex:" and the bytes of a
 * compiled entry (term(5), infocmp -Q; ncurses 6.1 and newer):
 *
 *     12 bytes   magic 0x21e, then sizes: names, flags, numbers, strings, string table
 *     names      "xterm-256color", NUL
 *     flags      a byte each, padded to an even offset
 *     numbers    4 bytes each; -1: absent
 *     strings    2 bytes each, an offset into the table; -1: absent
 *     table      padded to an even offset
 *     10 bytes   sizes of the extended part, which has the flags AX and RGB, then the same
 */
#ifndef MEMWALL_UI_TERM_DIRECT_H
#define MEMWALL_UI_TERM_DIRECT_H

#include <stdbool.h>

/* Does the environment say that this terminal shows RGB, and is it worth it?  False in GNU
 * screen, which drops such colours. */
bool direct_is_promised(const char *term);

/* Returns the value for TERMINFO, which the caller frees.  NULL: the entry is missing, has no
 * colours or has true colour already. */
char *direct_entry(const char *term);

#endif
