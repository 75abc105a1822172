/* Messages: sending and stopping, going back, making an answer again. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/numbers.h"
#include "ui/talk/talk_internal.h"
#include "ui/talk/tokens.h"
#include "ui/talk/too_long.h"

static void changed(struct talk *t)
{
    t->front.changed(t->front.ctx);
}

/* ---- what fits ---- */

size_t talk_text_max(const struct talk *t)
{
    return t->text_max;
}

size_t talk_text_room(const struct talk *t)
{
    size_t max = talk_text_max(t), used = outbox_bytes(&t->outbox);

    return used < max ? max - used : 0;
}

bool talk_attach(struct talk *t, const char *name, char *text, size_t n)
{
    bool ok = outbox_attach(&t->outbox, name, text, n);

    changed(t);
    return ok;
}

bool messages_cut_file(struct talk *t, size_t i, size_t n)
{
    bool ok = outbox_cut(&t->outbox, i, n);

    changed(t);
    return ok;
}

void talk_keep_files(struct talk *t, size_t n)
{
    outbox_keep_files(&t->outbox, n);
    changed(t);
}

/* ---- what it costs ---- */

#define FRAME_TOKENS 8 /* name and marks around a file */

/* Count the tokens of the attached files, each once. */
static bool count_files(struct talk *t, uint32_t *sum)
{
    for (size_t i = 0; i < t->outbox.n_file; i++) {
        struct outbox_file *f = &t->outbox.file[i];

        if (f->n_token == 0 && !tokens_of(t->engine, f->text, f->n, &f->n_token))
            return false;
        *sum += f->n_token + FRAME_TOKENS;
    }
    return true;
}

bool messages_cost(struct talk *t, const char *text, bool with_files, struct mw_cost *out)
{
    struct err ignored = ERR_INIT;
    uint32_t n_token;

    return talk_is_loaded(t) && tokens_of(t->engine, text, strlen(text), &n_token) &&
           (!with_files || count_files(t, &n_token)) && t->engine->calls->cost != NULL &&
           t->engine->calls->cost(t->engine, n_token, out, &ignored) == 0;
}

bool talk_cost(struct talk *t, const char *text, struct mw_cost *out)
{
    return messages_cost(t, text, true, out);
}

bool talk_count(struct talk *t, const char *text, size_t n, uint32_t *out)
{
    return talk_is_loaded(t) && tokens_of(t->engine, text, n, out);
}

uint32_t talk_file_tokens(struct talk *t)
{
    const struct outbox *b = &t->outbox;
    uint32_t sum = 0;

    if (b->n_file == 0 || !talk_is_loaded(t) || !count_files(t, &sum))
        return 0;
    return b->file[b->n_file - 1].n_token;
}

/* ---- sending ---- */

void messages_begin_answer(struct talk *t, bool resumes)
{
    t->state = TALK_ANSWERING;
    t->n_unfinished = 0;
    t->answer = (struct answer){ .resumes = resumes };
    kept_model(t);
    if (!resumes)
        t->said = (struct mw_receipt){ .empty = MW_NOT_EMPTY };
    saved_held(t);
    changed(t);
}

/* The engine is free.  While it applies a change, which may take seconds, messages wait here,
 * and talk_stop() puts them back into the input line. */
static bool is_free(const struct talk *t)
{
    return t->state == TALK_READY && t->changes.n_pending == 0;
}

/* Without a screen, nothing else shows the files that come back with a message. */
static void name_files_from(struct talk *t, size_t first)
{
    for (size_t i = first; i < t->outbox.n_file && !talk_has_screen(t); i++)
        talk_notice(t, "with the next message: %s; /file - removes it", t->outbox.file[i].name);
}

/* A message goes back into the input line, and its files are attached again. */
static void draft_message(struct talk *t, const struct outbox_message *m)
{
    size_t n_file = t->outbox.n_file;

    talk_draft(t, outbox_return(&t->outbox, m));
    name_files_from(t, n_file);
}

void messages_add(struct talk *t, const struct outbox_message *m, bool from_queue)
{
    size_t n = strlen(m->text);
    uint32_t id;

    kept_model(t);
    kept_system(t);
    ledger_add(&t->ledger, true);
    id = from_queue ? saving_queued_user(&t->saving, m->text, n, &m->attached)
                    : saving_user(&t->saving, m->text, n, &m->attached);
    t->front.user(t->front.ctx, m->text, n, &m->attached, id);
}

/* Give a message to the engine; from_queue: it is the first of those that were queued.  Returns
 * whether it was answered at once, from the help texts. */
static bool send_now(struct talk *t, const struct outbox_message *m, bool from_queue)
{
    struct err e = ERR_INIT;

    if (help_reply(t, m, from_queue))
        return true;
    if (t->engine->calls->send(t->engine, m->text, strlen(m->text), 0, &e) != 0) {
        talk_report(t, &e);
        draft_message(t, m);
        saving_unqueue(&t->saving, from_queue);
        return false;
    }
    kept_save(t);
    messages_add(t, m, from_queue);
    messages_begin_answer(t, false);
    return false;
}

void talk_send(struct talk *t, const char *text)
{
    size_t room = talk_text_room(t), n = strlen(text);
    char size[16], most[16], ctx[24];
    struct mw_cost cost;

    if (n > room) {
        units_size(size, sizeof size, n);
        units_size(most, sizeof most, room);
        if (t->plan.n_ctx > 0)
            talk_error(t, "the message has %s; at most %s still fit the context of %s tokens",
                       size, most, numbers_count(ctx, sizeof ctx, t->plan.n_ctx));
        else
            talk_error(t, "the message has %s; at most %s can be sent", size, most);
        talk_draft(t, text);
        return;
    }
    if (!saving_has_room(&t->saving)) {
        talk_draft(t, text);
        return;
    }
    if (!help_knows(t, text) && too_long_is(t, text, true, &cost))
        too_long_offer(t, text, &cost);
    else
        messages_send_later(t, text);
}

void messages_send_later(struct talk *t, const char *text)
{
    struct outbox_message message;
    uint32_t n_token = 0;

    if (talk_is_loaded(t))
        (void)count_files(t, &n_token); /* for the label */
    message = outbox_message(&t->outbox, text);
    if (message.text == NULL) {
        talk_error(t, "not enough memory for the message");
        talk_draft(t, text);
        return;
    }
    if (is_free(t)) {
        outbox_keep_files(&t->outbox, 0);
        send_now(t, &message, false);
        free(message.text);
        return;
    }
    if (!outbox_push(&t->outbox, &message)) {
        talk_error(t, "%d messages are already queued", OUTBOX_MAX_QUEUE);
        talk_draft(t, text);
        free(message.text);
        return;
    }
    outbox_keep_files(&t->outbox, 0);
    saving_queue(&t->saving, message.text, &message.attached);
    changed(t);
}

void talk_send_waiting(struct talk *t)
{
    struct outbox *b = &t->outbox;
    struct mw_cost cost;
    bool is_answered = true;

    while (is_answered && b->n_queue > 0 && is_free(t)) {
        struct outbox_message next;

        if (b->n_resumed > 0)
            talk_notice(t, "sending %zu message%s that waited when this chat was left",
                        b->n_resumed, b->n_resumed == 1 ? "" : "s");
        b->n_resumed = 0;
        next = outbox_next(b);
        is_answered = false;
        if (!help_knows(t, next.text) && too_long_is(t, next.text, false, &cost)) {
            saving_unqueue(&t->saving, 1); /* what came before has filled the context */
            talk_error(t, "a message that waited does not fit the context any longer");
            draft_message(t, &next);
        } else {
            is_answered = send_now(t, &next, true);
        }
        free(next.text);
    }
}

void messages_return_waiting(struct talk *t)
{
    size_t n = t->outbox.n_queue, n_file = t->outbox.n_file;
    char *all = outbox_take_all(&t->outbox);

    if (all == NULL)
        return;
    saving_unqueue(&t->saving, n);
    if (all[0] != '\0')
        talk_draft(t, all);
    name_files_from(t, n_file);
    free(all);
}

void talk_stop(struct talk *t)
{
    if (!talk_is_answering(t))
        return;
    t->engine->calls->cancel(t->engine);
    t->state = TALK_STOPPING;
    messages_return_waiting(t);
    changed(t);
}

/* ---- going back ---- */

void talk_rewind(struct talk *t, size_t n)
{
    struct ledger *l = &t->ledger;
    struct err e = ERR_INIT;
    /* The engine holds only the newest messages; the others are in the saved chat. */
    bool restores = l->n_absent > 0 || (l->n_dropped > 0 && n <= l->n_dropped);

    if (saving_find(&t->saving, n, &e) != 0 ||
        t->engine->calls->rewind(t->engine, n, &e) != 0) {
        talk_report(t, &e);
        return;
    }
    saving_rewind(&t->saving, n);
    if (restores && saved_restore(t, &e) != 0)
        talk_report(t, &e);
    t->front.rewound(t->front.ctx, n);
    ledger_cut(l, n);
    if (n <= l->n_dropped) /* the remaining messages fit again */
        l->n_dropped = 0;
    if (restores)
        t->front.dropped(t->front.ctx, l->n_dropped);
    changed(t);
}

void talk_take_back(struct talk *t, size_t n)
{
    struct outbox_message m = { talk_text_of(t, n),
                                saving_attached(&t->saving, n, t->text_max) };

    talk_rewind(t, n);
    if (m.text != NULL)
        draft_message(t, &m);
    free(m.text);
}

void talk_retry(struct talk *t)
{
    struct ledger *l = &t->ledger;
    struct err e = ERR_INIT;

    if (l->n == 0) {
        talk_error(t, "there is no answer to make again");
        return;
    }
    if (help_was_last(t)) {
        help_ask_model(t);
        return;
    }
    if (t->engine->calls->retry(t->engine, &e) != 0) {
        talk_report(t, &e);
        return;
    }
    if (!ledger_ends_with_user(l)) {
        bool is_kept = answers_keep(t);

        ledger_cut(l, l->n - 1);
        if (!is_kept)
            saving_rewind(&t->saving, l->n);
        t->front.rewound(t->front.ctx, l->n);
    }
    messages_begin_answer(t, false);
    t->answer.is_again = t->saving.store != NULL && store_others(t->saving.store) > 0;
}

/* Whether the chat ends with an answer that the model ended. */
static bool is_complete(const struct talk *t)
{
    const struct store *s = t->saving.store;
    const struct store_item *answer;
    struct err ignored = ERR_INIT;
    uint32_t item;

    if (s == NULL || ledger_ends_with_user(&t->ledger) || store_messages(s) != t->ledger.n ||
        store_item_of(s, store_messages(s) - 1, &item, &ignored) != 0)
        return false;
    answer = store_item(s, item);
    return answer->done == MW_DONE_STOP &&
           !(answer->has_receipt && answer->receipt.has_stop_text);
}

void talk_continue(struct talk *t)
{
    struct err e = ERR_INIT;

    if (t->ledger.n == 0)
        talk_error(t, "there is nothing to continue");
    else if (is_complete(t))
        talk_notice(t, "the answer is complete, there is nothing to continue");
    else if (t->engine->calls->resume(t->engine, &e) != 0)
        talk_report(t, &e);
    else
        messages_begin_answer(t, !ledger_ends_with_user(&t->ledger));
}

void talk_clear(struct talk *t)
{
    struct err e = ERR_INIT;

    if (t->engine->calls->rewind(t->engine, 0, &e) != 0) {
        talk_report(t, &e);
        return;
    }
    if (saving_begin(&t->saving, t->info.name, &e) != 0)
        talk_report(t, &e);
    kv_share(t);
    for (size_t i = 0; i < t->outbox.n_queue; i++)
        saving_queue(&t->saving, t->outbox.queue[i].text, &t->outbox.queue[i].attached);
    ledger_clear(&t->ledger);
    t->has_last = false;
    t->front.restored(t->front.ctx);
    changed(t);
}

/* ---- options ---- */

/* Tokens that a context must hold for the answer to go on. */
static uint64_t tokens_needed(const struct talk *t)
{
    uint64_t prompt = t->answer.prompt_total, held = talk_tokens(t);

    return prompt > held ? prompt : held;
}

bool talk_would_wait(const struct talk *t, const struct mw_chat_options *o)
{
    uint64_t n_ctx = o->engine.n_ctx;

    return talk_is_answering(t) &&
           (changes_wait(&t->changes) || t->engine->calls->keeps_options || !mw_keeps_answer(talk_model(t), talk_options(t), o) ||
            (n_ctx > 0 && n_ctx <= tokens_needed(t) + 1));
}

void talk_choose(struct talk *t, enum option_id id, const struct options *o, const char *what)
{
    t->given[id] = true;
    talk_change(t, &o->chat, THEN_NOTHING, what);
}

void talk_change(struct talk *t, const struct mw_chat_options *o, unsigned then,
                 const char *what)
{
    struct change change = { .o = *o, .then = then, .waits = talk_would_wait(t, o) };
    bool keeps_kv = mw_keeps_kv(talk_model(t), &talk_options(t)->engine, &o->engine);
    struct err e = ERR_INIT;

    snprintf(change.what, sizeof change.what, "%s", what);
    if (changes_ask(&t->changes, t->engine, &change, &e) != 0)
        talk_report(t, &e);
    else if ((then & THEN_ANNOUNCE) != 0 && talk_is_answering(t) && !keeps_kv)
        talk_notice(t,
                    "%s applies after this answer; the next message then evaluates the "
                    "conversation again, at least %u tokens",
                    change.what, talk_tokens(t));
    else if ((then & THEN_ANNOUNCE) != 0 && talk_is_answering(t))
        talk_notice(t, "%s applies %s", change.what,
                    change.waits ? "after this answer" : "at the next token");
    changed(t);
}

char *talk_pending(const struct talk *t, char *buf, size_t n)
{
    return changes_text(&t->changes, talk_is_answering(t), buf, n);
}
