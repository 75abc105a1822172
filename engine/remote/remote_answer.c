/*
 * One answer: POST the conversation, take the stream of pieces, post events.
 *
 * A server may send a whole reply instead of a stream, an error in the middle of a stream, or
 * cut the connection.  Text that came until then stays in the conversation.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/halves.h"
#include "engine/base/utf8.h"
#include "engine/base/visible.h"
#include "engine/http/sse.h"
#include "engine/remote/chunk.h"
#include "engine/remote/remote_internal.h"
#include "engine/remote/thinking.h"

#define ANSWER_MOST  ((size_t)16 << 20) /* bytes of text and thinking */
#define ERROR_MOST   ((size_t)64 << 10) /* bytes of a reply that is an error */
#define LINGER_NS    ((uint64_t)200 * 1000000) /* for the end of a stream after its last event */

struct answer {
    struct mw_remote *r;
    struct http_request request;
    struct sse sse;
    char *body; /* of a reply that is not a stream; n_body bytes and a NUL */
    size_t n_body;
    size_t turn; /* index of the turn that gets the text */
    char finish[32];
    uint32_t half; /* of a character whose second half may be in the next piece; 0: none */
    bool is_half_thinking;
    struct thinking thinking; /* that the server leaves in the text */
    bool is_over; /* the last event came */
    uint64_t over_ns;
    struct mw_receipt receipt;
    struct err err;
};

static struct turn *turn_of(const struct answer *a)
{
    return &a->r->conversation.turns[a->turn];
}

/* ---- pieces ---- */

static int add_run(void *ctx, const char *text, size_t len, bool is_thinking, struct err *e)
{
    struct answer *a = ctx;
    struct turn *t = turn_of(a);
    struct mw_remote *r = a->r;

    if (len > ANSWER_MOST - t->len - t->thinking_len)
        return err_set(e, ERR_FORMAT, "%s sends an answer of more than %zu bytes",
                       r->server.shown, ANSWER_MOST);
    if (turn_append(t, is_thinking, text, len, e) != 0)
        return -1;
    return events_text(r->events, text, len, is_thinking, e);
}

static int take_for_thinking(void *ctx, struct err *e)
{
    struct answer *a = ctx;

    if (turn_of(a)->len == 0)
        return 0;
    if (turn_take_for_thinking(turn_of(a), e) != 0)
        return -1;
    events_post(a->r->events, &(struct mw_event){ .kind = MW_EVENT_THOUGHT });
    return 0;
}

static int add_text(struct answer *a, const char *text, size_t len, bool is_thinking)
{
    if (len == 0)
        return 0;
    if (!is_thinking)
        return thinking_push(&a->thinking, text, len, &a->err);
    if (thinking_end(&a->thinking, &a->err) != 0)
        return -1;
    return add_run(a, text, len, true, &a->err);
}

/* No second half follows. */
static int end_half(struct answer *a)
{
    bool has_half = a->half != 0;

    a->half = 0;
    return has_half ? add_text(a, "\xef\xbf\xbd", 3, a->is_half_thinking) : 0;
}

static int take_text(struct answer *a, const char *text, size_t len, bool is_thinking, bool closes)
{
    struct mw_remote *r = a->r;
    uint64_t now = clock_ns();
    char *joined;
    int rc;

    pthread_mutex_lock(&r->lock);
    r->now.state = MW_DECODE;
    r->now.n_piece++;
    r->now.last_ns = now;
    if (r->now.first_ns == 0)
        r->now.first_ns = now;
    pthread_mutex_unlock(&r->lock);
    if ((a->is_half_thinking != is_thinking || closes) && end_half(a) != 0)
        return -1;
    if (closes)
        return thinking_close(&a->thinking, text, len, &a->err);
    a->is_half_thinking = is_thinking;
    joined = malloc(len + HALVES_MORE);
    if (joined == NULL)
        return err_memory(&a->err, "a piece of the answer");
    rc = add_text(a, joined, halves_join(&a->half, text, len, joined), is_thinking);
    free(joined);
    return rc;
}

static void take_counts(struct answer *a, const struct chunk *c)
{
    struct remote_progress *now = &a->r->now;

    pthread_mutex_lock(&a->r->lock);
    if (c->has_usage) {
        now->has_usage = true;
        now->has_cached = c->has_cached;
        now->n_prompt = c->n_prompt;
        now->n_cached = c->has_cached ? c->n_cached : 0;
        now->n_decoded = c->n_decoded;
        a->r->count.n_token = c->n_prompt + c->n_decoded;
    }
    if (!isnan(c->prompt_tps))
        now->prompt_tps = c->prompt_tps;
    if (!isnan(c->answer_tps))
        now->answer_tps = c->answer_tps;
    pthread_mutex_unlock(&a->r->lock);
    if (c->has_progress)
        events_post(a->r->events, &(struct mw_event){ .kind = MW_EVENT_PROGRESS,
                                                      .n = c->n_done,
                                                      .total = c->n_all });
}

/* Returns 0, or -1 with a->err. */
static int take_chunk(struct answer *a, const char *json, size_t n)
{
    struct chunk c;
    char text[300];
    int rc = chunk_read(&c, json, n, &a->err);

    if (rc != 0)
        err_at(&a->err, a->r->server.shown, ERR_NO_OFFSET, NULL);
    if (rc == 0 && c.error != NULL) {
        visible_line(text, sizeof text, c.error, strnlen(c.error, sizeof text));
        rc = err_set(&a->err, ERR_IO, "%s reports an error: %s", a->r->server.shown, text);
    }
    for (size_t i = 0; rc == 0 && i < c.n_text; i++)
        rc = take_text(a, c.text[i].text, c.text[i].len, c.text[i].is_thinking, c.text[i].closes);
    if (rc == 0) {
        take_counts(a, &c);
        if (c.finish != NULL)
            visible_line(a->finish, sizeof a->finish, c.finish, strnlen(c.finish, 100));
    }
    chunk_free(&c);
    return rc;
}

static int take_event(void *ctx, const char *data, size_t n, struct err *e)
{
    struct answer *a = ctx;

    (void)e;
    if (a->is_over)
        return 0;
    if (n == 6 && memcmp(data, "[DONE]", 6) == 0) {
        a->is_over = true;
        a->over_ns = clock_ns();
        return 0;
    }
    return take_chunk(a, data, n);
}

/* ---- the body of the reply ---- */

static bool is_stream(const struct answer *a)
{
    const struct http_reply *head = &a->request.reply;

    return head->status == 200 && strcmp(head->type, "text/event-stream") == 0;
}

static bool is_json(const struct answer *a)
{
    const struct http_reply *head = &a->request.reply;

    return head->status == 200 && strcmp(head->type, "application/json") == 0;
}

static size_t take_body(struct http_request *request, const char *data, size_t n)
{
    struct answer *a = request->ctx;
    size_t most = is_json(a) ? SERVER_TEXT : ERROR_MOST;

    if (is_stream(a)) {
        struct err e = ERR_INIT;

        if (sse_feed(&a->sse, data, n, take_event, a, &e) == 0)
            return n;
        if (a->err.code == ERR_NONE) { /* the stream itself is wrong */
            a->err = e;
            err_at(&a->err, a->r->server.shown, ERR_NO_OFFSET, NULL);
        }
        return HTTP_STOP;
    }
    if (n > most - a->n_body && is_json(a)) {
        err_set(&a->err, ERR_FORMAT, "%s: the reply has more than %zu bytes", a->r->server.shown,
                most);
        return HTTP_STOP;
    }
    if (n > most - a->n_body) /* of an error; its beginning is enough */
        return HTTP_STOP;
    if (!server_append(&a->body, &a->n_body, data, n)) {
        err_memory(&a->err, "the reply of a server");
        return HTTP_STOP;
    }
    return n;
}

/* ---- the end ---- */

/* The reply is complete, or the connection is closed. */
static void finish_reply(struct answer *a)
{
    const struct http_reply *head = &a->request.reply;
    struct err ignored = ERR_INIT;

    if (a->err.code != ERR_NONE)
        return;
    if (is_stream(a)) {
        if (!a->is_over)
            (void)sse_end(&a->sse, take_event, a, &ignored);
        if (a->err.code == ERR_NONE)
            (void)end_half(a);
        if (a->err.code != ERR_NONE || a->is_over || a->finish[0] != '\0')
            return;
        if (a->request.err.code != ERR_NONE)
            a->err = a->request.err;
        else
            err_set(&a->err, ERR_IO, "%s ended the stream before the answer was over",
                    a->r->server.shown);
        return;
    }
    if (a->request.err.code != ERR_NONE && !a->request.is_stopped)
        a->err = a->request.err;
    else if (is_json(a) && a->n_body > 0)
        (void)(take_chunk(a, a->body, a->n_body) == 0 && end_half(a) == 0);
    else
        server_refuse(&a->r->server, head, a->body, a->n_body, &a->err);
}

static bool must_stop(struct mw_remote *r)
{
    bool stops;

    pthread_mutex_lock(&r->lock);
    stops = r->is_cancelled || r->quits;
    pthread_mutex_unlock(&r->lock);
    return stops;
}

/* Send the request and take its reply.  False: it was stopped. */
static bool transfer(struct answer *a, const char *body, size_t len)
{
    struct mw_remote *r = a->r;
    struct err e = ERR_INIT;
    char url[HTTP_URL_MAX];
    int rc;

    server_url(r->server.api, "chat/completions", url);
    a->request = (struct http_request){ .url = url,
                                        .body = body,
                                        .body_len = len,
                                        .takes_errors = true,
                                        .is_patient = true,
                                        .sink = take_body,
                                        .ctx = a };
    rc = must_stop(r) ? err_set(&e, ERR_CANCELLED, "stopped")
                      : http_start(r->http, &a->request, &e);
    while (rc == 0 && !a->request.is_done &&
           (!a->is_over || clock_ns() - a->over_ns < LINGER_NS))
        rc = http_wait(r->http, a->is_over ? 50 : 1000, &e);
    if (rc == 0)
        finish_reply(a);
    else if (e.code != ERR_CANCELLED && a->err.code == ERR_NONE)
        a->err = e;
    http_end(&a->request);
    return e.code != ERR_CANCELLED;
}

static bool is_blank(const struct turn *t)
{
    uint32_t cp;

    for (size_t i = 0; i < t->len;) {
        i += utf8_decode(t->text + i, t->len - i, &cp);
        if (!utf8_is_white(cp) && !visible_hides(cp) && cp >= ' ' && (cp < 0x7f || cp > 0x9f))
            return false;
    }
    return true;
}

static void judge_empty(struct answer *a)
{
    const struct turn *t = turn_of(a);
    struct mw_receipt *p = &a->receipt;

    if (!is_blank(t))
        p->empty = MW_NOT_EMPTY;
    else if (t->thinking_len > 0)
        p->empty = p->done == MW_DONE_STOP ? MW_EMPTY_THOUGHT : MW_EMPTY_THINKING;
    else
        p->empty = t->len > 0 ? MW_EMPTY_BLANK : MW_EMPTY_NOTHING;
    p->can_think_less = t->thinking_len > 0 && a->r->settings.o.think != MW_THINK_OFF;
}

static void fill_receipt(struct answer *a)
{
    struct mw_receipt *p = &a->receipt;
    const struct remote_progress *now = &a->r->now; /* written by this thread only */
    uint64_t end = clock_ns();

    p->is_remote = true;
    p->is_in_pieces = !now->has_usage;
    p->n_decoded = now->has_usage ? now->n_decoded : now->n_piece;
    p->n_reused = now->n_cached;
    p->n_prompt = now->n_prompt - now->n_cached;
    p->n_prompt_done = p->n_prompt;
    p->first_ns = p->prefill_ns = (now->first_ns > 0 ? now->first_ns : end) - now->start_ns;
    p->decode_ns = now->last_ns - now->first_ns;
}

static enum mw_done done_of(const struct answer *a, bool was_stopped)
{
    if (was_stopped)
        return MW_DONE_CANCELLED;
    if (a->err.code != ERR_NONE)
        return MW_DONE_ERROR;
    return strcmp(a->finish, "length") == 0 ? MW_DONE_LENGTH : MW_DONE_STOP;
}

/* A reason that the protocol does not have for a chat without tools is shown. */
static void say_finish(const struct answer *a)
{
    static const char *const usual[] = { "", "stop", "length", "eos", "end_turn", "eos_token" };
    char text[120];

    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (strcmp(a->finish, usual[i]) == 0)
            return;
    snprintf(text, sizeof text, "the server ended the answer: %s", a->finish);
    events_post(a->r->events, &(struct mw_event){ .kind = MW_EVENT_NOTICE,
                                                  .text = text,
                                                  .len = strlen(text) });
}

/* Keep the turn, or remove one without text.  Returns whether it is kept. */
static bool end_turn(struct answer *a, bool resumes)
{
    struct conversation *c = &a->r->conversation;
    struct turn *t = turn_of(a);

    turn_trim(t);
    if (resumes || t->len > 0 || t->thinking_len > 0)
        return true;
    if (a->receipt.done == MW_DONE_STOP) /* the next one must differ from it */
        conversation_cut_answer(c);
    else
        conversation_cut(c, a->turn);
    return false;
}

static int begin_turn(struct answer *a, bool resumes)
{
    static const struct thinking_calls calls = { add_run, take_for_thinking };
    struct conversation *c = &a->r->conversation;

    a->turn = resumes ? c->n_turn - 1 : c->n_turn;
    if (!resumes && conversation_add(c, CHAT_ASSISTANT, "", 0, &a->err) == NULL)
        return -1;
    thinking_begin(&a->thinking, &calls, a, turn_of(a)->len > 0);
    if (resumes)
        return 0;
    if (a->turn > 0)
        turn_of(a)->attempt = c->turns[a->turn - 1].attempt;
    return 0;
}

/* Older messages that were too long to be read again are not sent. */
static void say_partial(struct mw_remote *r)
{
    struct conversation *c = &r->conversation;
    char text[120];

    if (!c->is_partial)
        return;
    c->is_partial = false;
    snprintf(text, sizeof text, "the oldest %zu messages are not sent, because they are too long",
             c->n_before);
    events_post(r->events, &(struct mw_event){ .kind = MW_EVENT_NOTICE,
                                               .text = text,
                                               .len = strlen(text),
                                               .n = c->n_before });
}

/* Before: the count of the conversation without this answer. */
static void end_progress(struct answer *a, struct remote_count before)
{
    struct mw_remote *r = a->r;
    const struct conversation *c = &r->conversation;

    pthread_mutex_lock(&r->lock);
    r->now.state = a->receipt.done == MW_DONE_ERROR ? MW_ERROR : MW_IDLE;
    if (r->now.has_usage)
        r->count.n_turn = c->n_before + c->n_turn;
    else if (r->now.n_piece == 0) /* nothing came: all that the server counted is still there */
        r->count = before;
    pthread_mutex_unlock(&r->lock);
}

void remote_answer(struct mw_remote *r, bool resumes, uint32_t n_predict)
{
    struct conversation *c = &r->conversation;
    uint32_t attempt = c->n_turn > 0 ? c->turns[c->n_turn - 1].attempt : 0;
    struct answer a = { .r = r, .err = ERR_INIT };
    struct remote_count before = r->count; /* written by this thread only */
    struct mw_event done = { .kind = MW_EVENT_DONE };
    struct json body;
    struct err ignored = ERR_INIT;
    bool is_whole = true, has_turn = false;

    a.receipt.is_continuation = resumes;
    a.receipt.attempt = attempt;
    say_partial(r);
    pthread_mutex_lock(&r->lock);
    r->now = (struct remote_progress){ .state = MW_PREFILL,
                                       .start_ns = clock_ns(),
                                       .prompt_tps = NAN,
                                       .answer_tps = NAN };
    /* Until the server counts them: the prompt is another one. */
    r->count = (struct remote_count){ 0 };
    pthread_mutex_unlock(&r->lock);
    events_post(r->events, &(struct mw_event){ .kind = MW_EVENT_STARTED });
    if (body_write(&body, r, resumes, n_predict, attempt, &a.err) == 0 &&
        begin_turn(&a, resumes) == 0) {
        has_turn = true;
        is_whole = transfer(&a, body.buf, body.used - 1);
        (void)thinking_end(&a.thinking, a.err.code == ERR_NONE ? &a.err : &ignored);
    }
    json_release(&body);
    sse_free(&a.sse);
    free(a.body);
    a.receipt.done = done_of(&a, !is_whole);
    fill_receipt(&a);
    if (has_turn) {
        judge_empty(&a);
        if (a.receipt.done == MW_DONE_STOP)
            say_finish(&a);
        done.has_answer = end_turn(&a, resumes);
    }
    end_progress(&a, before);
    done.receipt = a.receipt;
    done.err = a.err;
    events_post(r->events, &done);
}
