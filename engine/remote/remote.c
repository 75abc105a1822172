/* The side of the program: see remote_internal.h. */
#include "config.h"

#include <sys/eventfd.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/remote/remote_internal.h"

#define STACK_BYTES   ((size_t)2 << 20) /* libraries for TLS need some of it */
#define TEXT_BYTES    ((uint64_t)16 << 20) /* of a chat, if the context is not known */
#define TOKEN_BYTES   64 /* of a token, more than texts have */

/* ---- opening ---- */

static int connect_to(struct mw_remote *r, const struct mw_server *server, const char *model,
                      struct err *e)
{
    struct http_options http;

    if (server_set(&r->server, server, e) != 0)
        return -1;
    r->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->stop_fd < 0)
        return err_sys(e, "cannot make a descriptor");
    http = r->server.http;
    http.stop_fd = r->stop_fd;
    return http_open(&r->http, &http, e) != 0 ? -1
                                              : server_look(&r->server, r->http, model, e);
}

int mw_remote_open(struct mw_remote **out, const struct mw_server *server, const char *model,
                   struct err *e)
{
    struct mw_remote *r = calloc(1, sizeof *r);

    *out = NULL;
    if (r == NULL)
        return err_memory(e, "a chat with a server");
    r->stop_fd = -1;
    r->now = (struct remote_progress){ .prompt_tps = NAN, .answer_tps = NAN };
    pthread_mutex_init(&r->lock, NULL);
    clock_cond_init(&r->wake);
    if (connect_to(r, server, model, e) != 0) {
        mw_remote_close(r);
        return -1;
    }
    r->n_ctx = r->server.info.n_ctx_train;
    *out = r;
    return 0;
}

static void wake_thread(struct mw_remote *r)
{
    uint64_t one = 1;

    /* A write that would block has failed: then the descriptor is readable already. */
    if (write(r->stop_fd, &one, sizeof one) < 0)
        return;
}

void mw_remote_close(struct mw_remote *r)
{
    if (r == NULL)
        return;
    if (r->has_thread) {
        pthread_mutex_lock(&r->lock);
        r->quits = true;
        wake_thread(r);
        pthread_cond_broadcast(&r->wake);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
    }
    watcher_free(r->watcher);
    while (r->first != NULL) {
        struct remote_command *next = r->first->next;

        remote_command_free(r->first);
        r->first = next;
    }
    http_close(r->http);
    events_free(r->events);
    conversation_free(&r->conversation);
    settings_free(&r->settings);
    server_free(&r->server);
    if (r->stop_fd >= 0)
        close(r->stop_fd);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int mw_remote_start(struct mw_remote *r, const struct mw_chat_options *o, struct err *e)
{
    if (settings_copy(&r->settings, o, e) != 0 || events_new(&r->events, e) != 0 ||
        watcher_new(&r->watcher, &r->server, e) != 0)
        return -1;
    errno = thread_start(&r->thread, "remote", STACK_BYTES, remote_thread, r);
    if (errno != 0)
        return err_sys(e, "cannot start a thread");
    r->has_thread = true;
    return 0;
}

/* ---- what is known ---- */

void mw_remote_info(const struct mw_remote *r, struct mw_model_info *out)
{
    *out = r->server.info;
    out->n_ctx_train = r->n_ctx;
}

const char *mw_remote_model(const struct mw_remote *r, size_t i)
{
    return i < r->server.n_model ? r->server.model[i] : NULL;
}

const char *mw_remote_model_used(const struct mw_remote *r)
{
    return r->server.model[r->server.used];
}

uint64_t mw_remote_text_bytes(const struct mw_remote *r)
{
    uint64_t ctx = r->n_ctx;

    return ctx > 0 && ctx < TEXT_BYTES / TOKEN_BYTES ? ctx * TOKEN_BYTES : TEXT_BYTES;
}

void mw_remote_sampling(struct mw_sampling *out)
{
    *out = (struct mw_sampling){
        .temp = -1, .top_k = -1, .top_p = -1, .min_p = -1, .repeat_penalty = -1
    };
}

uint32_t mw_remote_tokens(struct mw_remote *r)
{
    uint32_t n;

    pthread_mutex_lock(&r->lock);
    n = r->count.n_token;
    pthread_mutex_unlock(&r->lock);
    return n;
}

/* Tokens that were evaluated for the prompt are known at its end only. */
void mw_remote_sample(struct mw_remote *r, struct mw_sample *out)
{
    struct remote_progress now;

    if (watcher_sample(r->watcher, out)) {
        uint32_t n_token = mw_remote_tokens(r);

        if (n_token > 0) /* of this conversation; the server forgets one after its answer */
            out->kv.context = n_token;
        return;
    }
    *out = (struct mw_sample){ .t_ns = clock_ns() };
    snprintf(out->run.model, sizeof out->run.model, "%s", r->server.info.name);
    snprintf(out->run.arch, sizeof out->run.arch, "%s", r->server.info.arch);
    snprintf(out->run.type, sizeof out->run.type, "%s", r->server.info.type);
    out->run.ctx = r->n_ctx;
    out->kv.capacity = out->run.ctx;
    pthread_mutex_lock(&r->lock);
    now = r->now;
    out->kv.tokens = out->kv.context = r->count.n_token;
    pthread_mutex_unlock(&r->lock);
    out->state = now.state;
    out->t_start_ns = now.start_ns;
    out->t_first_ns = now.first_ns;
    out->t_last_ns = now.last_ns;
    if (!now.has_usage)
        return;
    out->n_prompt = out->n_prompt_done = now.n_prompt - now.n_cached;
    out->n_decoded = now.n_decoded;
    out->prefill_ns = now.first_ns > 0 ? now.first_ns - now.start_ns : 0;
    out->decode_ns = now.last_ns - now.first_ns;
}

void mw_remote_figures(struct mw_remote *r, struct mw_server_figures *out)
{
    watcher_figures(r->watcher, out);
    snprintf(out->address, sizeof out->address, "%s", r->server.shown);
    out->kind = r->server.kind;
    out->n_model = r->server.n_model;
    out->used = r->server.used;
    pthread_mutex_lock(&r->lock);
    out->has_usage = r->now.has_usage;
    out->has_cached = r->now.has_cached;
    out->n_prompt = r->now.n_prompt;
    out->n_cached = r->now.n_cached;
    out->n_decoded = r->now.n_decoded;
    out->n_piece = r->now.n_piece;
    out->start_ns = r->now.start_ns;
    out->first_ns = r->now.first_ns;
    out->last_ns = r->now.last_ns;
    /* Those of the last answer are closer than an average over all clients. */
    if (!isnan(r->now.prompt_tps))
        out->prompt_tps = r->now.prompt_tps;
    if (!isnan(r->now.answer_tps))
        out->answer_tps = r->now.answer_tps;
    pthread_mutex_unlock(&r->lock);
}

int mw_remote_fd(const struct mw_remote *r)
{
    return r->events != NULL ? events_fd(r->events) : -1;
}

bool mw_remote_next(struct mw_remote *r, struct mw_event *out)
{
    return r->events != NULL && events_next(r->events, out);
}

/* ---- commands ---- */

static struct remote_command *command_new(enum remote_kind kind, size_t n, struct err *e)
{
    struct remote_command *c = calloc(1, sizeof *c);

    if (c == NULL) {
        err_memory(e, "a command");
        return NULL;
    }
    c->kind = kind;
    c->n = n;
    return c;
}

static int push(struct mw_remote *r, struct remote_command *c)
{
    pthread_mutex_lock(&r->lock);
    if (r->last != NULL)
        r->last->next = c;
    else
        r->first = c;
    r->last = c;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    return 0;
}

static int push_kind(struct mw_remote *r, enum remote_kind kind, size_t n, struct err *e)
{
    struct remote_command *c = command_new(kind, n, e);

    return c != NULL ? push(r, c) : -1;
}

int mw_remote_send(struct mw_remote *r, const char *text, size_t len, uint32_t n_predict,
                   struct err *e)
{
    struct remote_command *c;
    uint64_t most = mw_remote_text_bytes(r);

    if (len > most)
        return err_set(e, ERR_CONTEXT,
                       "a message of %zu bytes is too long for the context; at most %llu bytes "
                       "are held",
                       len, (unsigned long long)most);
    c = command_new(REMOTE_SEND, n_predict, e);
    if (c == NULL)
        return -1;
    c->text = malloc(len + 1);
    if (c->text == NULL) {
        remote_command_free(c);
        return err_memory(e, "a message of %zu bytes", len);
    }
    if (len > 0)
        memcpy(c->text, text, len);
    c->text[len] = '\0';
    c->len = len;
    return push(r, c);
}

bool mw_remote_can_continue(const struct mw_remote *r)
{
    enum mw_server_kind kind = r->server.kind;

    return kind == MW_SERVER_LLAMA || kind == MW_SERVER_VLLM || kind == MW_SERVER_SGLANG;
}

int mw_remote_continue(struct mw_remote *r, struct err *e)
{
    if (!mw_remote_can_continue(r))
        return err_set(e, ERR_UNSUPPORTED,
                       "this server cannot go on with an answer; /retry makes another one");
    return push_kind(r, REMOTE_CONTINUE, 0, e);
}

int mw_remote_retry(struct mw_remote *r, struct err *e)
{
    return push_kind(r, REMOTE_RETRY, 0, e);
}

int mw_remote_aside(struct mw_remote *r, struct err *e)
{
    return push_kind(r, REMOTE_ASIDE, 0, e);
}

int mw_remote_rewind(struct mw_remote *r, size_t n, struct err *e)
{
    return push_kind(r, REMOTE_REWIND, n, e);
}

int mw_remote_stash(struct mw_remote *r, size_t n, size_t n_all, struct err *e)
{
    struct remote_command *c = command_new(REMOTE_STASH, n, e);

    if (c == NULL)
        return -1;
    c->room = n_all - n;
    c->turns = calloc(c->room + 1, sizeof *c->turns);
    if (c->turns == NULL) {
        remote_command_free(c);
        return err_memory(e, "messages");
    }
    return push(r, c);
}

int mw_remote_unstash(struct mw_remote *r, struct err *e)
{
    return push_kind(r, REMOTE_UNSTASH, 0, e);
}

int mw_remote_restore(struct mw_remote *r, const struct mw_message *messages, size_t n,
                      size_t n_before, struct err *e)
{
    static const enum chat_role roles[] = {
        [MW_SYSTEM] = CHAT_SYSTEM, [MW_USER] = CHAT_USER, [MW_ASSISTANT] = CHAT_ASSISTANT
    };
    struct remote_command *c = command_new(REMOTE_RESTORE, 0, e);

    if (c == NULL)
        return -1;
    c->restored.n_before = n_before;
    c->restored.is_partial = n_before > 0 && (n == 0 || !messages[0].is_summary);
    for (size_t i = 0; i < n; i++) {
        const struct mw_message *m = &messages[i];
        struct turn *t = conversation_add(&c->restored, roles[m->role], m->text, m->len, e);

        if (t == NULL || (m->thinking != NULL &&
                          turn_append(t, true, m->thinking, m->thinking_len, e) != 0)) {
            remote_command_free(c);
            return -1;
        }
        t->is_aside = m->is_aside;
        t->attempt = m->attempt;
    }
    return push(r, c);
}

int mw_remote_set(struct mw_remote *r, const struct mw_chat_options *o, struct err *e)
{
    struct remote_command *c = command_new(REMOTE_SET, 0, e);

    if (c == NULL)
        return -1;
    if (settings_copy(&c->settings, o, e) != 0) {
        remote_command_free(c);
        return -1;
    }
    return push(r, c);
}

int mw_remote_setting(struct mw_remote *r, enum mw_setting_step step, const char *name,
                      const char *value, uint64_t tag, struct err *e)
{
    struct remote_command *c;

    if (r->server.kind != MW_SERVER_MEMWALL)
        return err_set(e, ERR_UNSUPPORTED, "%s is not memwall", r->server.shown);
    c = command_new(REMOTE_SETTING, tag, e);
    if (c == NULL)
        return -1;
    c->step = step;
    snprintf(c->name, sizeof c->name, "%s", name);
    c->text = strdup(value);
    if (c->text == NULL) {
        remote_command_free(c);
        return err_memory(e, "a setting");
    }
    return push(r, c);
}

void mw_remote_cancel(struct mw_remote *r)
{
    if (!r->has_thread)
        return;
    pthread_mutex_lock(&r->lock);
    for (struct remote_command *c = r->first; c != NULL; c = c->next)
        c->is_cancelled = c->kind == REMOTE_SEND;
    r->is_cancelled = true;
    wake_thread(r);
    pthread_mutex_unlock(&r->lock);
}
