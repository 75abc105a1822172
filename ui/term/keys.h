/*
 * keys.h - decodes terminal input into keys, mouse reports and pastes.
 *
 * Bytes are fed as they are read, in pieces of any size; keys_next returns whole units.  An
 * unknown escape sequence is also one unit, so that no part of it is typed into the line.  An
 * ESC without more bytes waits for KEYS_ESC_NS.  A longer sequence that stays incomplete was
 * not typed; it is dropped after KEYS_LATE_NS.
 *
 * Terminals have several sequences for one key (key_unit.h).  A key is returned with the bytes
 * that xterm sends in its ordinary mode, so that its readers need to know only these.
 *
 * A paste is everything between ESC[200~ and ESC[201~, in any number of reads.  A paste
 * longer than KEYS_MAX_PASTE is dropped and reported.  A paste without its end is finished
 * after KEYS_PASTE_NS without a byte; Ctrl-C aborts it at once.
 *
 * The decoder does not depend on curses and reads no clock: time is an argument.
 */
#ifndef MEMWALL_UI_TERM_KEYS_H
#define MEMWALL_UI_TERM_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/term/key.h"

#define KEYS_ESC_NS    ((uint64_t)40 * 1000 * 1000)
#define KEYS_LATE_NS   ((uint64_t)1000 * 1000 * 1000)
#define KEYS_PASTE_NS  ((uint64_t)1000 * 1000 * 1000)
#define KEYS_MAX_PASTE ((size_t)4 << 20)

struct keys;

struct keys *keys_new(void); /* NULL if out of memory */
void keys_free(struct keys *k);

/* Returns how many bytes keys_feed accepts; never 0 after keys_next returned false. */
size_t keys_room(const struct keys *k);
void keys_feed(struct keys *k, const unsigned char *bytes, size_t n, uint64_t now_ns);
/* Read the next unit.  Returns false if none is complete and no incomplete one timed out. */
bool keys_next(struct keys *k, uint64_t now_ns, struct key *out);
/* Returns the nanoseconds until a unit times out, or UINT64_MAX. */
uint64_t keys_wait(const struct keys *k, uint64_t now_ns);
/* While the mouse is off, its reports are KEYS_UNKNOWN.  It is on at first. */
void keys_set_mouse(struct keys *k, bool on);

#endif
