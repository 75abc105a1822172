/*
 * history.h - what was typed before, across chats.
 *
 * readline's own history commands corrupt memory through the callback interface, so this
 * list is ours.  On disk: one entry a line, oldest first, newline and backslash escaped,
 * appended with one write; several programs may share the file.
 */
#ifndef MEMWALL_UI_TERM_HISTORY_H
#define MEMWALL_UI_TERM_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"

#define HISTORY_MAX_ENTRIES 5000
#define HISTORY_MAX_BYTES   ((size_t)4 << 20) /* of all entries; longer ones are not kept */

struct history;

/* path NULL: kept in memory only.  A file that is not there is an empty history.  Returns
 * -1 with *e only when memory is out; what cannot be read is left out. */
int history_open(struct history **out, const char *path, struct err *e);
void history_close(struct history *h);

/* Put text at the end, unless it is empty or the same as the last one.  -1 with *e: it is
 * in the list but could not be written. */
int history_add(struct history *h, const char *text, struct err *e);

size_t history_count(const struct history *h);
/* i from 0 (oldest); until the next history_add. */
const char *history_at(const struct history *h, size_t i);

/* The next entry that holds text (case ignored unless text has upper case), from before
 * entry `from` going back, or from behind it going on.  -1: none. */
long history_find(const struct history *h, const char *text, size_t from, bool newer);

#endif
