/*
 * session.h - a session from inside: what the chat needs beyond memwall.h.
 */
#ifndef MEMWALL_ENGINE_SESSION_SESSION_H
#define MEMWALL_ENGINE_SESSION_SESSION_H

#include "engine/memwall.h"
#include "engine/telemetry/telemetry.h"

struct telemetry *session_telemetry(struct mw_session *s);

/* The ids that the session holds, [mw_session_tokens]. */
const uint32_t *session_ids(const struct mw_session *s);
/* Evaluate a token that was sampled, by the kernels whatever was evaluated here before. */
int session_eval_sampled(struct mw_session *s, uint32_t id, struct err *e);

/* The last row of logits, to be changed in place by a sampler; made anew by the next
 * evaluation. */
float *session_logits(struct mw_session *s);

/* Remember the sliding rings as they are now, so that going back to this position is exact
 * and cheap (copies.h). */
void session_mark(struct mw_session *s);

/* Called after each chunk of a prompt with the tokens done; and within it after each layer,
 * with what that is of the chunk's tokens. */
typedef void session_progress_fn(void *ctx, uint32_t done, uint32_t total, bool is_within);
void session_set_progress(struct mw_session *s, session_progress_fn *fn, void *ctx);

/* Forget a cancel that came before the work now beginning. */
void session_clear_cancel(struct mw_session *s);

/* Options as resolved. */
const struct mw_options *session_options(const struct mw_session *s);

/*
 * Change budget, context, I/O or threads in place: what is held stays held.  The KV types
 * must be the same, and the context at least what is held.  Returns 0, or -1 with *e and
 * all as before.
 */
int session_set(struct mw_session *s, const struct mw_options *o, struct err *e);

#endif
