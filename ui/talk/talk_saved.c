/*
 * The copy of a conversation on disk.
 *
 * The store has all of the conversation, whether it can be written or not.  When a write
 * fails, the screen says once that saving is suspended; every later write, and
 * talk_tick from time to time, tries to write all that is missing.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/store/store.h"
#include "ui/talk/talk.h"

#define LOOK_BACK 100 /* items, for a receipt */
#define RETRY_NS  ((uint64_t)5 * 1000 * 1000 * 1000)

void saved_folder(const struct talk *t, char *buf, size_t n)
{
    snprintf(buf, n, "%s/chats", t->o.paths.data_dir);
}

static int begin_new(struct talk *t, struct err *e)
{
    char dir[4096];

    saved_folder(t, dir, sizeof dir);
    t->is_unsaved = t->said_gone = false;
    return store_new(&t->store, t->o.no_save ? NULL : dir, t->info.name, e);
}

/* result is what a function of the store returned. */
static void note(struct talk *t, int result, const struct err *e)
{
    bool was_unsaved = t->is_unsaved;
    uint32_t n_lost;

    if (store_take_moved(t->store, &n_lost)) {
        talk_error(t,
                   "another program removed or changed the file of this chat; the chat is "
                   "written again, to %s",
                   store_path(t->store));
        if (n_lost > 0)
            talk_error(t, "the text of %u earlier messages was lost with the old file", n_lost);
    }
    if (!t->said_gone && store_oldest(t->store) > 0) {
        t->said_gone = true;
        talk_notice(t,
                    "this chat is not saved and has become long: of its text, only about the "
                    "newest %zu MiB are kept in memory",
                    STORE_MEMORY_BYTES >> 20);
    }
    t->is_unsaved = result != 0;
    if (result != 0) {
        err_text(e, t->unsaved_why, sizeof t->unsaved_why);
        t->unsaved_ns = clock_ns();
        if (!was_unsaved)
            talk_error(t,
                       "saving is suspended: %s. The chat goes on, and saving resumes when it "
                       "can; /save FILE writes the chat somewhere else",
                       t->unsaved_why);
    } else if (was_unsaved) {
        talk_notice(t, "saving has resumed: all of the chat is in %s", store_path(t->store));
    }
}

bool saved_retry(struct talk *t)
{
    struct err e = ERR_INIT;

    if (t->store != NULL)
        note(t, store_sync(t->store, &e), &e);
    return !t->is_unsaved;
}

bool saved_has_room(struct talk *t)
{
    struct err e = ERR_INIT;
    char why[300];

    if (t->store == NULL || store_check_room(t->store, &e) == 0 || saved_retry(t))
        return true;
    err_text(&e, why, sizeof why);
    talk_error(t,
               "%s, and saving fails: %s. Free disk space, or use /save FILE to write the chat "
               "somewhere else",
               why, t->unsaved_why);
    return false;
}

bool saved_may_leave(struct talk *t)
{
    if (saved_retry(t) || t->has_asked_to_leave)
        return true;
    t->has_asked_to_leave = true;
    talk_error(t,
               "not all of the chat is saved: %s. /save FILE writes it somewhere else; leave "
               "again to leave without it",
               t->unsaved_why);
    return false;
}

int saved_finish(struct talk *t, char *path, size_t n, struct err *e)
{
    int rc = t->store == NULL ? 0 : store_finish(t->store, e);

    snprintf(path, n, "%s", saved_path(t));
    if (rc != 0) {
        char why[300];

        err_text(e, why, sizeof why);
        *e = (struct err)ERR_INIT;
        return err_set(e, ERR_IO, "not all of the chat is saved: %s", why);
    }
    return 0;
}

void talk_tick(struct talk *t)
{
    if (talk_wait(t) == 0)
        saved_retry(t);
}

uint64_t talk_wait(const struct talk *t)
{
    uint64_t past = t->is_unsaved ? clock_ns() - t->unsaved_ns : 0;

    if (!t->is_unsaved)
        return UINT64_MAX;
    return past >= RETRY_NS ? 0 : RETRY_NS - past;
}

/* How many messages it holds and how it ends. */
static void count_messages(struct talk *t)
{
    t->n_message = t->n_dropped = 0;
    t->has_last = false;
    for (uint32_t i = 0; i < store_messages(t->store); i++)
        talk_count(t, store_is_user(t->store, i));
    for (uint32_t i = store_count(t->store), n = 0; i-- > 0 && n < LOOK_BACK && !t->has_last;
         n++) {
        const struct store_item *item = store_item(t->store, i);

        t->has_last = item->has_receipt;
        if (item->has_receipt)
            t->last = item->receipt;
    }
}

/* Messages that waited when the chat was left wait again, if all of them fit the context. */
static int take_queue(struct talk *t, struct store *s, struct err *e)
{
    uint32_t n = store_queue_count(s);
    size_t max, room = talk_text_room(t, &max);
    struct store_text text;

    if (store_queue_bytes(s) > room) {
        char why[300];

        snprintf(why, sizeof why,
                 "the %u messages that waited when this chat was left have %llu bytes, and %zu "
                 "fit the context; they are not sent, and stay in the file",
                 n, (unsigned long long)store_queue_bytes(s), room);
        saved_unqueue(t, n);
        saved_notice(t, why); /* the screen shows what is saved */
        talk_error(t, "%s", why);
        return 0;
    }
    for (uint32_t i = 0; i < n && t->n_queue < TALK_MAX_QUEUE; i++) {
        if (store_queue_text(s, i, &text, e) != 0)
            return -1;
        free(text.thinking);
        t->queue[t->n_queue++] = text.text;
        t->n_resumed++;
    }
    return 0;
}

int saved_open(struct talk *t, const char *name, struct err *e)
{
    struct store *s = NULL;
    char dir[4096], path[4400];

    if (name == NULL)
        return begin_new(t, e);
    saved_folder(t, dir, sizeof dir);
    if (store_find(dir, name, path, sizeof path, e) != 0 || store_open(&s, path, e) != 0)
        return -1;
    talk_return_waiting(t); /* these are of the chat that is left */
    store_close(t->store);
    t->store = s;
    t->is_unsaved = false;
    count_messages(t);
    return take_queue(t, s, e);
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

    store_close(t->store);
    t->store = NULL;
    if (begin_new(t, &e) != 0)
        talk_err(t, &e);
    for (size_t i = 0; i < t->n_queue; i++)
        saved_queue(t, t->queue[i]);
}

static uint32_t add(struct talk *t, enum store_kind kind, const char *text, size_t n)
{
    uint32_t item = STORE_NO_ITEM;
    struct err e = ERR_INIT;

    if (t->store != NULL)
        note(t, store_add(t->store, kind, text, n, &item, &e), &e);
    return item;
}

uint32_t saved_user(struct talk *t, const char *text, size_t n, bool from_queue)
{
    uint32_t item = STORE_NO_ITEM;
    struct err e = ERR_INIT;

    if (t->store != NULL && store_count(t->store) == 0 && t->options.system != NULL)
        add(t, STORE_SYSTEM, t->options.system, strlen(t->options.system));
    if (!from_queue)
        return add(t, STORE_USER, text, n);
    if (t->store != NULL)
        note(t, store_add_queued(t->store, text, n, &item, &e), &e);
    return item;
}

void saved_queue(struct talk *t, const char *text)
{
    struct err e = ERR_INIT;

    if (t->store != NULL)
        note(t, store_queue(t->store, text, strlen(text), &e), &e);
}

void saved_unqueue(struct talk *t, size_t n)
{
    struct err e = ERR_INIT;

    if (t->store != NULL && n > 0)
        note(t, store_unqueue(t->store, n, &e), &e);
}

uint32_t saved_notice(struct talk *t, const char *text)
{
    return add(t, STORE_NOTICE, text, strlen(text));
}

void saved_piece(struct talk *t, const char *text, size_t n, bool is_thinking, bool resume)
{
    struct err e = ERR_INIT;

    if (t->store != NULL)
        note(t, store_piece(t->store, text, n, is_thinking, resume, NULL, &e), &e);
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
    if (t->store != NULL)
        note(t, store_done(t->store, r, context, &e), &e);
    return t->store == NULL ? STORE_NO_ITEM : store_count(t->store) - 1;
}

void saved_rewind(struct talk *t, size_t n)
{
    struct err e = ERR_INIT;

    if (t->store != NULL)
        note(t, store_rewind(t->store, n, &e), &e);
}

int saved_find(const struct talk *t, size_t n, struct err *e)
{
    uint32_t item;

    return t->store != NULL && n < store_messages(t->store)
               ? store_item_of(t->store, (uint32_t)n, &item, e)
               : 0;
}

char *saved_text(const struct talk *t, size_t n)
{
    struct err e = ERR_INIT;
    struct store_text text;
    uint32_t item;
    size_t max;

    talk_text_room(t, &max);
    if (t->store == NULL || n >= store_messages(t->store) ||
        store_item_of(t->store, (uint32_t)n, &item, &e) != 0 ||
        store_text_start(t->store, item, max, &text, &e) != 0)
        return NULL;
    free(text.thinking);
    return text.text;
}

static bool is_message(const struct store_item *item)
{
    return item->kind == STORE_USER || item->kind == STORE_ANSWER;
}

/* A message in memory takes this beside its text; a token has room for twice as much. */
#define MESSAGE_BYTES (sizeof(struct mw_message) + sizeof(struct store_text))

/* The first of the newest items that the context may hold: a question if any message has to
 * stay behind.  *n_before, *n: messages before it, and from it on. */
static uint32_t first_that_fits(const struct talk *t, size_t *n_before, size_t *n_message)
{
    uint32_t count = t->store == NULL ? 0 : store_count(t->store), from = count;
    size_t bytes = 0, max;

    *n_before = *n_message = 0;
    talk_text_room(t, &max);
    while (from > (t->store == NULL ? 0 : store_oldest(t->store))) {
        const struct store_item *item = store_item(t->store, from - 1);
        size_t n = is_message(item)
                       ? (size_t)item->text_bytes + item->thinking_bytes + MESSAGE_BYTES
                       : 0;

        if (n > max - bytes)
            break;
        bytes += n;
        *n_message += is_message(item);
        from--;
    }
    while (from > 0 && from < count && store_item(t->store, from)->kind != STORE_USER)
        *n_message -= is_message(store_item(t->store, from++));
    *n_before = t->store == NULL ? 0 : store_messages(t->store) - *n_message;
    return from;
}

int saved_restore(struct talk *t, struct err *e)
{
    size_t n = 0, n_before, n_message;
    uint32_t count = t->store == NULL ? 0 : store_count(t->store);
    uint32_t from = first_that_fits(t, &n_before, &n_message);
    struct mw_message *messages = calloc(n_message + 1, sizeof *messages);
    struct store_text *texts = calloc(n_message + 1, sizeof *texts);
    int rc = messages == NULL || texts == NULL ? err_memory(e, "%zu messages", n_message) : 0;

    for (uint32_t i = from; i < count && rc == 0; i++) {
        const struct store_item *item = store_item(t->store, i);

        if (!is_message(item))
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
        rc = mw_chat_restore(t->chat, messages, n, n_before, e);
    if (rc == 0) {
        t->n_absent = n_before;
        t->restored_ctx = t->plan.n_ctx;
    }
    for (size_t i = 0; texts != NULL && i < n; i++)
        store_text_free(&texts[i]);
    free(texts);
    free(messages);
    return rc;
}
