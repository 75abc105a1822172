/* The keys and values of a chat in a file: saved while the chat is idle, and loaded. */
#include "config.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/digest.h"
#include "engine/base/folder.h"
#include "engine/session/chat_internal.h"
#include "engine/session/saved_kv.h"

/* --- the ids of answers ---
 *
 * An answer is rendered with the ids that the model chose, and other ids may make the same
 * text. So they are saved, too, with a digest of the text that they make. */

struct note {
    uint32_t message; /* of the chat */
    uint32_t n_id;
    char text[DIGEST_HEX + 3];
};
#define NOTES_END UINT32_MAX

static void digest_turn(const struct turn *t, char out[DIGEST_HEX])
{
    struct digest d;

    digest_start(&d, DIGEST_SHA256);
    digest_add(&d, &t->len, sizeof t->len);
    digest_add(&d, t->text, t->len);
    digest_add(&d, t->thinking, t->thinking_len);
    digest_end(&d, out);
}

static int save_notes(void *ctx, kv_bytes_fn *fn, void *fn_ctx, struct err *e)
{
    const struct mw_chat *c = ctx;
    const struct conversation *v = &c->conversation;
    int64_t time_s = chat_choice_time(c->answerer.choice);
    struct note note;

    if (fn(fn_ctx, &time_s, sizeof time_s, e) != 0)
        return -1;

    for (size_t i = 0; i < v->n_turn; i++) {
        const struct turn *t = &v->turns[i];

        if (t->role != CHAT_ASSISTANT || t->ids.n == 0 || t->has_saved_ids ||
            t->thinking_len > 0)
            continue;
        memset(&note, 0, sizeof note);
        note.message = (uint32_t)(v->n_before + i);
        note.n_id = (uint32_t)t->ids.n;
        digest_turn(t, note.text);
        if (fn(fn_ctx, &note, sizeof note, e) != 0 ||
            fn(fn_ctx, t->ids.id, t->ids.n * sizeof *t->ids.id, e) != 0)
            return -1;
    }
    memset(&note, 0, sizeof note);
    note.message = NOTES_END;
    return fn(fn_ctx, &note, sizeof note, e);
}

/* The turn that a note is about, if it has its text and no ids yet; or NULL. */
static struct turn *turn_of(struct conversation *v, const struct note *note)
{
    char text[DIGEST_HEX];
    struct turn *t;

    if (note->message < v->n_before || note->message - v->n_before >= v->n_turn)
        return NULL;
    t = &v->turns[note->message - v->n_before];
    if (t->role != CHAT_ASSISTANT || t->is_aside || t->thinking_len > 0)
        return NULL;
    digest_turn(t, text);
    return memcmp(text, note->text, sizeof text) == 0 ? t : NULL;
}

static int take_ids(const struct mw_chat *c, struct turn *t, uint32_t n, kv_bytes_fn *fn,
                    void *fn_ctx, struct err *e)
{
    const struct vocab_info *info = tokenizer_info(c->answerer.rendering.tokenizer);
    struct ids ids = { 0 };
    uint32_t id;

    for (uint32_t i = 0; i < n; i++) {
        if (fn(fn_ctx, &id, sizeof id, e) != 0 || ids_push(&ids, id, e) != 0) {
            ids_free(&ids);
            return -1;
        }
        if (id >= info->n_token)
            t = NULL;
    }
    if (t == NULL) {
        ids_free(&ids);
        return 0;
    }
    ids_free(&t->ids);
    t->ids = ids;
    t->has_saved_ids = false;
    return 0;
}

static int load_notes(void *ctx, kv_bytes_fn *fn, void *fn_ctx, struct err *e)
{
    struct mw_chat *c = ctx;
    uint32_t n_ctx = session_options(c->session)->n_ctx;
    struct note note;

    if (fn(fn_ctx, &c->saved_time_s, sizeof c->saved_time_s, e) != 0)
        return -1;
    for (;;) {
        if (fn(fn_ctx, &note, sizeof note, e) != 0)
            return -1;
        if (note.message == NOTES_END)
            return 0;
        if (note.n_id == 0 || note.n_id > n_ctx)
            return err_set(e, ERR_FORMAT, "an answer has %u ids", note.n_id);
        if (take_ids(c, turn_of(&c->conversation, &note), note.n_id, fn, fn_ctx, e) != 0)
            return -1;
    }
}

/* --- saving --- */

/* Something else is to be done. */
static bool is_wanted(void *ctx)
{
    struct mw_chat *c = ctx;
    bool is;

    pthread_mutex_lock(&c->lock);
    is = c->first != NULL || cancel_is_set(&c->quits);
    pthread_mutex_unlock(&c->lock);
    return is;
}

/* Something else is to be done that does not wait: not a request, which is one of many. */
static bool is_wanted_now(void *ctx)
{
    struct mw_chat *c = ctx;
    bool is = false;

    pthread_mutex_lock(&c->lock);
    for (const struct chat_command *command = c->first; command != NULL; command = command->next)
        is = is || command->kind != DO_ASK;
    is = is || cancel_is_set(&c->quits);
    pthread_mutex_unlock(&c->lock);
    return is;
}

/* A message was stopped that waits for the keys and values. */
static bool is_stopped(void *ctx)
{
    const struct mw_chat *c = ctx;

    return cancel_is_set(&c->cancel) || cancel_is_set(&c->quits);
}

/* The request to save is over. */
static void end_wish(struct mw_chat *c)
{
    free(c->kv_wish);
    c->kv_wish = NULL;
    pthread_mutex_lock(&c->lock);
    c->kv_done = c->kv_taken;
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

/* Prompts have the time again that they had before a file was loaded. */
static void use_own_time(struct mw_chat *c)
{
    if (c->own_time_s != 0)
        (void)chat_choice_set_time(c->answerer.choice, c->own_time_s);
    c->own_time_s = 0;
}

void chat_forget_kv(struct mw_chat *c)
{
    end_wish(c);
    use_own_time(c);
}

void chat_wish_kv(struct mw_chat *c, struct chat_command *command)
{
    c->kv_taken++;
    free(c->kv_wish);
    c->kv_wish = command->text;
    c->kv_limit = command->n;
    command->text = NULL;
}

static void trim_folder(const char *path, uint64_t limit)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash != NULL ? strndup(path, (size_t)(slash - path)) : NULL;

    if (folder != NULL)
        mw_kv_trim(folder, limit, path);
    free(folder);
}

void chat_share_kv(struct mw_chat *c, const struct chat_command *command)
{
    struct err ignored = ERR_INIT; /* without memory, beginnings are evaluated */

    (void)beginnings_set(&c->beginnings, command->text, command->n, &ignored);
}

void chat_ask_kv(struct mw_chat *c)
{
    c->kv_taken++;
    beginnings_other_chat(&c->beginnings);
}

/* Write the new beginning of the last prompt, if there is one.  Returns false if something else
 * is to be done first.  Whatever else fails is reported for the chat's own file, if at all. */
static bool keep_beginning(struct mw_chat *c, kv_file_stops_fn *stops)
{
    struct saved_kv_call call = { .stops = stops, .stops_ctx = c };
    struct err e = ERR_INIT;

    return c->session == NULL || beginnings_keep(&c->beginnings, c->session, &call, &e) == 0 ||
           e.code != ERR_CANCELLED;
}

/* Save them to the file of the wish.  Returns false if something else is to be done first. */
static bool save_wish(struct mw_chat *c)
{
    struct saved_kv_call call = { .max_bytes = c->kv_limit,
                                  .stops = is_wanted,
                                  .stops_ctx = c,
                                  .save_notes = save_notes,
                                  .notes_ctx = c };
    struct mw_event event = { .kind = MW_EVENT_KV_SAVED, .err = ERR_INIT };
    uint64_t start = clock_ns();
    struct saved_kv saved;

    if (c->kv_wish == NULL || c->session == NULL)
        return true;
    (void)folder_make_parent(c->kv_wish);
    if (session_save_kv(c->session, c->kv_wish, &call, &saved, &event.err) != 0 &&
        event.err.code == ERR_CANCELLED)
        return false; /* once the other command is done, it is tried again */
    trim_folder(c->kv_wish, c->kv_limit); /* also if the disk is full: the next time it is not */
    event.n = saved.n_token;
    event.total = saved.bytes;
    event.ns = clock_ns() - start;
    events_post(c->events, &event);
    free(c->kv_wish);
    c->kv_wish = NULL;
    return true;
}

void chat_save_kv(struct mw_chat *c)
{
    /* Between requests that always wait, nothing would ever be written. */
    bool pays = c->kv_wish == NULL && c->session != NULL &&
                beginnings_pay(&c->beginnings, c->session);
    kv_file_stops_fn *stops = pays ? is_wanted_now : is_wanted;

    if (!stops(c) && save_wish(c) && keep_beginning(c, stops))
        end_wish(c);
}

/* --- loading --- */

/* Let prompts have the time of the saved chat if more of its tokens are those of the
 * conversation then.  Returns how many are. */
static size_t choose_time(struct mw_chat *c)
{
    int64_t own_time_s = chat_choice_time(c->answerer.choice);
    size_t n, own = chat_held(c, &n), saved;

    if (!chat_choice_set_time(c->answerer.choice, c->saved_time_s))
        return own;
    c->own_time_s = own_time_s;
    saved = chat_held(c, &n);
    if (saved > own)
        return saved;
    use_own_time(c);
    return own;
}

#define FEW 16 /* tokens that conversations have in common by chance: marks of the template */

/* Do the first n tokens hold the first question?  An answer after it may have been replaced. */
static bool holds_question(struct mw_chat *c, size_t n)
{
    struct ids first = { .max = session_options(c->session)->n_ctx };
    struct err ignored = ERR_INIT;
    bool holds = c->answerer.rendering.tokenizer != NULL && c->conversation.n_turn > 0 &&
                 conversation_render(&c->conversation, &c->answerer.rendering, 1, &first,
                                     &ignored) == 0 &&
                 n >= first.n;

    ids_free(&first);
    return holds;
}

/* Keep the tokens that are those of the conversation, of `all`.  -1 with *e: they are few. */
static int keep_own(struct mw_chat *c, uint32_t all, uint32_t *kept, struct err *e)
{
    size_t same = choose_time(c);

    if (mw_session_rewind(c->session, (uint32_t)same, kept, e) != 0)
        return -1;
    if (*kept >= FEW || *kept == all || holds_question(c, *kept))
        return 0;
    return err_set(e, ERR_ARGUMENT, "they are of another conversation");
}

void chat_load_kv(struct mw_chat *c, const struct chat_command *command)
{
    struct saved_kv_call call = {
        .stops = is_stopped, .stops_ctx = c, .load_notes = load_notes, .notes_ctx = c
    };
    struct mw_event event = { .kind = MW_EVENT_KV_LOADED, .err = ERR_INIT };
    uint64_t start = clock_ns();
    struct saved_kv loaded;
    uint32_t kept = 0;

    end_wish(c);
    if (c->session == NULL || (access(command->text, F_OK) != 0 && errno == ENOENT))
        return;
    if (session_load_kv(c->session, command->text, &call, &loaded, &event.err) == 0 &&
        keep_own(c, loaded.n_token, &kept, &event.err) == 0) {
        (void)utimensat(AT_FDCWD, command->text, NULL, 0); /* it was used now */
        beginnings_take_own(&c->beginnings, c->session, kept);
    }
    event.n = kept;
    chat_look_ahead(c); /* the program asks for costs when it gets the event */
    event.total = loaded.bytes;
    event.ns = clock_ns() - start;
    events_post(c->events, &event);
}
