/*
 * session.h - the functions of a session that the chat needs beyond memwall.h.
 */
#ifndef MEMWALL_ENGINE_SESSION_SESSION_H
#define MEMWALL_ENGINE_SESSION_SESSION_H

#include "engine/base/cancel.h"
#include "engine/memwall.h"
#include "engine/session/settled.h"
#include "engine/telemetry/telemetry.h"

/* mw_session_open() that ends early with ERR_CANCELLED once quits is set; NULL: never.  The
 * token `cancel` ends evaluations until its owner clears it; NULL: the session has its own, and
 * clears it. */
int session_open(struct mw_session **out, struct mw_model *m, const struct mw_options *o,
                 const struct cancel *quits, struct cancel *cancel, struct err *e);

struct telemetry *session_telemetry(struct mw_session *s);

/* The ids that the session holds, [mw_session_tokens]. */
const uint32_t *session_ids(const struct mw_session *s);
/* Forget drafts that were not sampled, at the end of an answer. */
void session_drop_drafts(struct mw_session *s);

/* Called before a drafter is opened again, which may read gigabytes, with the options that open
 * it. */
typedef void session_opens_fn(void *ctx, const struct mw_options *o);

/*
 * At the beginning of an answer: open a model or a head that drafts again if it was closed because
 * it lost, and the gap of depth.h is over.  Calls opens, which may be NULL, if there is memory for
 * it.  Returns whether the session has it now, and so another plan; *e says why it could not be
 * opened.  The last row of logits may be lost.
 */
bool session_try_drafter(struct mw_session *s, session_opens_fn *opens, void *ctx, struct err *e);

/* Returns whether the drafter has failed since the last call, and why: nothing is drafted. */
bool session_lost_drafter(struct mw_session *s, struct err *why);

/* Let this sampler choose drafts, too, until the next call; NULL: drafts are the most likely
 * ids.  It must be the one that chooses the ids of mw_session_eval_sampled(). */
void session_set_sampler(struct mw_session *s, struct mw_sampler *p);

/* The row of logits of the last token.  A sampler may change it; the next evaluation overwrites
 * it. */
float *session_logits(struct mw_session *s);

/* Returns whether a copy of the model on another disk was lost since the last call, and why. */
bool session_lost_mirror(struct mw_session *s, struct err *why);

/* Copy the rings of sliding layers, so that going back to this position is exact and cheap
 * (copies.h). */
void session_mark(struct mw_session *s);

/* The same when the next evaluation has reached position n, for models with recurrent state.
 * Other models need no copy within a turn: keys and values stay. */
void session_mark_at(struct mw_session *s, uint32_t n);

/* Called with the number of evaluated tokens after each chunk of a prompt, and with an estimate
 * of that number after each layer (is_within).  After a chunk, it may call session_set(). */
typedef void session_progress_fn(void *ctx, uint32_t done, uint32_t total, bool is_within);
void session_set_progress(struct mw_session *s, session_progress_fn *fn, void *ctx);

/*
 * A budget of `auto` follows the free memory.  While a session evaluates, or reads or writes a KV
 * file, it does so by itself, and the rest follows later.  At other times, its owner waits for
 * fn(ctx), which another thread calls, and then for session_has_breath(): session_settle() gives
 * memory back or takes it.
 */
void session_set_wake(struct mw_session *s, void (*fn)(void *ctx), void *ctx);
bool session_has_breath(const struct mw_session *s);
void session_settle(struct mw_session *s);

/*
 * Before the first evaluation: are experts that earlier sessions used left to read?  The second
 * reads some of them, for some milliseconds.  It returns false if pinned weights, which are more
 * useful, are still being read; then it is called again a little later.
 */
bool session_has_favourites(const struct mw_session *s);

/* Whether the weights are used where their files are mapped. */
bool session_is_mapped(const struct mw_session *s);
bool session_warm(struct mw_session *s);

/* The options in force, and without zeros that ask for a default. */
const struct settled *session_settled(const struct mw_session *s);
const struct mw_options *session_options(const struct mw_session *s);

/*
 * Change any options.  Only the parts that depend on them are made again.  The session keeps its
 * tokens, which must fit the context, if mw_keeps_kv() allows that; otherwise it then holds
 * none.  Returns 0, or -1 with *e and the session as before.  The last row of logits may be lost.
 */
int session_set(struct mw_session *s, const struct mw_options *o, struct err *e);

#endif
