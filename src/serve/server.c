/* See server.h. */
#include "config.h"

#include "src/serve/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "src/base/signals.h"
#include "src/command.h"
#include "src/serve/access.h"
#include "src/serve/changes.h"
#include "src/serve/listen.h"
#include "src/serve/metrics.h"
#include "src/serve/pages.h"
#include "src/serve/queue.h"
#include "src/serve/show.h"
#include "src/serve/tool_calls.h"

#define MIB ((uint64_t)1 << 20)

/* libmicrohttpd with the libraries that it needs, as they are charged. */
#define LIBRARY_BYTES (10 * MIB)
/* JSON trees of the request that is read and of the one that is answered. */
#define TREE_BYTES (2 * 6 * MIB)
/* Room of all requests, and of all answers, in largest requests. */
#define ROOM_REQUESTS 2
#define ROOM_ANSWERS  2
/* Texts of a request or an answer in other forms: escaped, joined, as JSON. */
#define COPIES 3

#define SAVE_MS 3000 /* at the end, for a beginning to keep, */
#define STOP_MS 500  /* and for the engine */

/* A change of settings that the engine makes, or the last one. */
struct change {
    uint64_t number; /* of the request for it */
    bool is_running;
    struct mw_options was, engine;
    struct err err; /* why it was refused */
};

struct server {
    const struct server_options *o;
    struct mw_chat_options chat_options; /* of o, with the settings that clients changed */
    struct plan plan;                    /* of them */
    struct change change;
    struct web *web;
    struct reply_model model;
    char address[LISTEN_TEXT];
    struct mw_chat *chat;
    struct mw_watch *watch;
    struct queue queue;
    struct job *running;      /* NULL: none */
    struct tool_calls *calls; /* in its answer; NULL: it has no tools */
    struct rooms rooms;
    struct metrics metrics;
    struct show show;
    struct mw_sample sample;
    uint64_t next_feed_ns; /* of telemetry */
    int signals;
    bool is_ready, is_over;
    int stopped_by;   /* the first signal; 0: none */
    uint64_t stop_ns; /* then the time when all must have ended */
    struct err err; /* why it cannot go on */
};

/* A request of a context's text may have every character escaped. */
static size_t request_bytes(const struct mw_model *m, const struct mw_options *o)
{
    uint64_t bytes = 4 * mw_text_bytes(m, o) + 65536;

    return (size_t)(bytes < JSON_MAX_TREE ? bytes : JSON_MAX_TREE);
}

uint64_t server_bytes(const struct mw_model *m, const struct mw_options *o)
{
    return LIBRARY_BYTES + TREE_BYTES +
           (uint64_t)WEB_CONNECTIONS * (WEB_HEADER_BYTES + WEB_OUT_BYTES + 4 * LISTEN_BUFFER) +
           (uint64_t)WEB_FEEDS * WEB_FEED_BYTES +
           (ROOM_REQUESTS + ROOM_ANSWERS + COPIES) * (uint64_t)request_bytes(m, o) +
           mw_grammar_bytes(m) + mw_logprob_bytes(m);
}

/* bytes: of the largest request. */
static void set_rooms(struct rooms *r, uint64_t bytes)
{
    r->requests.most = ROOM_REQUESTS * bytes;
    r->answers.most = ROOM_ANSWERS * bytes;
    r->answer = bytes;
}

/* ---- jobs ---- */

static int add_text(void *ctx, const char *text, size_t len, struct err *e)
{
    return job_add(ctx, PIECE_TEXT, text, len, e);
}

static int add_call(void *ctx, const char *name, const char *arguments, size_t len,
                    struct err *e)
{
    return job_add_call(ctx, name, arguments, len, e);
}

static void drop_calls(struct server *s)
{
    tool_calls_free(s->calls);
    s->calls = NULL;
}

static void end_job(struct server *s, struct job *j)
{
    job_end(j);
    if (s->running == j) {
        s->running = NULL;
        drop_calls(s);
    }
    if (j->is_gone)
        job_free(j);
    else
        web_changed(j);
    web_retry(s->web);
}

static int ask(struct server *s, struct job *j, struct err *e)
{
    const struct request *r = &j->request;
    struct mw_chat_options o = s->chat_options;
    struct mw_request request = {
        .text = r->text, .len = r->text_len, .ids = r->ids, .n_ids = r->n_ids
    };
    struct tool_reading how;

    o.sampling = r->sampling;
    o.think = r->think;
    o.n_predict = r->n_predict;
    o.stop = (const char *const *)r->stop;
    o.grammar = r->grammar;
    o.n_logprob = r->n_logprob;
    o.reports_ids = r->has_ids;
    o.logit_bias = r->bias;
    o.n_logit_bias = r->n_bias;
    o.raw = !r->has_messages;
    if (r->has_messages)
        request = (struct mw_request){ .messages = r->messages.buf,
                                       .messages_len = r->messages.used,
                                       .tools = r->has_tools ? r->tools.buf : NULL,
                                       .tools_len = r->has_tools ? r->tools.used : 0 };
    how = (struct tool_reading){
        r->tools.buf, r->tools.used, r->calls, r->is_form_or_calls
    };
    if (r->has_tools && tool_calls_new(&s->calls, &how, add_text, add_call, j, e) != 0)
        return -1;
    return mw_chat_ask(s->chat, &request, &o, e);
}

/* Streams of waiting requests name their place. */
static void report_places(struct server *s)
{
    for (struct job *j = s->queue.first; j != NULL; j = j->next)
        web_changed(j);
}

/* A change of settings comes before the requests that wait. */
static bool can_start(const struct server *s)
{
    return s->is_ready && s->running == NULL && !s->change.is_running &&
           web_waiting(s->web) == 0 && s->queue.first != NULL;
}

static void start_job(struct server *s, struct job *j)
{
    j->started_ns = clock_ns();
    if (ask(s, j, &j->err) == 0) {
        j->state = JOB_RUNS;
        s->running = j;
        job_taken(j);
    } else {
        drop_calls(s);
        end_job(s, j);
    }
}

static void start_jobs(struct server *s)
{
    bool has_moved = false, has_room = true;

    while (can_start(s) && (has_room = job_begin(s->queue.first))) {
        has_moved = true;
        start_job(s, queue_take(&s->queue));
    }
    web_need_room(s->web, !has_room);
    if (has_moved)
        report_places(s);
}

static bool take_job(void *ctx, struct job *j)
{
    struct server *s = ctx;

    if (!queue_add(&s->queue, j))
        return false;
    start_jobs(s);
    if (j->state != JOB_WAITS)
        j->position = 0;
    return true;
}

/* The connection of a job is over, with or without the answer. */
static void job_gone(void *ctx, struct job *j)
{
    struct server *s = ctx;

    j->is_gone = true;
    if (j->state == JOB_RUNS) {
        mw_chat_cancel(s->chat); /* its last event, at the end of the pass, frees the job */
        drop_calls(s);
        job_forget(j);
        return;
    }
    if (j->state == JOB_WAITS) {
        queue_remove(&s->queue, j);
        report_places(s);
    }
    job_free(j);
}

/* ---- events of the engine ---- */

/* Returns the job of the answer that events are about, or NULL if nobody reads it. */
static struct job *answered(const struct server *s)
{
    struct job *j = s->running;

    return j != NULL && !j->is_gone && j->err.code == ERR_NONE ? j : NULL;
}

static int push_text(struct server *s, struct job *j, const struct mw_event *ev)
{
    return s->calls != NULL ? tool_calls_push(s->calls, ev->text, ev->len, &j->err)
                            : add_text(j, ev->text, ev->len, &j->err);
}

static void take_text(struct server *s, const struct mw_event *ev)
{
    struct job *j = answered(s);
    int rc;

    if (j == NULL || ev->len == 0)
        return;
    if (ev->is_thinking)
        rc = job_add(j, PIECE_THINKING, ev->text, ev->len, &j->err);
    else
        rc = push_text(s, j, ev);
    if (rc != 0)
        mw_chat_cancel(s->chat);
}

/* The text until here was thinking.  A stream may have sent it already, so there it stays text,
 * with the mark, no matter how much of it was sent.  The reply says of the mark what it is. */
static void take_thought(struct server *s, const struct mw_event *ev)
{
    struct job *j = answered(s);
    int rc;

    if (j == NULL)
        return;
    if (j->request.stream) {
        rc = s->calls == NULL && j->request.form == FORM_CHAT
                 ? job_add(j, PIECE_MARK, ev->text, ev->len, &j->err)
                 : push_text(s, j, ev);
    } else {
        rc = s->calls != NULL ? tool_calls_restart(s->calls, &j->err) : 0;
        job_was_thinking(j);
    }
    if (rc != 0)
        mw_chat_cancel(s->chat);
}

/* Numbers of the answer: probabilities, or ids. */
static void take_array(struct server *s, enum piece_kind kind, const struct mw_event *ev)
{
    struct job *j = answered(s);

    if (j != NULL && job_add(j, kind, ev->text, ev->len, &j->err) != 0)
        mw_chat_cancel(s->chat);
}

static void finish_job(struct server *s, const struct mw_event *ev)
{
    struct job *j = s->running;

    if (j == NULL)
        return;
    /* Nobody continues this answer: text that was held back belongs to it. */
    take_text(s, ev);
    if (s->calls != NULL && j->err.code == ERR_NONE)
        tool_calls_end(s->calls, &j->err);
    j->receipt = ev->receipt;
    if (j->err.code == ERR_NONE && ev->receipt.done == MW_DONE_CANCELLED)
        err_set(&j->err, ERR_CANCELLED, "the server is stopping");
    else if (j->err.code == ERR_NONE)
        j->err = ev->err;
    metrics_answer(&s->metrics, &ev->receipt);
    end_job(s, j);
}

/* The change of settings is in force, or was refused. */
static void end_change(struct server *s, const struct mw_event *ev)
{
    size_t bytes;

    s->change.is_running = false;
    s->change.err = ev->err;
    if (ev->kind == MW_EVENT_PLAN) {
        s->change.was = s->chat_options.engine;
        s->chat_options.engine = s->change.engine;
        s->plan = ev->plan;
        s->model.n_ctx = ev->plan.n_ctx;
        /* A shorter context leaves the room of requests as it is, which may be in use. */
        bytes = request_bytes(s->o->model, &s->change.engine);
        if (bytes > s->rooms.answer) {
            set_rooms(&s->rooms, bytes);
            web_set_request_bytes(s->web, bytes);
        }
    }
    web_retry(s->web);
}

/* A kept beginning was read, which the reply counts as cached; or it could not be. */
static void report_beginning(struct server *s, const struct mw_event *ev)
{
    char line[400], why[300];
    int n;

    if (ev->err.code == ERR_NONE)
        return;
    err_text(&ev->err, why, sizeof why);
    n = snprintf(line, sizeof line, "the kept beginning of a request is not used: %s. It is "
                                    "evaluated", why);
    show_line(&s->show, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static void take_event(struct server *s, const struct mw_event *ev)
{
    struct job *j = s->running;

    switch (ev->kind) {
    case MW_EVENT_READY:
        if (!s->is_ready && s->show.screen == NULL)
            fprintf(stderr, "memwall: serving %s on http://%s\n", s->model.id, s->address);
        s->is_ready = true;
        s->plan = ev->plan;
        break;
    case MW_EVENT_STARTED:
        if (j == NULL)
            break;
        j->has_begun = true;
        j->n_prompt = ev->total;
        j->n_cached = ev->total - ev->n;
        web_changed(j);
        break;
    case MW_EVENT_TEXT:
        take_text(s, ev);
        if (j != NULL)
            web_changed(j);
        break;
    case MW_EVENT_LOGPROBS: take_array(s, PIECE_LOGPROBS, ev); break;
    case MW_EVENT_PROMPT_IDS: take_array(s, PIECE_PROMPT_IDS, ev); break;
    case MW_EVENT_IDS: take_array(s, PIECE_IDS, ev); break;
    case MW_EVENT_THOUGHT:
        take_thought(s, ev);
        if (j != NULL)
            web_changed(j);
        break;
    case MW_EVENT_DONE: finish_job(s, ev); break;
    case MW_EVENT_NOTICE: show_line(&s->show, ev->text, ev->len); break;
    case MW_EVENT_PLAN:
        if (s->change.is_running)
            end_change(s, ev);
        break;
    case MW_EVENT_ERROR:
    case MW_EVENT_REFUSED:
        if (s->change.is_running) {
            end_change(s, ev);
            break;
        }
        s->err = ev->err;
        s->is_over = true;
        break;
    case MW_EVENT_KV_SHARED: report_beginning(s, ev); break;
    case MW_EVENT_PROGRESS:
    case MW_EVENT_KV_SAVED:
    case MW_EVENT_KV_LOADED:
    case MW_EVENT_SETTING: break;
    }
}

/* ---- pages ---- */

static void take_sample(struct server *s)
{
    mw_chat_sample(s->chat, &s->sample);
    mw_watch_complete(s->watch, &s->sample);
}

static struct changes_now changes_facts(struct server *s)
{
    take_sample(s);
    return (struct changes_now){ s->o->model, s->chat, &s->chat_options.engine, &s->plan,
                                 &s->sample };
}

static unsigned refuse(struct err *e, unsigned status, enum err_code code, const char *what)
{
    err_set(e, code, "%s", what);
    return status;
}

/* Let the engine make a change, between two requests. */
static unsigned make_change(struct server *s, uint64_t number, const struct changes_wish *w,
                            struct err *e)
{
    struct mw_chat_options o = s->chat_options;

    /* The reply to the last change needs its result. */
    if (s->running != NULL || s->change.is_running || web_waits(s->web, s->change.number))
        return 0;
    o.engine = w->engine;
    if (mw_chat_set(s->chat, &o, e) != 0)
        return 503;
    s->change = (struct change){ .number = number, .is_running = true, .engine = w->engine };
    return 0;
}

/* Change settings, or say what that would change. */
static unsigned change(struct server *s, uint64_t number, const char *body, size_t len,
                       struct json *out, struct err *e)
{
    struct changes_now now = changes_facts(s);
    struct changes_wish wish;
    uint64_t own;
    struct plan then;

    if (!s->o->allows_settings)
        return refuse(e, 403, ERR_UNSUPPORTED,
                      "the server does not allow changes of its settings; it was started without "
                      "--allow-settings");
    if (!s->is_ready)
        return refuse(e, 503, ERR_CANCELLED, "the model is being loaded");
    if (s->change.number == number) {
        *e = s->change.err;
        if (!s->change.is_running && e->code == ERR_NONE)
            changes_write_applied(&s->change.was, &now, out);
        return s->change.is_running ? 0 : e->code == ERR_NONE ? 200 : 400;
    }
    if (changes_read(&wish, now.engine, body, len, e) != 0)
        return 400;
    own = server_bytes(s->o->model, &wish.engine) + (s->o->ui != NULL ? UI_SCREEN_BYTES : 0);
    if (own > wish.engine.caller_bytes)
        wish.engine.caller_bytes = own;
    if (changes_plan(&wish, &now, &then, e) != 0) {
        err_at(e, NULL, ERR_NO_OFFSET, wish.first);
        return 400;
    }
    if (!wish.is_preview)
        return make_change(s, number, &wish, e);
    changes_write_proposal(&wish, &now, &then, out);
    return 200;
}

static unsigned page(void *ctx, enum web_page which, uint64_t number, const char *body,
                     size_t len, struct json *out, struct err *e)
{
    struct server *s = ctx;
    struct metrics_now now = { .waiting = s->queue.n,
                               .connections = (uint32_t)web_connections(s->web),
                               .is_running = s->running != NULL,
                               .held_bytes = s->rooms.requests.used + s->rooms.answers.used,
                               .held_most_bytes = s->rooms.requests.most + s->rooms.answers.most,
                               .sample = &s->sample };

    switch (which) {
    case PAGE_METRICS:
        take_sample(s);
        metrics_write(&s->metrics, &now, out);
        return 200;
    case PAGE_HEALTH: pages_health(s->is_ready, out); return s->is_ready ? 200 : 503;
    case PAGE_SETTINGS: {
        struct changes_now facts = changes_facts(s);

        changes_write_values(&facts, s->o->allows_settings, out);
        return 200;
    }
    case PAGE_CHANGES: return change(s, number, body, len, out, e);
    default: return pages_write(which, &s->model, body, len, out, e);
    }
}

/* ---- the log ---- */

/* Monitors and chats ask for these all the time. */
static bool is_routine(const struct web_record *r)
{
    return r->status == 200 && !r->is_cut &&
           (strcmp(r->path, "/metrics") == 0 || strcmp(r->path, "/health") == 0);
}

static void record(void *ctx, const struct web_record *r)
{
    struct server *s = ctx;
    char line[PAGES_LOG_BYTES];

    metrics_request(&s->metrics, r->status);
    if (!is_routine(r))
        show_line(&s->show, line, pages_log(r, line));
}

/* ---- the loop ---- */

/* The first signal ends the answer and refuses those that wait; a second one exits at once. */
static void stop(struct server *s, int signo)
{
    struct job *j;

    if (signo == 0)
        return;
    show_close(&s->show);
    if (s->stopped_by != 0)
        _exit(128 + signo);
    s->stopped_by = signo;
    s->stop_ns = clock_ns() + SIGNALS_STOP_S * 1000000000ull;
    web_stop(s->web);
    if (s->running != NULL)
        mw_chat_cancel(s->chat);
    while ((j = queue_take(&s->queue)) != NULL) {
        err_set(&j->err, ERR_CANCELLED, "the server is stopping");
        end_job(s, j);
    }
}

/* The smaller of the milliseconds (-1: any) and those until a moment. */
static int until(int ms, uint64_t at_ns)
{
    uint64_t now = clock_ns(), left = at_ns > now ? (at_ns - now) / 1000000 + 1 : 0;

    return ms >= 0 && (uint64_t)ms < left ? ms : (int)left;
}

static int wait_ms(const struct server *s)
{
    int ms = web_wait_ms(s->web);

    if (web_feeds(s->web) > 0)
        ms = until(ms, s->next_feed_ns);
    if (s->show.screen != NULL)
        ms = until(ms, s->show.next_ns);
    return s->stopped_by != 0 ? until(ms, s->stop_ns) : ms;
}

/* Send telemetry, while somebody reads it. */
static void send_telemetry(struct server *s)
{
    uint64_t now = clock_ns();

    if (web_feeds(s->web) == 0 || now < s->next_feed_ns)
        return;
    s->next_feed_ns = now + MW_LINES_NS;
    take_sample(s);
    web_feed(s->web, &s->sample);
}

/* Draw the screen, if there is one; is_touched: there are keys or signals for it. */
static void draw(struct server *s, bool is_touched)
{
    struct show_now now = { .model = s->model.id,
                            .address = s->address,
                            .is_ready = s->is_ready,
                            .connections = (uint32_t)web_connections(s->web),
                            .waiting = s->queue.n,
                            .running = s->running };
    bool is_due = show_is_due(&s->show);
    int status;

    if (s->show.screen == NULL || (!is_due && !is_touched))
        return;
    if (is_due)
        take_sample(s);
    status = show_draw(&s->show, &now, is_due ? &s->sample : NULL);
    if (status != 0)
        stop(s, status - 128);
}

/* All replies are sent, or there is no more time for them. */
static bool has_stopped(const struct server *s)
{
    return s->stopped_by != 0 && ((s->running == NULL && web_active(s->web) == 0) ||
                                  clock_ns() >= s->stop_ns);
}

enum { FD_SIGNALS, FD_CHAT, FD_WEB, FD_KEYS, FD_SCREEN, N_FD };

static int loop(struct server *s)
{
    struct pollfd fds[N_FD + WEB_FDS] = {
        [FD_SIGNALS] = { s->signals, POLLIN, 0 },
        [FD_CHAT] = { mw_chat_fd(s->chat), POLLIN, 0 },
        [FD_WEB] = { web_fd(s->web), POLLIN, 0 },
    };
    static struct mw_event ev; /* static: it is large */

    while (!s->is_over && !has_stopped(s)) {
        size_t n = web_watch(s->web, fds + N_FD);

        fds[FD_KEYS] = (struct pollfd){ s->show.fd[0], POLLIN, 0 };
        fds[FD_SCREEN] = (struct pollfd){ s->show.fd[1], POLLIN, 0 };
        if (poll(fds, N_FD + n, wait_ms(s)) < 0 && errno != EINTR) {
            err_sys(&s->err, "cannot wait for requests");
            break;
        }
        if ((fds[FD_SIGNALS].revents & POLLIN) != 0)
            stop(s, signals_take(s->signals));
        draw(s, fds[FD_KEYS].revents != 0 || fds[FD_SCREEN].revents != 0);
        web_hung_up(s->web, fds + N_FD, n);
        while (!s->is_over && mw_chat_next(s->chat, &ev))
            take_event(s, &ev);
        start_jobs(s);
        send_telemetry(s);
        web_run(s->web);
        start_jobs(s); /* a change that they waited for may be over */
    }
    show_close(&s->show);
    return s->stopped_by != 0 ? 128 + s->stopped_by : report_error(&s->err);
}

/* ---- start and end ---- */

int server_check(const char *address, const char *key_file, struct err *e)
{
    struct listen_address a;

    if (listen_parse(&a, address, e) != 0)
        return err_at(e, NULL, ERR_NO_OFFSET, "--listen");
    if (key_file == NULL && !a.is_loopback) {
        err_set(e, ERR_ARGUMENT,
                "without --api-key-file only this machine may use the server: 127.0.0.1:PORT");
        return err_at(e, NULL, ERR_NO_OFFSET, "--listen");
    }
    return 0;
}

static bool has_word(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

/* Read what the chat template says about the model.  Returns the form in which it calls tools.
 * Without a template that can be read there is none. */
static enum call_form read_template(struct server *s)
{
    static const char *const thinking[] = { "enable_thinking", "<think>", "<|channel|>" };
    struct err ignored = ERR_INIT;
    enum call_form form = CALLS_UNKNOWN;
    char *text = NULL;
    size_t len = 0;

    if (s->o->chat->format == NULL &&
        mw_model_template(s->o->model, &text, &len, &ignored) == 0 && text != NULL) {
        form = call_form_of(text, len);
        s->model.has_tools = has_word(text, len, "tools");
        for (size_t i = 0; i < sizeof thinking / sizeof thinking[0]; i++)
            s->model.thinks |= has_word(text, len, thinking[i]);
    }
    free(text);
    return form;
}

static int open_web(struct server *s, char **keys, struct err *e)
{
    static const struct web_calls calls = { take_job, job_gone, page, record };
    struct web_options o = { .keys = (const char *const *)keys,
                              .request_bytes = request_bytes(s->o->model, &s->o->chat->engine),
                              .request_s = s->o->request_s,
                              .defaults = { .sampling = s->o->chat->sampling,
                                            .think = s->o->chat->think,
                                            .n_predict = s->o->chat->n_predict,
                                            .system = s->o->chat->system,
                                            .stop = s->o->chat->stop,
                                            .calls = read_template(s) },
                              .model = &s->model,
                              .rooms = &s->rooms,
                              .calls = &calls,
                              .ctx = s };
    struct listen_address a;

    if (listen_parse(&a, s->o->address, e) != 0)
        return -1;
    o.is_loopback = a.is_loopback;
    o.listen_fd = listen_open(&a, e);
    if (o.listen_fd < 0)
        return -1;
    listen_text(&a, s->address); /* with the port that was free */
    set_rooms(&s->rooms, o.request_bytes);
    return web_open(&s->web, &o, e);
}

static int start(struct server *s, char **keys, struct err *e)
{
    mw_model_info(s->o->model, &s->model.info);
    snprintf(s->model.id, sizeof s->model.id, "%s", s->o->model_name);
    s->model.loaded = time(NULL);
    s->model.m = s->o->model;
    s->model.chat = s->o->chat;
    s->chat_options = *s->o->chat;
    if (mw_plan(s->o->model, &s->o->chat->engine, &s->plan, e) != 0 || open_web(s, keys, e) != 0)
        return -1;
    s->model.n_ctx = s->plan.n_ctx;
    /* Start watching before the engine: memory in use now belongs to the program. */
    if (mw_watch_new(&s->watch, s->o->model, e) != 0)
        return -1;
    if (mw_chat_open(&s->chat, s->o->model, s->o->chat, e) != 0)
        return -1;
    return s->o->kv_folder == NULL
               ? 0
               : mw_chat_share_kv(s->chat, s->o->kv_folder, s->o->kv_bytes, e);
}

int server_run(const struct server_options *o, bool *is_stuck)
{
    struct server *s = calloc(1, sizeof *s);
    char **keys = NULL;
    struct err e = ERR_INIT;
    sigset_t before;
    int code;

    *is_stuck = false;
    if (s == NULL) {
        err_memory(&e, "a server");
        return report_error(&e);
    }
    s->o = o;
    s->err = (struct err)ERR_INIT;
    /* The screen takes signals itself. */
    sigprocmask(SIG_SETMASK, NULL, &before);
    s->signals = o->ui == NULL ? signals_block(&before) : -1;
    if ((o->key_file != NULL && access_keys_read(&keys, o->key_file, &e) != 0) ||
        show_open(&s->show, o->quiet, o->ui, o->paths, &e) != 0 || start(s, keys, &e) != 0) {
        show_close(&s->show);
        code = report_error(&e);
    } else {
        code = loop(s);
    }
    /* Closing joins threads.  Restore signals first, so that Ctrl-C ends the program now. */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (s->running != NULL && s->chat != NULL)
        mw_chat_cancel(s->chat);
    web_close(s->web);
    if (s->chat != NULL)
        mw_chat_finish_kv(s->chat, SAVE_MS);
    if (s->chat != NULL)
        *is_stuck = !mw_chat_stop(s->chat, STOP_MS);
    mw_watch_free(s->watch);
    if (!*is_stuck)
        mw_chat_close(s->chat);
    tool_calls_free(s->calls);
    if (s->running != NULL)
        job_free(s->running); /* its connection is closed */
    if (s->signals >= 0)
        close(s->signals);
    access_keys_free(keys);
    free(s);
    return code;
}
