/*
 * copies.h - what sliding layers saw at the beginning of each turn.
 *
 * A ring forgets what it is written over with, so going back a turn needs a copy of what
 * its window saw there.  The newest copies lie in memory, as many as the plan has room for
 * (row `kv_sliding`); older ones go to a file without a name in the cache folder, written
 * past the page cache.  Without a folder they are forgotten: going back then goes farther
 * back and evaluates again.
 */
#ifndef MEMWALL_ENGINE_SESSION_COPIES_H
#define MEMWALL_ENGINE_SESSION_COPIES_H

#include "engine/kv/kv.h"

struct copies;

/* folder: of the file; NULL: none.  Nothing is opened before it is needed. */
int copies_new(struct copies **out, struct kv *kv, const char *folder, struct err *e);
void copies_free(struct copies *c); /* NULL is fine */

/* How many may lie in memory; what is more goes to the file. */
void copies_set_room(struct copies *c, uint32_t n_memory);

/* Remember the held position.  What cannot be kept is not an error. */
void copies_mark(struct copies *c);

/* Forget all copies of positions behind n. */
void copies_cut(struct copies *c, uint32_t n);

/* Go back to the newest copy that can be read.  False: there is none, and nothing is held
 * any more. */
bool copies_restore(struct copies *c);

/* Held in memory now. */
uint64_t copies_bytes(const struct copies *c);

#endif
