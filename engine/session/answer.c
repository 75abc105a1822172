#include "config.h"

#include "engine/session/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"

#define PACE_MIN 64 /* prompts of fewer tokens do not show the speed of arithmetic */

/* The state of one answer. */
struct run {
    struct answerer *a;
    struct ids prompt;           /* conversation, and the answer so far if it continues */
    struct ids answer;           /* generated so far, also before it was stopped */
    size_t turn;                 /* of the answer in the conversation */
    struct answer_parser parser; /* thinking or text; decodes in raw mode too */
    char held[MW_STOP_BYTES];    /* text that may be the beginning of a stop string */
    size_t n_held;
    uint32_t n_predict; /* of the options at the start */
    struct mw_receipt receipt;
    uint64_t start_ns, bytes_before;
    uint64_t change_ns; /* spent on changes of options, in the prompt */
    uint64_t prefill_stall_ns;
    bool is_lost; /* memory ran out and a piece of text was lost: err */
    struct err err;
};

static bool is_cancelled(const struct run *r)
{
    return atomic_load(r->a->cancel);
}

static struct turn *answer_turn(struct run *r)
{
    return &r->a->conversation->turns[r->turn];
}

/* Append text to the turn and post it.  The answer ends if one of the two fails, so that the
 * history always has what was shown. */
static void say(struct run *r, const char *text, size_t len, bool is_thinking)
{
    struct err e = ERR_INIT;

    if (len == 0 || r->is_lost)
        return;
    if (turn_append(answer_turn(r), is_thinking, text, len, &e) == 0 &&
        events_text(r->a->events, text, len, is_thinking, &e) == 0)
        return;
    r->is_lost = true;
    r->err = e;
}

/* --- stop strings --- */

/* Returns text i that ends an answer: a stop string, or a word that opens a turn; NULL after the
 * last. */
static const char *stop_at(const struct answerer *a, size_t i)
{
    size_t n = 0;

    while (n < i && a->stop[n] != NULL)
        n++;
    if (a->stop[n] != NULL)
        return a->stop[n];
    return a->rendering.format != NULL ? chat_turn_word(a->rendering.format, i - n) : NULL;
}

/* Returns where such a text begins in text, or len.  *keep is the number of bytes at the end
 * that may be the start of one. */
static size_t find_stop(const struct answerer *a, const char *text, size_t len, size_t *keep)
{
    *keep = 0;
    for (size_t at = 0; at < len; at++) {
        const char *stop;

        for (size_t i = 0; (stop = stop_at(a, i)) != NULL; i++) {
            size_t n = strlen(stop), left = len - at;

            if (memcmp(text + at, stop, n < left ? n : left) != 0)
                continue;
            if (n <= left)
                return at;
            if (left > *keep)
                *keep = left;
        }
    }
    return len;
}

/* Append text of the answer up to a stop string.  Returns whether there was one.  Then the ids
 * are those of a longer text: drop them, and the next prompt makes them from the text. */
static bool say_filtered(struct run *r, const char *text, size_t len, bool is_last)
{
    char all[sizeof r->held + DECODE_MAX + 128];
    size_t n = r->n_held, end, keep;

    memcpy(all, r->held, n);
    memcpy(all + n, text, len);
    n += len;
    end = find_stop(r->a, all, n, &keep);
    if (end < n) {
        say(r, all, end, false);
        r->n_held = 0;
        ids_free(&r->answer);
        return true;
    }
    if (is_last)
        keep = 0;
    say(r, all, n - keep, false);
    memcpy(r->held, all + n - keep, keep);
    r->n_held = keep;
    return false;
}

/* --- pieces --- */

static bool say_id(struct run *r, uint32_t id)
{
    char buf[DECODE_MAX + 64];
    bool is_thinking = false;
    size_t len = answer_parser_push(&r->parser, id, buf, &is_thinking);

    if (is_thinking)
        say(r, buf, len, true);
    else if (say_filtered(r, buf, len, false))
        return true;
    if (r->parser.is_over) /* the last ids open a turn of another role */
        ids_free(&r->answer);
    return r->parser.is_over;
}

static void say_end(struct run *r)
{
    char buf[DECODE_MAX + 64];
    bool is_thinking = false;
    size_t len = answer_parser_end(&r->parser, buf, &is_thinking);

    if (is_thinking)
        say(r, buf, len, true);
    else
        say_filtered(r, buf, len, true);
}

/* --- prompt --- */

static int make_prompt(struct run *r, struct err *e)
{
    r->prompt.n = 0;
    r->prompt.max = session_options(r->a->session)->n_ctx;
    if (conversation_render(r->a->conversation, &r->a->rendering, r->turn, &r->prompt, e) != 0)
        return -1;
    return ids_append(&r->prompt, r->answer.id, r->answer.n, e);
}

/* Make the prompt so that at least one more token fits the context.  With ctx_shift, drop the
 * oldest turns for that. */
static int fit_prompt(struct run *r, struct err *e)
{
    struct answerer *a = r->a;
    struct conversation *c = a->conversation;
    uint32_t n_ctx = session_options(a->session)->n_ctx;
    size_t before = c->is_partial ? 0 : c->n_before + c->n_dropped, n_dropped;

    if (c->is_partial && !a->ctx_shift)
        return err_set(e, ERR_CONTEXT,
                       "the oldest %zu messages of the conversation do not fit the context of "
                       "%u tokens",
                       c->n_before, n_ctx);
    c->is_partial = false;

    for (;;) {
        /* Free an eighth of the context at once; otherwise every token would drop turns. */
        size_t freed = before != c->n_before + c->n_dropped ? n_ctx / 8 : 0;
        int rc = make_prompt(r, e);

        if (rc != 0 && e->code != ERR_CONTEXT)
            return -1;
        if (rc == 0 && (!a->ctx_shift || r->prompt.n + freed < n_ctx))
            break;
        if (!a->ctx_shift || !conversation_drop_oldest(c)) {
            if (rc != 0)
                return -1;
            break;
        }
        *e = (struct err)ERR_INIT;
    }
    if (r->prompt.n >= n_ctx)
        return err_set(e, ERR_CONTEXT,
                       "a prompt of %zu tokens does not fit the context of %u tokens",
                       r->prompt.n, n_ctx);
    n_dropped = c->n_before + c->n_dropped;
    r->turn -= conversation_forget(c, mw_text_bytes(a->m, session_options(a->session)));
    if (n_dropped != before) {
        char text[128];
        int n = snprintf(text, sizeof text,
                         "the context was full: the oldest %zu messages are no longer seen",
                         n_dropped);

        events_post(a->events, &(struct mw_event){ .kind = MW_EVENT_NOTICE,
                                                   .text = text,
                                                   .len = (size_t)n,
                                                   .n = n_dropped });
    }
    return 0;
}

static void post_progress(struct run *r, uint32_t done, uint32_t total)
{
    counter_set(&session_telemetry(r->a->session)->n_prompt_done, done);
    events_post(r->a->events,
                &(struct mw_event){ .kind = MW_EVENT_PROGRESS, .n = done, .total = total });
}

/* A chunk or a layer of the prompt was evaluated.  After the last chunk nothing changes before
 * its logits were sampled. */
static void on_progress(void *ctx, uint32_t done, uint32_t total, bool is_within)
{
    struct run *r = ctx;
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
 * few tokens hardly depends on their number, so short prompts are used only if there is no
 * other. */
static void note_pace(struct run *r)
{
    uint64_t ns = r->receipt.prefill_ns;

    if (r->receipt.n_prompt < PACE_MIN && r->a->prompt_compute_s > 0)
        return;
    ns -= ns < r->prefill_stall_ns ? ns : r->prefill_stall_ns;
    r->a->prompt_compute_s = (double)ns / 1e9 / (double)r->receipt.n_prompt;
}

/* The next prompt may begin to differ in the last tokens of this one, which only open the
 * answer: templates drop the thinking of earlier turns. */
#define OPENING 16

/* Evaluate the part of the prompt that the session does not hold. */
static int prefill(struct run *r, struct err *e)
{
    struct mw_session *s = r->a->session;
    struct telemetry *t = session_telemetry(s);
    const uint32_t *held = session_ids(s);
    uint32_t n_held = mw_session_tokens(s), same = 0, kept;
    uint64_t start = clock_ns(), change_before = r->change_ns;
    int rc;

    while (same < n_held && same + 1 < r->prompt.n && held[same] == r->prompt.id[same])
        same++;
    if (mw_session_rewind(s, same, &kept, e) != 0)
        return -1;
    if (r->answer.n == 0)
        session_mark(s);
    if (r->prompt.n > kept + (size_t)(2 * OPENING))
        session_mark_at(s, (uint32_t)r->prompt.n - OPENING);
    r->receipt.n_reused = kept;
    r->receipt.n_prompt = (uint32_t)r->prompt.n - kept;
    counter_set(&t->n_prompt, r->receipt.n_prompt);
    counter_set(&t->state, MW_PREFILL);
    events_post(r->a->events, &(struct mw_event){ .kind = MW_EVENT_STARTED,
                                                  .n = r->receipt.n_prompt,
                                                  .total = r->prompt.n });
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

static bool is_stop_id(const struct answerer *a, uint32_t id)
{
    for (size_t i = 0; i < a->n_stop_id; i++)
        if (a->stop_ids[i] == id)
            return true;
    return false;
}

static uint32_t sample(struct run *r)
{
    struct mw_session *s = r->a->session;
    struct telemetry *t = session_telemetry(s);
    uint64_t start = clock_ns(), now;
    /* The sampler may change the row: the next evaluation overwrites it. */
    float *logits = session_logits(s);
    uint32_t id = mw_sampler_next(r->a->sampler, logits, session_ids(s), mw_session_tokens(s));

    now = clock_ns();
    r->receipt.n_decoded++;
    if (r->receipt.n_decoded == 1)
        r->receipt.first_ns = now - r->start_ns;
    telemetry_token(t, now - start);
    return id;
}

static int decode_one(struct run *r, uint32_t id, struct err *e)
{
    struct telemetry *t = session_telemetry(r->a->session);
    uint64_t start = clock_ns();
    int rc = session_eval_sampled(r->a->session, id, e);

    r->receipt.decode_ns += clock_ns() - start;
    if (rc == 0)
        r->receipt.stall_ns += counter_get(&t->pass.stall_ns);
    r->receipt.expert_hits += counter_get(&t->pass.expert_hits);
    r->receipt.expert_misses += counter_get(&t->pass.expert_misses);
    r->receipt.expert_bytes += counter_get(&t->pass.expert_bytes);
    return rc;
}

/* The context is full in the middle of an answer.  With ctx_shift, go on with fewer turns. */
static int make_room(struct run *r, struct err *e)
{
    if (!r->a->ctx_shift || r->a->rendering.format == NULL)
        return err_set(e, ERR_CONTEXT, "the context of %u tokens is full",
                       session_options(r->a->session)->n_ctx);
    if (fit_prompt(r, e) != 0)
        return -1;
    return prefill(r, e);
}

static enum mw_done generate(struct run *r)
{
    struct answerer *a = r->a;
    struct telemetry *t = session_telemetry(a->session);

    counter_set(&t->state, MW_DECODE);
    for (;;) {
        uint32_t id;

        if (is_cancelled(r))
            return MW_DONE_CANCELLED;
        id = sample(r);
        if (is_stop_id(a, id))
            return MW_DONE_STOP;
        if (ids_push(&r->answer, id, &r->err) != 0)
            return MW_DONE_ERROR;
        if (say_id(r, id))
            return MW_DONE_STOP;
        if (r->is_lost)
            return MW_DONE_ERROR;
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

/* Bring the parser to the end of the prompt.  An answer begins inside its thinking if the
 * prompt opens it; one that continues may be past it. */
static void replay_parser(struct run *r)
{
    char buf[DECODE_MAX + 64];
    bool is_thinking;

    answer_parser_start(&r->parser, r->prompt.id, r->prompt.n - r->answer.n);
    for (size_t i = 0; i < r->answer.n; i++)
        answer_parser_push(&r->parser, r->answer.id[i], buf, &is_thinking);
}

static enum mw_done begin_and_generate(struct run *r)
{
    if (fit_prompt(r, &r->err) == 0) {
        replay_parser(r);
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

static int reserve_answer(struct run *r, struct err *e)
{
    uint32_t n = session_options(r->a->session)->n_ctx;

    if (r->n_predict > 0 && r->n_predict < n)
        n = r->n_predict;
    if (n > MOST_RESERVED)
        n = MOST_RESERVED;
    if (ids_reserve(&r->answer, r->answer.n + n, e) != 0)
        return -1;
    return turn_reserve(answer_turn(r), false, (size_t)n * TOKEN_BYTES, e);
}

static int start_turn(struct run *r, bool is_continued, struct err *e)
{
    struct conversation *c = r->a->conversation;

    if (is_continued) {
        const struct turn *t = &c->turns[c->n_turn - 1];

        r->turn = c->n_turn - 1;
        /* A saved chat has the text only, so its ids are made again. */
        if (t->ids.n > 0 ? ids_append(&r->answer, t->ids.id, t->ids.n, e) != 0
                         : tokenizer_encode(r->a->rendering.tokenizer, t->text, t->len, false,
                                            false, &r->answer, e) != 0)
            return -1;
        return reserve_answer(r, e);
    }
    r->turn = c->n_turn;
    if (conversation_add(c, CHAT_ASSISTANT, "", 0, e) == NULL)
        return -1;
    if (reserve_answer(r, e) == 0)
        return 0;
    conversation_cut(c, r->turn);
    return -1;
}

void answer_run(struct answerer *a, bool is_continued)
{
    struct telemetry *t = session_telemetry(a->session);
    struct run r = { .a = a,
                     .n_predict = a->n_predict,
                     .start_ns = clock_ns(),
                     .bytes_before = counter_get(&t->bytes_read),
                     .parser = { .format = a->parser_format,
                                 .tokenizer = a->rendering.tokenizer },
                     .err = ERR_INIT };
    bool started = start_turn(&r, is_continued, &r.err) == 0;

    telemetry_answer(t, 0);
    session_clear_cancel(a->session);
    if (is_cancelled(&r)) /* before the line above, which has cleared it */
        mw_session_cancel(a->session);
    r.receipt.done = started ? begin_and_generate(&r) : MW_DONE_ERROR;
    if (started) {
        struct turn *turn = answer_turn(&r);

        say_end(&r);
        if (r.is_lost)
            r.receipt.done = MW_DONE_ERROR;
        turn->is_cut = r.receipt.done != MW_DONE_STOP;
        ids_free(&turn->ids);
        turn->ids = r.answer;
        r.answer = (struct ids){ 0 };
        turn_trim(turn);
        if (turn->len == 0 && turn->thinking_len == 0 && turn->ids.n == 0)
            conversation_cut(a->conversation, r.turn); /* the answer is empty */
    }
    r.receipt.bytes_read = counter_get(&t->bytes_read) - r.bytes_before;
    counter_set(&t->state, r.receipt.done == MW_DONE_ERROR ? MW_ERROR : MW_IDLE);
    events_post(a->events, &(struct mw_event){
                               .kind = MW_EVENT_DONE, .receipt = r.receipt, .err = r.err });
    ids_free(&r.prompt);
    ids_free(&r.answer);
}
