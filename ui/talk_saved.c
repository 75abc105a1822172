/* The copy of a conversation on disk.  Saving that fails is said once and given up: the chat
 * goes on. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/chat/store.h"
#include "ui/talk.h"

void saved_folder(const struct talk *t, char *buf, size_t n)
{
    snprintf(buf, n, "%s/chats", t->o.paths.data_dir);
}

static int begin_new(struct talk *t, struct err *e)
{
    char dir[4096];

    saved_folder(t, dir, sizeof dir);
    return store_new(&t->store, dir, t->info.name, e);
}

static void give_up(struct talk *t, const struct err *e)
{
    char text[700];

    store_close(t->store);
    t->store = NULL;
    err_text(e, text, sizeof text);
    talk_error(t, "the chat is not saved any more: %s", text);
}

/* How many messages it holds and how it ends. */
static void count_messages(struct talk *t)
{
    t->n_message = t->n_dropped = 0;
    t->has_last = false;
    for (uint32_t i = 0; i < store_count(t->store); i++) {
        const struct store_item *item = store_item(t->store, i);

        if (item->kind != STORE_USER && item->kind != STORE_ANSWER)
            continue;
        talk_count(t, item->kind == STORE_USER);
        if (item->has_receipt) {
            t->last = item->receipt;
            t->has_last = true;
        }
    }
}

int saved_open(struct talk *t, const char *name, struct err *e)
{
    struct store *s = NULL;
    char dir[4096], path[4400];

    if (name == NULL)
        return t->o.no_save ? 0 : begin_new(t, e);
    saved_folder(t, dir, sizeof dir);
    if (store_find(dir, name, path, sizeof path, e) != 0 || store_open(&s, path, e) != 0)
        return -1;
    store_close(t->store);
    t->store = s;
    count_messages(t);
    return 0;
}

void saved_close(struct talk *t)
{
    store_close(t->store);
    t->store = NULL;
}

const char *saved_path(const struct talk *t)
{
    return t->store == NULL ? "" : store_path(t->store);
}

void saved_new(struct talk *t)
{
    struct err e = ERR_INIT;

    if (t->store == NULL)
        return;
    store_close(t->store);
    t->store = NULL;
    if (begin_new(t, &e) != 0)
        give_up(t, &e);
}

static uint32_t add(struct talk *t, enum store_kind kind, const char *text, size_t n)
{
    uint32_t item = STORE_NO_ITEM;
    struct err e = ERR_INIT;

    if (t->store != NULL && store_add(t->store, kind, text, n, &item, &e) != 0)
        give_up(t, &e);
    return item;
}

uint32_t saved_user(struct talk *t, const char *text, size_t n)
{
    if (t->store != NULL && store_count(t->store) == 0 && t->options.system != NULL)
        add(t, STORE_SYSTEM, t->options.system, strlen(t->options.system));
    return add(t, STORE_USER, text, n);
}

uint32_t saved_notice(struct talk *t, const char *text)
{
    return add(t, STORE_NOTICE, text, strlen(text));
}

void saved_piece(struct talk *t, const char *text, size_t n, bool is_thinking, bool resume)
{
    struct err e = ERR_INIT;

    if (t->store != NULL && store_piece(t->store, text, n, is_thinking, resume, NULL, &e) != 0)
        give_up(t, &e);
}

uint32_t saved_done(struct talk *t, const struct mw_receipt *r)
{
    struct err e = ERR_INIT;
    struct mw_sample *s = malloc(sizeof *s);
    uint64_t context = 0;

    if (s != NULL) {
        mw_chat_sample(t->chat, s);
        context = s->kv.tokens;
    }
    free(s);
    if (t->store != NULL && store_done(t->store, r, context, &e) != 0)
        give_up(t, &e);
    return t->store == NULL ? STORE_NO_ITEM : store_count(t->store) - 1;
}

void saved_rewind(struct talk *t, size_t n)
{
    struct err e = ERR_INIT;

    if (t->store != NULL && store_rewind(t->store, n, &e) != 0)
        give_up(t, &e);
}

char *saved_text(const struct talk *t, size_t n)
{
    struct err e = ERR_INIT;
    struct store_text text;
    size_t at = 0;

    for (uint32_t i = 0; t->store != NULL && i < store_count(t->store); i++) {
        const struct store_item *item = store_item(t->store, i);

        if ((item->kind != STORE_USER && item->kind != STORE_ANSWER) || at++ != n)
            continue;
        if (store_text(t->store, i, &text, &e) != 0)
            return NULL;
        free(text.thinking);
        return text.text;
    }
    return NULL;
}

int saved_restore(struct talk *t, struct err *e)
{
    uint32_t count = t->store == NULL ? 0 : store_count(t->store);
    struct mw_message *messages = calloc((size_t)count + 1, sizeof *messages);
    struct store_text *texts = calloc((size_t)count + 1, sizeof *texts);
    size_t n = 0;
    int rc = messages == NULL || texts == NULL
                 ? err_set(e, ERR_MEMORY, "no memory for %u messages", count)
                 : 0;

    for (uint32_t i = 0; i < count && rc == 0; i++) {
        const struct store_item *item = store_item(t->store, i);

        if (item->kind != STORE_USER && item->kind != STORE_ANSWER)
            continue;
        rc = store_text(t->store, i, &texts[n], e);
        if (rc != 0)
            break;
        messages[n] = (struct mw_message){
            .role = item->kind == STORE_USER ? MW_USER : MW_ASSISTANT,
            .text = texts[n].text,
            .len = texts[n].len,
            .thinking = texts[n].thinking,
            .thinking_len = texts[n].thinking_len,
        };
        n++;
    }
    if (rc == 0)
        rc = mw_chat_restore(t->chat, messages, n, e);
    for (size_t i = 0; texts != NULL && i < n; i++)
        store_text_free(&texts[i]);
    free(texts);
    free(messages);
    return rc;
}
