/*
 * history.h - input lines of earlier chats.
 *
 * readline's own history commands corrupt memory through the callback interface, so the list
 * is ours.  The file has one entry per line, oldest first, with newline and backslash
 * escaped.  Each entry is appended with one write, so several programs can share the file.
 */
#ifndef MEMWALL_UI_TERM_HISTORY_H
#define MEMWALL_UI_TERM_HISTORY_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/memwall.h"

#define HISTORY_MAX_ENTRIES 5000
#define HISTORY_MAX_BYTES   ((size_t)4 << 20) /* of all entries; older ones are dropped */

struct history;

/* Open the history; path NULL keeps it in memory only.  A missing file is an empty history,
 * and entries that cannot be read are skipped.  Returns -1 with *e only if out of memory. */
int history_open(struct history **out, const char *path, struct err *e);
void history_close(struct history *h);

/* Append text, unless it is empty or equal to the last entry.  Returns -1 with *e if it is in
 * the list but could not be written.  A failure is reported once, until a write succeeds. */
int history_add(struct history *h, const char *text, struct err *e);

size_t history_count(const struct history *h);
/* Returns entry i, from 0 (oldest); valid until the next history_add. */
const char *history_at(const struct history *h, size_t i);

/* Returns the next entry that contains text, before entry `from` when searching backwards,
 * after it otherwise; -1 if there is none.  Case is ignored unless text has upper case. */
long history_find(const struct history *h, const char *text, size_t from, bool newer);

#endif
