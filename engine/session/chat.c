/* The side of the program: see chat_internal.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/session/chat_internal.h"
#include "engine/session/model.h"

/* This thread computes beside the workers of the pool and needs a stack as large. */
#define STACK_BYTES ((size_t)8 << 20)

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
    errno = thread_start(&c->thread, "engine", STACK_BYTES, chat_thread, c);
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
        struct chat_command *next = c->first->next;

        chat_command_free(c->first);
        c->first = next;
    }
    chat_answerer_free(&c->answerer, &(struct answerer){ 0 });
    token_tree_close(&c->tokens);
    mw_session_close(c->session);
    conversation_free(&c->conversation);
    settings_free(&c->settings);
    events_free(c->events);
    free(c->kv_wish);
    beginnings_free(&c->beginnings);
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

static int push_kind(struct mw_chat *c, enum chat_command_kind kind, size_t n, struct err *e)
{
    struct chat_command *command = chat_command_new(kind, e);

    if (command == NULL)
        return -1;
    command->n = n;
    return chat_push(c, command);
}

static int copy_text(struct chat_command *command, const char *text, size_t len, struct err *e)
{
    command->text = malloc(len + 1);
    if (command->text == NULL)
        return err_memory(e, "a message of %zu bytes", len);
    if (len > 0)
        memcpy(command->text, text, len);
    command->text[len] = '\0';
    command->len = len;
    return 0;
}

int mw_chat_send(struct mw_chat *c, const char *text, size_t len, struct err *e)
{
    return mw_chat_send_within(c, text, len, 0, e);
}

int mw_chat_send_within(struct mw_chat *c, const char *text, size_t len, uint32_t n_predict,
                        struct err *e)
{
    struct chat_command *command;
    uint64_t most;

    pthread_mutex_lock(&c->lock);
    most = mw_text_bytes(c->m, &c->settings.o.engine);
    pthread_mutex_unlock(&c->lock);
    if (len > most)
        return err_set(e, ERR_CONTEXT,
                       "a message of %zu bytes is too long for the context; at most %llu bytes "
                       "are held",
                       len, (unsigned long long)most);
    command = chat_command_new(DO_SEND, e);
    if (command == NULL)
        return -1;
    if (copy_text(command, text, len, e) != 0) {
        chat_command_free(command);
        return -1;
    }
    command->n = n_predict;
    return chat_push(c, command);
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
    struct chat_command *command = chat_command_new(DO_STASH, e);

    if (command == NULL)
        return -1;
    command->n = n;
    command->room = n_all - n;
    command->turns = calloc(command->room + 1, sizeof *command->turns);
    if (command->turns == NULL) {
        chat_command_free(command);
        return err_memory(e, "messages");
    }
    return chat_push(c, command);
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
    struct chat_command *command = chat_command_new(DO_RESTORE, e);

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
            chat_command_free(command);
            return -1;
        }
        t->is_aside = messages[i].is_aside;
        t->attempt = messages[i].attempt;
    }
    return chat_push(c, command);
}

static int push_path(struct mw_chat *c, enum chat_command_kind kind, const char *path, size_t n,
                     struct err *e)
{
    struct chat_command *command = chat_command_new(kind, e);

    if (command == NULL)
        return -1;
    command->n = n;
    if (copy_text(command, path, strlen(path), e) != 0) {
        chat_command_free(command);
        return -1;
    }
    return chat_push(c, command);
}

/* mw_chat_finish_kv() waits for one thing more.  Returns 0. */
static int count_wish(struct mw_chat *c)
{
    pthread_mutex_lock(&c->lock);
    c->kv_asked++;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

int mw_chat_save_kv(struct mw_chat *c, const char *path, uint64_t max_bytes, struct err *e)
{
    return push_path(c, DO_SAVE_KV, path, max_bytes, e) == 0 ? count_wish(c) : -1;
}

void mw_chat_finish_kv(struct mw_chat *c, unsigned ms)
{
    uint64_t until_ns = clock_ns() + ms * (uint64_t)1000000;

    pthread_mutex_lock(&c->lock);
    while (c->kv_done != c->kv_asked && !c->is_over &&
           clock_cond_wait(&c->wake, &c->lock, until_ns))
        continue;
    pthread_mutex_unlock(&c->lock);
}

int mw_chat_load_kv(struct mw_chat *c, const char *path, struct err *e)
{
    return push_path(c, DO_LOAD_KV, path, 0, e);
}

int mw_chat_share_kv(struct mw_chat *c, const char *folder, uint64_t max_bytes, struct err *e)
{
    return push_path(c, DO_SHARE_KV, folder, max_bytes, e);
}

/* Read the texts of a request. */
static int take_request(struct chat_command *command, const struct mw_request *r, struct err *e)
{
    if (r->n_ids > 0)
        return ids_append(&command->asked.ids, r->ids, r->n_ids, e);
    if (r->messages == NULL)
        return copy_text(command, r->text, r->len, e);
    if (json_parse(&command->asked.messages, r->messages, r->messages_len, e) != 0)
        return err_at(e, NULL, ERR_NO_OFFSET, "messages");
    if (r->tools != NULL && json_parse(&command->asked.tools, r->tools, r->tools_len, e) != 0)
        return err_at(e, NULL, ERR_NO_OFFSET, "tools");
    return 0;
}

int mw_chat_ask(struct mw_chat *c, const struct mw_request *r, const struct mw_chat_options *o,
                struct err *e)
{
    uint64_t most = mw_text_bytes(c->m, &o->engine);
    size_t len = r->messages != NULL ? r->messages_len + r->tools_len : r->len;
    struct chat_command *command;

    if (len > most)
        return err_set(e, ERR_CONTEXT,
                       "a request of %zu bytes is too long for the context; at most %llu bytes "
                       "are held",
                       len, (unsigned long long)most);
    command = chat_command_new(DO_ASK, e);
    if (command == NULL)
        return -1;
    if (take_request(command, r, e) != 0 || settings_copy(&command->settings, o, e) != 0) {
        chat_command_free(command);
        return -1;
    }
    return chat_push(c, command) == 0 ? count_wish(c) : -1;
}

int mw_chat_set(struct mw_chat *c, const struct mw_chat_options *o, struct err *e)
{
    struct chat_command *command = chat_command_new(DO_SET, e);

    if (command == NULL)
        return -1;
    if (settings_copy(&command->settings, o, e) != 0) {
        chat_command_free(command);
        return -1;
    }
    return chat_push(c, command);
}
