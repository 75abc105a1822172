/* The engine thread: loads the model, then runs one command after the other. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/units.h"
#include "engine/session/chat_internal.h"
#include "engine/session/draft_model.h"

static void post_error(struct mw_chat *c, const struct err *e)
{
    events_post(c->events, &(struct mw_event){ .kind = MW_EVENT_ERROR, .err = *e });
}

void chat_set_session(struct mw_chat *c, struct mw_session *s)
{
    pthread_mutex_lock(&c->lock);
    c->session = s;
    pthread_mutex_unlock(&c->lock);
    if (s != NULL)
        session_set_wake(s, chat_wake, c);
}

/* A drafter that is opened again. */
struct opening {
    struct mw_chat *c;
    bool is_said;
};

/* Reading a model of gigabytes takes seconds, in which nothing else happens. */
static void say_opening(void *ctx, const struct mw_options *o)
{
    static const char again[] = "drafts are tried again";
    struct opening *x = ctx;
    struct mw_model *draft;
    struct mw_model_info info;
    struct err ignored = ERR_INIT;
    char text[160], size[16];

    x->is_said = true;
    if (o->draft == MW_DRAFT_SELF)
        snprintf(text, sizeof text, "%s: copies of the weights are made while these are read",
                 again);
    else if (o->draft == MW_DRAFT_FILE &&
             draft_model_open(&draft, x->c->m, o->draft_file, &ignored) == 0) {
        mw_model_info(draft, &info);
        snprintf(text, sizeof text, "%s: the model that makes them is read, %s", again,
                 units_size(size, sizeof size, info.file_bytes));
    } else {
        snprintf(text, sizeof text, "%s: the head that makes them is read", again);
    }
    chat_post_notice(x->c, text);
}

static void try_drafter(struct mw_chat *c)
{
    struct opening x = { .c = c };
    struct err e = ERR_INIT;
    char why[300], text[400];

    if (session_try_drafter(c->session, say_opening, &x, &e)) {
        chat_keep_plan(c);
    } else if (x.is_said && e.code != ERR_CANCELLED) {
        err_text(&e, why, sizeof why);
        snprintf(text, sizeof text, "there are no such drafts: %s", why);
        chat_post_notice(c, text);
    }
}

static void do_answer(struct mw_chat *c, bool is_continued)
{
    c->answerer.session = c->session;
    c->answerer.change = chat_change_now;
    c->answerer.change_ctx = c;
    c->answerer.beginnings = &c->beginnings;
    try_drafter(c);
    answer_run(&c->answerer, is_continued);
}

/* The end of an answer that never began. */
static void post_done(struct mw_chat *c, enum mw_done done, const struct err *e)
{
    events_post(c->events,
                &(struct mw_event){ .kind = MW_EVENT_DONE, .receipt.done = done, .err = *e });
}

static void do_send(struct mw_chat *c, struct chat_command *command)
{
    struct answerer *a = &c->answerer;
    struct err e = ERR_INIT;

    if (command->is_cancelled) {
        post_done(c, MW_DONE_CANCELLED, &e);
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

static void do_ask(struct mw_chat *c, struct chat_command *command)
{
    struct conversation *v = &c->conversation;
    bool was_loaded = c->session != NULL;
    struct err e = ERR_INIT;

    chat_ask_kv(c);
    if (command->is_cancelled) {
        post_done(c, MW_DONE_CANCELLED, &e);
        return;
    }
    conversation_free(v);
    v->system = c->settings.o.system;
    if (chat_apply_settings(c, command, &e) != 0 ||
        (command->asked.messages == NULL && command->asked.ids.n == 0 &&
         conversation_add(v, CHAT_USER, command->text, command->len, &e) == NULL)) {
        post_done(c, MW_DONE_ERROR, &e);
        return;
    }
    if (!was_loaded)
        chat_post_plan(c, MW_EVENT_READY);
    chat_post_no_drafter(c);
    if (command->asked.messages != NULL || command->asked.ids.n > 0)
        v->asked = &command->asked;
    do_answer(c, false);
    conversation_free(v);
    v->system = c->settings.o.system;
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
        conversation_cut_answer(v);
    if (v->n_turn == 0 || conversation_ends_aside(v)) {
        err_set(&e, ERR_ARGUMENT, "there is no answer to make again");
        post_error(c, &e);
    } else {
        do_answer(c, false);
    }
}

static void run_command(struct mw_chat *c, struct chat_command *command)
{
    struct err e = ERR_INIT;

    if (c->session == NULL && command->kind != DO_SET && command->kind != DO_ASK &&
        command->kind != DO_RESTORE && command->kind != DO_SAVE_KV &&
        command->kind != DO_LOAD_KV && command->kind != DO_SHARE_KV) {
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
    case DO_REWIND:
        conversation_rewind(&c->conversation, command->n);
        if (command->n == 0)
            chat_forget_kv(c);
        break;
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
        chat_forget_kv(c);
        break;
    }
    case DO_SAVE_KV: chat_wish_kv(c, command); break;
    case DO_LOAD_KV: chat_load_kv(c, command); break;
    case DO_SHARE_KV: chat_share_kv(c, command); break;
    case DO_SET: chat_do_set(c, command); break;
    case DO_ASK: do_ask(c, command); break;
    }
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
    chat_set_session(c, s);
    /* The stream already reads the first blocks while the tokenizer is built. */
    if (chat_prepare_answerer(c, &c->settings.o, &answerer, &e) != 0) {
        chat_set_session(c, NULL);
        mw_session_close(s);
        post_error(c, &e);
        return;
    }
    chat_take_answerer(c, &answerer);
    chat_post_plan(c, MW_EVENT_READY);
    chat_post_notice(c, mw_model_key_notice(c->m));
    chat_post_notice(c, mw_model_notice(c->m)); /* what the vocabulary's file leaves open */
    chat_post_notice(c, mw_products_notice(c->m, &c->settings.o.engine));
    chat_post_notice(c, mw_mirror_notice(c->m, &c->settings.o.engine));
    chat_post_no_drafter(c);
    chat_post_format_notice(c);
}

void *chat_thread(void *ctx)
{
    struct mw_chat *c = ctx;
    struct chat_command *command;
    struct mw_session *session;

    load(c);
    while ((command = chat_take_command(c)) != NULL) {
        run_command(c, command);
        chat_look_ahead(c);
        chat_command_free(command);
        chat_save_kv(c);
    }
    /* Close on this thread: closing waits for reads in flight. */
    session = c->session;
    chat_set_session(c, NULL);
    mw_session_close(session);
    pthread_mutex_lock(&c->lock);
    c->is_over = true;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}
