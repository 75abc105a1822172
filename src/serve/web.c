/* See web.h. */
#include "config.h"

#include "src/serve/web.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "src/serve/access.h"
#include "src/serve/libmicrohttpd.h"
#include "src/serve/listen.h"
#include "src/serve/routes.h"

#define BLOCK_BYTES  4096
#define SECOND_NS    1000000000ull
#define ORIGIN_BYTES 320   /* a scheme, a name of 253 bytes and a port fit */
#define QUIET_SHARE  4     /* of the time of a request, after which a stream says that it waits */
#define FILL_BYTES   4096  /* of a stream that are written before some of them must be sent */
#define DROP_BYTES   ((uint64_t)64 << 20) /* no refused body of a longer Content-Length is read */

/* A connection, which may carry several requests. */
struct link {
    struct link *next, **at;
    struct web *h;
    int fd;
    struct exchange *exchange; /* the request that began; NULL: none */
    uint64_t since_ns; /* when it began to wait for a request, or for the rest of one */
    bool is_complete;  /* a request is: its answer is what takes time */
    bool was_served;   /* there was a request before */
};

/* One request, and its reply. */
struct exchange {
    struct web *h;
    struct link *link;
    struct MHD_Connection *connection;
    const struct route *route;
    char *path; /* owned */
    const char *method;
    char peer[LISTEN_TEXT];
    uint64_t client;
    char origin[ORIGIN_BYTES]; /* that may read the reply; "": none is named */
    uint64_t arrived_ns;
    unsigned status;
    bool is_asleep, is_gone;
    bool is_newer;  /* of HTTP/1.1, so its client passes over interim replies */
    bool is_probed; /* the client closed its side, and got bytes since then */
    uint64_t number;
    bool waits; /* for its page */
    char *body; /* [room] */
    size_t len, room;
    unsigned refused; /* with this status, because of its headers; 0: it is not */
    struct err why;
    bool is_too_long, is_without_room;
    struct job *job;
    /* a stream */
    struct reply reply;
    struct json out;
    size_t sent;
    uint32_t said_ahead; /* the place in the queue that was sent last */
    bool has_head, is_over;
    bool is_stream, is_due; /* is_due: it sent nothing for long */
    uint64_t sent_ns;       /* of a stream: when it sent bytes last, or was asked for */
    struct mw_lines *feed; /* of telemetry; NULL: it is another reply */
};

struct web {
    struct web_options o;
    const struct libmicrohttpd *lib;
    struct MHD_Daemon *daemon;
    struct link *links;
    size_t n_link, n_exchange, n_feed, n_waiting;
    uint64_t n_request, n_number; /* for ids, and of exchanges */
    uint64_t another_ns; /* when another client was seen to wait for a connection; 0: none is */
    bool is_stopping, needs_room;
};

static char nothing[1]; /* the library takes pointers to bytes that it does not change */

/* ---- memory ---- */

/* The part of so many bytes of a reply that the connection's own allowance does not cover. */
static uint64_t over(uint64_t bytes)
{
    return bytes > WEB_OUT_BYTES ? bytes - WEB_OUT_BYTES : 0;
}

/* Begin the reply to a job, which stops at the memory that there is. */
static void bound(const struct exchange *x, struct json *out)
{
    out->most = WEB_OUT_BYTES + (size_t)job_left(x->job);
}

/* ---- replies ---- */

static void add_headers(struct exchange *x, struct MHD_Response *response, const char *type)
{
    const struct libmicrohttpd *lib = x->h->lib;
    char position[16];

    lib->add_response_header(response, "Content-Type", type);
    lib->add_response_header(response, "Cache-Control", "no-store");
    if (x->origin[0] != '\0') {
        lib->add_response_header(response, "Access-Control-Allow-Origin", x->origin);
        lib->add_response_header(response, "Access-Control-Expose-Headers",
                                 "X-Queue-Position, Retry-After");
        lib->add_response_header(response, "Vary", "Origin");
    }
    if (x->job != NULL) {
        snprintf(position, sizeof position, "%u", x->job->position);
        lib->add_response_header(response, "X-Queue-Position", position);
    }
    if (x->status == 401)
        lib->add_response_header(response, "WWW-Authenticate", "Bearer");
    if (x->status == 503)
        lib->add_response_header(response, "Retry-After", "1");
    if (x->status == 405)
        lib->add_response_header(response, "Allow", route_methods(x->route));
    if (x->h->is_stopping)
        lib->add_response_header(response, "Connection", "close");
}

static enum MHD_Result queue(struct exchange *x, struct MHD_Response *response,
                             const char *type)
{
    enum MHD_Result rc;

    if (response == NULL)
        return MHD_NO;
    add_headers(x, response, type);
    x->link->is_complete = true; /* also without the rest of a body */
    rc = x->h->lib->queue_response(x->connection, x->status, response);
    x->h->lib->destroy_response(response);
    return rc;
}

/* Send the text of out, which is not empty.  Its memory goes to the library. */
static enum MHD_Result send_text(struct exchange *x, unsigned status, const char *type,
                                 struct json *out)
{
    struct MHD_Response *response = NULL;

    x->status = status;
    if (!out->failed)
        response = x->h->lib->create_response_from_buffer(out->used, out->buf,
                                                          MHD_RESPMEM_MUST_FREE);
    if (response == NULL)
        json_release(out);
    return queue(x, response, type);
}

static enum MHD_Result send_error(struct exchange *x, unsigned status, const struct err *e)
{
    struct json out;

    json_start(&out);
    reply_form_of(route_protocol(x->route, x->path))->error((int)status, e, &out);
    json_line(&out);
    return send_text(x, status, "application/json", &out);
}

static enum MHD_Result refuse(struct exchange *x, unsigned status, enum err_code code,
                              const char *what)
{
    struct err e = ERR_INIT;

    err_set(&e, code, "%s", what);
    return send_error(x, status, &e);
}

/* ---- sleeping ---- */

/*
 * When the library resumes a connection whose reply has not begun, it first reads from it, and
 * closes it if the client has closed its side.  Only connections with a timeout of their own are
 * all asked for their replies before that.
 */
static void ask_before_reading(struct exchange *x)
{
    unsigned other_s = x->h->o.request_s + 1;

    x->h->lib->set_connection_option(x->connection, MHD_CONNECTION_OPTION_TIMEOUT, other_s);
}

static void fall_asleep(struct exchange *x)
{
    if (x->is_asleep)
        return;
    if (x->status == 0)
        ask_before_reading(x);
    x->h->lib->suspend_connection(x->connection);
    x->is_asleep = true;
}

static void wake(struct exchange *x)
{
    if (x->is_asleep)
        x->h->lib->resume_connection(x->connection);
    x->is_asleep = false;
}

static bool sleeps(const struct link *l)
{
    return l->exchange != NULL && l->exchange->is_asleep;
}

/* Whether bytes have come that the library did not read yet. */
static bool has_unread(const struct link *l)
{
    int n = 0;

    return ioctl(l->fd, FIONREAD, &n) == 0 && n > 0;
}

/* The connection that gives way to another one at the limit: the one that has waited longest for a
 * request.  If none waits for one, the same for the rest of a request.  A new connection may have
 * sent its request already.  NULL: there is none. */
static struct link *to_give_way(const struct web *h)
{
    struct link *oldest = NULL;

    if (h->n_link < WEB_CONNECTIONS)
        return NULL;
    for (struct link *l = h->links; l != NULL; l = l->next) {
        bool is_idle = l->exchange == NULL;

        if (!l->is_complete && !(is_idle && has_unread(l)) &&
            (oldest == NULL || (is_idle && oldest->exchange != NULL) ||
             (is_idle == (oldest->exchange == NULL) && l->since_ns < oldest->since_ns)))
            oldest = l;
    }
    return oldest;
}

/* Returns the time until it does, if another client comes.  Once a connection was served, this time
 * begins when the other client came, at the latest.  Otherwise 64 clients that send requests all
 * the time would keep all others out. */
static uint64_t grace_left_ns(const struct link *l)
{
    bool waits = l->was_served && l->h->another_ns > 0 && l->h->another_ns < l->since_ns;
    uint64_t age = clock_ns() - (waits ? l->h->another_ns : l->since_ns);

    return age < WEB_GRACE_NS ? WEB_GRACE_NS - age : 0;
}

size_t web_watch(struct web *h, struct pollfd fds[WEB_FDS])
{
    const struct link *oldest = to_give_way(h);
    size_t n = 0;

    for (struct link *l = h->links; l != NULL && n < WEB_CONNECTIONS; l = l->next)
        if (!l->is_complete || sleeps(l))
            fds[n++] = (struct pollfd){ l->fd, sleeps(l) && l->exchange->is_probed ? 0 : POLLRDHUP,
                                        0 };
    if (oldest != NULL && grace_left_ns(oldest) == 0)
        fds[n++] = (struct pollfd){ h->o.listen_fd, POLLIN, 0 };
    return n;
}

/*
 * The client of a request that sleeps sends nothing more: it went away, or it closed only its own
 * side and waits for the reply.  Bytes show which of them.  One that is gone answers them with a
 * reset, which poll() reports as POLLERR.  Returns false if none can be sent.
 */
static bool probe(struct exchange *x)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (x->status == 0) /* no reply has begun, so the library has nothing to send */
        return x->is_newer && send(x->link->fd, interim, sizeof interim - 1,
                                   MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof interim - 1;
    if (x->feed != NULL)
        json_print(&x->out, ": waiting\n\n");
    x->is_due = true;
    wake(x);
    return true;
}

/*
 * The other side has closed l, at least for sending.  A request whose rest was not sent can never
 * be complete, but the library overlooks that if the end came together with the bytes before it.
 */
static void close_half(struct link *l, short events)
{
    bool may_wait = (events & (POLLERR | POLLHUP)) == 0;
    int unread = 0;

    if (sleeps(l)) {
        l->exchange->is_probed = may_wait && probe(l->exchange);
        if (!l->exchange->is_probed) {
            l->exchange->is_gone = true;
            wake(l->exchange);
        }
    } else if (!l->is_complete && ioctl(l->fd, FIONREAD, &unread) == 0 && unread == 0) {
        shutdown(l->fd, SHUT_RDWR);
    }
}

void web_hung_up(struct web *h, const struct pollfd *fds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (struct link *l = h->links; l != NULL && fds[i].revents != 0; l = l->next)
            if (l->fd == fds[i].fd)
                close_half(l, fds[i].revents);
}

/* ---- streams ---- */

static void say_place(struct exchange *x)
{
    if (x->job->state != JOB_WAITS || x->said_ahead == x->job->ahead ||
        !reply_form_of(x->job->request.form)->has_comments)
        return;
    x->said_ahead = x->job->ahead;
    json_print(&x->out, ": %u in the queue\n\n", x->said_ahead);
}

/* Programs between a client and the server, and some clients, give up a connection without a byte.
 * A prompt may take minutes. */
static void say_waits(struct exchange *x)
{
    const struct reply_form *form = reply_form_of(x->job->request.form);
    const struct piece empty = { .kind = PIECE_TEXT, .text = nothing };

    if (form->has_comments)
        json_print(&x->out, ": waiting\n\n");
    else
        form->piece(&x->reply, &empty, &x->out);
}

/* Write what can be sent now. */
static void fill(struct exchange *x)
{
    const struct reply_form *form = reply_form_of(x->job->request.form);
    struct piece part;

    bound(x, &x->out);
    say_place(x);
    if (!x->has_head && (x->job->has_begun || x->job->state == JOB_ENDED)) {
        x->has_head = true;
        if (x->job->has_begun)
            form->begin(&x->reply, &x->out);
    }
    while (x->out.used < FILL_BYTES && job_next(x->job, &part)) {
        form->piece(&x->reply, &part, &x->out);
        job_drop(x->job, &part);
    }
    if (x->job->state == JOB_ENDED && x->job->first == NULL && !x->is_over) {
        x->is_over = true;
        form->end(&x->reply, &x->out);
    }
    if (x->is_due && x->out.used == 0)
        say_waits(x);
    x->is_due = false;
    x->out.failed = x->out.failed || !job_hold(x->job, over(x->out.size));
}

/* All is sent: free the memory of a stream until there is more. */
static void drop_sent(struct exchange *x)
{
    json_release(&x->out);
    x->sent = 0;
    job_hold(x->job, 0);
}

static ssize_t read_stream(void *cls, uint64_t pos, char *buf, size_t max)
{
    struct exchange *x = cls;
    size_t n;

    (void)pos;
    if (x->is_gone || x->out.failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (x->sent == x->out.used) {
        x->sent = x->out.used = 0;
        if (x->job != NULL)
            fill(x);
        if (x->out.failed)
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    n = x->out.used - x->sent;
    if (n == 0 && x->is_over)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        if (x->job != NULL)
            drop_sent(x);
        fall_asleep(x);
        return 0;
    }
    n = n < max ? n : max;
    memcpy(buf, x->out.buf + x->sent, n);
    x->sent += n;
    x->sent_ns = clock_ns();
    return (ssize_t)n;
}

static enum MHD_Result send_stream(struct exchange *x)
{
    struct MHD_Response *response = x->h->lib->create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_stream, x, NULL);

    x->status = 200;
    x->reply = (struct reply){ .job = x->job, .model = x->h->o.model };
    return queue(x, response, reply_form_of(x->job->request.form)->stream_type);
}

/* ---- telemetry ---- */

static enum MHD_Result send_feed(struct exchange *x)
{
    if (x->h->n_feed == WEB_FEEDS)
        return refuse(x, 503, ERR_MEMORY, "too many clients read telemetry");
    x->feed = calloc(1, sizeof *x->feed);
    if (x->feed == NULL)
        return refuse(x, 503, ERR_MEMORY, "there is no memory for another client");
    x->h->n_feed++;
    x->feed->n_token = UINT64_MAX; /* that of its first sample */
    x->status = 200;
    return queue(x,
                 x->h->lib->create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
                                                          read_stream, x, NULL),
                 "text/event-stream");
}

size_t web_feeds(const struct web *h)
{
    return h->n_feed;
}

/* Append lines as events. */
static void add_events(struct exchange *x, const struct json *lines)
{
    const char *at = lines->buf, *end = at + lines->used;

    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));

        json_raw(&x->out, "data: ", 6);
        json_raw(&x->out, at, (size_t)(newline + 1 - at));
        json_raw(&x->out, "\n", 1);
        at = newline + 1;
    }
}

static void feed(struct exchange *x, const struct mw_sample *s)
{
    struct json lines;

    if (x->feed->n_token == UINT64_MAX)
        mw_lines_start(x->feed, s);
    if (x->sent > 0)
        memmove(x->out.buf, x->out.buf + x->sent, x->out.used - x->sent);
    x->out.used -= x->sent;
    x->sent = 0;
    json_start(&lines);
    mw_lines_add(x->feed, s, false, &lines);
    if (lines.used > 0)
        add_events(x, &lines);
    x->out.failed = x->out.failed || lines.failed;
    json_release(&lines);
    if (x->out.used > WEB_FEED_MOST) {
        x->is_gone = true;
        shutdown(x->link->fd, SHUT_RDWR); /* it does not read, so nothing else would end it */
    }
    if (x->out.used > 0)
        wake(x);
}

void web_feed(struct web *h, const struct mw_sample *s)
{
    for (struct link *l = h->links; l != NULL; l = l->next)
        if (l->exchange != NULL && l->exchange->feed != NULL && !l->exchange->is_over &&
            !l->exchange->is_gone)
            feed(l->exchange, s);
}

/* ---- answers ---- */

static enum MHD_Result send_whole(struct exchange *x)
{
    struct reply reply = { .job = x->job, .model = x->h->o.model };
    struct json out;

    json_start(&out);
    bound(x, &out);
    reply_form_of(x->job->request.form)->whole(&reply, &out);
    json_fit(&out);
    if (!job_replied(x->job, over(out.size)) || out.failed) {
        json_release(&out);
        job_hold(x->job, 0);
        return refuse(x, 503, ERR_MEMORY,
                      "the reply takes too much memory; a stream takes less");
    }
    return send_text(x, 200, "application/json", &out);
}

/* Reply as far as the job allows; otherwise wait for its next change. */
static enum MHD_Result reply_job(struct exchange *x)
{
    struct job *j = x->job;

    if (x->is_gone)
        return MHD_NO;
    if (job_has_error(j) && (!j->request.stream || !j->has_begun))
        return send_error(x, (unsigned)reply_status(&j->err), &j->err);
    if (j->request.stream && (j->has_begun || j->position > 0 || x->is_due))
        return send_stream(x);
    if (j->state == JOB_ENDED)
        return send_whole(x);
    fall_asleep(x);
    return MHD_YES;
}

void web_changed(struct job *j)
{
    struct exchange *x = j->exchange;

    if (x != NULL && (j->request.stream || j->state == JOB_ENDED))
        wake(x);
}

/* Is the request for this model, and does it fit it? */
static int check_request(const struct web *h, const struct request *r, unsigned *status,
                         struct err *e)
{
    const struct reply_model *m = h->o.model;
    char ctx[24];

    if (r->model != NULL && !request_names_model(r->model, m->id) &&
        strcmp(r->model, m->info.name) != 0) {
        *status = 404;
        err_set(e, ERR_ARGUMENT, "there is no model \"%.100s\"; this server has \"%.150s\"",
                r->model, m->id);
        return err_at(e, NULL, ERR_NO_OFFSET, "model");
    }
    if (r->n_ctx > m->n_ctx) {
        *status = 400;
        err_set(e, ERR_ARGUMENT, "the context of this server is %s tokens",
                numbers_count(ctx, sizeof ctx, m->n_ctx));
        return err_at(e, NULL, ERR_NO_OFFSET, "num_ctx");
    }
    return 0;
}

static void free_body(struct exchange *x)
{
    free(x->body);
    room_give(&x->h->o.rooms->requests, x->room);
    x->body = NULL;
    x->len = x->room = 0;
}

static const char *const id_starts[N_FORM] = {
    [FORM_CHAT] = "chatcmpl-",
    [FORM_COMPLETION] = "cmpl-",
    [FORM_MESSAGES] = "msg_",
    [FORM_OLLAMA_CHAT] = "",
    [FORM_OLLAMA_GENERATE] = "",
};

static int make_job(struct exchange *x, unsigned *status, struct err *e)
{
    struct web *h = x->h;
    struct request request;
    int rc = request_parse(&request, x->route->form, &h->o.defaults,
                           x->body != NULL ? x->body : "", x->len, e);

    free_body(x);
    *status = e->code == ERR_MEMORY ? 503 : 400;
    if (rc == 0)
        rc = check_request(h, &request, status, e);
    if (rc == 0) {
        *status = 503;
        x->job = job_new(&request, h->o.rooms, e);
    }
    request_free(&request);
    if (x->job == NULL)
        return -1;
    snprintf(x->job->id, sizeof x->job->id, "%s%llx%05llx", id_starts[x->route->form],
             (unsigned long long)x->job->created, (unsigned long long)++h->n_request);
    x->job->client = x->client;
    x->job->arrived_ns = x->arrived_ns;
    x->job->exchange = x;
    return 0;
}

static enum MHD_Result answer_form(struct exchange *x)
{
    struct err e = ERR_INIT;
    unsigned status;

    if (make_job(x, &status, &e) != 0)
        return send_error(x, status, &e);
    x->is_stream = x->job->request.stream;
    x->sent_ns = clock_ns();
    if (x->job->request.is_load) {
        job_end(x->job);
        x->job->has_begun = true;
        return x->is_stream ? send_stream(x) : send_whole(x);
    }
    if (!x->h->o.calls->take(x->h->o.ctx, x->job)) {
        job_end(x->job);
        return refuse(x, 503, ERR_MEMORY, "too many requests are waiting");
    }
    return reply_job(x);
}

static void set_waits(struct exchange *x, bool waits)
{
    bool is_over = x->waits && !waits;

    x->h->n_waiting = x->h->n_waiting + waits - x->waits;
    x->waits = waits;
    if (is_over) /* others may wait for this one */
        web_retry(x->h);
}

static enum MHD_Result answer_page(struct exchange *x)
{
    const char *name = route_name(x->route, x->path), *text = x->body != NULL ? x->body : "";
    size_t len = name != NULL ? strlen(name) : x->len;
    struct err e = ERR_INIT;
    struct json out;
    unsigned status;

    if (x->is_gone)
        return MHD_NO;
    if (x->route->page == PAGE_TELEMETRY)
        return send_feed(x);
    json_start(&out);
    status = x->h->o.calls->page(x->h->o.ctx, x->route->page, x->number,
                                 name != NULL ? name : text, len, &out, &e);
    set_waits(x, status == 0);
    if (status == 0) {
        json_release(&out);
        fall_asleep(x);
        return MHD_YES;
    }
    if (e.code != ERR_NONE) {
        json_release(&out);
        return send_error(x, status, &e);
    }
    return send_text(x, status,
                     x->route->page == PAGE_METRICS ? "text/plain; version=0.0.4"
                     : x->route->page == PAGE_ROOT  ? "text/plain; charset=utf-8"
                                                    : "application/json",
                     &out);
}

static const char *header(const struct exchange *x, const char *name)
{
    return x->h->lib->lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* Is the value of a header this word? */
static bool header_is(const char *value, const char *word)
{
    size_t n = access_value_length(value);

    return n == strlen(word) && strncasecmp(value, word, n) == 0;
}

/* Preflight of a page in a browser, which asks whether it may send the request.  Clients for
 * browsers have headers of their own, such as their version, so all that it names are allowed. */
static enum MHD_Result answer_options(struct exchange *x)
{
    struct MHD_Response *response =
        x->h->lib->create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);
    const char *asked = header(x, "Access-Control-Request-Headers");

    if (response != NULL) {
        x->h->lib->add_response_header(response, "Access-Control-Allow-Methods", "GET, POST");
        x->h->lib->add_response_header(response, "Access-Control-Allow-Headers",
                                       asked != NULL ? asked : "authorization, content-type");
    }
    x->status = 204;
    return queue(x, response, "text/plain");
}

static int say_too_long(const struct exchange *x, struct err *e)
{
    char most[32];

    return err_set(e, ERR_ARGUMENT,
                   "the body of the request is longer than %s bytes, which is the limit",
                   numbers_count(most, sizeof most, x->h->o.request_bytes));
}

/* The request is complete. */
static enum MHD_Result answer(struct exchange *x)
{
    x->link->is_complete = true;
    if (x->is_too_long) {
        say_too_long(x, &x->why);
        x->refused = 413;
    }
    if (x->refused != 0)
        return send_error(x, x->refused, &x->why);
    if (strcmp(x->method, "OPTIONS") == 0)
        return answer_options(x);
    if (x->is_without_room)
        return refuse(x, 503, ERR_MEMORY, "too many requests are held");
    if (x->h->is_stopping)
        return refuse(x, 503, ERR_CANCELLED, "the server is stopping");
    return x->route->is_page ? answer_page(x) : answer_form(x);
}

/* ---- requests ---- */

/* Make space for a body of len bytes. */
static void make_room(struct exchange *x, size_t len)
{
    size_t most = x->h->o.request_bytes, room = len > 2 * x->room ? len : 2 * x->room;
    char *more;

    if (len > most) {
        x->is_too_long = true;
        return;
    }
    if (len <= x->room)
        return;
    room = room < most ? room : most;
    if (!room_take(&x->h->o.rooms->requests, room - x->room)) {
        x->is_without_room = true;
        return;
    }
    more = realloc(x->body, room);
    if (more == NULL) {
        room_give(&x->h->o.rooms->requests, room - x->room);
        x->is_without_room = true;
        return;
    }
    x->body = more;
    x->room = room;
}

/* Take a part of the body.  One that is refused is read and dropped: most clients read the reply
 * only when all is sent, and closing the connection before that loses it.  The time of the request
 * bounds that. */
static enum MHD_Result take_body(struct exchange *x, const char *data, size_t len)
{
    if (x->refused == 0 && !x->is_too_long && !x->is_without_room)
        make_room(x, x->len + len);
    if (x->refused != 0 || x->is_too_long || x->is_without_room) {
        free_body(x);
        return MHD_YES;
    }
    memcpy(x->body + x->len, data, len);
    x->len += len;
    return MHD_YES;
}

static unsigned refuse_path(struct err *e)
{
    char paths[160];

    route_list(paths, sizeof paths);
    err_set(e, ERR_ARGUMENT, "there is no such path; those that answer are %s", paths);
    return 404;
}

/* May a page of this origin read the replies?  With keys any may, also why its key is refused. */
static void allow_origin(struct exchange *x, const char *origin, unsigned refused)
{
    if (refused != 403 && origin != NULL && access_value_length(origin) < sizeof x->origin)
        memcpy(x->origin, origin, access_value_length(origin));
}

/* The library reads the body up to the end of the connection if it does not know how the body
 * is sent, so the reply would never come. */
static bool has_endless_body(const struct exchange *x)
{
    const char *transfer = header(x, "Transfer-Encoding");

    return transfer != NULL && strcasecmp(transfer, "chunked") != 0;
}

/* Check the headers of a request.  Returns the status that refuses it with *e, or 0. */
static unsigned check_headers(struct exchange *x, struct err *e)
{
    const struct web_options *o = &x->h->o;
    struct access a = { .host = header(x, "Host"),
                        .origin = header(x, "Origin"),
                        .authorization = header(x, "Authorization"),
                        .key = header(x, "x-api-key") };
    const char *length = header(x, "Content-Length");
    const char *encoding = header(x, "Content-Encoding");
    bool is_preflight = strcmp(x->method, "OPTIONS") == 0, is_other_method;
    unsigned status;

    x->route = route_find(x->path, x->method, &is_other_method);
    status = access_check(&a, o->is_loopback, o->keys, x->route != NULL && x->route->is_open,
                          is_preflight, e);
    allow_origin(x, a.origin, status);
    if (status != 0 || is_preflight)
        return status;
    if (x->route == NULL)
        return refuse_path(e);
    if (is_other_method) {
        err_set(e, ERR_ARGUMENT, "this path has another method");
        return 405;
    }
    if (length != NULL && strtoull(length, NULL, 10) > o->request_bytes) {
        say_too_long(x, e);
        return 413;
    }
    if (has_endless_body(x)) {
        err_set(e, ERR_ARGUMENT, "the body has another Transfer-Encoding than \"chunked\", which "
                                 "is not supported");
        return 501;
    }
    if (encoding != NULL && !header_is(encoding, "identity")) {
        err_set(e, ERR_ARGUMENT, "the body is compressed (Content-Encoding), which is not "
                                 "supported; send it as it is");
        return 415;
    }
    return 0;
}

/* Is a refused request answered before its body comes?  Its client waits for a reply before it
 * sends the body, or the body is too long to be dropped, or has no end. */
static bool is_answered_early(const struct exchange *x)
{
    const char *length = header(x, "Content-Length"), *expect = header(x, "Expect");

    return has_endless_body(x) ||
           (x->is_newer && expect != NULL && header_is(expect, "100-continue")) ||
           (length != NULL && strtoull(length, NULL, 10) > DROP_BYTES);
}

/* The library may write what is asked for next to the same place, so a pointer to it is not kept.
 * Returns NULL if there was no memory for a link. */
static struct link *link_of(const struct web *h, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        h->lib->get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

static enum MHD_Result begin_exchange(struct web *h, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      void **con_cls)
{
    struct link *l = link_of(h, connection);
    const union MHD_ConnectionInfo *peer;
    struct exchange *x = l != NULL ? calloc(1, sizeof *x) : NULL;

    if (x == NULL)
        return MHD_NO;
    *con_cls = x;
    h->n_exchange++;
    x->h = h;
    x->number = ++h->n_number;
    x->link = l;
    x->link->exchange = x;
    x->connection = connection;
    x->arrived_ns = clock_ns();
    x->method = method;
    x->is_newer = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
    json_start(&x->out);
    x->why = (struct err)ERR_INIT;
    peer = h->lib->get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    listen_peer(peer != NULL ? peer->client_addr : NULL, x->peer, &x->client);
    x->path = route_path(url);
    if (x->path == NULL)
        return MHD_NO;
    x->refused = check_headers(x, &x->why);
    if (x->refused != 0 && is_answered_early(x))
        return send_error(x, x->refused, &x->why);
    return MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *len, void **con_cls)
{
    struct exchange *x = *con_cls;

    if (x == NULL)
        return begin_exchange(cls, connection, url, method, version, con_cls);
    if (*len > 0) {
        size_t n = *len;

        *len = 0;
        return take_body(x, data, n);
    }
    return x->job != NULL ? reply_job(x) : answer(x);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                         enum MHD_RequestTerminationCode how)
{
    struct web *h = cls;
    struct exchange *x = *con_cls;
    struct web_record record;

    (void)connection;
    if (x == NULL)
        return;
    record = (struct web_record){ .peer = x->peer,
                                   .method = x->method,
                                   .path = x->path != NULL ? x->path : "",
                                   .status = x->status,
                                   .is_cut = how != MHD_REQUEST_TERMINATED_COMPLETED_OK,
                                   .ns = clock_ns() - x->arrived_ns,
                                   .job = x->job };
    h->o.calls->record(h->o.ctx, &record);
    if (x->job != NULL) {
        x->job->exchange = NULL;
        h->o.calls->gone(h->o.ctx, x->job);
    }
    set_waits(x, false);
    h->n_feed -= x->feed != NULL;
    free(x->feed);
    x->link->exchange = NULL;
    x->link->is_complete = false;
    x->link->was_served = true;
    x->link->since_ns = clock_ns();
    free_body(x);
    json_release(&x->out);
    free(x->path);
    free(x);
    *con_cls = NULL;
    h->n_exchange--;
}

/* ---- connections ---- */

static void open_link(struct web *h, struct MHD_Connection *connection, void **context)
{
    const union MHD_ConnectionInfo *info =
        h->lib->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct link *l = info != NULL ? calloc(1, sizeof *l) : NULL;

    *context = l;
    if (l == NULL)
        return;
    *l = (struct link){ .next = h->links, .at = &h->links, .h = h, .fd = info->connect_fd,
                        .since_ns = clock_ns() };
    if (l->next != NULL)
        l->next->at = &l->next;
    h->links = l;
    h->n_link++;
    h->another_ns = 0; /* the next one has waited for less */
}

static void close_link(struct link *l)
{
    *l->at = l->next;
    if (l->next != NULL)
        l->next->at = l->at;
    l->h->n_link--;
    free(l);
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        open_link(cls, connection, context);
    else if (*context != NULL)
        close_link(*context);
}

/* When a client began to take something that others need: a connection, until its request is
 * complete, or memory, until it has read an answer that is over.  0: it does not. */
static uint64_t holds_since_ns(const struct link *l)
{
    const struct job *j = l->exchange != NULL ? l->exchange->job : NULL;

    if (!l->is_complete)
        return l->since_ns;
    return l->h->needs_room && j != NULL && j->state == JOB_ENDED &&
                   (j->n_held > 0 || j->n_kept > 0)
               ? j->ended_ns
               : 0;
}

/* Cut clients that did so for the time of a request.  Returns the milliseconds until the next one
 * is due; -1: none is. */
static int end_late(const struct web *h, bool is_only_asked)
{
    uint64_t now = clock_ns(), time_ns = h->o.request_s * SECOND_NS, next = UINT64_MAX;

    for (const struct link *l = h->links; l != NULL; l = l->next) {
        uint64_t since = holds_since_ns(l);

        if (since == 0)
            continue;
        if (now - since < time_ns)
            next = since + time_ns - now < next ? since + time_ns - now : next;
        else if (is_only_asked)
            next = 0;
        else
            shutdown(l->fd, SHUT_RDWR);
    }
    return next == UINT64_MAX ? -1 : (int)(next / 1000000 + 1);
}

/* Let streams that sent nothing for long say that they wait.  Returns the milliseconds until the
 * next one is due; -1: none is. */
static int wake_quiet(const struct web *h, bool is_only_asked)
{
    uint64_t now = clock_ns(), time_ns = h->o.request_s * SECOND_NS / QUIET_SHARE;
    uint64_t next = UINT64_MAX;

    for (const struct link *l = h->links; l != NULL; l = l->next) {
        uint64_t age = sleeps(l) ? now - l->exchange->sent_ns : 0;

        if (!sleeps(l) || !l->exchange->is_stream)
            continue;
        if (age < time_ns) {
            next = time_ns - age < next ? time_ns - age : next;
        } else if (is_only_asked) {
            next = 0;
        } else {
            l->exchange->is_due = true;
            l->exchange->sent_ns = now; /* also if there is no memory to say it */
            wake(l->exchange);
        }
    }
    return next == UINT64_MAX ? -1 : (int)(next / 1000000 + 1);
}

int web_fd(const struct web *h)
{
    const union MHD_DaemonInfo *info =
        h->lib->get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    return info != NULL ? info->epoll_fd : -1;
}

/* The smaller of two times; -1 is none. */
static int sooner(int a, int b)
{
    return a >= 0 && (b < 0 || a < b) ? a : b;
}

int web_wait_ms(const struct web *h)
{
    int own = sooner(end_late(h, true), wake_quiet(h, true));
    const struct link *oldest = to_give_way(h);
    MHD_UNSIGNED_LONG_LONG ms;

    if (oldest != NULL && grace_left_ns(oldest) > 0)
        own = sooner(own, (int)(grace_left_ns(oldest) / 1000000 + 1));
    if (h->lib->get_timeout(h->daemon, &ms) != MHD_YES)
        return own;
    return sooner(own, (int)(ms < 60000 ? ms : 60000));
}

static void run(struct web *h)
{
    size_t before = h->n_link;

    h->lib->run(h->daemon);
    /* At its limit of connections the library listens again only in the run after a close. */
    if (h->n_link < before)
        h->lib->run(h->daemon);
}

/* Another client waits until one of the connections ends. */
static bool has_another(struct web *h)
{
    struct pollfd p = { h->o.listen_fd, POLLIN, 0 };
    bool waits = poll(&p, 1, 0) > 0;

    if (!waits)
        h->another_ns = 0;
    else if (h->another_ns == 0)
        h->another_ns = clock_ns();
    return waits;
}

void web_run(struct web *h)
{
    const struct link *oldest;

    end_late(h, false);
    wake_quiet(h, false);
    run(h);
    oldest = to_give_way(h);
    if (oldest != NULL && has_another(h) && grace_left_ns(oldest) == 0) {
        shutdown(oldest->fd, SHUT_RDWR);
        run(h);
    }
}

void web_stop(struct web *h)
{
    h->is_stopping = true;
    for (struct link *l = h->links; l != NULL; l = l->next)
        if (l->exchange != NULL && l->exchange->feed != NULL) {
            l->exchange->is_over = true;
            wake(l->exchange);
        }
    web_retry(h);
}

void web_retry(struct web *h)
{
    for (struct link *l = h->links; l != NULL; l = l->next)
        if (l->exchange != NULL && l->exchange->waits)
            wake(l->exchange);
}

size_t web_waiting(const struct web *h)
{
    return h->n_waiting;
}

bool web_waits(const struct web *h, uint64_t number)
{
    for (const struct link *l = h->links; l != NULL; l = l->next)
        if (l->exchange != NULL && l->exchange->waits && l->exchange->number == number)
            return true;
    return false;
}

void web_need_room(struct web *h, bool is_needed)
{
    h->needs_room = is_needed;
}

void web_set_request_bytes(struct web *h, size_t bytes)
{
    h->o.request_bytes = bytes;
}

size_t web_active(const struct web *h)
{
    return h->n_exchange;
}

size_t web_connections(const struct web *h)
{
    return h->n_link;
}

int web_open(struct web **out, const struct web_options *o, struct err *e)
{
    struct web *h = calloc(1, sizeof *h);

    *out = NULL;
    if (h == NULL) {
        close(o->listen_fd);
        return err_memory(e, "a server");
    }
    h->o = *o;
    h->lib = libmicrohttpd_load(e);
    if (h->lib == NULL) {
        close(o->listen_fd);
        free(h);
        return -1;
    }
    h->daemon = h->lib->start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, h,
        MHD_OPTION_LISTEN_SOCKET, o->listen_fd, MHD_OPTION_CONNECTION_LIMIT, WEB_CONNECTIONS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)WEB_HEADER_BYTES,
        MHD_OPTION_CONNECTION_TIMEOUT, o->request_s, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
    if (h->daemon == NULL) {
        err_sys(e, "cannot start the server");
        close(o->listen_fd);
        free(h);
        return -1;
    }
    *out = h;
    return 0;
}

void web_close(struct web *h)
{
    if (h == NULL)
        return;
    for (struct link *l = h->links; l != NULL; l = l->next)
        if (sleeps(l)) {
            l->exchange->is_gone = true;
            wake(l->exchange);
        }
    h->lib->run(h->daemon);
    h->lib->stop_daemon(h->daemon);
    free(h);
}
