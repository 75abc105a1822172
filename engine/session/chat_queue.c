/* The queue of commands, between the program and the engine thread: see chat_internal.h. */
#include "config.h"

#include <stdlib.h>

#include "engine/base/clock.h"
#include "engine/session/chat_internal.h"
#include "engine/session/options.h"

struct chat_command *chat_command_new(enum chat_command_kind kind, struct err *e)
{
    struct chat_command *command = calloc(1, sizeof *command);

    if (command == NULL)
        err_memory(e, "a command");
    else
        command->kind = kind;
    return command;
}

void chat_command_free(struct chat_command *command)
{
    free(command->text);
    free(command->turns);
    asked_free(&command->asked);
    conversation_free(&command->restored);
    settings_free(&command->settings);
    free(command);
}

int chat_push(struct mw_chat *c, struct chat_command *command)
{
    pthread_mutex_lock(&c->lock);
    command->n_taken = c->n_taken;
    if (c->last != NULL)
        c->last->next = command;
    else
        c->first = command;
    c->last = command;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

/* Nothing is to do, and a budget of `auto` has changed.  The lock is held, but not meanwhile. */
static void breathe(struct mw_chat *c)
{
    pthread_mutex_unlock(&c->lock);
    session_settle(c->session);
    pthread_mutex_lock(&c->lock);
    mw_session_plan(c->session, &c->plan);
}

#define WARM_AGAIN_NS 20000000u

/* The same while experts are read that the first prompt will probably use. */
static void warm(struct mw_chat *c)
{
    bool is_early;

    pthread_mutex_unlock(&c->lock);
    is_early = !session_warm(c->session);
    pthread_mutex_lock(&c->lock);
    if (is_early && c->first == NULL && !cancel_is_set(&c->quits))
        (void)clock_cond_wait(&c->wake, &c->lock, clock_ns() + WARM_AGAIN_NS);
}

void chat_wake(void *ctx)
{
    struct mw_chat *c = ctx;

    pthread_mutex_lock(&c->lock);
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

struct chat_command *chat_take_command(struct mw_chat *c)
{
    struct chat_command *command;

    pthread_mutex_lock(&c->lock);
    c->is_working = false;
    while (c->first == NULL && !cancel_is_set(&c->quits))
        if (c->session != NULL && session_has_breath(c->session))
            breathe(c);
        else if (c->session != NULL && session_has_favourites(c->session))
            warm(c);
        else
            pthread_cond_wait(&c->wake, &c->lock);
    if (cancel_is_set(&c->quits)) {
        pthread_mutex_unlock(&c->lock);
        return NULL;
    }
    command = c->first;
    c->first = command->next;
    if (c->first == NULL)
        c->last = NULL;
    c->is_working = true;
    c->n_taken++;
    /* A cancel stops the command that was running, not the ones after it. */
    cancel_clear(&c->cancel);
    pthread_mutex_unlock(&c->lock);
    return command;
}

/* Whether the answer that is being made can go on with other options. */
static bool can_go_on(const struct mw_chat *c, const struct mw_chat_options *o, size_t n_token)
{
    return mw_keeps_answer(c->m, &c->settings.o, o) && options_ctx(c->m, &o->engine) > n_token;
}

struct chat_command *chat_take_change(struct mw_chat *c, size_t n_token)
{
    struct chat_command *change, *before = NULL;

    pthread_mutex_lock(&c->lock);
    for (change = c->first; change != NULL && change->kind != DO_SET; change = change->next)
        before = change;
    if (change != NULL && !cancel_is_set(&c->quits) && !cancel_is_set(&c->cancel) &&
        (before == NULL || change->n_taken == c->n_taken) &&
        can_go_on(c, &change->settings.o, n_token)) {
        *(before != NULL ? &before->next : &c->first) = change->next;
        if (c->last == change)
            c->last = before;
    } else {
        change = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    return change;
}

void mw_chat_cancel(struct mw_chat *c)
{
    pthread_mutex_lock(&c->lock);
    for (struct chat_command *command = c->first; command != NULL; command = command->next)
        command->is_cancelled = command->kind == DO_SEND || command->kind == DO_ASK;
    cancel_set(&c->cancel);
    pthread_mutex_unlock(&c->lock);
}

bool mw_chat_is_busy(struct mw_chat *c)
{
    bool is_busy;

    pthread_mutex_lock(&c->lock);
    is_busy = c->is_working || c->first != NULL;
    pthread_mutex_unlock(&c->lock);
    return is_busy;
}
