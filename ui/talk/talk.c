#include "config.h"

#include "ui/talk/talk.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/store/store.h"
#include "ui/talk/full.h"
#include "ui/text/clean.h"
#include "ui/text/receipt.h"
#include "ui/text/sheet.h"

/* ---- words for the person ---- */

__attribute__((format(printf, 3, 0))) static void say(struct talk *t, enum talk_say kind,
                                                      const char *fmt, va_list ap)
{
    char text[2048], clean[4096];

    vsnprintf(text, sizeof text, fmt, ap);
    clean_text(clean, sizeof clean, text, strlen(text));
    t->front.say(t->front.ctx, kind, clean, STORE_NO_ITEM);
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

const char *talk_keep_text(struct talk *t, const char *text)
{
    char **more = realloc(t->text, (t->n_text + 1) * sizeof *more);

    if (more == NULL)
        return NULL;
    t->text = more;
    more[t->n_text] = strdup(text);
    return more[t->n_text] == NULL ? NULL : more[t->n_text++];
}

/* ---- open and close ---- */

#define STOP_MS 500

/* What the model recommends, and what the person asked for instead. */
static void choose_sampling(struct talk *t)
{
    mw_sampling_default(t->model, &t->options.sampling);
    if (t->o.overlay != NULL)
        t->o.overlay(t->o.overlay_ctx, &t->options.sampling);
}

static int open_model(struct talk *t, const char *path, struct err *e)
{
    if (mw_model_open_within(&t->model, path, t->options.engine.memory_bytes, e) != 0)
        return -1;
    mw_model_info(t->model, &t->info);
    choose_sampling(t);
    if (t->o.limits != NULL)
        t->o.limits(t->model, path, &t->options.engine);
    return 0;
}

/* Before anything is on the screen or on disk, a signal ends the program as it would
 * without a handler: reading the file or measuring the machine may take a while. */
static int open_first_model(struct talk *t, const char *path, struct err *e)
{
    sigset_t ending, before;
    int rc;

    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &ending, &before);
    rc = open_model(t, path, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static int open_chat(struct talk *t, struct err *e)
{
    if (mw_plan(t->model, &t->options.engine, &t->plan, e) != 0 ||
        mw_watch_new(&t->watch, t->model, e) != 0 ||
        mw_chat_open(&t->chat, t->model, &t->options, e) != 0)
        return -1;
    t->applied = t->options;
    t->is_ready = t->has_failed = false;
    return 0;
}

/* The engine is waited for only a moment: if a disk does not answer, its thread keeps chat
 * and model. */
static void close_chat(struct talk *t)
{
    if (t->chat == NULL || mw_chat_stop(t->chat, STOP_MS)) {
        mw_chat_close(t->chat);
        mw_watch_free(t->watch);
        mw_model_close(t->model);
    }
    t->chat = NULL;
    t->watch = NULL;
    t->model = NULL;
}

int talk_open(struct talk *t, const struct ui_chat_options *o, struct err *e)
{
    struct talk_front front = t->front;
    struct mw_output telemetry;

    *t = (struct talk){ .o = *o, .front = front, .options = o->chat, .applied = o->chat };
    t->model_path = strdup(o->model_path);
    if (t->model_path == NULL) {
        err_memory(e, "the chat");
        goto fail;
    }
    if (open_first_model(t, o->model_path, e) != 0 || open_chat(t, e) != 0 ||
        saved_open(t, o->open_chat, e) != 0)
        goto fail;
    if (o->open_chat != NULL && saved_restore(t, e) != 0)
        goto fail;
    telemetry = (struct mw_output){ o->telemetry, o->force, "--force" };
    if (o->telemetry != NULL && talk_record(t, &telemetry, e) != 0)
        goto fail;
    return 0;

fail:
    talk_close(t);
    return -1;
}

void talk_close(struct talk *t)
{
    struct err e = ERR_INIT;

    if (t->chat != NULL)
        mw_chat_cancel(t->chat);
    if (t->recorder != NULL)
        mw_recorder_close(t->recorder, &e);
    close_chat(t);
    saved_close(t);
    while (t->n_queue > 0)
        free(t->queue[--t->n_queue]);
    talk_drop_files(t);
    talk_forget_choices(t);
    while (t->n_text > 0)
        free(t->text[--t->n_text]);
    free(t->text);
    free(t->is_user);
    free(t->model_path);
    *t = (struct talk){ .front = t->front };
}

void talk_greet(struct talk *t)
{
    if (t->o.notice != NULL && t->o.notice[0] != '\0')
        talk_notice(t, "%s", t->o.notice);
    if (t->options.engine.io == MW_IO_MMAP)
        talk_notice(t, "%s", mw_mmap_notice());
}

int talk_fd(const struct talk *t)
{
    return t->chat == NULL ? -1 : mw_chat_fd(t->chat);
}

void talk_sample(struct talk *t, struct mw_sample *out)
{
    if (t->chat == NULL)
        return;
    mw_chat_sample(t->chat, out);
    mw_watch_complete(t->watch, out);
}

/* On the recorder's thread; nothing that changes while it runs is read here. */
void talk_take(void *ctx, struct mw_sample *out)
{
    talk_sample(ctx, out);
}

int talk_record(struct talk *t, const struct mw_output *file, struct err *e)
{
    int fd = mw_output_open(t->model, file, e);

    return fd < 0 ? -1 : mw_recorder_open(&t->recorder, fd, file->path, talk_take, t, e);
}

int talk_open_model(struct talk *t, const char *path, struct err *e)
{
    struct err again = ERR_INIT;
    struct mw_model *probe = NULL;
    struct plan plan;
    char *name = strdup(path);
    int rc;

    if (name == NULL)
        return err_memory(e, "the model's name");
    /* Heads only: does it open, and does it fit? */
    rc = mw_model_open_within(&probe, path, t->options.engine.memory_bytes, e);
    if (rc == 0)
        rc = mw_plan(probe, &t->options.engine, &plan, e);
    mw_model_close(probe);
    if (rc != 0) {
        free(name);
        return -1;
    }
    if (t->recorder != NULL) {
        struct err ignored = ERR_INIT;

        mw_recorder_close(t->recorder, &ignored);
        t->recorder = NULL;
        talk_notice(t, "the recording has ended with the model that it was of");
    }
    t->n_asked = 0;
    close_chat(t);
    if (open_model(t, path, e) == 0 && open_chat(t, e) == 0) {
        free(t->model_path);
        t->model_path = name;
        return saved_restore(t, e);
    }
    free(name);
    close_chat(t);
    if (open_model(t, t->model_path, &again) != 0 || open_chat(t, &again) != 0 ||
        saved_restore(t, &again) != 0)
        t->front.quit(t->front.ctx); /* neither is to be had any more */
    return -1;
}

/* ---- events ---- */

/* What a change of options has changed beside the sizes: ", kv q8_0, io buffered, 2 threads" */
static void changed_text(char *buf, size_t n, const struct mw_options *was,
                         const struct mw_options *is)
{
    char kv[48] = "", io[24] = "", threads[32] = "";

    if (was->kv_k != is->kv_k || was->kv_v != is->kv_v)
        snprintf(kv, sizeof kv, ", kv %s/%s", mw_kv_name(is->kv_k), mw_kv_name(is->kv_v));
    if (was->io != is->io)
        snprintf(io, sizeof io, ", io %s", mw_io_name(is->io));
    if (was->n_thread != is->n_thread)
        snprintf(threads, sizeof threads, ", %d thread%s", is->n_thread,
                 is->n_thread == 1 ? "" : "s");
    snprintf(buf, n, "%s%s%s", kv, io, threads);
}

static void on_plan(struct talk *t, const struct mw_event *ev)
{
    char budget[16], speed[24], changed[110];
    bool goes_on = t->goes_on && t->n_asked <= 1;

    t->plan = ev->plan;
    changed_text(changed, sizeof changed, &t->applied.engine, &t->options.engine);
    if (t->n_asked > 0 && --t->n_asked == 0)
        t->applied = t->options;
    if (t->n_absent > 0 && t->plan.n_ctx > t->restored_ctx) {
        struct err e = ERR_INIT;

        if (saved_restore(t, &e) != 0)
            talk_err(t, &e);
    }
    if (goes_on) {
        t->goes_on = false;
        talk_continue(t);
    }
    if (!t->is_announced || t->n_asked > 0)
        return;
    t->is_announced = false;
    units_size(budget, sizeof budget, t->plan.budget_bytes);
    if (t->plan.decode_tps > 0)
        talk_notice(t, "now: context %u, budget %s%s, about %s tokens a second", t->plan.n_ctx,
                    budget, changed, receipt_rate(speed, sizeof speed, t->plan.decode_tps));
    else
        talk_notice(t, "now: context %u, budget %s%s", t->plan.n_ctx, budget, changed);
}

/* What the kernel charged at most: the engine does not ask it. */
static void fill_peak(struct talk *t)
{
    struct mw_sample *s = t->last.peak_charged == 0 ? malloc(sizeof *s) : NULL;

    if (s == NULL)
        return;
    talk_sample(t, s);
    if (s->os.t_ns != 0 && s->os.charged_peak.why_not == NULL)
        t->last.peak_charged = s->os.charged_peak.value;
    else if (s->os.t_ns != 0 && s->os.rss_peak.why_not == NULL)
        t->last.peak_resident = s->os.rss_peak.value;
    free(s);
}

static void on_done(struct talk *t, const struct mw_event *ev)
{
    enum mw_done done = ev->receipt.done;
    uint32_t id = STORE_NO_ITEM;

    t->is_answering = t->is_prefill = t->is_stopping = false;
    t->last = ev->receipt;
    fill_peak(t);
    t->has_last = true;
    if (t->had_text) {
        id = saved_done(t, &t->last);
        if (!t->resumes)
            talk_count(t, false);
    }
    t->front.done(t->front.ctx, &t->last, t->had_text, id);
    switch (done) {
    case MW_DONE_STOP: break;
    case MW_DONE_LENGTH:
        talk_notice(t, "the limit of tokens is reached; /continue goes on");
        break;
    case MW_DONE_CANCELLED:
        if (t->had_text)
            talk_notice(t, "stopped; /continue goes on");
        else if (talk_ends_with_user(t))
            talk_take_back(t, t->n_message - 1);
        break;
    case MW_DONE_CONTEXT: full_offer(t); break;
    case MW_DONE_ERROR: talk_err(t, &ev->err); break;
    }
    if (done != MW_DONE_CONTEXT && done != MW_DONE_ERROR)
        talk_send_waiting(t);
    else
        talk_return_waiting(t);
    t->front.changed(t->front.ctx);
}

static void on_text(struct talk *t, const struct mw_event *ev)
{
    if (ev->len == 0)
        return;
    t->is_prefill = false;
    saved_piece(t, ev->text, ev->len, ev->is_thinking, t->resumes && !t->had_text);
    if (!t->had_text)
        t->front.begin(t->front.ctx, t->resumes);
    t->had_text = true;
    t->front.piece(t->front.ctx, ev->text, ev->len, ev->is_thinking);
}

/* What there is to talk to. */
static void introduce(struct talk *t)
{
    char budget[16], name[200], rate[24], speed[48] = "";

    if (t->o.quiet)
        return;
    clean_line(name, sizeof name, t->info.name[0] != '\0' ? t->info.name : t->model_path,
               strlen(t->info.name[0] != '\0' ? t->info.name : t->model_path));
    if (t->plan.decode_tps > 0)
        snprintf(speed, sizeof speed, ", about %s tokens a second",
                 receipt_rate(rate, sizeof rate, t->plan.decode_tps));
    talk_notice(t, "%s (%s, %s): budget %s, context %u%s. /help lists commands and keys.", name,
                t->info.arch, t->info.type,
                units_size(budget, sizeof budget, t->plan.budget_bytes), t->plan.n_ctx, speed);
}

static void on_error(struct talk *t, const struct mw_event *ev)
{
    talk_err(t, &ev->err);
    if (!t->is_ready) {
        t->has_failed = true;
        return;
    }
    if (t->n_asked > 0 && --t->n_asked == 0)
        t->options = t->applied;
    t->is_announced = t->goes_on = false;
}

static void on_event(struct talk *t, const struct mw_event *ev)
{
    char clean[1024];

    switch (ev->kind) {
    case MW_EVENT_READY:
        t->is_ready = true;
        t->has_failed = false;
        t->plan = ev->plan;
        introduce(t);
        talk_send_waiting(t);
        break;
    case MW_EVENT_STARTED:
        t->is_prefill = true;
        t->prefill_done = 0;
        t->prefill_total = ev->n;
        t->started_ns = clock_ns();
        break;
    case MW_EVENT_PROGRESS:
        t->prefill_done = ev->n;
        t->prefill_total = ev->total;
        break;
    case MW_EVENT_TEXT: on_text(t, ev); break;
    case MW_EVENT_DONE: on_done(t, ev); break;
    case MW_EVENT_PLAN: on_plan(t, ev); break;
    case MW_EVENT_NOTICE:
        if (ev->n > 0)
            full_dropped(t, ev->n, clean, sizeof clean);
        else
            clean_line(clean, sizeof clean, ev->text, ev->len);
        t->front.say(t->front.ctx, SAY_NOTICE, clean, saved_notice(t, clean));
        break;
    case MW_EVENT_ERROR: on_error(t, ev); break;
    }
    t->front.changed(t->front.ctx);
}

void talk_pump(struct talk *t)
{
    struct mw_event ev;

    while (t->chat != NULL && mw_chat_next(t->chat, &ev))
        on_event(t, &ev);
}
