/* The thread: one command after the other.  See remote_internal.h. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "engine/remote/remote_internal.h"

void remote_command_free(struct remote_command *c)
{
    free(c->text);
    free(c->turns);
    conversation_free(&c->restored);
    settings_free(&c->settings);
    free(c);
}

static void post_error(struct mw_remote *r, enum mw_event_kind kind, const struct err *e)
{
    events_post(r->events, &(struct mw_event){ .kind = kind, .err = *e });
}

static void post_plan(struct mw_remote *r, enum mw_event_kind kind)
{
    struct mw_event ready = { .kind = kind };

    ready.plan.n_ctx = r->n_ctx;
    events_post(r->events, &ready);
}

static void do_send(struct mw_remote *r, const struct remote_command *c)
{
    uint32_t n_predict = c->n > 0 ? (uint32_t)c->n : r->settings.o.n_predict;
    struct err e = ERR_INIT;

    if (c->is_cancelled) {
        events_post(r->events, &(struct mw_event){ .kind = MW_EVENT_DONE,
                                                   .receipt.done = MW_DONE_CANCELLED });
        return;
    }
    if (conversation_add(&r->conversation, CHAT_USER, c->text, c->len, &e) == NULL)
        post_error(r, MW_EVENT_ERROR, &e);
    else
        remote_answer(r, false, n_predict);
}

static void do_continue(struct mw_remote *r)
{
    const struct conversation *v = &r->conversation;
    struct err e = ERR_INIT;

    if (v->n_turn == 0 || conversation_ends_aside(v)) {
        err_set(&e, ERR_ARGUMENT, "there is nothing to continue");
        post_error(r, MW_EVENT_ERROR, &e);
    } else {
        remote_answer(r, v->turns[v->n_turn - 1].role == CHAT_ASSISTANT,
                      r->settings.o.n_predict);
    }
}

static void do_retry(struct mw_remote *r)
{
    struct conversation *v = &r->conversation;
    struct err e = ERR_INIT;

    if (v->n_turn > 0 && v->turns[v->n_turn - 1].role == CHAT_ASSISTANT &&
        !conversation_ends_aside(v)) {
        conversation_cut_answer(v);
        remote_recount(r);
    }
    if (v->n_turn == 0 || conversation_ends_aside(v)) {
        err_set(&e, ERR_ARGUMENT, "there is no answer to make again");
        post_error(r, MW_EVENT_ERROR, &e);
    } else {
        remote_answer(r, false, r->settings.o.n_predict);
    }
}

/* Options that only a model in this process has. */
static int check_options(const struct mw_chat_options *o, struct err *e)
{
    if (o->raw)
        return err_set(e, ERR_UNSUPPORTED, "a server continues no plain text (--raw)");
    if (o->format != NULL)
        return err_set(e, ERR_UNSUPPORTED,
                       "the server applies its own chat format (--format has no effect)");
    if (o->engine.ctx_shift)
        return err_set(e, ERR_UNSUPPORTED,
                       "the server has the context, so nothing is dropped from here "
                       "(--ctx-shift); /compact shortens the conversation");
    return 0;
}

void remote_recount(struct mw_remote *r)
{
    const struct conversation *v = &r->conversation;

    pthread_mutex_lock(&r->lock);
    if (v->n_before + v->n_turn < r->count.n_turn)
        r->count = (struct remote_count){ 0 };
    pthread_mutex_unlock(&r->lock);
}

static void do_set(struct mw_remote *r, struct remote_command *c)
{
    struct settings old = r->settings;
    struct err e = ERR_INIT;

    if (check_options(&c->settings.o, &e) != 0) {
        post_error(r, MW_EVENT_REFUSED, &e);
        return;
    }
    r->settings = c->settings;
    c->settings = old; /* freed with the command */
    post_plan(r, MW_EVENT_PLAN);
}

static void set_count(struct mw_remote *r, struct remote_count count)
{
    pthread_mutex_lock(&r->lock);
    r->count = count;
    pthread_mutex_unlock(&r->lock);
}

static void stash(struct mw_remote *r, struct remote_command *c)
{
    r->stashed = r->count; /* written by this thread only */
    conversation_stash(&r->conversation, c->n, c->turns, c->room);
    c->turns = NULL;
    remote_recount(r);
}

static void run_command(struct mw_remote *r, struct remote_command *c)
{
    struct err e = ERR_INIT;

    switch (c->kind) {
    case REMOTE_SEND: do_send(r, c); break;
    case REMOTE_CONTINUE: do_continue(r); break;
    case REMOTE_RETRY: do_retry(r); break;
    case REMOTE_ASIDE:
        if (conversation_add_aside(&r->conversation, &e) != 0)
            post_error(r, MW_EVENT_ERROR, &e);
        break;
    case REMOTE_REWIND:
        conversation_rewind(&r->conversation, c->n);
        remote_recount(r);
        break;
    case REMOTE_STASH: stash(r, c); break;
    case REMOTE_UNSTASH:
        if (r->conversation.stash != NULL)
            set_count(r, r->stashed);
        conversation_unstash(&r->conversation);
        break;
    case REMOTE_RESTORE: {
        struct conversation old = r->conversation;

        r->conversation = c->restored;
        c->restored = old; /* freed with the command */
        set_count(r, (struct remote_count){ 0 });
        break;
    }
    case REMOTE_SET: do_set(r, c); break;
    case REMOTE_SETTING: remote_setting(r, c); break;
    }
}

static struct remote_command *take_command(struct mw_remote *r)
{
    struct remote_command *c = NULL;
    uint64_t count;

    pthread_mutex_lock(&r->lock);
    while (r->first == NULL && !r->quits)
        pthread_cond_wait(&r->wake, &r->lock);
    if (!r->quits) {
        c = r->first;
        r->first = c->next;
        if (r->first == NULL)
            r->last = NULL;
        /* A cancel stops the command that was running, not the ones after it. */
        r->is_cancelled = false;
        if (read(r->stop_fd, &count, sizeof count) < 0)
            count = 0; /* it was not readable */
    }
    pthread_mutex_unlock(&r->lock);
    return c;
}

void *remote_thread(void *ctx)
{
    struct mw_remote *r = ctx;
    struct remote_command *c;

    post_plan(r, MW_EVENT_READY);
    while ((c = take_command(r)) != NULL) {
        run_command(r, c);
        remote_command_free(c);
    }
    return NULL;
}
