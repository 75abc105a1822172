#include "config.h"

#include "engine/remote/watcher.h"

#include <sys/eventfd.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/base/visible.h"
#include "engine/http/sse.h"
#include "engine/remote/server_metrics.h"
#include "engine/telemetry/fields.h"
#include "engine/telemetry/replay.h"

#define EVERY_MS    2000
#define FAILED_MS   10000 /* after a request without a reply */
#define LIVE_MS     5000  /* an older sample of the server no longer counts */
#define RATHER_MS   100   /* the longest wait for bytes of samples */
#define STACK_BYTES ((size_t)1 << 20)

struct watcher {
    const struct server *server;
    struct http *http;
    pthread_t thread;
    bool has_thread;
    int stop_fd;
    pthread_mutex_t lock;
    struct mw_server_figures figures;
    struct mw_sample *sample; /* of the server */
    uint64_t sample_ns;       /* when it came; 0: none did */

    /* The stream of samples, which only the thread uses. */
    bool has_live, is_begun;
    struct http_request live;
    struct sse sse;
    struct mw_replay *replay;
    struct mw_sample *taken;
};

/* ---- samples ---- */

/* The reasons belong to the recording, which may end before the sample. */
static void forget_reasons(struct mw_sample *s)
{
    for (size_t i = 0; i < n_sample_fields; i++) {
        struct mw_os_value v;

        if (sample_fields[i].type != FIELD_OS)
            continue;
        memcpy(&v, (char *)s + sample_fields[i].offset, sizeof v);
        if (v.why_not != NULL)
            v.why_not = "not known of the server";
        memcpy((char *)s + sample_fields[i].offset, &v, sizeof v);
    }
}

static int take_line(void *ctx, const char *data, size_t n, struct err *e)
{
    struct watcher *w = ctx;
    int got = mw_replay_line(w->replay, data, n, w->taken, e);

    if (got <= 0)
        return got;
    forget_reasons(w->taken);
    visible_line(w->taken->run.model, sizeof w->taken->run.model, w->taken->run.model,
                 strlen(w->taken->run.model));
    pthread_mutex_lock(&w->lock);
    *w->sample = *w->taken;
    w->sample_ns = clock_ns();
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static size_t take_bytes(struct http_request *r, const char *data, size_t n)
{
    struct watcher *w = r->ctx;
    struct err ignored = ERR_INIT;

    if (strcmp(r->reply.type, "text/event-stream") != 0)
        return HTTP_STOP;
    return sse_feed(&w->sse, data, n, take_line, w, &ignored) == 0 ? n : HTTP_STOP;
}

static void end_live(struct watcher *w)
{
    if (w->is_begun)
        http_end(&w->live);
    w->is_begun = false;
    sse_free(&w->sse);
    mw_replay_close(w->replay);
    w->replay = NULL;
}

static void begin_live(struct watcher *w, char url[HTTP_URL_MAX])
{
    struct err ignored = ERR_INIT;

    server_url(w->server->root, "memwall/telemetry", url);
    w->live = (struct http_request){ .url = url, .sink = take_bytes, .ctx = w };
    w->is_begun = mw_replay_begin(&w->replay, w->server->shown, &ignored) == 0 &&
                  http_start(w->http, &w->live, &ignored) == 0;
    if (!w->is_begun)
        end_live(w);
}

/* Take samples for at most ms milliseconds.  Returns false if they have ended. */
static bool take_live(struct watcher *w, int ms)
{
    uint64_t until = clock_ns() + (uint64_t)ms * 1000000;
    struct err ignored = ERR_INIT;

    while (!w->live.is_done && clock_ns() < until)
        if (http_wait(w->http, RATHER_MS, &ignored) != 0)
            return false;
    return !w->live.is_done;
}

/* Why there are no metrics with this status, in a few words. */
static void say_status(const struct server *s, const struct http_reply *head, char *buf,
                       size_t n)
{
    if (s->kind == MW_SERVER_LLAMA && (head->status == 501 || head->status == 404))
        snprintf(buf, n, "llama-server has them with --metrics");
    else if (head->status == 401 || head->status == 403)
        snprintf(buf, n, "/metrics needs another key");
    else if (head->status == 200)
        snprintf(buf, n, "/metrics has none that memwall knows");
    else
        snprintf(buf, n, "the server has no /metrics (status %ld)", head->status);
}

/* Ask once.  Returns the milliseconds until the next time; -1: there will be none. */
static int ask(struct watcher *w)
{
    struct mw_server_figures now = { 0 };
    struct server_reply reply;
    char url[HTTP_URL_MAX];
    struct err e = ERR_INIT;
    bool has_reply, has_any = false;

    server_url(w->server->root, "metrics", url);
    server_metrics_clear(&now);
    has_reply = server_ask(w->http, url, NULL, false, &reply, &e) == 0;
    now.is_asked = true;
    if (has_reply && reply.head.status == 200 && reply.text != NULL)
        has_any = server_metrics_read(&now, reply.text, reply.n);
    if (has_any)
        now.metrics_ns = clock_ns();
    else if (has_reply)
        say_status(w->server, &reply.head, now.no_metrics, sizeof now.no_metrics);
    else
        snprintf(now.no_metrics, sizeof now.no_metrics, "/metrics: %.140s", e.what);
    if (has_reply)
        free(reply.text);
    pthread_mutex_lock(&w->lock);
    w->figures = now;
    pthread_mutex_unlock(&w->lock);
    if (has_any)
        return EVERY_MS;
    /* A server that has none will not have them later; one that does not reply may. */
    return has_reply && reply.head.status < 500 ? -1 : FAILED_MS;
}

static void *watch(void *ctx)
{
    struct watcher *w = ctx;
    struct pollfd stop = { w->stop_fd, POLLIN, 0 };
    char url[HTTP_URL_MAX];
    int next = 0, ms = 0; /* until metrics are asked for, and until the next round */

    while (poll(&stop, 1, ms) <= 0) {
        if (w->has_live && !w->is_begun)
            begin_live(w, url);
        if (next >= 0)
            next = ask(w);
        ms = next < 0 && w->has_live ? EVERY_MS : next;
        if (!w->is_begun)
            continue;
        if (take_live(w, ms)) {
            ms = 0;
            continue;
        }
        /* A server that sent samples may do so again, others never will. */
        w->has_live = w->sample_ns != 0;
        end_live(w);
    }
    end_live(w);
    return NULL;
}

int watcher_new(struct watcher **out, const struct server *s, struct err *e)
{
    struct watcher *w = calloc(1, sizeof *w);
    struct http_options http = s->http;

    *out = w;
    if (w == NULL)
        return err_memory(e, "watching a server");
    w->server = s;
    w->has_live = s->kind == MW_SERVER_MEMWALL;
    w->sample = calloc(1, sizeof *w->sample);
    w->taken = calloc(1, sizeof *w->taken);
    server_metrics_clear(&w->figures);
    pthread_mutex_init(&w->lock, NULL);
    w->stop_fd = http.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->stop_fd < 0)
        return err_sys(e, "cannot make a descriptor");
    if (w->sample == NULL || w->taken == NULL)
        return err_memory(e, "the samples of a server");
    if (s->kind == MW_SERVER_OLLAMA) {
        w->figures.is_asked = true;
        snprintf(w->figures.no_metrics, sizeof w->figures.no_metrics, "Ollama has no /metrics");
        return 0;
    }
    if (http_open(&w->http, &http, e) != 0)
        return -1;
    errno = thread_start(&w->thread, "metrics", STACK_BYTES, watch, w);
    if (errno != 0)
        return err_sys(e, "cannot start a thread");
    w->has_thread = true;
    return 0;
}

void watcher_free(struct watcher *w)
{
    uint64_t one = 1;

    if (w == NULL)
        return;
    if (w->has_thread && write(w->stop_fd, &one, sizeof one) > 0)
        pthread_join(w->thread, NULL);
    http_close(w->http);
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    pthread_mutex_destroy(&w->lock);
    free(w->sample);
    free(w->taken);
    free(w);
}

/* The lock is held. */
static bool is_live(const struct watcher *w)
{
    return w->sample_ns != 0 && clock_ns() - w->sample_ns < LIVE_MS * (uint64_t)1000000;
}

void watcher_figures(struct watcher *w, struct mw_server_figures *out)
{
    if (w == NULL) {
        *out = (struct mw_server_figures){ 0 };
        server_metrics_clear(out);
        return;
    }
    pthread_mutex_lock(&w->lock);
    *out = w->figures;
    out->is_live = is_live(w);
    pthread_mutex_unlock(&w->lock);
}

bool watcher_sample(struct watcher *w, struct mw_sample *out)
{
    bool has_one;

    if (w == NULL)
        return false;
    pthread_mutex_lock(&w->lock);
    has_one = is_live(w);
    if (has_one)
        *out = *w->sample;
    pthread_mutex_unlock(&w->lock);
    return has_one;
}
