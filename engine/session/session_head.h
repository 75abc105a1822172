/*
 * session_head.h - the draft head of a session at work: it guesses the tokens after a sampled one.
 *
 *     trunk   | … p  |  tokens of a pass  |        gives a hidden row for each token
 *     head      … p     rows: token k with the hidden row of token k - 1
 *
 * A nextn head has keys and values of its own, one row for each token that the trunk holds.  The
 * rows of a pass are evaluated before the next one, when it is known which of its tokens stayed.
 * Where no draft is likely to pay, they are not, and the head forgets the tokens before them.  A
 * drafted token gets a row, too, with the hidden row that the head itself gave; it is taken back
 * after the draft.  An assistant reads the keys and values of the trunk, and stores nothing.
 *
 * The head has a stream, buffers and counters of its own; it shares the pool of threads.
 */
#ifndef MEMWALL_ENGINE_SESSION_SESSION_HEAD_H
#define MEMWALL_ENGINE_SESSION_SESSION_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/draft/drafter.h"
#include "engine/model/forward.h"
#include "engine/session/model.h"

struct head;
struct mw_session;

/* Memory of a head besides what the plan counts by other numbers, and of the hidden row of a token
 * of the trunk's chunk. */
uint64_t head_fixed_bytes(const struct mw_model *m, const struct mw_options *o,
                          const struct forward_bytes *bytes, const struct stream_shape *shape);
uint64_t head_col_bytes(const struct mw_model *m);

/* Open the head with the memory of the session's plan, and let the workspace store hidden rows. */
int head_open(struct head **out, struct mw_session *s, struct err *e);
void head_close(struct head *h); /* NULL is fine */

/* Bytes of the plan item that are in use. */
uint64_t head_used_bytes(const struct head *h);

/* Evaluate the rows of all tokens that the trunk holds, which may have run one pass since the last
 * call: rows of an earlier one are lost, and the head begins again after them.  -1 with *e: it was
 * cancelled.  A head that fails otherwise is given up. */
int head_follow(struct mw_session *s, struct err *e);
/* Before a pass of the trunk.  Where nothing drafts, rows are evaluated now.  Errors as above. */
int head_before_pass(struct mw_session *s, struct err *e);
/* A pass over n tokens from position held has given hidden rows. */
void head_after_pass(struct mw_session *s, uint32_t held, uint32_t n, enum want want);

/* The trunk holds other tokens now: the rows of before are of no use. */
void head_forget(struct head *h); /* NULL is fine */

/* Whether drafts can be asked for.  A head that failed is not asked again. */
bool head_is_ready(const struct head *h); /* NULL: no */
void head_give_up(struct mw_session *s, const struct err *failure);

/*
 * The session's head as a drafter, which finds it as s->head: it may be opened again.  text: what
 * drafts instead where that looks better, or NULL; the new drafter owns it, after an error, too.
 */
int head_drafter_new(struct drafter **out, struct mw_session *s, struct drafter *text,
                     struct err *e);

/*
 * Draft up to n tokens after the id at position mw_session_tokens(), which the trunk does not hold
 * yet, and store them in out; row gets the logits of each of them, and may be NULL.  choose picks
 * each draft from them; then out must be the place after the id in s->tokens.  NULL: the most
 * likely id.  Returns the number of drafts, or -1 with *e.
 */
int head_draft(struct mw_session *s, uint32_t id, uint32_t n, uint32_t *out,
               const struct draft_choose *choose, mw_row_fn *row, void *ctx, struct err *e);

#endif
