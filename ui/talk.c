#include "config.h"

#include "ui/talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/chat/clean.h"
#include "ui/commands.h"
#include "ui/term.h"

/* ---- words for the person ---- */

static void say(struct talk *t, enum talk_say kind, const char *fmt, va_list ap)
{
    char text[2048], clean[4096];

    vsnprintf(text, sizeof text, fmt, ap);
    clean_text(clean, sizeof clean, text, strlen(text));
    t->front.say(t->front.ctx, kind, clean);
}

void talk_notice(struct talk *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(t, SAY_NOTICE, fmt, ap);
    va_end(ap);
}

void talk_error(struct talk *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(t, SAY_ERROR, fmt, ap);
    va_end(ap);
}

void talk_err(struct talk *t, const struct err *e)
{
    char text[700];

    err_text(e, text, sizeof text);
    talk_error(t, "%s", text);
}

/* ---- open and close ---- */

int talk_open(struct talk *t, const struct ui_chat_options *o, struct err *e)
{
    struct talk_front front = t->front;

    *t = (struct talk){ .o = *o, .front = front, .options = o->chat };
    t->model_path = strdup(o->model_path);
    if (t->model_path == NULL)
        return err_set(e, ERR_MEMORY, "no memory for the chat");
    if (o->chat.system != NULL)
        t->options.system = t->system = strdup(o->chat.system);
    if (mw_model_open(&t->model, o->model_path, e) != 0)
        goto fail;
    mw_model_info(t->model, &t->info);
    mw_sampling_default(t->model, &t->options.sampling);
    if (o->limits != NULL)
        o->limits(t->model, o->model_path, &t->options.engine);
    if (o->overlay != NULL)
        o->overlay(o->overlay_ctx, &t->options.sampling);
    if (mw_plan(t->model, &t->options.engine, &t->plan, e) != 0 ||
        mw_watch_new(&t->watch, t->model, e) != 0 ||
        mw_chat_open(&t->chat, t->model, &t->options, e) != 0)
        goto fail;
    return 0;

fail:
    talk_close(t);
    return -1;
}

static void forget_files(struct talk *t)
{
    while (t->n_file > 0)
        free(t->file[--t->n_file].text);
}

void talk_close(struct talk *t)
{
    mw_chat_close(t->chat);
    mw_watch_free(t->watch);
    mw_model_close(t->model);
    while (t->n_queue > 0)
        free(t->queue[--t->n_queue]);
    forget_files(t);
    free(t->system);
    free(t->model_path);
    *t = (struct talk){ .front = t->front };
}

int talk_fd(const struct talk *t)
{
    return mw_chat_fd(t->chat);
}

void talk_sample(struct talk *t, struct mw_sample *out)
{
    mw_chat_sample(t->chat, out);
    mw_watch_complete(t->watch, out);
}

/* ---- messages ---- */

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

/* Give whole to the engine. */
static void send_now(struct talk *t, const char *whole)
{
    struct err e = ERR_INIT;

    if (mw_chat_send(t->chat, whole, strlen(whole), &e) != 0) {
        talk_err(t, &e);
        t->front.draft(t->front.ctx, whole);
        return;
    }
    t->n_message++;
    t->last_is_user = true;
    t->is_answering = true;
    t->is_stopping = t->had_text = t->resumes = false;
    t->is_prefill = false;
    t->front.user(t->front.ctx, whole, strlen(whole), UINT32_MAX);
    t->front.changed(t->front.ctx);
}

void talk_send(struct talk *t, const char *text)
{
    char *whole = with_files(t, text);

    if (whole == NULL) {
        talk_error(t, "no memory for the message");
        return;
    }
    if ((t->is_answering || !t->is_ready) && t->n_queue == TALK_MAX_QUEUE) {
        talk_error(t, "%d messages wait already", TALK_MAX_QUEUE);
        t->front.draft(t->front.ctx, text);
        free(whole);
        return;
    }
    forget_files(t);
    if (t->is_answering || !t->is_ready) {
        t->queue[t->n_queue++] = whole;
        t->front.changed(t->front.ctx);
        return;
    }
    send_now(t, whole);
    free(whole);
}

static void send_waiting(struct talk *t)
{
    char *next;

    if (t->n_queue == 0 || t->is_answering || !t->is_ready)
        return;
    next = t->queue[0];
    memmove(t->queue, t->queue + 1, --t->n_queue * sizeof t->queue[0]);
    send_now(t, next);
    free(next);
}

/* What waited goes back into the input line, in order. */
static void return_waiting(struct talk *t)
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
    t->n_queue = 0;
    t->front.draft(t->front.ctx, all);
    free(all);
}

void talk_stop(struct talk *t)
{
    if (!t->is_answering)
        return;
    mw_chat_cancel(t->chat);
    t->is_stopping = true;
    return_waiting(t);
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

void talk_set(struct talk *t, const struct mw_chat_options *o)
{
    struct err e = ERR_INIT;

    if (mw_chat_set(t->chat, o, &e) != 0) {
        talk_err(t, &e);
        return;
    }
    t->options = *o;
}

/* ---- events ---- */

static void on_done(struct talk *t, const struct mw_event *ev)
{
    t->is_answering = t->is_prefill = t->is_stopping = false;
    t->last = ev->receipt;
    t->has_last = true;
    if (t->had_text && t->last_is_user) {
        t->n_message++;
        t->last_is_user = false;
    }
    t->front.done(t->front.ctx, &ev->receipt, t->had_text, UINT32_MAX);
    switch (ev->receipt.done) {
    case MW_DONE_STOP: break;
    case MW_DONE_LENGTH:
        talk_notice(t, "the limit of tokens is reached; /continue goes on");
        break;
    case MW_DONE_CANCELLED:
        if (!t->had_text)
            talk_notice(t, "stopped before the answer began");
        break;
    case MW_DONE_CONTEXT: command_context_full(t); break;
    case MW_DONE_ERROR: talk_err(t, &ev->err); break;
    }
    send_waiting(t);
    t->front.changed(t->front.ctx);
}

static void on_text(struct talk *t, const struct mw_event *ev)
{
    if (ev->len == 0)
        return;
    t->is_prefill = false;
    if (!t->had_text)
        t->front.begin(t->front.ctx, t->resumes);
    t->had_text = true;
    t->front.piece(t->front.ctx, ev->text, ev->len, ev->is_thinking);
}

static void on_event(struct talk *t, const struct mw_event *ev)
{
    char clean[1024];

    switch (ev->kind) {
    case MW_EVENT_READY:
        t->is_ready = true;
        t->has_failed = false;
        t->plan = ev->plan;
        send_waiting(t);
        break;
    case MW_EVENT_STARTED:
        t->is_prefill = true;
        t->prefill_done = 0;
        t->prefill_total = ev->n;
        t->started_ns = term_now_ns();
        break;
    case MW_EVENT_PROGRESS:
        t->prefill_done = ev->n;
        t->prefill_total = ev->total;
        break;
    case MW_EVENT_TEXT: on_text(t, ev); break;
    case MW_EVENT_DONE: on_done(t, ev); break;
    case MW_EVENT_PLAN: t->plan = ev->plan; break;
    case MW_EVENT_NOTICE:
        clean_line(clean, sizeof clean, ev->text, ev->len);
        talk_notice(t, "%s", clean);
        break;
    case MW_EVENT_ERROR:
        talk_err(t, &ev->err);
        if (!t->is_ready)
            t->has_failed = true;
        break;
    }
    t->front.changed(t->front.ctx);
}

void talk_pump(struct talk *t)
{
    struct mw_event ev;

    while (t->chat != NULL && mw_chat_next(t->chat, &ev))
        on_event(t, &ev);
}
