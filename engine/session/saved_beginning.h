/*
 * saved_beginning.h - the beginning of a prompt in a KV file of its own, which other sessions
 * that begin alike read instead of evaluating it.
 *
 *     ids:           | page 0 | page 1 | page 2 | the rest of the prompt
 *     fingerprints:           0        1        2
 *     parts:           page 0   page 1   page 2   ids and a copy at their end
 *
 * A fingerprint depends on all ids up to the end of its page, on the way in which each was
 * multiplied, and on the facts of saved_kv.h.  So a beginning is found by its fingerprint, and
 * has the bits that evaluating gives.  Rings and recurrent states of its end are a copy
 * (copies.h); a model that has such layers has a beginning only where a copy was made.
 */
#ifndef MEMWALL_ENGINE_SESSION_SAVED_BEGINNING_H
#define MEMWALL_ENGINE_SESSION_SAVED_BEGINNING_H

#include "engine/base/digest.h"
#include "engine/session/saved_kv.h"

/* Let the session expect these ids after those that it holds: mw_session_eval() then evaluates
 * all or the rest of them alike.  They must be ids of the vocabulary and fit the context. */
int session_expect(struct mw_session *s, const uint32_t *ids, uint32_t n, struct err *e);

/* Write the fingerprints of the first n_page pages of ids that the session holds or expects. */
void session_fingerprints(const struct mw_session *s, uint32_t n_page, char (*out)[DIGEST_HEX]);

/* Make a copy when the next evaluation reaches n, if the model needs one.  0: no longer. */
void session_mark_beginning(struct mw_session *s, uint32_t n);

/* Returns the bytes of a file with the first n tokens of those that the session holds, or 0 if
 * it holds fewer, has no copy at n, or has lost its workspace. */
uint64_t session_beginning_bytes(const struct mw_session *s, uint32_t n);

/* Whether reading or writing so many bytes is predicted to take less time than evaluating n tokens.
 * If one of them is not predicted, reading is, and writing is not. */
bool session_reads_faster(const struct mw_session *s, uint64_t bytes, uint32_t n);
bool session_writes_faster(const struct mw_session *s, uint64_t bytes, uint32_t n);

/* Write the first n tokens, a multiple of KV_PAGE.  -1 with *e and no file, or the one of
 * before.  Notes are not called. */
int session_save_beginning(struct mw_session *s, const char *path, uint32_t n,
                           const struct saved_kv_call *call, struct saved_kv *out,
                           struct err *e);

/* Let the session hold the first n of the tokens that it expects, from a file, in place of
 * those that it holds.  A damaged file is deleted.  -1 with *e: then the session is as before,
 * or holds nothing, and expects the same ids.  ERR_IO with ENOENT: there is no file; with
 * EWOULDBLOCK: none yet, because another process writes it. */
int session_load_beginning(struct mw_session *s, const char *path, uint32_t n,
                           const struct saved_kv_call *call, struct saved_kv *out,
                           struct err *e);

#endif
