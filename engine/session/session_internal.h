/*
 * session_internal.h - the parts of a session, for the files that implement it.
 *
 *     part        made from                     made again
 *     weights     files, --io, block size       seldom: what was read from disk is lost
 *     kept rows   files                         never, while the plan keeps them
 *     keys, values                              if their type, their rotation or the arithmetic
 *                                               changes
 *     workspace   chunk, threads, context       often: it holds nothing between two passes
 *
 * The plan says how large each of them is.
 */
#ifndef MEMWALL_ENGINE_SESSION_SESSION_INTERNAL_H
#define MEMWALL_ENGINE_SESSION_SESSION_INTERNAL_H

#include <pthread.h>

#include "engine/base/arena.h"
#include "engine/draft/depth.h"
#include "engine/draft/drafter.h"
#include "engine/kv/kv.h"
#include "engine/limits/observe.h"
#include "engine/model/forward.h"
#include "engine/session/breathing.h"
#include "engine/session/copies.h"
#include "engine/session/model.h"
#include "engine/session/product_choice.h"
#include "engine/session/session.h"
#include "engine/session/session_head.h"
#include "engine/session/settled.h"
#include "engine/session/tokens.h"
#include "engine/session/tried.h"

/* Memory that changes between passes. */
struct room {
    uint32_t n_slot; /* of the ring */
    uint64_t pinned_bytes, expert_bytes;
};

struct weights {
    struct stream_shape shape;
    struct expert_sizes expert_sizes;
    struct stream *stream;
    struct expert_cache *cache; /* of experts; NULL: a dense model */
    struct room room;           /* of both */
    const struct catalogue *guest; /* whose files the stream has, too; NULL: none */
    bool warms;                 /* favourites of earlier sessions are left to read */
    bool said_lost;             /* that the mirror is not used any longer */
    bool has_failed;            /* to change the memory of the stream: its ring may be lost */
};

struct workspace {
    struct arena activations, rows, logits, replay;
    struct product_choice choice;
    struct forward *forward;
};

/* The part of a session about a budget that follows the free memory (session_breath.c). */
struct breath_state {
    uint64_t seen;     /* the last budget that was planned with */
    uint64_t kv_bytes; /* of keys and values in the pass that runs */
    bool is_paused;    /* options change */
    bool is_less;      /* the last change gave memory back */
    bool is_half;      /* only weights were given back, in a pass or a KV file */
    bool has_experts;  /* between two blocks, experts were not */
    void (*wake)(void *ctx); /* after a change, on another thread; NULL: nobody waits */
    void *wake_ctx;
};

/* Tokens that the last pass evaluated after a sampled one.  The store holds their keys and
 * values, and logits has their rows; they belong to the text once they are sampled, too. */
struct drafts {
    struct depth depth;
    uint32_t n, n_left; /* of the last pass, and those that nobody sampled yet */
    uint32_t quality;   /* as the drafter expected it */
    uint32_t pos, n_pass; /* the last pass, which the drafter did not follow yet; n_pass 0: none */
    double open_s;      /* in which the drafter was made */
    double text_s;      /* in which it has followed the text, */
    uint64_t n_text;    /* and evaluated so many tokens of it */
    /* The drafter lost and was closed: */
    bool was_left;
    enum mw_draft left; /* this had asked for it */
    double left_share;  /* the share (depth.h) that it had */
    double left_s;      /* in which it was made, with its copies of weights */
    struct depth_gap gap;
    struct err lost; /* it cannot draft, which was not reported yet; ERR_NONE: it can */
};

/* The ids that drafts are made of, if their acceptance is simulated. */
struct expected {
    const uint32_t *ids; /* [n]; NULL: it is not */
    uint32_t from, n;    /* position of the first one */
    double acceptance;
    uint64_t n_drawn; /* random numbers so far */
};

struct mw_session {
    struct mw_model *m;
    struct settled settled; /* the options in force */
    struct plan plan;
    const struct kernels *kernels;
    struct pool *pool;
    struct kv *kv;
    struct copies *copies; /* turns to go back to */
    struct weights weights;
    struct kept_rows kept;
    struct workspace *work; /* NULL: a change failed, and so did going back */
    struct telemetry *telemetry;
    struct tokens tokens; /* the first kv_tokens() are held */
    struct drafter *drafter;    /* NULL: nothing is drafted */
    struct mw_sampler *sampler; /* chooses drafts; NULL: the most likely id */
    struct drafts drafts;
    struct expected expected;
    struct head *head; /* of the model; NULL: not used */
    struct breathing *breathing; /* NULL: the budget is fixed */
    struct breath_state breath;
    struct observer observer;
    struct product_observer column_observer, chunk_observer;
    struct plan_input input; /* when the window began */
    uint64_t pass_end_ns;    /* of the last pass; 0: a new window begins */
    struct anchor_tokens answer;
    struct tried_answer tried;
    uint64_t answer_pinned_bytes; /* when its newest token was evaluated */
    bool has_logits;
    struct cancel *cancel;    /* ends an evaluation; of the chat, or the one below */
    struct cancel own_cancel; /* cleared by the thread that evaluates */
    uint32_t mark_at;         /* position of the next copy; 0: none */
    uint32_t beginning_at;    /* the same for a beginning to keep (saved_beginning.h) */
    uint32_t step_from, step_n, step_total; /* of the chunk that is evaluated now */
    session_progress_fn *progress;
    void *progress_ctx;
};

/* --- session_draft.c --- */

/* Evaluate the sampled id at the next position, with drafted ones after it if they pay. */
int eval_with_drafts(struct mw_session *s, uint32_t id, struct err *e);
/* Close a model or a head that drafts once its stake (depth.h) is lost, if weights are pinned in
 * its memory then.  session_try_drafter(), or the next change of the options, opens it again. */
void leave_losing_drafter(struct mw_session *s);
/* Options that open a closed drafter again.  Unlike session_set(), it fails if the plan leaves the
 * drafter out, or if it would need memory that a budget of `auto` gave back.  Otherwise it calls
 * opens first; NULL: not called.  If only a head cannot be opened, it returns 0 with *e set. */
int session_set_drafter(struct mw_session *s, const struct mw_options *o, session_opens_fn *opens,
                        void *ctx, struct err *e);
/* After a change of options with `draft`: if their head cannot be opened, close it as if it had
 * lost, since its memory is of no use.  A later answer tries again. */
void leave_lost_head(struct mw_session *s, enum mw_draft draft);
/* Take id for the next token if it is the next draft: its keys, values and logits are there. */
bool take_draft(struct mw_session *s, uint32_t id);
/* Another id was sampled than the next draft, if there is one. */
void reject_drafts(struct mw_session *s);
/* Report to the drafter that a pass evaluated n positions of a prompt from pos on. */
int follow_prompt(struct mw_session *s, uint32_t pos, uint32_t n, struct err *e);
/* The same for the last pass over a sampled token, once its drafts are accepted or dropped. */
int follow_drafts(struct mw_session *s, struct err *e);

/* --- session.c --- */

/* Evaluate the n ids that follow the held ones in the list, in one pass. */
int eval_chunk(struct mw_session *s, uint32_t n, enum want want, struct err *e);

/* --- session_parts.c: made with options that are complete --- */

/* Open stream and cache of experts with the memory `room`. */
int weights_open(struct mw_session *s, const struct mw_options *o, const struct plan *plan,
                 const struct room *room, struct err *e);
/* Let the model remember the routers, and close both. */
void weights_close(struct mw_session *s);

/* Without memory: workspace_touch() takes it.  kv: the store that the pass will use. */
int workspace_new(struct workspace **out, struct mw_session *s, const struct mw_options *o,
                  const struct plan *plan, struct kv *kv, struct err *e);
void workspace_free(struct workspace *w); /* NULL is fine */
void workspace_touch(struct workspace *w);
/* Give the memory back; w can be used again once it is touched. */
void workspace_release(struct workspace *w);

/* The drafter of these options; NULL if the plan has no drafts. */
int session_drafter(struct drafter **out, struct mw_session *s, const struct mw_options *o,
                    const struct plan *plan, struct err *e);

/* A store without recurrent state and without memory. */
int session_kv(struct kv **out, const struct mw_session *s, const struct mw_options *o,
              const struct plan *plan, struct err *e);
/* Open its file if the plan has keys and values on the disk, and tell it which pages shall stay. */
int session_kv_disk(const struct mw_session *s, struct kv *kv, const struct mw_options *o,
                    const struct plan *plan, struct err *e);
/* Slots of the rings of sliding layers. */
uint32_t session_ring_slots(const struct mw_session *s, uint32_t chunk, uint32_t n_ctx);

/* --- session_memory.c --- */

/*
 * The plan's memory for pinned weights and experts, with what it leaves over while keys and
 * values use kv_used bytes.
 */
struct room session_room(const struct mw_session *s, const struct plan *p, uint64_t kv_used);

/* Take `bytes` away from r, whose ring has slots of slot_bytes. */
void room_less(struct room *r, uint64_t bytes, size_t slot_bytes);

/* Bytes that the plan leaves over. */
uint64_t session_left_over(const struct plan *p, uint64_t kv_used);

/* Bytes that building the tokenizer takes for a short time, perhaps while the stream reads the
 * first blocks. */
uint64_t session_build_bytes(const struct mw_model *m);

/* Give the weights this room.  Areas that shrink go first, so the sum never exceeds the budget.
 * After an error the next pass tries again. */
int session_set_room(struct mw_session *s, const struct room *to, struct err *e);

/* Before n more positions are written, take back borrowed KV space.  After a rewind, let
 * weights borrow the freed space. */
int settle_memory(struct mw_session *s, uint32_t n, struct err *e);
/* Keys and values that cannot be read back are lost: the next evaluation begins at token 0. */
void session_forget_tokens(struct mw_session *s);

/* --- session_breath.c: a budget that follows the free memory --- */

/* Begin to follow it, or follow it within other bounds, or stop, as the options in force say.
 * is_new: the budget was chosen again. */
void session_follow_memory(struct mw_session *s, bool is_new);
void session_stop_following(struct mw_session *s);

/* Before options change to `then`: take out of its plan what was given back.  is_try: and let it
 * have no more than the budget in force, if that is less than the chosen one.  Returns false if the
 * least that *p needs is more. */
bool session_keep_breath(struct mw_session *s, const struct settled *then, bool is_try,
                         struct plan *p);

/* Between two passes: plan with the budget to have now.  Returns whether the plan changed; the
 * caller then settles the memory and calls session_breathed(), which publishes it. */
bool session_breathe(struct mw_session *s);
void session_breathed(struct mw_session *s);

/* In a pass, while no block is in use: the `between` of forward.h.  ctx is the session.  Between
 * two passes, is_layer is true. */
void session_between(void *ctx, bool is_layer);

/* The options in force with the budget in force. */
struct mw_options session_options_now(const struct mw_session *s);

/* --- session_publish.c: to the telemetry --- */

void publish_memory(struct mw_session *s);
/* The budget and the items of p, which are in force from now on, and the memory in use under it.
 * The rest of the plan follows with publish_plan(); until then there are no predictions, since
 * its settings are not in use yet.  has_work: the workspace has its memory. */
void publish_budget(struct mw_session *s, const struct plan *p, bool has_work);
void publish_limits(struct mw_session *s);
void publish_plan(struct mw_session *s);

/* --- session_change.c --- */

/* Keep lookup rows in memory, or no longer. */
int session_keep_rows(struct mw_session *s, bool keeps, struct err *e);

/* The use of experts in this session; NULL if too few tokens were seen.  *l has the memory. */
const struct mw_expert_use *session_expert_use(const struct mw_session *s, struct mw_limits *l);

#endif
