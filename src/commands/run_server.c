/*
 * memwall run --server URL: one answer of a model at a server, on standard output.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/progress.h"
#include "src/base/signals.h"
#include "src/command.h"
#include "src/commands/run_server.h"
#include "src/models/remote.h"
#include "src/text/answer_out.h"
#include "src/text/form.h"
#include "src/text/prompt.h"
#include "src/text/summary.h"
#include "ui/engine/remote.h"
#include "ui/words/receipt.h"
#include "ui/words/server.h"

struct job {
    const struct options *o;
    struct prompt_source from;
    struct engine *engine;
    struct answer_out out;
    struct progress progress;
    int signals, stopped_by;
    bool is_answering;
    struct form form;
};

static void print_stats(const struct job *j, const struct mw_receipt *r)
{
    struct mw_server_figures f;
    struct server_row rows[SERVER_ROWS];
    struct mw_model_info info;
    size_t n;

    j->engine->calls->server(j->engine, &f);
    j->engine->calls->info(j->engine, &info);
    n = server_rows(&f, &info, rows);
    summary_server(stderr, r);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%-10s %s\n", rows[i].label, rows[i].text);
}

static int finish(struct job *j, const struct mw_event *ev)
{
    static struct mw_sample sample;
    char text[200];

    j->engine->calls->sample(j->engine, &sample);
    progress_clear(&j->progress);
    j->out.input_left = prompt_has_left(&j->from);
    answer_out_done(&j->out, &ev->receipt, &sample, NULL);
    if (j->o->stats)
        print_stats(j, &ev->receipt);
    if (ev->receipt.empty != MW_NOT_EMPTY && ev->receipt.done != MW_DONE_ERROR && !j->o->quiet) {
        receipt_empty(text, sizeof text, &ev->receipt, false);
        report_notice(text, strlen(text));
    }
    switch (ev->receipt.done) {
    case MW_DONE_STOP:
    case MW_DONE_LENGTH: return EXIT_OK;
    case MW_DONE_CANCELLED: return EXIT_STOPPED;
    case MW_DONE_CONTEXT:
    case MW_DONE_ERROR: return report_error(&ev->err);
    }
    return EXIT_FAILED;
}

/* True: the answer has ended with exit code *code. */
static bool take_event(struct job *j, const struct mw_event *ev, int *code)
{
    switch (ev->kind) {
    case MW_EVENT_READY:
    case MW_EVENT_PLAN:
    case MW_EVENT_LOGPROBS:
    case MW_EVENT_PROMPT_IDS:
    case MW_EVENT_IDS:
    case MW_EVENT_KV_SAVED:
    case MW_EVENT_KV_LOADED:
    case MW_EVENT_KV_SHARED:
    case MW_EVENT_SETTING: return false;
    case MW_EVENT_THOUGHT:
        progress_clear(&j->progress);
        answer_out_thought(&j->out, j->o->quiet);
        return false;
    case MW_EVENT_STARTED: progress_text(&j->progress, "waiting for the server"); return false;
    case MW_EVENT_PROGRESS:
        if (progress_is_due(&j->progress))
            progress_count(&j->progress, "prompt", "tokens", ev->n, ev->total);
        return false;
    case MW_EVENT_TEXT:
        if (!ev->is_thinking) {
            progress_clear(&j->progress);
            j->progress.is_on = false;
        }
        answer_out_text(&j->out, ev->text, ev->len, ev->is_thinking);
        return false;
    case MW_EVENT_NOTICE:
        progress_clear(&j->progress);
        if (!j->o->quiet) {
            answer_out_break(&j->out);
            report_notice(ev->text, ev->len);
        }
        return false;
    case MW_EVENT_DONE: *code = finish(j, ev); return true;
    case MW_EVENT_REFUSED:
    case MW_EVENT_ERROR:
        progress_clear(&j->progress);
        answer_out_break(&j->out);
        *code = report_error(&ev->err);
        return true;
    }
    return false;
}

/* The first signal stops the answer and keeps its text; the second one exits at once. */
static void take_signal(struct job *j)
{
    int signo = signals_take(j->signals);

    if (signo == 0)
        return;
    if (j->stopped_by != 0) {
        progress_clear(&j->progress);
        fflush(stdout);
        _exit(128 + signo);
    }
    j->stopped_by = signo;
    j->engine->calls->cancel(j->engine);
}

static int talk(struct job *j)
{
    const struct engine_calls *calls = j->engine->calls;
    struct pollfd fds[] = { { calls->fd(j->engine), POLLIN, 0 }, { j->signals, POLLIN, 0 } };
    static struct mw_event ev; /* static: it is large */
    struct err e = ERR_INIT;
    int code;

    for (;;) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            err_sys(&e, "cannot wait for the answer");
            return report_error(&e);
        }
        if ((fds[1].revents & POLLIN) != 0)
            take_signal(j);
        while (calls->next(j->engine, &ev))
            if (take_event(j, &ev, &code))
                return j->stopped_by != 0 ? 128 + j->stopped_by : code;
        if (ferror(stdout) != 0) /* the reader is gone, or the disk is full */
            return EXIT_FAILED;
    }
}

static int answer(struct job *j, const char *text, size_t len, struct err *e)
{
    const struct engine_calls *calls = j->engine->calls;
    struct mw_chat_options chat = j->o->chat;
    sigset_t before;
    int code = -1;

    j->signals = signals_block(&before);
    progress_open(&j->progress, j->o->quiet || j->o->json);
    answer_out_open(&j->out, j->o->json, false);
    chat.stop = j->o->stop;
    chat.grammar = j->form.grammar;
    chat.schema = j->form.schema;
    calls->recommend(j->engine, &chat.sampling);
    options_overlay(j->o, &chat.sampling);
    if (calls->start(j->engine, &chat, e) == 0 && calls->send(j->engine, text, len, 0, e) == 0)
        code = talk(j);
    progress_clear(&j->progress);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    answer_out_close(&j->out);
    if (j->signals >= 0)
        close(j->signals);
    return code;
}

/* Nobody has chosen one of several models. */
static void say_model(const struct job *j)
{
    struct mw_server_figures f;
    struct mw_model_info info;
    char text[300];

    j->engine->calls->server(j->engine, &f);
    j->engine->calls->info(j->engine, &info);
    if (f.n_model < 2 || j->o->quiet)
        return;
    snprintf(text, sizeof text, "%s answers, the first of %zu models; -m NAME chooses another",
             info.name, f.n_model);
    report_notice(text, strlen(text));
}

static int open_and_answer(struct job *j, const struct mw_server *server, const char *name)
{
    const struct engine_model model = { .path = name, .server = server };
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t len = 0;
    int code;

    if (engine_remote.open(&j->engine, &model, &e) != 0)
        return report_error(&e);
    if (name[0] == '\0')
        say_model(j);
    if (prompt_make(&j->from, j->engine->calls->text_bytes(j->engine, NULL), &text, &len, &e) !=
        0)
        code = e.code == ERR_ARGUMENT ? report_usage(&cmd_run, &e) : report_error(&e);
    else if ((code = answer(j, text, len, &e)) < 0)
        code = report_error(&e);
    free(text);
    prompt_report_left(&j->from);
    j->engine->calls->close(j->engine);
    return code;
}

int run_server(const struct options *given)
{
    struct options used = *given;
    struct mw_server server;
    struct err e = ERR_INIT;
    int code;
    struct job j = { .o = &used,
                     .from = { .arg = given->arg,
                               .stdin_use = given->stdin_too  ? PROMPT_STDIN_READ
                                            : given->no_stdin ? PROMPT_STDIN_NEVER
                                                              : PROMPT_STDIN_AUTO,
                               .quiet = given->quiet } };

    if (remote_settings(&used, &server, &e) != 0)
        return report_usage(&cmd_run, &e);
    if (used.telemetry != NULL) {
        err_set(&e, ERR_ARGUMENT, "--telemetry records a model in this process");
        return report_usage(&cmd_run, &e);
    }
    if (form_read(&j.form, &used, true, &e) != 0)
        return report_error(&e);
    code = open_and_answer(&j, &server, used.model);
    form_free(&j.form);
    return code;
}
