/*
 * copies.h - copies of the rings of sliding layers, and of recurrent state, at the beginning of
 * each turn.
 *
 * A ring overwrites its oldest keys and values, so going back by a turn needs a copy of its
 * window at that point.  A recurrent state keeps nothing of earlier positions.  The newest
 * copies are in memory, as many as the plan allows (item `kv_recurrent` or `kv_sliding`). Older
 * ones are in an unnamed file in the cache folder, written past the page cache.  Without a
 * folder they are forgotten: a session that goes back then goes back further and evaluates
 * those tokens again.
 */
#ifndef MEMWALL_ENGINE_SESSION_COPIES_H
#define MEMWALL_ENGINE_SESSION_COPIES_H

#include "engine/kv/kv.h"

struct copies;

/* folder is for the file; NULL: no file.  Nothing is opened before it is needed. */
int copies_new(struct copies **out, struct kv *kv, const char *folder, struct err *e);
void copies_free(struct copies *c); /* NULL is fine */

/* Set how many copies may be in memory; the others move to the file. */
void copies_set_room(struct copies *c, uint32_t n_memory);

/* Forget all copies, and copy from another store from now on. */
void copies_of(struct copies *c, struct kv *kv);

/* Copy the rings at the current position.  A copy that fails is not an error. */
void copies_mark(struct copies *c);

/* Forget all copies of positions after n. */
void copies_cut(struct copies *c, uint32_t n);

/* Go back to the newest copy.  Returns false if it cannot be read or there is none: the KV
 * store is then empty. */
bool copies_restore(struct copies *c);

/* The copies, oldest first, and the position of one. */
uint32_t copies_count(const struct copies *c);
uint32_t copies_at(const struct copies *c, uint32_t i);
/* Pass the bytes of a copy to fn, kv_copy_bytes_at() of its position; or make a copy of position
 * n from bytes that fn fills.  -1 with *e: fn failed, or the copy cannot be read.  A copy that has
 * no place is left out, and its bytes are taken all the same. */
int copies_each(struct copies *c, uint32_t i, kv_bytes_fn *fn, void *ctx, struct err *e);
int copies_fill(struct copies *c, uint32_t n, kv_bytes_fn *fn, void *ctx, struct err *e);

/* Bytes of all copies in memory. */
uint64_t copies_bytes(const struct copies *c);

#endif
