/*
 * key_unit.h - the units of terminal input: how long one is, and which key it reports.
 *
 * A unit is a character, or an escape sequence with all of its bytes.  Terminals have several
 * sequences for a key.  They depend on the kind of the terminal, on its modes, and on the
 * program that set these modes last:
 *
 *     ESC [ 7 ~  ESC O d         rxvt: Home, Ctrl-Left       ESC [ [ A   Linux console: F1
 *     ESC O M    ESC O 5 M       keypad in application mode  ESC ESC [ A Alt-Up
 *     ESC [ 99;5 u               kitty's keyboard protocol   ESC [ 27;5;99 ~  modifyOtherKeys
 *     ESC [ 67;46;3;1;8;1 _      Windows Terminal
 *     ESC [ < b;x;y M  ESC [ b;x;y M  ESC [ M b x y          mouse: SGR, urxvt, X10 and UTF-8
 *
 * ESC [ may also arrive as one byte or as U+009B, and so may the other introducers.
 */
#ifndef MEMWALL_UI_TERM_KEY_UNIT_H
#define MEMWALL_UI_TERM_KEY_UNIT_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/term/key.h"

#define KEY_UNIT_MAX  4096 /* bytes; longer sequences are skipped */
#define KEY_PLAIN_MAX 40   /* bytes of a key in the form of key_unit_read */

/* Returns the length of the unit at the start of p[0 .. n), n > 0; 0: incomplete. */
size_t key_unit_bytes(const unsigned char *p, size_t n);

/* Can a person have typed these n bytes, the start of an incomplete unit, and no more?  They are Esc
 * or Alt with a key.  Parts of a character, and anything longer, come from the terminal. */
bool key_unit_is_short(const unsigned char *p, size_t n);

/* Returns where a sequence of more than KEY_UNIT_MAX bytes goes on after p[0 .. n): the bytes
 * that still belong to it.  p begins inside the sequence; first is its start.  *is_over reports
 * whether its end was found. */
size_t key_unit_rest(const unsigned char *first, const unsigned char *p, size_t n,
                     bool *is_over);

/* Read a unit of n > 0 bytes.  out->bytes is plain[KEY_PLAIN_MAX] for a key, and p for other
 * units.  KEYS_PASTE: a paste begins. */
void key_unit_read(struct key *out, const unsigned char *p, size_t n, unsigned char *plain);

#endif
