/* What the person asks of a conversation: messages, going back, other options. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/talk/commands.h"
#include "ui/talk/talk.h"
#include "ui/text/sheet.h"
#include "ui/text/clean.h"

/* ---- who spoke ---- */

void talk_count(struct talk *t, bool is_user)
{
    uint8_t bit = (uint8_t)(1u << t->n_message % 8);

    if (t->n_message == 8 * t->room) {
        size_t room = t->room * 2 + 64;
        uint8_t *more = realloc(t->is_user, room);

        if (more == NULL)
            return;
        t->is_user = more;
        t->room = room;
    }
    t->is_user[t->n_message / 8] = (uint8_t)(is_user ? t->is_user[t->n_message / 8] | bit
                                                     : t->is_user[t->n_message / 8] & ~bit);
    t->n_message++;
}

bool talk_is_user(const struct talk *t, size_t n)
{
    return (t->is_user[n / 8] >> n % 8 & 1) != 0;
}

bool talk_ends_with_user(const struct talk *t)
{
    return t->n_message > 0 && talk_is_user(t, t->n_message - 1);
}

/* ---- messages ---- */

void talk_drop_files(struct talk *t)
{
    while (t->n_file > 0)
        free(t->file[--t->n_file].text);
}

void talk_forget_choices(struct talk *t)
{
    while (t->n_command > 0)
        free(t->command[--t->n_command]);
}

size_t talk_text_room(const struct talk *t, size_t *max)
{
    struct mw_options o = t->options.engine;
    size_t used = 0;

    o.n_ctx = t->plan.n_ctx > 0 ? t->plan.n_ctx : o.n_ctx;
    *max = (size_t)mw_text_bytes(t->model, &o);
    for (size_t i = 0; i < t->n_file; i++)
        used += t->file[i].n;
    for (size_t i = 0; i < t->n_queue; i++)
        used += strlen(t->queue[i]);
    return used < *max ? *max - used : 0;
}

bool talk_attach(struct talk *t, const char *name, char *text, size_t n)
{
    struct talk_file *f = &t->file[t->n_file];

    if (t->n_file == TALK_MAX_FILES) {
        free(text);
        return false;
    }
    clean_line(f->name, sizeof f->name, name, strlen(name));
    f->text = text;
    f->n = n;
    t->n_file++;
    t->front.changed(t->front.ctx);
    return true;
}

/* The text with the files before it; for free(). */
static char *with_files(const struct talk *t, const char *text)
{
    size_t room = strlen(text) + 1;
    char *out, *at;

    for (size_t i = 0; i < t->n_file; i++)
        room += t->file[i].n + sizeof t->file[i].name + 32;
    at = out = malloc(room);
    for (size_t i = 0; out != NULL && i < t->n_file; i++)
        at +=
            sprintf(at, "%s:\n```\n%s%s```\n\n", t->file[i].name, t->file[i].text,
                    t->file[i].n > 0 && t->file[i].text[t->file[i].n - 1] == '\n' ? "" : "\n");
    if (out != NULL)
        strcpy(at, text);
    return out;
}

bool talk_cost(const struct talk *t, const char *text, struct mw_cost *out)
{
    struct err ignored = ERR_INIT;
    char *whole = t->is_ready ? with_files(t, text) : NULL;
    bool ok = whole != NULL && mw_chat_cost(t->chat, whole, strlen(whole), out, &ignored) == 0;

    free(whole);
    return ok;
}

static void begin_answer(struct talk *t, bool resumes)
{
    t->is_answering = true;
    t->resumes = resumes;
    t->is_stopping = t->had_text = t->is_prefill = false;
    t->front.changed(t->front.ctx);
}

/* Give whole to the engine. */
static void send_now(struct talk *t, const char *whole, bool from_queue)
{
    struct err e = ERR_INIT;
    uint32_t id;

    if (mw_chat_send(t->chat, whole, strlen(whole), &e) != 0) {
        talk_err(t, &e);
        t->front.draft(t->front.ctx, whole);
        saved_unqueue(t, from_queue);
        return;
    }
    talk_count(t, true);
    id = saved_user(t, whole, strlen(whole), from_queue);
    t->front.user(t->front.ctx, whole, strlen(whole), id);
    begin_answer(t, false);
}

void talk_send(struct talk *t, const char *text)
{
    size_t max, room = talk_text_room(t, &max), n = strlen(text);
    char *whole;

    if (n > room) {
        talk_error(t,
                   "the message has %zu bytes; with what waits already, %zu fit the context "
                   "of %u tokens",
                   n, room, t->plan.n_ctx);
        t->front.draft(t->front.ctx, text);
        return;
    }
    if (!saved_has_room(t)) {
        t->front.draft(t->front.ctx, text);
        return;
    }
    whole = with_files(t, text);
    if (whole == NULL) {
        talk_error(t, "not enough memory for the message");
        return;
    }
    if ((t->is_answering || !t->is_ready) && t->n_queue == TALK_MAX_QUEUE) {
        talk_error(t, "%d messages wait already", TALK_MAX_QUEUE);
        t->front.draft(t->front.ctx, text);
        free(whole);
        return;
    }
    talk_drop_files(t);
    if (t->is_answering || !t->is_ready) {
        t->queue[t->n_queue++] = whole;
        saved_queue(t, whole);
        t->front.changed(t->front.ctx);
        return;
    }
    send_now(t, whole, false);
    free(whole);
}

void talk_send_waiting(struct talk *t)
{
    char *next;

    if (t->n_queue == 0 || t->is_answering || !t->is_ready)
        return;
    if (t->n_resumed > 0) {
        talk_notice(t, "sending what waited when this chat was left: %zu message%s",
                    t->n_resumed, t->n_resumed == 1 ? "" : "s");
        t->n_resumed = 0;
    }
    next = t->queue[0];
    memmove(t->queue, t->queue + 1, --t->n_queue * sizeof t->queue[0]);
    send_now(t, next, true);
    free(next);
}

/* What waited goes back into the input line, in order. */
void talk_return_waiting(struct talk *t)
{
    size_t room = 1;
    char *all;

    for (size_t i = 0; i < t->n_queue; i++)
        room += strlen(t->queue[i]) + 1;
    all = malloc(room);
    if (t->n_queue == 0 || all == NULL) {
        free(all);
        return;
    }
    all[0] = '\0';
    for (size_t i = 0; i < t->n_queue; i++) {
        if (i > 0)
            strcat(all, "\n");
        strcat(all, t->queue[i]);
        free(t->queue[i]);
    }
    saved_unqueue(t, t->n_queue);
    t->n_queue = t->n_resumed = 0;
    t->front.draft(t->front.ctx, all);
    free(all);
}

void talk_stop(struct talk *t)
{
    if (!t->is_answering)
        return;
    mw_chat_cancel(t->chat);
    t->is_stopping = true;
    talk_return_waiting(t);
    t->front.changed(t->front.ctx);
}

void talk_enter(struct talk *t, const char *line)
{
    if (line[0] == '/' && line[1] == '/')
        talk_send(t, line + 1);
    else if (line[0] == '/')
        command_run(t, line);
    else if (line[strspn(line, " \t\n")] != '\0' || t->n_file > 0)
        talk_send(t, line);
}

/* ---- going back ---- */

void talk_rewind(struct talk *t, size_t n)
{
    struct err e = ERR_INIT;
    /* The engine holds only the newest messages; the others are in the saved chat. */
    bool again = t->n_absent > 0 || (t->n_dropped > 0 && n <= t->n_dropped);

    if (saved_find(t, n, &e) != 0 || mw_chat_rewind(t->chat, n, &e) != 0) {
        talk_err(t, &e);
        return;
    }
    saved_rewind(t, n);
    if (again && saved_restore(t, &e) != 0)
        talk_err(t, &e);
    t->front.rewound(t->front.ctx, n);
    if (n < t->n_message)
        t->n_message = n;
    if (n <= t->n_dropped) { /* what is left fits again */
        t->n_dropped = 0;
        t->front.dropped(t->front.ctx, 0);
    }
    t->front.changed(t->front.ctx);
}

void talk_take_back(struct talk *t, size_t n)
{
    char *text = t->front.text_of(t->front.ctx, n);

    talk_rewind(t, n);
    if (text != NULL)
        t->front.draft(t->front.ctx, text);
    free(text);
}

void talk_retry(struct talk *t)
{
    struct err e = ERR_INIT;

    if (t->n_message == 0) {
        talk_error(t, "there is no answer to make again");
        return;
    }
    if (mw_chat_retry(t->chat, &e) != 0) {
        talk_err(t, &e);
        return;
    }
    if (!talk_ends_with_user(t)) {
        t->n_message--;
        saved_rewind(t, t->n_message);
        t->front.rewound(t->front.ctx, t->n_message);
    }
    begin_answer(t, false);
}

void talk_continue(struct talk *t)
{
    struct err e = ERR_INIT;

    if (t->n_message == 0)
        talk_error(t, "there is nothing to continue");
    else if (mw_chat_continue(t->chat, &e) != 0)
        talk_err(t, &e);
    else
        begin_answer(t, !talk_ends_with_user(t));
}

void talk_clear(struct talk *t)
{
    struct err e = ERR_INIT;

    if (mw_chat_rewind(t->chat, 0, &e) != 0) {
        talk_err(t, &e);
        return;
    }
    saved_new(t);
    t->n_message = t->n_dropped = t->n_absent = 0;
    t->has_last = false;
    t->front.restored(t->front.ctx);
    t->front.changed(t->front.ctx);
}

/* ---- options ---- */

void talk_set(struct talk *t, const struct mw_chat_options *o, bool announce)
{
    struct err e = ERR_INIT;

    if (mw_chat_set(t->chat, o, &e) != 0) {
        talk_err(t, &e);
        return;
    }
    t->options = *o;
    t->n_asked++;
    t->is_announced = announce;
    if (announce && t->is_answering)
        talk_notice(t, "this is done when the answer is over");
}

void talk_set_and_go_on(struct talk *t, const struct mw_chat_options *o)
{
    unsigned before = t->n_asked;

    talk_set(t, o, o->engine.ctx_shift == t->options.engine.ctx_shift);
    t->goes_on = t->n_asked > before;
}

/* ---- sheets of commands ---- */

static void run_choice(void *ctx, long row)
{
    struct talk *t = ctx;
    char *line = row >= 0 && (size_t)row < t->n_command ? t->command[row] : NULL;

    if (line == NULL)
        return;
    t->command[row] = NULL; /* the command may open a sheet of its own */
    talk_enter(t, line);
    free(line);
}

void talk_choices(struct talk *t, struct sheet *s)
{
    talk_forget_choices(t);
    sheet_on_enter(s, run_choice, t);
}

void talk_choice(struct talk *t, struct sheet *s, const char *fmt, ...)
{
    char line[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (t->n_command == TALK_MAX_COMMANDS || (t->command[t->n_command] = strdup(line)) == NULL)
        return;
    sheet_choice(s, (long)t->n_command++);
}
