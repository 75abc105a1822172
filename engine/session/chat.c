/*
 * A conversation on a thread of its own.
 *
 *   program --commands--> queue --> engine thread --events--> queue + descriptor --> program
 *
 * Commands run one after the other, in the order in which they were queued.  Only changes of
 * options may go ahead: between two passes of an answer, the engine thread takes the next
 * change out of the queue and applies it, if the answer can go on with it.
 *
 *     runs        queue
 *     answer 1    send 2, set A, set B    both were queued during answer 1: apply A, then B
 *     answer 1    set A, send 2, set B    while A waits for the end of answer 1, B waits, too
 *     answer 2    set B                   B is first: apply it
 *
 * A cancel is not queued.  It marks the messages in the queue, and the engine thread takes a
 * marked message out with the same event as an answer that was stopped.  Only the engine thread
 * uses the conversation and changes the session.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/session/answer.h"
#include "engine/session/model.h"
#include "engine/session/options.h"
#include "engine/session/prompt_cost.h"
#include "engine/session/sampler.h"
#include "engine/session/settings.h"

#define TURN_MARKS 8  /* tokens around a message, for estimates */
#define AGAIN_MIN  32 /* fewer tokens than this are only the marks of the next turn */
/* This thread computes beside the workers of the pool and needs a stack as large. */
#define STACK_BYTES ((size_t)8 << 20)

enum command_kind {
    DO_SEND,
    DO_CONTINUE,
    DO_RETRY,
    DO_ASIDE,
    DO_REWIND,
    DO_STASH,
    DO_UNSTASH,
    DO_RESTORE,
    DO_SET
};

struct command {
    struct command *next;
    enum command_kind kind;
    bool is_cancelled; /* a message that the conversation does not get */
    uint64_t n_taken;  /* commands that were taken before this one was queued */
    char *text;
    size_t len;
    size_t n;
    struct turn *turns; /* [room] for those that are stashed */
    size_t room;
    struct conversation restored;
    struct settings settings;
};

struct mw_chat {
    struct mw_model *m;
    struct events *events;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* of all members below */
    pthread_cond_t wake;
    struct command *first, *last;
    struct mw_session *session; /* opened and closed by the engine thread only */
    struct settings settings;   /* in force */
    struct plan plan;
    struct settled settled; /* all zero before a session is open */
    uint32_t n_ahead,
        n_again; /* tokens of the conversation, and those that must be evaluated again */
    double prompt_compute_s; /* as answer.h has it */
    bool is_working;
    uint64_t n_taken; /* commands, with the one that runs */
    bool is_over;     /* the engine thread uses nothing any longer */
    struct cancel cancel; /* of the command that is running */
    struct cancel quits;  /* the chat is being closed: loading ends early, too */

    /* engine thread only */
    struct answerer answerer;
    char said[512]; /* the last notice about its chat format */
    struct conversation conversation;
};

/* --- the engine thread --- */

static void post_error(struct mw_chat *c, const struct err *e)
{
    events_post(c->events, &(struct mw_event){ .kind = MW_EVENT_ERROR, .err = *e });
}

static void post_refused(struct mw_chat *c, const struct err *e)
{
    events_post(c->events, &(struct mw_event){ .kind = MW_EVENT_REFUSED, .err = *e });
}

/* A change was refused.  Those that were queued after it were requested with it: only what they
 * change themselves stays of them. */
static void refuse(struct mw_chat *c, const struct command *refused, const struct err *e)
{
    pthread_mutex_lock(&c->lock);
    for (struct command *later = c->first; later != NULL; later = later->next)
        if (later->kind == DO_SET)
            settings_without(&c->settings.o, &refused->settings.o, &later->settings);
    pthread_mutex_unlock(&c->lock);
    post_refused(c, e);
}

static void post_plan(struct mw_chat *c, enum mw_event_kind kind)
{
    struct mw_event event = { .kind = kind };

    mw_session_plan(c->session, &event.plan);
    pthread_mutex_lock(&c->lock);
    c->plan = event.plan;
    c->settled = *session_settled(c->session);
    pthread_mutex_unlock(&c->lock);
    events_post(c->events, &event);
}

static void set_session(struct mw_chat *c, struct mw_session *s)
{
    pthread_mutex_lock(&c->lock);
    c->session = s;
    pthread_mutex_unlock(&c->lock);
}

/*
 * Return the chat format in force, or a new one if another is requested.  Parsing the model's
 * template only once also keeps the date that it prints.  With another date all of the prompt
 * would be evaluated again.
 */
static struct chat_choice *choose_format(const struct mw_chat *c, const char *name,
                                         const struct tokenizer *t, struct err *e)
{
    const struct chat_wish wish = { .format = name };
    struct chat_choice *choice = c->answerer.choice;

    if (choice != NULL && chat_choice_is_named(choice, name))
        return choice;
    return chat_choose(&choice, c->m->catalogue, t, &wish, e) == 0 ? choice : NULL;
}

static void post_notice(struct mw_chat *c, const char *text)
{
    if (text[0] != '\0')
        events_post(
            c->events,
            &(struct mw_event){ .kind = MW_EVENT_NOTICE, .text = text, .len = strlen(text) });
}

/* Report once that the model's template is not used, or not as it was written. */
static void post_format_notice(struct mw_chat *c)
{
    char text[512];
    bool has_system = c->conversation.system != NULL;

    if (!chat_choice_notice(c->answerer.choice, has_system, text, sizeof text) ||
        strcmp(text, c->said) == 0)
        return;
    post_notice(c, text);
    strcpy(c->said, text);
}

/* Free an answerer; the chat format may be the one of the answerer that stays. */
static void answerer_free(struct answerer *a, const struct answerer *stays)
{
    mw_sampler_free(a->sampler);
    if (a->choice != stays->choice)
        chat_choice_free(a->choice);
}

/*
 * Make an answerer for these options: chat format, sampler, stop strings.  Everything that
 * can fail is done here, so that options are taken over whole or not at all.
 */
static int prepare_answerer(struct mw_chat *c, const struct mw_chat_options *o,
                            struct answerer *out, struct err *e)
{
    struct answerer a = { .m = c->m,
                          .conversation = &c->conversation,
                          .events = c->events,
                          .stop = o->stop,
                          .n_predict = o->n_predict,
                          .ctx_shift = o->engine.ctx_shift,
                          .cancel = &c->cancel };

    a.rendering.tokenizer = model_tokenizer(c->m, &c->quits, e);
    a.rendering.think = o->think;
    if (a.rendering.tokenizer == NULL)
        return -1;
    a.choice = choose_format(c, o->raw ? "raw" : o->format, a.rendering.tokenizer, e);
    if (a.choice == NULL)
        return -1;
    a.parser_format = chat_choice_format(a.choice);
    if (strcmp(chat_format_name(a.parser_format), "raw") != 0)
        a.rendering.format = a.parser_format;
    a.n_stop_id = chat_stop_ids(c->m->catalogue, a.rendering.tokenizer, a.rendering.format,
                                a.stop_ids, sizeof a.stop_ids / sizeof a.stop_ids[0]);
    if (mw_sampler_new(&a.sampler, c->m, &o->sampling, e) != 0) {
        answerer_free(&a, &c->answerer);
        return -1;
    }
    *out = a;
    return 0;
}

/* Replace the answerer by a, which was prepared for the options in force.  Cannot fail. */
static void take_answerer(struct mw_chat *c, struct answerer *a)
{
    a->prompt_compute_s = c->answerer.prompt_compute_s;
    answerer_free(&c->answerer, a);
    c->answerer = *a;
    c->conversation.system = c->settings.o.system;
}

/* Returns how many tokens of the conversation the session holds.  *n is the number of all its
 * tokens, at most the context. */
static size_t held_of_it(struct mw_chat *c, size_t *n)
{
    struct err ignored = ERR_INIT;
    struct ids all = { .max = c->session != NULL ? session_options(c->session)->n_ctx : 0 };
    size_t same = 0, held = c->session != NULL ? mw_session_tokens(c->session) : 0;
    bool is_over = false;

    if (c->answerer.rendering.tokenizer != NULL && c->conversation.n_turn > 0 && all.max > 0)
        is_over = conversation_render(&c->conversation, &c->answerer.rendering,
                                      c->conversation.n_turn, &all, &ignored) != 0 &&
                  ignored.code == ERR_CONTEXT;
    while (same < held && same < all.n && session_ids(c->session)[same] == all.id[same])
        same++;
    *n = is_over ? all.max : all.n;
    ids_free(&all);
    return same;
}

/* Make the session fit a shorter context: drop tokens that are no longer part of the
 * conversation. If the conversation itself does not fit, drop everything. */
static int shorten(struct mw_chat *c, uint32_t n_ctx, struct err *e)
{
    size_t n, same;
    uint32_t kept;

    if (n_ctx == 0 || mw_session_tokens(c->session) <= n_ctx)
        return 0;
    same = held_of_it(c, &n);
    return mw_session_rewind(c->session, same <= n_ctx ? (uint32_t)same : 0, &kept, e);
}

/* Apply options to the session, or open one if the model was not loaded. */
static int apply_engine(struct mw_chat *c, const struct mw_options *wanted, struct err *e)
{
    struct mw_session *s;

    if (c->session != NULL)
        return shorten(c, wanted->n_ctx, e) != 0 ? -1 : session_set(c->session, wanted, e);
    if (session_open(&s, c->m, wanted, &c->quits, &c->cancel, e) != 0)
        return -1;
    set_session(c, s);
    return 0;
}

/* Make the settings of a command those in force.  The old ones are freed with the command. */
static void take_settings(struct mw_chat *c, struct command *command)
{
    struct settings old = c->settings;

    pthread_mutex_lock(&c->lock);
    c->settings = command->settings;
    pthread_mutex_unlock(&c->lock);
    command->settings = old;
}

static void do_set(struct mw_chat *c, struct command *command)
{
    struct err e = ERR_INIT;
    bool was_loaded = c->session != NULL;
    struct answerer answerer;

    if (prepare_answerer(c, &command->settings.o, &answerer, &e) != 0) {
        refuse(c, command, &e);
        return;
    }
    if (apply_engine(c, &command->settings.o.engine, &e) != 0) {
        answerer_free(&answerer, &c->answerer);
        refuse(c, command, &e);
        return;
    }
    take_settings(c, command);
    take_answerer(c, &answerer);
    post_plan(c, was_loaded ? MW_EVENT_PLAN : MW_EVENT_READY);
    post_format_notice(c);
}

/* --- changes during an answer --- */

/* Whether the answer that is being made can go on with other options. */
static bool can_go_on(const struct mw_chat *c, const struct mw_chat_options *o, size_t n_token)
{
    return mw_keeps_answer(c->m, &c->settings.o, o) && options_ctx(c->m, &o->engine) > n_token;
}

/* Take the next change out of the queue, or return NULL if there is none for now. */
static struct command *take_change(struct mw_chat *c, size_t n_token)
{
    struct command *change, *before = NULL;

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

/* The answerer keeps its chat format: an answer cannot go on with another one. */
static void change_answerer(struct mw_chat *c)
{
    const struct mw_chat_options *o = &c->settings.o;
    struct answerer *a = &c->answerer;

    a->stop = o->stop;
    a->n_predict = o->n_predict;
    a->ctx_shift = o->engine.ctx_shift;
    sampler_set(a->sampler, &o->sampling);
    c->conversation.system = o->system;
}

static void command_free(struct command *command)
{
    free(command->text);
    free(command->turns);
    conversation_free(&command->restored);
    settings_free(&command->settings);
    free(command);
}

/* Apply the changes that were queued during an answer, between two of its passes. */
static void change_now(void *ctx, size_t n_token)
{
    struct mw_chat *c = ctx;
    struct command *command;

    while ((command = take_change(c, n_token)) != NULL) {
        struct err e = ERR_INIT;

        if (session_set(c->session, &command->settings.o.engine, &e) == 0) {
            take_settings(c, command);
            change_answerer(c);
            post_plan(c, MW_EVENT_PLAN);
        } else {
            refuse(c, command, &e);
        }
        command_free(command);
    }
}

/* --- commands --- */

static void do_answer(struct mw_chat *c, bool is_continued)
{
    c->answerer.session = c->session;
    c->answerer.change = change_now;
    c->answerer.change_ctx = c;
    answer_run(&c->answerer, is_continued);
}

static void do_send(struct mw_chat *c, struct command *command)
{
    struct answerer *a = &c->answerer;
    struct err e = ERR_INIT;

    if (command->is_cancelled) {
        events_post(c->events, &(struct mw_event){ .kind = MW_EVENT_DONE,
                                                   .receipt.done = MW_DONE_CANCELLED,
                                                   .err = ERR_INIT });
        return;
    }
    if (conversation_add(&c->conversation, CHAT_USER, command->text, command->len, &e) ==
        NULL) {
        post_error(c, &e);
        return;
    }
    free(command->text); /* the conversation has a copy */
    command->text = NULL;
    if (command->n > 0)
        a->n_predict = (uint32_t)command->n;
    do_answer(c, false);
    a->n_predict = c->settings.o.n_predict;
}

static void do_continue(struct mw_chat *c)
{
    struct err e = ERR_INIT;
    struct conversation *v = &c->conversation;

    if (v->n_turn == 0 || conversation_ends_aside(v)) {
        err_set(&e, ERR_ARGUMENT, "there is nothing to continue");
        post_error(c, &e);
    } else {
        do_answer(c, v->turns[v->n_turn - 1].role == CHAT_ASSISTANT);
    }
}

static void do_retry(struct mw_chat *c)
{
    struct err e = ERR_INIT;
    struct conversation *v = &c->conversation;

    if (v->n_turn > 0 && v->turns[v->n_turn - 1].role == CHAT_ASSISTANT &&
        !conversation_ends_aside(v))
        conversation_cut(v, v->n_turn - 1);
    if (v->n_turn == 0 || conversation_ends_aside(v)) {
        err_set(&e, ERR_ARGUMENT, "there is no answer to make again");
        post_error(c, &e);
    } else {
        do_answer(c, false);
    }
}

static void run_command(struct mw_chat *c, struct command *command)
{
    struct err e = ERR_INIT;

    if (c->session == NULL && command->kind != DO_SET && command->kind != DO_RESTORE) {
        err_set(&e, ERR_BUDGET, "no model is loaded");
        post_error(c, &e);
        return;
    }
    switch (command->kind) {
    case DO_SEND: do_send(c, command); break;
    case DO_CONTINUE: do_continue(c); break;
    case DO_RETRY: do_retry(c); break;
    case DO_ASIDE:
        if (conversation_add_aside(&c->conversation, &e) != 0)
            post_error(c, &e);
        break;
    case DO_REWIND: conversation_rewind(&c->conversation, command->n); break;
    case DO_STASH:
        conversation_stash(&c->conversation, command->n, command->turns, command->room);
        command->turns = NULL;
        break;
    case DO_UNSTASH: conversation_unstash(&c->conversation); break;
    case DO_RESTORE: {
        struct conversation old = c->conversation;

        c->conversation = command->restored;
        c->conversation.system = old.system;
        command->restored = old; /* freed with the command */
        break;
    }
    case DO_SET: do_set(c, command); break;
    }
}

/* After a command, note the figures of the conversation that mw_chat_cost() reports.  Only this
 * thread may use the conversation. */
static void look_ahead(struct mw_chat *c)
{
    size_t n, same = held_of_it(c, &n);

    pthread_mutex_lock(&c->lock);
    c->n_ahead = (uint32_t)n;
    c->n_again = n - same >= AGAIN_MIN ? (uint32_t)(n - same) : 0;
    c->prompt_compute_s = c->answerer.prompt_compute_s;
    pthread_mutex_unlock(&c->lock);
}

/* Wait for the next command.  Returns NULL if the chat is being closed. */
static struct command *take_command(struct mw_chat *c)
{
    struct command *command;

    pthread_mutex_lock(&c->lock);
    c->is_working = false;
    while (c->first == NULL && !cancel_is_set(&c->quits))
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

static void load(struct mw_chat *c)
{
    struct err e = ERR_INIT;
    struct answerer answerer;
    struct mw_session *s;

    if (session_open(&s, c->m, &c->settings.o.engine, &c->quits, &c->cancel, &e) != 0) {
        post_error(c, &e);
        return;
    }
    set_session(c, s);
    /* The stream already reads the first blocks while the tokenizer is built. */
    if (prepare_answerer(c, &c->settings.o, &answerer, &e) != 0) {
        set_session(c, NULL);
        mw_session_close(s);
        post_error(c, &e);
        return;
    }
    take_answerer(c, &answerer);
    post_plan(c, MW_EVENT_READY);
    post_notice(c, mw_model_notice(c->m)); /* what the vocabulary's file leaves open */
    post_notice(c, mw_products_notice(c->m, &c->settings.o.engine));
    post_format_notice(c);
}

static void *engine_thread(void *ctx)
{
    struct mw_chat *c = ctx;
    struct command *command;
    struct mw_session *session;

    load(c);
    while ((command = take_command(c)) != NULL) {
        run_command(c, command);
        look_ahead(c);
        command_free(command);
    }
    /* Close on this thread: closing waits for reads in flight. */
    session = c->session;
    set_session(c, NULL);
    mw_session_close(session);
    pthread_mutex_lock(&c->lock);
    c->is_over = true;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* --- the program's side --- */

int mw_chat_open(struct mw_chat **out, struct mw_model *m, const struct mw_chat_options *o,
                 struct err *e)
{
    struct mw_chat *c = calloc(1, sizeof *c);

    *out = NULL;
    if (c == NULL)
        return err_memory(e, "the chat");
    c->m = m;
    c->is_working = true;
    pthread_mutex_init(&c->lock, NULL);
    cancel_init(&c->cancel);
    cancel_init(&c->quits);
    clock_cond_init(&c->wake);
    if (events_new(&c->events, e) != 0 || settings_copy(&c->settings, o, e) != 0)
        goto fail;
    errno = thread_start(&c->thread, "engine", STACK_BYTES, engine_thread, c);
    if (errno != 0) {
        err_sys(e, "cannot start the engine's thread");
        goto fail;
    }
    c->has_thread = true;
    *out = c;
    return 0;

fail:
    mw_chat_close(c);
    return -1;
}

static int push(struct mw_chat *c, struct command *command)
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

static struct command *command_new(enum command_kind kind, struct err *e)
{
    struct command *command = calloc(1, sizeof *command);

    if (command == NULL)
        err_memory(e, "a command");
    else
        command->kind = kind;
    return command;
}

static int push_kind(struct mw_chat *c, enum command_kind kind, size_t n, struct err *e)
{
    struct command *command = command_new(kind, e);

    if (command == NULL)
        return -1;
    command->n = n;
    return push(c, command);
}

static void ask_to_end(struct mw_chat *c)
{
    pthread_mutex_lock(&c->lock);
    cancel_set(&c->quits);
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
    mw_chat_cancel(c);
}

bool mw_chat_stop(struct mw_chat *c, unsigned ms)
{
    uint64_t until_ns = clock_ns() + ms * (uint64_t)1000000;
    bool is_over;

    ask_to_end(c);
    pthread_mutex_lock(&c->lock);
    while (!c->is_over && clock_cond_wait(&c->wake, &c->lock, until_ns))
        continue;
    is_over = c->is_over;
    pthread_mutex_unlock(&c->lock);
    return is_over;
}

void mw_chat_close(struct mw_chat *c)
{
    if (c == NULL)
        return;
    if (c->has_thread) {
        ask_to_end(c);
        pthread_join(c->thread, NULL);
    }
    while (c->first != NULL) {
        struct command *next = c->first->next;

        command_free(c->first);
        c->first = next;
    }
    answerer_free(&c->answerer, &(struct answerer){ 0 });
    mw_session_close(c->session);
    conversation_free(&c->conversation);
    settings_free(&c->settings);
    events_free(c->events);
    pthread_cond_destroy(&c->wake);
    cancel_destroy(&c->quits);
    cancel_destroy(&c->cancel);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int mw_chat_fd(struct mw_chat *c)
{
    return events_fd(c->events);
}

bool mw_chat_next(struct mw_chat *c, struct mw_event *out)
{
    return events_next(c->events, out);
}

int mw_chat_send(struct mw_chat *c, const char *text, size_t len, struct err *e)
{
    return mw_chat_send_within(c, text, len, 0, e);
}

int mw_chat_send_within(struct mw_chat *c, const char *text, size_t len, uint32_t n_predict,
                        struct err *e)
{
    struct command *command;
    uint64_t most;

    pthread_mutex_lock(&c->lock);
    most = mw_text_bytes(c->m, &c->settings.o.engine);
    pthread_mutex_unlock(&c->lock);
    if (len > most)
        return err_set(e, ERR_CONTEXT,
                       "a message of %zu bytes is too long for the context; at most %llu bytes "
                       "are held",
                       len, (unsigned long long)most);
    command = command_new(DO_SEND, e);
    if (command == NULL)
        return -1;
    command->text = malloc(len + 1);
    if (command->text == NULL) {
        command_free(command);
        return err_memory(e, "a message of %zu bytes", len);
    }
    memcpy(command->text, text, len);
    command->text[len] = '\0';
    command->len = len;
    command->n = n_predict;
    return push(c, command);
}

int mw_chat_continue(struct mw_chat *c, struct err *e)
{
    return push_kind(c, DO_CONTINUE, 0, e);
}

int mw_chat_retry(struct mw_chat *c, struct err *e)
{
    return push_kind(c, DO_RETRY, 0, e);
}

int mw_chat_aside(struct mw_chat *c, struct err *e)
{
    return push_kind(c, DO_ASIDE, 0, e);
}

int mw_chat_rewind(struct mw_chat *c, size_t n, struct err *e)
{
    return push_kind(c, DO_REWIND, n, e);
}

int mw_chat_stash(struct mw_chat *c, size_t n, size_t n_all, struct err *e)
{
    struct command *command = command_new(DO_STASH, e);

    if (command == NULL)
        return -1;
    command->n = n;
    command->room = n_all - n;
    command->turns = calloc(command->room + 1, sizeof *command->turns);
    if (command->turns == NULL) {
        command_free(command);
        return err_memory(e, "messages");
    }
    return push(c, command);
}

int mw_chat_unstash(struct mw_chat *c, struct err *e)
{
    return push_kind(c, DO_UNSTASH, 0, e);
}

int mw_chat_restore(struct mw_chat *c, const struct mw_message *messages, size_t n,
                    size_t n_before, struct err *e)
{
    static const enum chat_role roles[] = {
        [MW_SYSTEM] = CHAT_SYSTEM, [MW_USER] = CHAT_USER, [MW_ASSISTANT] = CHAT_ASSISTANT
    };
    struct command *command = command_new(DO_RESTORE, e);

    if (command == NULL)
        return -1;
    command->restored.n_before = n_before;
    command->restored.is_partial = n_before > 0 && (n == 0 || !messages[0].is_summary);
    for (size_t i = 0; i < n; i++) {
        struct turn *t = conversation_add(&command->restored, roles[messages[i].role],
                                          messages[i].text, messages[i].len, e);

        if (t == NULL ||
            (messages[i].thinking != NULL &&
             turn_append(t, true, messages[i].thinking, messages[i].thinking_len, e) != 0) ||
            turn_restore_cut(t, &messages[i].cut, e) != 0) {
            command_free(command);
            return -1;
        }
        t->is_aside = messages[i].is_aside;
    }
    return push(c, command);
}

int mw_chat_set(struct mw_chat *c, const struct mw_chat_options *o, struct err *e)
{
    struct command *command = command_new(DO_SET, e);

    if (command == NULL)
        return -1;
    if (settings_copy(&command->settings, o, e) != 0) {
        command_free(command);
        return -1;
    }
    return push(c, command);
}

void mw_chat_cancel(struct mw_chat *c)
{
    pthread_mutex_lock(&c->lock);
    for (struct command *command = c->first; command != NULL; command = command->next)
        command->is_cancelled = command->kind == DO_SEND;
    cancel_set(&c->cancel);
    pthread_mutex_unlock(&c->lock);
}

static uint32_t held_now(const struct mw_chat *c)
{
    return c->session == NULL
               ? 0
               : (uint32_t)counter_get(&session_telemetry(c->session)->kv_tokens);
}

/* Returns the tokens of the conversation.  It differs from the tokens held by the marks of the
 * next turn, which are not worth reporting.  The lock is held. */
static uint32_t context_now(const struct mw_chat *c)
{
    uint32_t held = held_now(c), ahead = c->n_ahead;

    if (c->is_working || (held < ahead + AGAIN_MIN && ahead < held + AGAIN_MIN))
        return held;
    return ahead;
}

void mw_chat_sample(struct mw_chat *c, struct mw_sample *out)
{
    pthread_mutex_lock(&c->lock);
    if (c->session != NULL) {
        mw_session_sample(c->session, out);
        out->kv.context = context_now(c);
    } else {
        memset(out, 0, sizeof *out);
        out->state = MW_LOADING;
        out->t_ns = clock_ns();
    }
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

/* The basis of a cost with this plan, if `held` bytes of the file's weights are in memory.
 * The caller frees it; NULL: there is no memory. */
static struct cost_basis *basis_new(struct mw_chat *c, const struct plan *plan, uint64_t held)
{
    struct mw_options o;
    double pace_s;

    pthread_mutex_lock(&c->lock);
    o = c->settled.chunk_target != 0 ? c->settled.o : c->settings.o.engine;
    pace_s = c->prompt_compute_s;
    pthread_mutex_unlock(&c->lock);
    return cost_basis_new(c->m, &o, plan, held, pace_s);
}

int mw_chat_plan(struct mw_chat *c, const struct mw_options *o, struct plan *out, struct err *e)
{
    struct settled before, then;

    pthread_mutex_lock(&c->lock);
    before = c->settled;
    pthread_mutex_unlock(&c->lock);
    if (settled_options(c->m, &before, o, &then, e) != 0)
        return -1;
    return settled_plan(c->m, &then, NULL, out, e);
}

int mw_chat_cost(struct mw_chat *c, uint32_t n_token, struct mw_cost *out, struct err *e)
{
    struct mw_sample *sample = malloc(sizeof *sample);
    struct cost_basis *basis;
    struct plan plan;
    uint32_t n_ahead;

    *out = (struct mw_cost){ .n_token = n_token + TURN_MARKS };
    if (sample == NULL)
        return err_memory(e, "the cost of a message");
    mw_chat_sample(c, sample);
    pthread_mutex_lock(&c->lock);
    plan = c->plan;
    out->n_again = c->n_again;
    n_ahead = c->n_ahead;
    pthread_mutex_unlock(&c->lock);
    /* The same tokens are left as in the sample.  The marks of the turn are the message's. */
    if (sample->kv.capacity > sample->kv.context)
        out->n_ctx_left = (uint32_t)(sample->kv.capacity - sample->kv.context);
    if (n_ahead > sample->kv.context)
        out->n_token += (uint32_t)(n_ahead - sample->kv.context);
    basis = basis_new(c, &plan, sample->mem.used[MW_ROW_PINNED] + sample->mem.saved_bytes);
    free(sample);
    if (basis == NULL)
        return err_memory(e, "the cost of a message");
    basis->n_before = n_ahead > out->n_again ? n_ahead - out->n_again : 0;
    cost_estimate(basis, out);
    free(basis);
    return 0;
}

void mw_chat_cost_again(struct mw_chat *c, const struct plan *plan, struct mw_cost *out)
{
    struct cost_basis *basis;
    uint32_t n_held;

    *out = (struct mw_cost){ 0 };
    pthread_mutex_lock(&c->lock);
    /* Tokens whose keys and values are held. */
    n_held = c->is_working ? held_now(c) : 0;
    out->n_again = c->n_ahead > n_held ? c->n_ahead : n_held;
    pthread_mutex_unlock(&c->lock);
    if (out->n_again == 0)
        return;
    basis = basis_new(c, plan, plan->pinned_bytes + plan->saved_bytes);
    if (basis != NULL)
        cost_estimate(basis, out);
    free(basis);
}

uint32_t mw_chat_tokens(struct mw_chat *c)
{
    uint32_t tokens;

    pthread_mutex_lock(&c->lock);
    tokens = context_now(c);
    pthread_mutex_unlock(&c->lock);
    return tokens;
}
