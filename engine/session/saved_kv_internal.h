/*
 * saved_kv_internal.h - what files of sessions (saved_kv.c) and of beginnings
 * (saved_beginning.c) have in common.
 */
#ifndef MEMWALL_ENGINE_SESSION_SAVED_KV_INTERNAL_H
#define MEMWALL_ENGINE_SESSION_SAVED_KV_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/kv/kv_file.h"
#include "engine/session/saved_kv.h"
#include "engine/session/session_internal.h"

/* A bit of an id in a file: OpenBLAS multiplied the token. */
#define IN_TILES UINT32_C(0x80000000)
#define ENTRIES  512 /* that are read at a time */

/* The beginning of the last part. */
struct tail {
    uint32_t n_token, n_entry, ring_from, n_copy;
};

/* The most pieces that a session of these options writes. */
uint32_t saved_kv_pieces(const struct mw_model *m, const struct mw_options *o);

/* The head of a file of this session, with its facts; n_token: those that it holds now. */
void saved_kv_head(const struct mw_session *s, struct kv_file_head *h);
/* Returns the reason why a file with other facts is not used; NULL: they are the same. */
const char *saved_kv_why_not(const struct kv_file_head *own, const struct kv_file_head *other);

/* Pass bytes to and from a struct kv_file, which is the context. */
int saved_kv_put(void *ctx, void *bytes, size_t n, struct err *e);
int saved_kv_take(void *ctx, void *bytes, size_t n, struct err *e);

/* Ask before each piece whether the caller stops.  Meanwhile a budget of `auto` may give weights
 * back.  *w stays until the file is closed. */
struct saved_kv_watch {
    struct mw_session *s;
    const struct saved_kv_call *call;
};
void saved_kv_watch(struct kv_file *f, struct saved_kv_watch *w);

/* An id as it is in a file. */
uint32_t saved_kv_entry(const struct tokens *t, uint32_t i);

/* Hold no position.  The list of ids stays. */
void saved_kv_empty(struct mw_session *s);

/* Whether the state knows the ids before the next token, at n, as they are: a lookup uses them.
 */
bool saved_kv_has_own_ids(const struct mw_session *s, uint32_t n);

#endif
