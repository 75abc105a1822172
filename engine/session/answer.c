#include "config.h"

#include "engine/session/answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/utf8.h"
#include "engine/base/visible.h"

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
    size_t n_said[2]; /* bytes of text, and of thinking [true], that came out of the ids */
    bool is_inside;   /* the answer began inside its thinking, as a closing mark showed */
    bool is_ready;    /* the prompt is complete, and the parser is at its end */
    bool is_muted;    /* text is counted only */
    bool differs;     /* what came out of the ids is not the text of the turn */
    bool found_stop;  /* a stop string, or a word that opens a turn, ended the answer */
    bool is_own_stop; /* it was a stop string */
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
    return cancel_is_set(r->a->cancel);
}

static struct turn *answer_turn(struct run *r)
{
    return &r->a->conversation->turns[r->turn];
}

/*
 * An answer that goes on runs through the parser and the search for stop strings from its first
 * id on, so both are where they were when it was cut.  n_said counts the bytes that come out.
 * The turn already has the first of them: only those after its end are appended and posted.
 */
static void skip_known(struct run *r, const char **text, size_t *len, bool is_thinking)
{
    const struct turn *t = answer_turn(r);
    size_t known = is_thinking ? t->thinking_len : t->len, n = 0;

    if (r->n_said[is_thinking] < known)
        n = known - r->n_said[is_thinking] < *len ? known - r->n_said[is_thinking] : *len;
    if (n > 0 &&
        memcmp((is_thinking ? t->thinking : t->text) + r->n_said[is_thinking], *text, n) != 0)
        r->differs = true;
    r->n_said[is_thinking] += n;
    *text += n;
    *len -= n;
}

/* Append text to the turn and post it.  The answer ends if one of the two fails, so that the
 * history always has what was shown. */
static void say(struct run *r, const char *text, size_t len, bool is_thinking)
{
    struct err e = ERR_INIT;

    skip_known(r, &text, &len, is_thinking);
    r->n_said[is_thinking] += len;
    if (len == 0 || r->is_lost || r->is_muted)
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

/* Returns where such a text begins in text, or len.  *n_stop is its length.  *keep is the number
 * of bytes at the end that may be the start of one. */
static size_t find_stop(const struct answerer *a, const char *text, size_t len, size_t *n_stop,
                        size_t *keep)
{
    *keep = 0;
    for (size_t at = 0; at < len; at++) {
        const char *stop;

        for (size_t i = 0; (stop = stop_at(a, i)) != NULL; i++) {
            size_t n = strlen(stop), left = len - at;

            if (memcmp(text + at, stop, n < left ? n : left) != 0)
                continue;
            *n_stop = n;
            if (n <= left)
                return at;
            if (left > *keep)
                *keep = left;
        }
    }
    return len;
}

/* Whether text begins with a stop string. */
static bool begins_with_stop(const struct answerer *a, const char *text, size_t len)
{
    for (size_t i = 0; a->stop[i] != NULL; i++)
        if (strlen(a->stop[i]) <= len && memcmp(text, a->stop[i], strlen(a->stop[i])) == 0)
            return true;
    return false;
}

/* Whether a text of n bytes, `at` bytes after those that were said, was shown before. */
static bool is_known(struct run *r, size_t at, size_t n)
{
    return r->n_said[false] + at + n <= answer_turn(r)->len;
}

/*
 * Append text of the answer up to a stop string; thinking is not searched.  Returns whether
 * there was one.  A stop string in text that was shown before it was set ends nothing.
 */
static bool say_filtered(struct run *r, const char *text, size_t len)
{
    char all[sizeof r->held + DECODE_MAX + 128];
    size_t n = r->n_held, at = 0, end, n_stop, keep;

    memcpy(all, r->held, n);
    memcpy(all + n, text, len);
    n += len;
    while ((end = find_stop(r->a, all + at, n - at, &n_stop, &keep)) < n - at) {
        if (!is_known(r, end, n_stop)) {
            say(r, all + at, end, false);
            r->n_held = 0;
            r->found_stop = true;
            r->is_own_stop = begins_with_stop(r->a, all + at + end, n - at - end);
            return true;
        }
        say(r, all + at, end + 1, false);
        at += end + 1;
    }
    say(r, all + at, n - at - keep, false);
    memcpy(r->held, all + n - keep, keep);
    r->n_held = keep;
    return false;
}

/* No stop string comes any longer: say the text that may have been the beginning of one. */
static void say_held(struct run *r)
{
    say(r, r->held, r->n_held, false);
    r->n_held = 0;
}

/* --- pieces --- */

/* A closing mark that nothing opened: all text of the answer was thinking.  Text that is only
 * counted is counted again by replay(). */
static void take_for_thinking(struct run *r)
{
    say_held(r);
    r->is_inside = true;
    if (r->is_muted || r->n_said[false] == 0)
        return;
    if (turn_take_for_thinking(answer_turn(r), &r->err) != 0) {
        r->is_lost = true;
        return;
    }
    r->n_said[true] += r->n_said[false];
    r->n_said[false] = 0;
    events_post(r->a->events, &(struct mw_event){ .kind = MW_EVENT_THOUGHT });
}

static bool say_id(struct run *r, uint32_t id)
{
    char buf[DECODE_MAX + 64];
    bool is_thinking = false;
    size_t len = answer_parser_push(&r->parser, id, buf, &is_thinking);

    if (r->parser.was_inside && !r->is_inside)
        take_for_thinking(r);
    if (is_thinking) {
        say_held(r);
        say(r, buf, len, true);
    } else if (say_filtered(r, buf, len)) {
        return true;
    }
    return r->parser.is_over;
}

/* The model has ended the answer. */
static void say_end(struct run *r)
{
    char buf[DECODE_MAX + 64];
    bool is_thinking = false;
    size_t len = answer_parser_end(&r->parser, buf, &is_thinking);

    if (is_thinking) {
        say_held(r);
        say(r, buf, len, true);
    } else if (!say_filtered(r, buf, len)) {
        say_held(r);
    }
}

/* Store the text that the parser and the search for stop strings hold back, without an
 * incomplete character. */
static size_t take_held(const struct run *r, struct answer_parser *p, char *buf,
                        bool *is_thinking)
{
    size_t n = answer_parser_cut(p, buf + r->n_held, is_thinking);

    memcpy(buf, r->held, r->n_held);
    *is_thinking = *is_thinking && r->n_held == 0;
    return r->n_held + n;
}

/* The answer was cut.  Text that was held back is added to the turn, but posted with the end of
 * the answer only: it may turn out to be the beginning of a mark or of a stop string. */
static void keep_held(struct run *r)
{
    struct turn *t = answer_turn(r);
    struct err ignored = ERR_INIT;
    char buf[TURN_HELD_MAX];
    size_t n = take_held(r, &r->parser, buf, &t->holds_thinking);

    t->n_held = turn_append(t, t->holds_thinking, buf, n, &ignored) == 0 ? n : 0;
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

/* Whether no prompt can be made of these messages: the template or the vocabulary refuses one of
 * them. */
static bool is_refusal(const struct err *e)
{
    return e->code == ERR_ARGUMENT || e->code == ERR_FORMAT || e->code == ERR_UNSUPPORTED ||
           e->code == ERR_BUDGET;
}

/* Make the prompt.  Drop the oldest turns while it does not fit, with ctx_shift, and while it is
 * refused.  n_seen: the oldest turn that the model has seen until now. */
static int drop_until_accepted(struct run *r, size_t n_seen, struct err *e)
{
    struct answerer *a = r->a;
    struct conversation *c = a->conversation;
    uint32_t n_ctx = session_options(a->session)->n_ctx;

    for (;;) {
        /* Free an eighth of the context at once; otherwise every token would drop turns. */
        size_t freed = n_seen != c->n_before + c->n_dropped ? n_ctx / 8 : 0;
        int rc = make_prompt(r, e);

        if (rc != 0 && e->code != ERR_CONTEXT && !is_refusal(e))
            return -1;
        if (rc == 0 && (!a->ctx_shift || r->prompt.n + freed < n_ctx))
            return 0;
        if ((!a->ctx_shift && (rc == 0 || e->code == ERR_CONTEXT)) ||
            !conversation_drop_oldest(c))
            return rc;
        *e = (struct err)ERR_INIT;
    }
}

static bool is_accepted(struct run *r)
{
    struct err e = ERR_INIT;

    return make_prompt(r, &e) == 0 || !is_refusal(&e);
}

static bool is_accepted_alone(struct run *r)
{
    struct conversation *c = r->a->conversation;
    size_t n_dropped = c->n_dropped;
    bool accepted;

    conversation_drop_all(c);
    accepted = is_accepted(r);
    c->n_dropped = n_dropped;
    return accepted;
}

/* Everything after the dropped turns is refused.  Some templates need a question among the
 * messages: keep the newest one with which they accept the last message. */
static int keep_question(struct run *r, size_t n_seen, struct err *e)
{
    struct conversation *c = r->a->conversation;
    size_t n_dropped = c->n_dropped;

    conversation_drop_all(c);
    for (size_t i = c->n_dropped; i > 0; i--) {
        if (c->turns[i - 1].role != CHAT_USER || conversation_is_aside(c, i - 1))
            continue;
        c->kept = i;
        if (is_accepted(r)) {
            c->n_dropped = i > n_dropped ? i : n_dropped;
            *e = (struct err)ERR_INIT;
            return drop_until_accepted(r, n_seen, e);
        }
    }
    c->kept = 0;
    c->n_dropped = n_dropped;
    return -1;
}

/* The prompt does not fit (is_full) or is refused with *e.  Make one with fewer turns. */
static int make_shorter(struct run *r, size_t n_seen, bool is_full, struct err *e)
{
    struct conversation *c = r->a->conversation;
    size_t n_dropped = c->n_dropped;

    c->kept = 0;
    if (is_full || is_accepted_alone(r)) {
        *e = (struct err)ERR_INIT;
        if (drop_until_accepted(r, n_seen, e) == 0)
            return 0;
        if (!is_refusal(e))
            return -1;
        c->n_dropped = n_dropped;
    }
    return keep_question(r, n_seen, e);
}

static void post_dropped(struct run *r, size_t n_dropped, bool is_full)
{
    char text[160];
    int n = snprintf(text, sizeof text, "%s: the model no longer sees the oldest %zu messages%s",
                     is_full ? "the context was full"
                             : "the chat template refuses the messages of this chat",
                     n_dropped,
                     r->a->conversation->kept > 0
                         ? ", except a question that the chat template needs"
                         : "");

    events_post(r->a->events, &(struct mw_event){ .kind = MW_EVENT_NOTICE,
                                                  .text = text,
                                                  .len = (size_t)n,
                                                  .n = n_dropped });
}

/* Make a prompt that leaves room for a token.  With ctx_shift, drop the oldest turns for it. */
static int fit_prompt(struct run *r, struct err *e)
{
    struct answerer *a = r->a;
    struct conversation *c = a->conversation;
    uint32_t n_ctx = session_options(a->session)->n_ctx;
    size_t before = c->is_partial ? 0 : c->n_before + c->n_dropped, n_dropped;
    bool is_full = c->is_partial;

    if (c->is_partial && !a->ctx_shift)
        return err_set(e, ERR_CONTEXT,
                       "the oldest %zu messages of the conversation do not fit the context of "
                       "%u tokens",
                       c->n_before, n_ctx);
    c->is_partial = false;
    if (make_prompt(r, e) != 0 || is_full || (a->ctx_shift && r->prompt.n >= n_ctx)) {
        is_full = is_full || !is_refusal(e);
        if ((is_full && !a->ctx_shift) || make_shorter(r, before, is_full, e) != 0)
            return -1;
    }
    if (r->prompt.n >= n_ctx)
        return err_set(e, ERR_CONTEXT,
                       "a prompt of %zu tokens does not fit the context of %u tokens",
                       r->prompt.n, n_ctx);
    n_dropped = c->n_before + c->n_dropped;
    r->turn -= conversation_forget(c, mw_text_bytes(a->m, session_options(a->session)));
    if (n_dropped != before)
        post_dropped(r, n_dropped, is_full);
    return 0;
}

static void post_progress(struct run *r, uint32_t done, uint32_t total)
{
    r->receipt.n_prompt_done = done;
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

/* --- answers that go on --- */

/* Bring the parser and the search for stop strings to the end of the prompt.  An answer begins
 * inside its thinking if the prompt opens it; one that continues may be past it.  Returns
 * whether a stop string ends the answer at once. */
static bool replay(struct run *r)
{
    bool was_inside;

    do {
        was_inside = r->is_inside;
        r->parser = (struct answer_parser){ .format = r->a->parser_format,
                                            .tokenizer = r->a->rendering.tokenizer };
        r->n_held = r->n_said[false] = r->n_said[true] = 0;
        r->differs = r->found_stop = false;
        answer_parser_start(&r->parser, r->prompt.id, r->prompt.n - r->answer.n, was_inside);
        for (size_t i = 0; i < r->answer.n && r->is_inside == was_inside; i++)
            if (say_id(r, r->answer.id[i]))
                return true;
    } while (r->is_inside != was_inside);
    return false;
}

/* The same without a word: bytes are counted only. */
static void replay_muted(struct run *r)
{
    r->is_muted = true;
    replay(r);
    r->is_muted = r->found_stop = false;
}

/* Whether the answer has ids, and this model may have chosen them. */
static bool has_possible_ids(const struct run *r)
{
    const struct vocab_info *info = tokenizer_info(r->a->rendering.tokenizer);

    for (size_t i = 0; i < r->answer.n; i++)
        if (r->answer.id[i] >= info->n_token || is_stop_id(r->a, r->answer.id[i]))
            return false;
    return r->answer.n > 0;
}

/* Whether the text of the turn comes out of the answer's ids. */
static bool is_text_of_ids(struct run *r)
{
    const struct turn *t = answer_turn(r);

    replay_muted(r);
    return !r->differs && r->n_said[false] >= t->len && r->n_said[true] >= t->thinking_len;
}

/* Text that is held back may be at the end of the turn, where it was cut.  It is not said
 * again. */
static void skip_held(struct run *r)
{
    const struct turn *t = answer_turn(r);
    struct answer_parser p = r->parser;
    char buf[TURN_HELD_MAX];
    bool is_thinking;
    size_t n = take_held(r, &p, buf, &is_thinking);
    size_t known = is_thinking ? t->thinking_len : t->len;

    if (n > 0 && n <= known &&
        memcmp((is_thinking ? t->thinking : t->text) + known - n, buf, n) == 0)
        r->n_said[is_thinking] -= n;
}

/* Make the prompt of an answer whose ids are not known: of an old chat, of another model, or
 * before a stop string.  They are made from its text. */
static int prompt_from_text(struct run *r, struct err *e)
{
    struct turn *t = answer_turn(r);
    struct answer_parser p = { .format = r->a->parser_format,
                               .tokenizer = r->a->rendering.tokenizer };
    char held[TURN_HELD_MAX];
    size_t n_held = t->n_held;
    struct chat_message m = { .role = CHAT_ASSISTANT,
                              .content = t->text,
                              .len = t->len,
                              .reasoning = t->thinking,
                              .reasoning_len = t->thinking_len };

    r->answer.n = 0;
    r->is_inside = false;
    if (fit_prompt(r, e) != 0)
        return -1;
    answer_parser_start(&p, r->prompt.id, r->prompt.n, false);
    if (chat_answer_again(p.format, p.tokenizer, &m, answer_parser_thinks(&p), &r->answer, e) !=
            0 ||
        fit_prompt(r, e) != 0)
        return -1;
    /* The marks around the thinking may bring white space that the turn does not have. */
    replay_muted(r);
    t = answer_turn(r);
    turn_take_back(t, held);
    r->n_said[false] = t->len;
    r->n_said[true] = t->thinking_len;
    say(r, held, n_held, t->holds_thinking);
    skip_held(r);
    return 0;
}

/* The same with the ids.  Returns false, with the turn as before, if they do not make the text
 * of the turn: they are of another vocabulary, or a person changed the saved chat. */
static bool take_ids(struct run *r, bool *is_over)
{
    struct turn *t = answer_turn(r);
    size_t n_held = t->n_held;
    char held[TURN_HELD_MAX];

    turn_take_back(t, held);
    if (is_text_of_ids(r)) {
        *is_over = replay(r);
        return true;
    }
    t->n_held = turn_append(t, t->holds_thinking, held, n_held, &(struct err)ERR_INIT) == 0
                    ? n_held
                    : 0;
    return false;
}

/* Make the prompt, and bring the parser to its end.  *is_over: the answer ends at once, at a
 * stop string that was set since it was cut. */
static int begin(struct run *r, bool is_continued, bool *is_over, struct err *e)
{
    bool takes_ids = !is_continued || has_possible_ids(r);

    *is_over = false;
    if (takes_ids && fit_prompt(r, e) != 0)
        return -1;
    if ((!takes_ids || !take_ids(r, is_over)) && prompt_from_text(r, e) != 0)
        return -1;
    r->is_ready = true;
    return 0;
}

static enum mw_done begin_and_generate(struct run *r, bool is_continued)
{
    bool is_over;

    if (begin(r, is_continued, &is_over, &r->err) == 0) {
        if (is_over)
            return MW_DONE_STOP;
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
        if (ids_append(&r->answer, t->ids.id, t->ids.n, e) != 0)
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

/* Whether a text has no character that people can see. */
static bool is_blank(const char *text, size_t len)
{
    uint32_t cp;
    size_t n;

    for (size_t i = 0; i < len; i += n) {
        n = utf8_decode(text + i, len - i, &cp);
        if (!utf8_is_white(cp) && !visible_hides(cp) && cp >= ' ' && (cp < 0x7f || cp > 0x9f))
            return false;
    }
    return true;
}

static enum mw_empty why_empty(const struct run *r, const struct turn *t)
{
    if (!is_blank(t->text, t->len))
        return MW_NOT_EMPTY;
    if (r->is_own_stop)
        return MW_EMPTY_STOP_TEXT;
    if (r->is_ready && answer_parser_thinks(&r->parser))
        return MW_EMPTY_THINKING;
    if (t->len > 0)
        return MW_EMPTY_BLANK;
    if (t->thinking_len > 0)
        return MW_EMPTY_THOUGHT;
    return r->answer.n > 0 && !r->found_stop && !r->parser.is_over ? MW_EMPTY_HIDDEN
                                                                   : MW_EMPTY_NOTHING;
}

/* Whether the prompt differs with thinking on and off. */
static bool has_think_switch(const struct run *r)
{
    uint32_t n_ctx = session_options(r->a->session)->n_ctx;
    struct rendering on = r->a->rendering, off = on;
    struct ids with = { .max = n_ctx }, without = { .max = n_ctx };
    struct err ignored = ERR_INIT;
    bool differs;

    on.think = MW_THINK_ON;
    off.think = MW_THINK_OFF;
    differs =
        conversation_render(r->a->conversation, &on, r->turn, &with, &ignored) != 0 ||
        conversation_render(r->a->conversation, &off, r->turn, &without, &ignored) != 0 ||
        with.n != without.n ||
        (with.n > 0 && memcmp(with.id, without.id, with.n * sizeof *with.id) != 0);
    ids_free(&with);
    ids_free(&without);
    return differs;
}

/* Find out whether the thinking that took all tokens can be switched off. */
static void judge_thinking(struct run *r)
{
    bool has_switch;

    if (r->receipt.empty != MW_EMPTY_THINKING && r->receipt.empty != MW_EMPTY_THOUGHT)
        return;
    has_switch = has_think_switch(r);
    r->receipt.has_no_switch = !has_switch;
    r->receipt.can_think_less = has_switch && r->a->rendering.think != MW_THINK_OFF;
}

/* Complete the turn.  Returns whether it stays: a new answer without text stays if it is one
 * that can go on. */
static bool end_turn(struct run *r, bool is_continued)
{
    struct turn *t = answer_turn(r);
    enum mw_done *done = &r->receipt.done;

    if (r->is_ready && *done == MW_DONE_STOP && !r->found_stop)
        say_end(r);
    else if (r->is_ready && *done != MW_DONE_STOP)
        keep_held(r);
    if (r->is_lost)
        *done = MW_DONE_ERROR;
    r->receipt.empty = why_empty(r, t);
    judge_thinking(r);
    r->receipt.has_stop_text = *done == MW_DONE_STOP && r->found_stop && r->is_own_stop;
    if (r->found_stop || r->parser.is_over)
        r->answer.n = 0; /* the last ids do not belong to the answer */
    ids_free(&t->ids);
    t->ids = r->answer;
    r->answer = (struct ids){ 0 };
    t->has_saved_ids = t->has_saved_ids && !r->is_ready;
    turn_trim(t);
    if (is_continued || t->len > 0 || t->thinking_len > 0 ||
        (t->ids.n > 0 && (*done == MW_DONE_LENGTH || *done == MW_DONE_CONTEXT)))
        return true;
    conversation_cut(r->a->conversation, r->turn);
    return false;
}

static void post_done(struct run *r, bool has_answer)
{
    struct mw_event done = { .kind = MW_EVENT_DONE,
                             .receipt = r->receipt,
                             .err = r->err,
                             .has_answer = has_answer };
    const struct turn *t = has_answer ? answer_turn(r) : NULL;

    if (t != NULL && r->receipt.done != MW_DONE_STOP) {
        done.cut = (struct mw_cut){ .ids = t->ids.id,
                                    .n_ids = t->ids.n <= MW_CUT_IDS ? t->ids.n : 0,
                                    .n_held = t->n_held,
                                    .holds_thinking = t->holds_thinking };
        done.is_thinking = t->holds_thinking;
        done.len = t->n_held;
        if (t->n_held > 0)
            done.text = t->holds_thinking ? t->thinking + t->thinking_len - t->n_held
                                          : t->text + t->len - t->n_held;
    }
    events_post(r->a->events, &done);
}

void answer_run(struct answerer *a, bool is_continued)
{
    struct telemetry *t = session_telemetry(a->session);
    struct run r = { .a = a,
                     .n_predict = a->n_predict,
                     .start_ns = clock_ns(),
                     .bytes_before = counter_get(&t->bytes_read),
                     .receipt = { .empty = MW_EMPTY_NOTHING, .is_continuation = is_continued },
                     .err = ERR_INIT };
    bool has_answer, started = start_turn(&r, is_continued, &r.err) == 0;

    telemetry_answer(t, 0);
    r.receipt.done = started ? begin_and_generate(&r, is_continued) : MW_DONE_ERROR;
    has_answer = started && end_turn(&r, is_continued);
    r.receipt.bytes_read = counter_get(&t->bytes_read) - r.bytes_before;
    r.receipt.n_pass = (uint32_t)counter_get(&t->passes);
    r.receipt.n_drafted = (uint32_t)counter_get(&t->drafted);
    r.receipt.n_accepted = (uint32_t)counter_get(&t->accepted);
    session_drop_drafts(a->session);
    counter_set(&t->state, r.receipt.done == MW_DONE_ERROR ? MW_ERROR : MW_IDLE);
    post_done(&r, has_answer);
    ids_free(&r.prompt);
    ids_free(&r.answer);
}
