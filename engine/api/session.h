/*
 * session.h - ids in, logits out: a session evaluates ids with a model, a sampler chooses the next.
 */
#ifndef MEMWALL_ENGINE_API_SESSION_H
#define MEMWALL_ENGINE_API_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/api/options.h"
#include "engine/plan/table.h"
#include "engine/telemetry/sample.h"

struct mw_model;
struct mw_session;

int mw_session_open(struct mw_session **out, struct mw_model *m, const struct mw_options *o,
                    struct err *e);
void mw_session_close(struct mw_session *s);

/* Receives the logits [n_vocab] that follow the id at position pos.  Returns 0, or -1 with *e
 * to stop the evaluation. */
typedef int mw_row_fn(void *ctx, uint32_t pos, const float *logits, struct err *e);

/*
 * Evaluate n ids after those that the session holds.  row receives the logits of each of them;
 * if it is NULL, only those of the last id are computed, for mw_session_logits().  After a
 * failure or a cancel the session also holds the chunks that were finished: see
 * mw_session_tokens().
 */
int mw_session_eval(struct mw_session *s, const uint32_t *ids, size_t n, mw_row_fn *row,
                    void *ctx, struct err *e);
/*
 * Evaluate a sampled token, with the kernels also at a position that a prompt had before.  The
 * pass may evaluate drafted tokens after it.  If one of them is the id of the next call, that
 * call needs no pass; telemetry then has a pass without time and columns.  Everything else is as
 * without drafts: logits, and the tokens that the session reports.
 */
int mw_session_eval_sampled(struct mw_session *s, uint32_t id, struct err *e);
/*
 * Simulate how many drafts are right: a model or a head that drafts after the tokens that the
 * session holds now finds the next of these n ids with this probability, and another one
 * otherwise.  Its work is as before.  The ids must outlive the session, or the next call; NULL:
 * drafts are again what the drafter finds.
 */
void mw_session_expect(struct mw_session *s, const uint32_t *ids, uint32_t n,
                       double acceptance);
/* [n_vocab] of the last id, valid until the session changes; NULL if there are none. */
const float *mw_session_logits(const struct mw_session *s);
/*
 * Draft n tokens after the most likely one that follows the last id, each the most likely one by
 * the model's draft head, and give row the logits [n_vocab] of each of them.  Needs the logits of
 * the last id, and MW_DRAFT_MTP.  The session holds what it held before.
 */
int mw_session_draft(struct mw_session *s, uint32_t n, mw_row_fn *row, void *ctx,
                     struct err *e);
/* Number of tokens that the session holds. */
uint32_t mw_session_tokens(const struct mw_session *s);

/* Keep only the first n tokens.  If the rings of sliding layers no longer hold the keys and
 * values for this, the session rewinds further, to its last copy of the rings.  *kept is the
 * number of tokens that it then holds. */
int mw_session_rewind(struct mw_session *s, uint32_t n, uint32_t *kept, struct err *e);

/* Change the budget.  Memory beyond a smaller budget is returned to the system; the tokens that
 * the session holds stay. */
int mw_session_set_memory(struct mw_session *s, uint64_t memory_bytes, struct err *e);

void mw_session_plan(const struct mw_session *s, struct plan *out);
void mw_session_sample(const struct mw_session *s, struct mw_sample *out); /* any thread */
/* Stop the evaluation that is running within one block; it fails with ERR_CANCELLED. */
void mw_session_cancel(struct mw_session *s); /* any thread */

/*
 * A sampler chooses the next id from a row of logits, which it changes, and the ids before.  It
 * has no state: the same values, seed, logits and n_before give the same id.
 */
struct mw_sampler;
int mw_sampler_new(struct mw_sampler **out, const struct mw_model *m,
                   const struct mw_sampling *s, struct err *e);
void mw_sampler_free(struct mw_sampler *p);
uint32_t mw_sampler_next(struct mw_sampler *p, float *logits, const uint32_t *before,
                         size_t n_before);

#endif
