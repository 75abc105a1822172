#include "config.h"

#include "engine/session/answer.h"

#include <stdio.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "engine/session/answer_internal.h"
#include "engine/session/constraint.h"
#include "engine/session/logprobs.h"
#include "engine/session/sampler.h"

#define PACE_MIN 64 /* shorter prompts are too short to measure the speed of arithmetic */

struct turn *answer_turn(struct answer_state *r)
{
    return &r->a->conversation->turns[r->turn];
}

static bool is_cancelled(const struct answer_state *r)
{
    return cancel_is_set(r->a->cancel);
}

static void post_progress(struct answer_state *r, uint32_t done, uint32_t total)
{
    r->receipt.n_prompt_done = done;
    counter_set(&session_telemetry(r->a->session)->n_prompt_done, done);
    events_post(r->a->events,
                &(struct mw_event){ .kind = MW_EVENT_PROGRESS, .n = done, .total = total });
}

/* A chunk or a layer of the prompt was evaluated.  After the last chunk, options may change
 * only once its logits were sampled. */
static void on_progress(void *ctx, uint32_t done, uint32_t total, bool is_within)
{
    struct answer_state *r = ctx;
    uint64_t start;

    post_progress(r, done, total);
    if (is_within)
        return;
    r->prefill_stall_ns += counter_get(&session_telemetry(r->a->session)->pass.stall_ns);
    if (done == total)
        return;
    start = clock_ns();
    r->a->change(r->a->change_ctx, r->prompt.n);
    r->change_ns += clock_ns() - start;
}

/* Note how long the arithmetic of a prompt token took, for estimates.  The time of a pass with
 * few tokens hardly depends on their number, and other programs may take most of it, so a short
 * prompt says less than the plan. */
static void note_pace(struct answer_state *r)
{
    uint64_t ns = r->receipt.prefill_ns;

    if (r->receipt.n_prompt < PACE_MIN)
        return;
    ns -= ns < r->prefill_stall_ns ? ns : r->prefill_stall_ns;
    r->a->prompt_compute_s = (double)ns / 1e9 / (double)r->receipt.n_prompt;
}

/* The next prompt may begin to differ in the last tokens of this one, which only open the
 * answer: templates drop the thinking of earlier turns. */
#define OPENING 16

/* Evaluate the part of the prompt that the session does not hold. */
static int prefill(struct answer_state *r, struct err *e)
{
    struct mw_session *s = r->a->session;
    struct telemetry *t = session_telemetry(s);
    const uint32_t *held = session_ids(s);
    uint32_t n_held = mw_session_tokens(s), same = 0, kept;
    uint64_t start = clock_ns(), change_before = r->change_ns;
    struct mw_event started = { .kind = MW_EVENT_STARTED };
    int rc;

    while (same < n_held && same + 1 < r->prompt.n && held[same] == r->prompt.id[same])
        same++;
    if (mw_session_rewind(s, same, &kept, e) != 0 || answer_use_beginning(r, same, &kept, e) != 0)
        return -1;
    sampler_set_from(r->a->sampler, r->prompt.n - r->answer.n);
    if (r->a->constraint != NULL)
        constraint_begin(r->a->constraint, r->prompt.id, r->prompt.n - r->answer.n);
    if (r->answer.n == 0)
        session_mark(s);
    if (r->prompt.n > kept + (size_t)(2 * OPENING))
        session_mark_at(s, (uint32_t)r->prompt.n - OPENING);
    r->receipt.n_reused = kept;
    r->receipt.n_prompt = (uint32_t)r->prompt.n - kept;
    counter_set(&t->n_prompt, r->receipt.n_prompt);
    counter_set(&t->n_reused, kept);
    counter_set(&t->state, MW_PREFILL);
    started.n = r->receipt.n_prompt;
    started.total = r->prompt.n;
    mw_session_plan(s, &started.plan); /* a closed drafter may be open again */
    events_post(r->a->events, &started);
    session_set_progress(s, on_progress, r);
    rc = mw_session_eval(s, r->prompt.id + kept, r->prompt.n - kept, NULL, NULL, e);
    session_set_progress(s, NULL, NULL);
    r->receipt.prefill_ns += clock_ns() - start - (r->change_ns - change_before);
    counter_set(&t->prefill_ns, r->receipt.prefill_ns);
    if (rc == 0)
        note_pace(r);
    return rc;
}

/* --- the loop --- */

bool answer_is_stop_id(const struct answerer *a, uint32_t id)
{
    for (size_t i = 0; i < a->n_stop_id; i++)
        if (a->stop_ids[i] == id)
            return true;
    return false;
}

static uint32_t sample(struct answer_state *r)
{
    struct mw_session *s = r->a->session;
    struct telemetry *t = session_telemetry(s);
    uint64_t start = clock_ns(), now;
    /* The sampler may change the row: the next evaluation overwrites it. */
    float *logits = session_logits(s);
    uint32_t id;

    if (r->a->logprobs != NULL)
        logprobs_take(r->a->logprobs, logits);
    id = mw_sampler_next(r->a->sampler, logits, session_ids(s), mw_session_tokens(s));
    now = clock_ns();
    r->receipt.n_decoded++;
    if (r->receipt.n_decoded == 1)
        r->receipt.first_ns = now - r->start_ns;
    telemetry_token(t, now - start);
    return id;
}

/* Report how likely a token was, if its text is not thinking. */
static void post_logprobs(struct answer_state *r, uint32_t id)
{
    struct mw_logprob list[MW_LOGPROBS];
    uint32_t n, mark;

    if (r->a->logprobs == NULL || answer_parser_hides(&r->parser))
        return;
    for (uint32_t i = 0; answer_parser_mark(&r->parser, i, &mark); i++)
        if (mark == id)
            return;
    n = logprobs_of(r->a->logprobs, id, list);
    events_post(r->a->events, &(struct mw_event){ .kind = MW_EVENT_LOGPROBS,
                                                  .text = (const char *)list,
                                                  .len = n * sizeof *list });
}

/* Whether the grammar of the answer allows nothing after this token. */
static bool is_complete(const struct answer_state *r, uint32_t id)
{
    struct mw_session *s = r->a->session;

    return r->a->constraint != NULL &&
           constraint_ends_with(r->a->constraint, session_ids(s), mw_session_tokens(s), id);
}

static int decode_one(struct answer_state *r, uint32_t id, struct err *e)
{
    struct telemetry *t = session_telemetry(r->a->session);
    uint64_t start = clock_ns();
    int rc = mw_session_eval_sampled(r->a->session, id, e);

    /* A pass that was stopped brings no token: its time would make the others look slower. */
    if (rc == 0) {
        r->receipt.decode_ns += clock_ns() - start;
        r->receipt.stall_ns += counter_get(&t->pass.stall_ns);
    }
    r->receipt.expert_hits += counter_get(&t->pass.expert_hits);
    r->receipt.expert_misses += counter_get(&t->pass.expert_misses);
    r->receipt.expert_bytes += counter_get(&t->pass.expert_bytes);
    return rc;
}

/* The context is full in the middle of an answer.  With ctx_shift, go on with fewer turns. */
static int make_room(struct answer_state *r, struct err *e)
{
    char ctx[24];

    if (!r->a->ctx_shift || r->a->rendering.format == NULL)
        return err_set(
            e, ERR_CONTEXT, "the context of %s tokens is full",
            numbers_count(ctx, sizeof ctx, session_options(r->a->session)->n_ctx));
    if (answer_fit_prompt(r, e) != 0)
        return -1;
    return prefill(r, e);
}

static enum mw_done generate(struct answer_state *r)
{
    struct answerer *a = r->a;
    struct telemetry *t = session_telemetry(a->session);

    counter_set(&t->state, MW_DECODE);
    for (;;) {
        uint32_t id;

        if (is_cancelled(r))
            return MW_DONE_CANCELLED;
        id = sample(r);
        if (sampler_failed(a->sampler, &r->err))
            return MW_DONE_ERROR;
        if (answer_is_stop_id(a, id))
            return MW_DONE_STOP;
        if (ids_push(&r->answer, id, &r->err) != 0)
            return MW_DONE_ERROR;
        post_logprobs(r, id);
        if (answer_say_id(r, id))
            return MW_DONE_STOP;
        if (r->is_lost)
            return MW_DONE_ERROR;
        if (is_complete(r, id))
            return MW_DONE_STOP;
        if (r->n_predict > 0 && r->receipt.n_decoded >= r->n_predict)
            return MW_DONE_LENGTH;
        /* The logits were used, and this token is evaluated with the new options. */
        a->change(a->change_ctx, mw_session_tokens(a->session) + 1);
        if (mw_session_tokens(a->session) == session_options(a->session)->n_ctx) {
            if (make_room(r, &r->err) != 0)
                return r->err.code == ERR_CONTEXT ? MW_DONE_CONTEXT : MW_DONE_ERROR;
            counter_set(&t->state, MW_DECODE);
            continue;
        }
        if (decode_one(r, id, &r->err) != 0)
            return r->err.code == ERR_CANCELLED ? MW_DONE_CANCELLED : MW_DONE_ERROR;
    }
}

static void post_ids(const struct answer_state *r, enum mw_event_kind kind, const struct ids *ids)
{
    if (r->a->reports_ids)
        events_post(r->a->events, &(struct mw_event){ .kind = kind,
                                                      .text = (const char *)ids->id,
                                                      .len = ids->n * sizeof *ids->id });
}

static enum mw_done begin_and_generate(struct answer_state *r, bool is_continued)
{
    bool is_over;

    if (answer_begin(r, is_continued, &is_over, &r->err) == 0) {
        if (is_over)
            return MW_DONE_STOP;
        post_ids(r, MW_EVENT_PROMPT_IDS, &r->prompt);
        if (prefill(r, &r->err) == 0)
            return generate(r);
    }
    switch (r->err.code) {
    case ERR_CANCELLED: return MW_DONE_CANCELLED;
    case ERR_CONTEXT: return MW_DONE_CONTEXT;
    default: return MW_DONE_ERROR;
    }
}

/* Memory is reserved for as many tokens as most answers have, so that nothing is allocated
 * between two tokens. */
#define MOST_RESERVED 32768 /* tokens */
#define TOKEN_BYTES   6

static int reserve_answer(struct answer_state *r, struct err *e)
{
    uint32_t n = session_options(r->a->session)->n_ctx;

    if (r->n_predict > 0 && r->n_predict < n)
        n = r->n_predict;
    if (n > MOST_RESERVED)
        n = MOST_RESERVED;
    if (ids_reserve(&r->answer, r->answer.n + n, e) != 0)
        return -1;
    /* A closing mark of thinking that nothing opened moves the text. */
    if (turn_reserve(answer_turn(r), true, (size_t)n * TOKEN_BYTES, e) != 0)
        return -1;
    return turn_reserve(answer_turn(r), false, (size_t)n * TOKEN_BYTES, e);
}

static int start_turn(struct answer_state *r, bool is_continued, struct err *e)
{
    struct conversation *c = r->a->conversation;

    if (is_continued) {
        const struct turn *t = &c->turns[c->n_turn - 1];

        r->turn = c->n_turn - 1;
        if (ids_append(&r->answer, t->ids.id, t->ids.n, e) != 0)
            return -1;
        return reserve_answer(r, e);
    }
    r->turn = c->n_turn;
    if (conversation_add(c, CHAT_ASSISTANT, "", 0, e) == NULL)
        return -1;
    if (r->turn > 0)
        answer_turn(r)->attempt = c->turns[r->turn - 1].attempt;
    if (reserve_answer(r, e) == 0)
        return 0;
    conversation_cut(c, r->turn);
    return -1;
}

static void post_lost(struct answer_state *r, const char *what, const struct err *e)
{
    char why[300], text[400];
    int n;

    err_text(e, why, sizeof why);
    n = snprintf(text, sizeof text, "%s: %s", what, why);
    events_post(r->a->events,
                &(struct mw_event){
                    .kind = MW_EVENT_NOTICE, .text = text, .len = (size_t)n });
}

/* Report once that a copy on another disk is not used any longer, or that nothing is drafted. */
static void post_losses(struct answer_state *r)
{
    struct err e = ERR_INIT;

    if (session_lost_mirror(r->a->session, &e))
        post_lost(r,
                  "the mirror is not used any longer, and all weights come from the model's own "
                  "disk",
                  &e);
    if (session_lost_drafter(r->a->session, &e))
        post_lost(r, "the drafter failed, and answers go on without it", &e);
}

void answer_run(struct answerer *a, bool is_continued)
{
    struct telemetry *t = session_telemetry(a->session);
    struct answer_state r = { .a = a,
                              .n_predict = a->n_predict,
                              .start_ns = clock_ns(),
                              .bytes_before = counter_get(&t->bytes_read),
                              .receipt = { .empty = MW_EMPTY_NOTHING,
                                           .is_continuation = is_continued },
                              .err = ERR_INIT };
    bool has_answer, started = start_turn(&r, is_continued, &r.err) == 0;

    telemetry_answer(t, 0);
    if (started) {
        r.receipt.attempt = answer_turn(&r)->attempt;
        sampler_begin(a->sampler, r.receipt.attempt);
        session_set_sampler(a->session, a->sampler);
    }
    r.receipt.done = started ? begin_and_generate(&r, is_continued) : MW_DONE_ERROR;
    post_ids(&r, MW_EVENT_IDS, &r.answer);
    has_answer = started && answer_end_turn(&r, is_continued);
    r.receipt.bytes_read = counter_get(&t->bytes_read) - r.bytes_before;
    r.receipt.is_mapped = session_is_mapped(a->session);
    telemetry_drafts(t, &r.receipt.drafts);
    session_drop_drafts(a->session);
    session_set_sampler(a->session, NULL);
    counter_set(&t->state, r.receipt.done == MW_DONE_ERROR ? MW_ERROR : MW_IDLE);
    post_losses(&r);
    answer_post_done(&r, has_answer);
    ids_free(&r.prompt);
    ids_free(&r.answer);
}
