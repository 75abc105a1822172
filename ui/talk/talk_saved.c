/* A saved chat becomes the conversation: counted here, and given to the engine. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/talk/talk_internal.h"
#include "ui/words/clean.h"

#define LOOK_BACK 100 /* items to search for a receipt */

static uint32_t count_items(const struct store *s)
{
    return s == NULL ? 0 : store_count(s);
}

/* ---- open ---- */

/* Take the messages and the last receipt from the store. */
static void count_messages(struct talk *t, const struct store *s)
{
    uint32_t n = store_count(s), end = n > LOOK_BACK ? n - LOOK_BACK : 0, last;
    struct err ignored = ERR_INIT;

    ledger_clear(&t->ledger);
    for (uint32_t i = 0; i < store_messages(s); i++)
        ledger_add(&t->ledger, store_is_user(s, i));
    t->n_unfinished = 0;
    if (t->ledger.n > 0 && !ledger_ends_with_user(&t->ledger) &&
        store_item_of(s, store_messages(s) - 1, &last, &ignored) == 0 &&
        answer_can_go_on(store_item(s, last)->done))
        t->n_unfinished = t->ledger.n;
    t->has_last = false;
    while (n > end && !t->has_last) {
        const struct store_item *item = store_item(s, --n);

        t->has_last = item->has_receipt;
        if (item->has_receipt)
            t->last = item->receipt;
    }
}

/* Messages that waited when the chat was left wait again, if all of them fit the context. */
static int take_queue(struct talk *t, struct store *s, struct err *e)
{
    uint32_t n = store_queue_count(s);
    size_t room = talk_text_room(t);
    struct store_text text;

    if (store_queue_bytes(s) > room) {
        char why[300];

        snprintf(why, sizeof why,
                 "the %u messages that waited when this chat was left have %llu bytes, and %zu "
                 "fit the context; they are not sent, and stay in the file",
                 n, (unsigned long long)store_queue_bytes(s), room);
        saving_unqueue(&t->saving, n);
        saving_notice(&t->saving, why); /* the screen shows saved items */
        talk_error(t, "%s", why);
        return 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (store_queue_text(s, i, &text, e) != 0)
            return -1;
        free(text.thinking);
        if (!outbox_push(&t->outbox, &(struct outbox_message){ text.text, text.attached })) {
            free(text.text);
            break;
        }
        t->outbox.n_resumed++;
    }
    return 0;
}

/* The chat that was opened becomes the conversation. */
static int take_chat(struct talk *t, struct err *e)
{
    count_messages(t, t->saving.store);
    return take_queue(t, t->saving.store, e) != 0 ? -1 : saved_restore(t, e);
}

int saved_open(struct talk *t, struct err *e)
{
    const char *name = t->o->options->open_chat;
    struct change change = { .o = t->changes.asked };
    struct store *s;
    char *system;
    int rc = 0;

    if (name == NULL)
        return 0;
    if (saving_open(&t->saving, name, &s, e) != 0)
        return -1;
    saving_adopt(&t->saving, s);
    system = saving_system_text(&t->saving);
    if (kept_takes_system(t, &change.o, system)) {
        change.o.system = system;
        rc = changes_ask(&t->changes, NULL, &change, e);
    }
    free(system);
    return rc;
}

int saved_begin(struct talk *t, struct err *e)
{
    if (t->o->options->open_chat == NULL)
        return saving_begin(&t->saving, t->info.name, e);
    if (take_chat(t, e) != 0)
        return -1;
    kv_load(t);
    return 0;
}

/* The open model answers, whatever the model of the chat was. */
static void say_other_model(struct talk *t)
{
    const char *file = store_model(t->saving.store)->file;
    char was[300], is[300];

    if (file[0] == '\0' || talk_has_server(t) || strcmp(file, t->model_lasting) == 0)
        return;
    clean_line(was, sizeof was, file, strlen(file));
    clean_line(is, sizeof is, t->model_lasting, strlen(t->model_lasting));
    talk_notice(t, "the model of this chat was %s; %s answers now, and /model switches", was, is);
}

int talk_open_saved(struct talk *t, const char *name, struct err *e)
{
    struct store *s;
    char *system;

    if (saving_open(&t->saving, name, &s, e) != 0)
        return -1;
    messages_return_waiting(t); /* they belong to the chat that is left */
    saving_adopt(&t->saving, s);
    if (take_chat(t, e) != 0)
        return -1;
    system = saving_system_text(&t->saving);
    t->front.restored(t->front.ctx);
    saving_say_opened(&t->saving);
    say_other_model(t);
    kept_of_chat(t, system);
    free(system);
    kv_share(t);
    kv_load(t); /* with the KV types of the chat */
    t->front.changed(t->front.ctx);
    return 0;
}

char *talk_saved_text(const struct talk *t, size_t n)
{
    return saving_text(&t->saving, n, talk_text_max(t));
}

/* ---- restore ---- */

static bool is_message(const struct store_item *item)
{
    return item->kind == STORE_USER || item->kind == STORE_ANSWER;
}

/* Memory of a message beside its text.  mw_text_bytes allows for twice as much per token. */
#define MESSAGE_BYTES (sizeof(struct mw_message) + sizeof(struct store_text))

/*
 * Returns the first of the newest items that fit the context, at most from the last summary on.
 * If older messages are left out, it is a question.  *n_before, *n_message: messages before it, and from it on.
 */
static uint32_t first_that_fits(const struct talk *t, size_t *n_before, size_t *n_message)
{
    const struct store *s = t->saving.store;
    uint32_t count = count_items(s), from = count;
    size_t bytes = 0, max = talk_text_max(t);

    *n_before = *n_message = 0;
    if (s == NULL)
        return 0;
    while (from > store_oldest(s)) {
        const struct store_item *item = store_item(s, from - 1);
        size_t n = is_message(item)
                       ? (size_t)item->text_bytes + item->thinking_bytes + MESSAGE_BYTES
                       : 0;

        if (n > max - bytes)
            break;
        bytes += n;
        *n_message += is_message(item);
        from--;
        if (item->kind == STORE_USER && item->is_summary)
            break;
    }
    while (from > 0 && from < count && store_item(s, from)->kind != STORE_USER)
        *n_message -= is_message(store_item(s, from++));
    *n_before = store_messages(s) - *n_message;
    return from;
}

/* How the answer goes on that the chat ends with.  ids belong to the caller. */
static int read_cut(const struct store *s, uint32_t item, uint32_t **ids, struct mw_cut *cut,
                    struct err *e)
{
    const struct store_item *answer = store_item(s, item);

    *cut = (struct mw_cut){ .n_held = answer->n_held,
                            .holds_thinking = answer->holds_thinking };
    if (store_ids(s, item, ids, &cut->n_ids, e) != 0)
        return -1;
    cut->ids = *ids;
    return 0;
}

void saved_held(struct talk *t)
{
    const struct store *s = t->saving.store;
    struct err ignored = ERR_INIT;
    struct held *h = &t->held;
    const struct store_item *answer;
    struct store_text text;
    uint32_t item;

    h->n = 0;
    if (s == NULL || store_messages(s) == 0 ||
        store_item_of(s, store_messages(s) - 1, &item, &ignored) != 0)
        return;
    answer = store_item(s, item);
    if (answer->n_held == 0 || answer->n_held > sizeof h->text ||
        store_text(s, item, &text, &ignored) != 0)
        return;
    h->n = answer->n_held;
    h->is_thinking = answer->holds_thinking;
    memcpy(h->text, (h->is_thinking ? text.thinking + text.thinking_len : text.text + text.len) -
                        h->n,
           h->n);
    store_text_free(&text);
}

/* Set how many answers to the last question came before the last answer, and how many all are. */
static void count_attempts(const struct store *s, const struct store_item *answer,
                           struct mw_message *messages, size_t n)
{
    struct mw_message *last = &messages[n - 1];

    last->attempt = answer->receipt.attempt;
    if (n > 1 && messages[n - 2].role == MW_USER) {
        uint32_t others = store_attempts(s);

        messages[n - 2].attempt = others > last->attempt ? others : last->attempt + 1;
    }
}

/* Read the messages from item `from` on.  *n: how many were read, also on failure. */
static int read_messages(const struct store *s, uint32_t from, struct mw_message *messages,
                         struct store_text *texts, uint32_t **ids, size_t *n, struct err *e)
{
    uint32_t last = STORE_NO_ITEM;

    *n = 0;
    for (uint32_t i = from; i < count_items(s); i++) {
        const struct store_item *item = store_item(s, i);
        enum mw_role role = item->kind == STORE_USER ? MW_USER : MW_ASSISTANT;
        struct store_text *text = &texts[*n];

        if (!is_message(item))
            continue;
        if (store_text(s, i, text, e) != 0)
            return -1;
        messages[(*n)++] = (struct mw_message){ .role = role,
                                                .text = text->text,
                                                .len = text->len,
                                                .thinking = text->thinking,
                                                .thinking_len = text->thinking_len,
                                                .is_aside = item->is_help };
        last = role == MW_ASSISTANT ? i : STORE_NO_ITEM;
    }
    if (last == STORE_NO_ITEM)
        return 0;
    count_attempts(s, store_item(s, last), messages, *n);
    return read_cut(s, last, ids, &messages[*n - 1].cut, e);
}

int saved_restore(struct talk *t, struct err *e)
{
    size_t n = 0, n_before, n_message;
    uint32_t from = first_that_fits(t, &n_before, &n_message);
    struct mw_message *messages = calloc(n_message + 1, sizeof *messages);
    struct store_text *texts = calloc(n_message + 1, sizeof *texts);
    uint32_t *ids = NULL; /* of the last answer */
    bool is_whole; /* a summary replaces the messages before */
    int rc = messages == NULL || texts == NULL
                 ? err_memory(e, "the messages of the chat")
                 : read_messages(t->saving.store, from, messages, texts, &ids, &n, e);

    is_whole = from < count_items(t->saving.store) && store_item(t->saving.store, from)->is_summary;
    if (rc == 0 && n > 0)
        messages[0].is_summary = is_whole;
    if (rc == 0)
        rc = t->engine->calls->restore(t->engine, messages, n, n_before, e);
    if (rc == 0) {
        t->ledger.n_dropped = is_whole ? n_before : 0;
        t->ledger.n_absent = is_whole ? 0 : n_before;
        t->ledger.restored_ctx = t->plan.n_ctx;
    }
    for (size_t i = 0; texts != NULL && i < n; i++)
        store_text_free(&texts[i]);
    free(ids);
    free(texts);
    free(messages);
    return rc;
}
