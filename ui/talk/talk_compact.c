/*
 * /compact: the model summarises the oldest messages, and sees the summary in their place.
 *
 *     before   q1 a1 q2 a2 q3 a3
 *     asked    q1 a1 q2 a2 REQUEST             the engine only: a stop leaves everything as it was
 *     after    q1 a1 q2 a2 REQUEST summary q3 a3
 *              └─ not seen ─┘
 *
 * Request and summary are an exchange like any other, so every chat template takes them.  The
 * newest messages are written again after it.  Nothing is saved before the summary is complete.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/talk/carried.h"
#include "ui/talk/talk_internal.h"
#include "ui/talk/tokens.h"

#define LEAST_TOKENS 64 /* of a summary */
#define MOST_TOKENS  1024
#define REPLACED_BYTES 64
#define REQUEST_BYTES (REPLACED_BYTES + 64)
#define TURN_TOKENS  8   /* marks around a message */

/* The screen folds these before the request, and only the request is kept. */
#define INSTRUCTIONS                                                                           \
    "The conversation becomes too long.  It will go on with your summary instead of the "      \
    "messages before this one.  Keep what matters for that: goals, decisions, facts, names, "  \
    "numbers, code and open questions.  Leave out greetings and repetitions, and write "       \
    "nothing but the summary.\n\n"

/* "4 messages", "the summary before it and 4 messages" */
static char *replaced_text(char *buf, size_t n, const struct compact *c)
{
    snprintf(buf, n, "%s%zu message%s", c->has_earlier ? "the earlier summary and " : "",
             c->n_replaced, c->n_replaced == 1 ? "" : "s");
    return buf;
}

static char *request_text(char *buf, size_t n, const struct compact *c)
{
    char replaced[REPLACED_BYTES];

    snprintf(buf, n, "[/compact] Summarise our conversation so far: %s.",
             replaced_text(replaced, sizeof replaced, c));
    return buf;
}

/* ---- what can be summarised ---- */

/* Returns the tokens in the context after message n - 1; 0: not known. */
static uint64_t context_before(const struct talk *t, size_t n)
{
    const struct store *s = t->saving.store;
    struct err ignored = ERR_INIT;
    uint32_t item;

    if (n == 0 || store_item_of(s, (uint32_t)n - 1, &item, &ignored) != 0)
        return 0;
    return store_item(s, item)->context;
}

/* Tokens that a summary may have. */
static uint32_t most_tokens(const struct talk *t)
{
    uint32_t most = t->plan.n_ctx > 0 ? t->plan.n_ctx / 8 : MOST_TOKENS;

    return most < LEAST_TOKENS ? LEAST_TOKENS : most > MOST_TOKENS ? MOST_TOKENS : most;
}

uint32_t talk_answer_limit(const struct talk *t)
{
    return t->compact.is_on ? most_tokens(t) : talk_options(t)->n_predict;
}

/* Tokens of the request with its marks, at most. */
static uint32_t request_tokens(const struct talk *t)
{
    uint32_t n = 0;

    (void)tokens_of(t->engine, INSTRUCTIONS, sizeof INSTRUCTIONS - 1, &n);
    return n + REQUEST_BYTES + TURN_TOKENS;
}

/* Is the message the request for a summary? */
static bool is_summary(const struct talk *t, size_t message)
{
    const struct store *s = t->saving.store;
    struct err ignored = ERR_INIT;
    uint32_t item;

    return s != NULL && message < store_messages(s) &&
           store_item_of(s, (uint32_t)message, &item, &ignored) == 0 &&
           store_item(s, item)->is_summary;
}

/* Whether the model sees something in messages before n that a summary can replace. */
static bool has_something(const struct talk *t, size_t n)
{
    size_t first = t->ledger.n_dropped;

    return n > first + (is_summary(t, first) ? 2 : 0);
}

/* Returns the number of messages to replace, so that n_keep exchanges stay, or more if a summary
 * of the rest would not fit.  0: there are none. */
static size_t messages_to_replace(const struct talk *t, uint64_t n_keep)
{
    uint32_t room = request_tokens(t) + most_tokens(t);

    for (;; n_keep++) {
        long user = n_keep == 0 ? (long)t->ledger.n : ledger_user(&t->ledger, n_keep);
        bool is_question = n_keep == 0 && ledger_ends_with_user(&t->ledger);
        uint64_t before;

        if (user <= 0 || !has_something(t, (size_t)user))
            return 0;
        before = context_before(t, (size_t)user);
        if (!is_question && (t->plan.n_ctx == 0 || before + room <= t->plan.n_ctx))
            return (size_t)user;
    }
}

bool talk_can_compact(const struct talk *t)
{
    return t->saving.store != NULL && t->ledger.n_absent == 0 && messages_to_replace(t, 1) > 0;
}

/* Seconds until the summary of the first n messages is written, and the rest evaluated again; 0:
 * not predicted. */
static double summary_seconds(struct talk *t, size_t n)
{
    uint64_t before = context_before(t, n), again;
    struct mw_diagnosis now;
    struct mw_cost cost;

    talk_cost_again(t, talk_plan(t), &cost);
    if (!talk_diagnose_now(t, &now) || cost.n_again == 0 || cost.n_again < before)
        return 0;
    again = cost.n_again - before + most_tokens(t) + request_tokens(t);
    return most_tokens(t) / now.tps + cost.seconds * (double)again / cost.n_again;
}

static char *summary_price(struct talk *t, size_t n_replaced, char *buf, size_t n)
{
    double seconds = summary_seconds(t, n_replaced);
    char count[24], time[32], takes[48] = "";

    if (seconds > 0)
        snprintf(takes, sizeof takes, ", ~%s", numbers_time(time, sizeof time, seconds));
    snprintf(buf, n, "at most %s tokens%s", numbers_count(count, sizeof count, most_tokens(t)),
             takes);
    return buf;
}

char *talk_compact_price(struct talk *t, char *buf, size_t n)
{
    return summary_price(t, messages_to_replace(t, 1), buf, n);
}

bool talk_is_compacting(const struct talk *t)
{
    return t->compact.is_on;
}

/* ---- tokens, with the marks around messages ---- */

static uint32_t tokens_of_text(const struct talk *t, const char *text, size_t len)
{
    uint32_t n;

    /* Where tokens cannot be counted, bytes are enough to see which text is shorter. */
    return (tokens_of(t->engine, text, len, &n) ? n : (uint32_t)(len / 4)) + TURN_TOKENS;
}

static uint32_t tokens_of_messages(const struct talk *t, const struct carried *c)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < c->n; i++) {
        size_t len;
        const char *text = carried_text(c, i, &len);

        sum += tokens_of_text(t, text, len);
    }
    return sum;
}

/* The tokens of what the model sees; one message at a time is in memory. */
static uint32_t tokens_now(const struct talk *t)
{
    struct err ignored = ERR_INIT;
    uint32_t sum = 0;

    for (size_t i = t->ledger.n_dropped; i < t->ledger.n; i++) {
        struct carried one;

        if (carried_read(&one, t->saving.store, i, 1, &ignored) != 0)
            continue;
        sum += tokens_of_messages(t, &one);
        carried_free(&one);
    }
    return sum;
}

/* ---- asking ---- */

static void forget(struct talk *t)
{
    carried_free(&t->compact.tail);
    free(t->compact.text);
    t->compact = (struct compact){ 0 };
}

static void show_request(struct talk *t, size_t n, const char *asked)
{
    struct attached folded = { sizeof INSTRUCTIONS - 1, "instructions" };

    if (talk_has_screen(t))
        t->front.rewound(t->front.ctx, n);
    t->front.user(t->front.ctx, asked, strlen(asked), &folded, STORE_NO_ITEM);
}

/* Ask the engine for a summary of the first n messages. */
static int ask(struct talk *t, size_t n, const char *text, struct err *e)
{
    size_t n_tail = t->ledger.n - n;
    struct err ignored = ERR_INIT;

    if (carried_read(&t->compact.tail, t->saving.store, n, n_tail, e) != 0)
        return -1;
    if (t->engine->calls->stash(t->engine, n, t->ledger.n, e) != 0)
        return -1;
    if (t->engine->calls->send(t->engine, text, strlen(text), most_tokens(t), e) == 0)
        return 0;
    (void)t->engine->calls->unstash(t->engine, &ignored);
    return -1;
}

void talk_compact(struct talk *t, uint64_t n_keep, bool then_continue)
{
    char asked[sizeof INSTRUCTIONS + REQUEST_BYTES] = INSTRUCTIONS, price[80];
    struct err e = ERR_INIT;
    size_t n;

    if (t->state != TALK_READY || t->changes.n_pending > 0) {
        talk_error(t, "the model is busy; try again when it is ready");
    } else if (t->saving.store == NULL) {
        talk_error(t, "there was not enough memory to keep this chat, so it cannot be "
                      "summarised");
    } else if (t->ledger.n_absent > 0) {
        talk_error(t, "the oldest messages do not fit the context, so they cannot be "
                      "summarised; /ctx makes it longer");
    } else if ((n = messages_to_replace(t, n_keep)) == 0) {
        talk_error(t, "there is nothing to summarise but the last %s; /compact 0 summarises "
                      "all messages",
                   n_keep > 1 ? "exchanges" : "exchange");
    } else {
        t->compact.has_earlier = is_summary(t, t->ledger.n_dropped);
        t->compact.n_replaced = n - t->ledger.n_dropped - (t->compact.has_earlier ? 2 : 0);
        request_text(asked + sizeof INSTRUCTIONS - 1, REQUEST_BYTES, &t->compact);
        summary_price(t, n, price, sizeof price);
        if (ask(t, n, asked, &e) != 0) {
            talk_report(t, &e);
            forget(t);
            return;
        }
        t->compact.is_on = true;
        t->compact.then_continue = then_continue;
        t->compact.n_old = n;
        t->compact.n_dropped = t->ledger.n_dropped;
        t->compact.n_token = tokens_now(t);
        show_request(t, n, asked);
        messages_begin_answer(t, false);
        talk_notice(t, "the model writes a summary: %s", price);
    }
}

/* ---- the summary comes ---- */

static void begin(struct talk *t)
{
    if (!t->answer.has_text)
        t->front.begin(t->front.ctx, false);
    t->answer.has_text = true;
}

/* The engine limits the text: it has at most most_tokens(). */
static void append(struct compact *c, const char *text, size_t n)
{
    char *more = realloc(c->text, c->len + n + 1);

    c->has_failed |= more == NULL;
    if (more == NULL)
        return;
    memcpy(more + c->len, text, n);
    c->text = more;
    c->len += n;
    c->text[c->len] = '\0';
}

void compact_text(struct talk *t, const struct mw_event *ev)
{
    begin(t);
    if (!ev->is_thinking)
        append(&t->compact, ev->text, ev->len);
    t->front.piece(t->front.ctx, ev->text, ev->len, ev->is_thinking);
}

void compact_thought(struct talk *t)
{
    begin(t);
    t->compact.len = 0;
    t->front.thought(t->front.ctx);
}

/* ---- and is used ---- */

static void count_tail(struct talk *t, const struct carried *tail)
{
    for (size_t i = 0; i < tail->n; i++)
        ledger_add(&t->ledger, carried_is_user(tail, i));
}

static int write_all(struct talk *t, const struct mw_event *ev, struct err *e)
{
    struct compact *c = &t->compact;
    struct store *s = t->saving.store;
    char request[REQUEST_BYTES];
    int rc;

    request_text(request, sizeof request, c);
    store_begin_together(s);
    if (store_rewind(s, c->n_old, e) != 0 ||
        store_add_summary(s, request, strlen(request), NULL, (uint32_t)c->tail.n, e) != 0 ||
        store_piece(s, c->text, c->len, false, false, NULL, e) != 0 ||
        store_done(s, &ev->receipt, 0, NULL, e) != 0)
        rc = -1;
    else
        rc = carried_write(&c->tail, s, e);
    return store_end_together(s, e) != 0 ? -1 : rc;
}

/* The same when the summary is used. */
static uint32_t tokens_after(const struct talk *t)
{
    const struct compact *c = &t->compact;
    char request[REQUEST_BYTES];

    request_text(request, sizeof request, c);
    return tokens_of_text(t, request, strlen(request)) + tokens_of_text(t, c->text, c->len) +
           tokens_of_messages(t, &c->tail);
}

static void say_freed(struct talk *t, const struct mw_event *ev)
{
    uint32_t before = t->compact.n_token, after = tokens_after(t);
    char count[24], left[24], cut[48] = "", replaced[REPLACED_BYTES];

    if (ev->receipt.done == MW_DONE_LENGTH)
        snprintf(cut, sizeof cut, ", which was cut after %u tokens", ev->receipt.n_decoded);
    if (t->engine->calls->count == NULL) {
        talk_notice(t, "%s are replaced by a summary%s; /undo brings them back",
                    replaced_text(replaced, sizeof replaced, &t->compact), cut);
        return;
    }
    talk_notice(t,
                "%s are replaced by a summary%s: about %s tokens instead of %s; /undo brings them "
                "back",
                replaced_text(replaced, sizeof replaced, &t->compact), cut,
                numbers_count(left, sizeof left, after),
                numbers_count(count, sizeof count, before));
}

/* Give the conversation that is saved to the engine and to the screen. */
static void show_saved(struct talk *t)
{
    struct err e = ERR_INIT;

    if (saved_restore(t, &e) != 0)
        talk_report(t, &e);
    if (talk_has_screen(t))
        t->front.restored(t->front.ctx);
}

/* There is no summary: the engine has the messages with the tokens that the model has seen, which
 * the text of a saved chat may not give again. */
static void show_old(struct talk *t)
{
    struct err e = ERR_INIT;

    if (t->ledger.n_dropped != t->compact.n_dropped) { /* the request took their place */
        show_saved(t);
        return;
    }
    if (t->engine->calls->unstash(t->engine, &e) != 0)
        talk_report(t, &e);
    if (talk_has_screen(t))
        t->front.restored(t->front.ctx);
}

static void use_summary(struct talk *t, const struct mw_event *ev)
{
    struct compact *c = &t->compact;
    struct err e = ERR_INIT;
    bool is_written = write_all(t, ev, &e) == 0;

    ledger_cut(&t->ledger, c->n_old);
    ledger_add(&t->ledger, true);
    ledger_add(&t->ledger, false);
    count_tail(t, &c->tail);
    show_saved(t);
    saving_noted(&t->saving, is_written ? 0 : -1, &e); /* after the redraw, which would hide it */
    say_freed(t, ev);
}

static const char *why_not(const struct talk *t, const struct mw_event *ev)
{
    size_t n = strspn(t->compact.text != NULL ? t->compact.text : "", " \n\t");

    if (ev->receipt.done == MW_DONE_CANCELLED)
        return "stopped";
    if (ev->receipt.done == MW_DONE_CONTEXT)
        return "a summary does not fit the context; /ctx makes it longer";
    if (ev->receipt.done == MW_DONE_ERROR || t->compact.has_failed)
        return "there is no summary";
    if (t->compact.len <= n)
        return "the model wrote no summary; /think off may help";
    if (tokens_after(t) >= t->compact.n_token)
        return "the summary is as long as the messages that it would replace";
    return NULL;
}

void compact_done(struct talk *t, const struct mw_event *ev)
{
    const char *why = why_not(t, ev);
    bool then_continue = t->compact.then_continue && why == NULL;

    t->state = TALK_READY;
    t->front.done(t->front.ctx, &ev->receipt, t->answer.has_text, STORE_NO_ITEM);
    if (ev->receipt.done == MW_DONE_ERROR)
        talk_report(t, &ev->err);
    if (why == NULL) {
        use_summary(t, ev);
    } else {
        show_old(t);
        talk_notice(t, "%s; the conversation is as it was", why);
    }
    forget(t);
    if (then_continue)
        talk_continue(t);
    else
        talk_send_waiting(t);
}

void compact_failed(struct talk *t)
{
    if (!t->compact.is_on)
        return;
    show_old(t);
    forget(t);
}

/* ---- undo ---- */

/* Returns the request of a summary after which only messages of before came; or -1. */
static long last_summary(const struct talk *t)
{
    size_t n = t->ledger.n_dropped;
    struct err ignored = ERR_INIT;
    uint32_t item;

    if (!is_summary(t, n) || store_item_of(t->saving.store, (uint32_t)n, &item, &ignored) != 0)
        return -1;
    return t->ledger.n == n + 2 + store_item(t->saving.store, item)->n_carried ? (long)n : -1;
}

bool talk_can_undo_summary(const struct talk *t)
{
    return last_summary(t) >= 0;
}

void talk_undo_summary(struct talk *t)
{
    long n = last_summary(t);
    struct store *s = t->saving.store;
    struct carried tail = { 0 };
    struct err e = ERR_INIT;
    int rc;

    if (n < 0)
        return;
    if (carried_read(&tail, s, (size_t)n + 2, t->ledger.n - (size_t)n - 2, &e) != 0 ||
        t->engine->calls->rewind(t->engine, (size_t)n, &e) != 0) {
        talk_report(t, &e);
        carried_free(&tail);
        return;
    }
    store_begin_together(s);
    rc = store_rewind(s, (size_t)n, &e) != 0 ? -1 : carried_write(&tail, s, &e);
    rc = store_end_together(s, &e) != 0 ? -1 : rc;
    ledger_cut(&t->ledger, (size_t)n);
    count_tail(t, &tail);
    carried_free(&tail);
    show_saved(t);
    saving_noted(&t->saving, rc, &e);
    talk_notice(t, "the summary is taken back: the model sees the messages before it again");
    t->front.changed(t->front.ctx);
}
