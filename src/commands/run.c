/*
 * memwall run: answer one prompt on standard output.
 *
 * The chat runs on its own thread.  This file waits in one poll(2) for its events, for signals,
 * and for the next update of the progress line.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "src/base/paths.h"
#include "src/base/progress.h"
#include "src/base/signals.h"
#include "src/command.h"
#include "src/commands/run_server.h"
#include "src/machine/kept_limits.h"
#include "src/machine/limits_print.h"
#include "src/models/models.h"
#include "src/plan/plan_print.h"
#include "src/settings.h"
#include "src/text/answer_out.h"
#include "src/text/form.h"
#include "src/text/prompt.h"
#include "src/text/summary.h"
#include "ui/talk/help_answer.h"
#include "ui/words/receipt.h"

#define STOP_MS 500 /* time to stop after a signal */

struct run {
    const struct options *o;
    struct prompt_source *from;
    struct mw_model *model;
    struct mw_chat_options chat_options;
    struct paths paths;
    struct mw_chat *chat;
    struct mw_watch *watch; /* NULL: no output needs the kernel's figures */
    struct mw_recorder *recorder;
    struct mw_limits limits; /* at the start: the predictions use them */
    struct answer_out out;
    struct progress progress;
    int signals; /* of signals_block() */
    bool is_started, is_answering, is_thinking;
    int stopped_by;   /* the first signal; 0: none */
    uint64_t stop_ns; /* then the time when the answer must have ended */
    bool is_stuck;    /* the engine did not stop: leave chat and model open */
    struct mw_sample sample;
};

static void take_sample(void *ctx, struct mw_sample *out)
{
    struct run *r = ctx;

    mw_chat_sample(r->chat, out);
    if (r->watch != NULL)
        mw_watch_complete(r->watch, out);
}

static void draw_progress(struct run *r)
{
    if (!progress_is_due(&r->progress))
        return;
    if (!r->is_started) {
        progress_text(&r->progress, "loading");
        return;
    }
    take_sample(r, &r->sample);
    if (r->is_answering)
        progress_sample(&r->progress, &r->sample, r->is_thinking);
}

/* Report an error.  If the budget is too small, print the plan first. */
static int refuse(struct run *r, const struct err *e)
{
    struct err ignored = ERR_INIT;
    struct plan p = { 0 };

    if (e->code == ERR_BUDGET && !r->o->quiet &&
        mw_plan(r->model, &r->chat_options.engine, &p, &ignored) != 0 && p.sum_bytes > 0)
        plan_print_rows(stderr, &p);
    return report_error(e);
}

/* Say why nothing was printed.  Without a first token, an error that follows says it.  Returns
 * false if nothing was said. */
static bool report_empty(const struct run *r, const struct mw_receipt *receipt)
{
    bool has_error = receipt->done == MW_DONE_ERROR || receipt->done == MW_DONE_CONTEXT;
    char text[200];

    if (receipt->empty == MW_NOT_EMPTY || r->o->quiet ||
        (has_error && receipt->empty == MW_EMPTY_NOTHING))
        return false;
    receipt_empty(text, sizeof text, receipt, false);
    report_notice(text, strlen(text));
    return true;
}

static int report_too_long(const struct run *r, const struct err *e)
{
    struct err long_prompt = *e;

    if (r->o->server == NULL) /* whose context its options set */
        err_set(&long_prompt, e->code, "%s; use a larger --ctx", e->what);
    return report_error(&long_prompt);
}

static int finish(struct run *r, const struct mw_event *ev)
{
    static const struct mw_sample none;
    struct mw_sample *s = &r->sample;
    char ctx[24];
    bool is_said;

    *s = none;
    take_sample(r, s);
    progress_clear(&r->progress);
    /* Nobody continues this answer: text that was held back belongs to it. */
    answer_out_text(&r->out, ev->text, ev->len, ev->is_thinking);
    r->out.input_left = prompt_has_left(r->from);
    answer_out_done(&r->out, &ev->receipt, s, &r->limits);
    if (r->o->stats) {
        summary_print(stderr, &ev->receipt, s);
        limits_print(stderr, 9, r->model);
    }
    is_said = report_empty(r, &ev->receipt);
    switch (ev->receipt.done) {
    case MW_DONE_STOP:
    case MW_DONE_LENGTH: return EXIT_OK;
    case MW_DONE_CANCELLED: return EXIT_STOPPED;
    case MW_DONE_CONTEXT:
        if (ev->receipt.n_decoded == 0) /* the prompt alone is too long */
            return report_too_long(r, &ev->err);
        if (!is_said)
            fprintf(stderr,
                    "memwall: the answer is incomplete, the context of %s tokens is full; use a "
                    "larger --ctx, or --ctx-shift\n",
                    numbers_count(ctx, sizeof ctx, s->run.ctx));
        return EXIT_FAILED;
    case MW_DONE_ERROR: return report_error(&ev->err);
    }
    return EXIT_FAILED;
}

/* Take one event.  True: the answer has ended with exit code *code. */
static bool take_event(struct run *r, const struct mw_event *ev, int *code)
{
    switch (ev->kind) {
    case MW_EVENT_READY:
    case MW_EVENT_KV_SAVED:
    case MW_EVENT_KV_LOADED:
    case MW_EVENT_KV_SHARED:
    case MW_EVENT_SETTING:
    case MW_EVENT_PLAN: return false;
    case MW_EVENT_STARTED:
        r->is_started = true;
        progress_restart(&r->progress, 0);
        return false;
    case MW_EVENT_PROGRESS:
        if (progress_is_due(&r->progress))
            progress_count(&r->progress, "prompt", "tokens", ev->n, ev->total);
        return false;
    case MW_EVENT_TEXT:
        r->is_thinking = ev->is_thinking;
        if (!r->is_answering || (!ev->is_thinking && r->out.is_terminal)) {
            /* The progress line must not appear in the middle of the answer. */
            progress_clear(&r->progress);
            if (!ev->is_thinking && r->out.is_terminal)
                r->progress.is_on = false;
        }
        r->is_answering = true;
        answer_out_text(&r->out, ev->text, ev->len, ev->is_thinking);
        return false;
    case MW_EVENT_THOUGHT:
        progress_clear(&r->progress);
        answer_out_thought(&r->out, r->o->quiet);
        return false;
    case MW_EVENT_NOTICE:
        progress_clear(&r->progress);
        if (!r->o->quiet) {
            answer_out_break(&r->out);
            report_notice(ev->text, ev->len);
        }
        return false;
    case MW_EVENT_LOGPROBS: return false;
    case MW_EVENT_PROMPT_IDS: answer_out_ids(&r->out, true, ev->text, ev->len); return false;
    case MW_EVENT_IDS: answer_out_ids(&r->out, false, ev->text, ev->len); return false;
    case MW_EVENT_DONE: *code = finish(r, ev); return true;
    case MW_EVENT_REFUSED:
    case MW_EVENT_ERROR:
        progress_clear(&r->progress);
        answer_out_break(&r->out);
        *code = refuse(r, &ev->err);
        return true;
    }
    return false;
}

/* The first signal stops the answer and keeps its text; the second one exits at once. */
static bool take_signal(struct run *r)
{
    int signo = signals_take(r->signals);

    if (signo == 0)
        return false;
    if (r->stopped_by != 0) {
        progress_clear(&r->progress);
        fflush(stdout);
        _exit(128 + signo);
    }
    r->stopped_by = signo;
    r->stop_ns = clock_ns() + SIGNALS_STOP_S * 1000000000ull;
    mw_chat_cancel(r->chat);
    return !r->is_started; /* there is no answer to stop */
}

/* Milliseconds until the progress line is due or the answer must have ended; -1: neither. */
static int wait_ms(const struct run *r)
{
    uint64_t now = clock_ns();

    if (r->progress.is_on)
        return PROGRESS_EVERY_MS;
    if (r->stopped_by == 0)
        return -1;
    return r->stop_ns > now ? (int)((r->stop_ns - now) / 1000000 + 1) : 0;
}

static int talk(struct run *r)
{
    struct pollfd fds[] = { { mw_chat_fd(r->chat), POLLIN, 0 }, { r->signals, POLLIN, 0 } };
    static struct mw_event ev; /* static: it is large */
    int code = EXIT_FAILED;
    struct err e = ERR_INIT;

    for (;;) {
        if (poll(fds, 2, wait_ms(r)) < 0 && errno != EINTR) {
            err_sys(&e, "cannot wait for the answer");
            progress_clear(&r->progress);
            return report_error(&e);
        }
        if ((fds[1].revents & POLLIN) != 0 && take_signal(r))
            return EXIT_STOPPED;
        if (r->stopped_by != 0 && clock_ns() >= r->stop_ns)
            return EXIT_STOPPED; /* the engine does not hear it */
        while (mw_chat_next(r->chat, &ev))
            if (take_event(r, &ev, &code))
                return code;
        if (ferror(stdout) != 0) /* the reader is gone, or the disk is full */
            return EXIT_FAILED;
        draw_progress(r);
    }
}

/* Close the chat.  After a signal, do not wait longer than STOP_MS for a disk that hangs. */
static void close_chat(struct run *r)
{
    r->is_stuck = r->chat != NULL && r->stopped_by != 0 && !mw_chat_stop(r->chat, STOP_MS);
    if (!r->is_stuck)
        mw_chat_close(r->chat);
}

static int open_recorder(struct run *r, struct err *e)
{
    struct mw_output file = { r->o->telemetry, r->o->force, "--force" };
    bool is_new;
    int fd = mw_output_open(r->model, &file, &is_new, e);

    return fd < 0 ? -1
                  : mw_recorder_open(&r->recorder, fd, file.path, is_new, take_sample, r, e);
}

static int run_chat(struct run *r, const char *text, size_t len)
{
    const struct options *o = r->o;
    struct err e = ERR_INIT;
    sigset_t before;
    int code = EXIT_FAILED;

    r->signals = signals_block(&before);
    progress_open(&r->progress, o->quiet || o->json);
    answer_out_open(&r->out, o->json, o->chat.raw);
    r->out.only_ids = o->ids && !o->json;
    /* Start watching before the engine: memory in use now belongs to the program. */
    if (r->progress.is_on || o->stats || o->json || o->telemetry != NULL)
        if (mw_watch_new(&r->watch, r->model, &e) != 0)
            goto failed;
    if (mw_chat_open(&r->chat, r->model, &r->chat_options, &e) != 0) {
        code = refuse(r, &e);
        goto done;
    }
    if (o->telemetry != NULL && open_recorder(r, &e) != 0)
        goto failed;
    if (mw_chat_send(r->chat, text, len, &e) != 0)
        goto failed;
    draw_progress(r);
    code = talk(r);
    if (r->stopped_by != 0)
        code = 128 + r->stopped_by;
    goto done;

failed:
    code = report_error(&e);
done:
    progress_clear(&r->progress);
    /* Closing joins threads.  Restore signals first, so that Ctrl-C ends the program now. */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r->recorder != NULL && mw_recorder_close(r->recorder, &e) != 0)
        code = report_error(&e);
    mw_watch_free(r->watch);
    close_chat(r);
    answer_out_close(&r->out);
    if (r->signals >= 0)
        close(r->signals);
    return code;
}

/* A question to the guide about memwall's own words is answered from the help texts, without the
 * engine.  Returns false if it is for the model. */
static bool answer_from_help(struct run *r, const struct mw_model_info *info, const char *text)
{
    static char answer[HELP_ANSWER_BYTES];
    static struct mw_sample none;
    struct mw_receipt nothing = { .done = MW_DONE_STOP };

    if (!help_is_guide(info) || r->o->chat.raw || r->o->ids ||
        r->chat_options.grammar != NULL ||
        r->o->telemetry != NULL || !help_answer(command_texts(), &text, 1, answer))
        return false;
    answer_out_open(&r->out, r->o->json, false);
    r->out.is_help = true;
    r->out.input_left = prompt_has_left(r->from);
    answer_out_text(&r->out, answer, strlen(answer), false);
    answer_out_done(&r->out, &nothing, &none, &r->limits);
    answer_out_close(&r->out);
    if (r->o->stats)
        fputs("memwall: the help answered, without the model\n", stderr);
    return true;
}

/* A single argument can be the name of a model.  Returns an exit code, or -1 to go on. */
static int take_model(struct options *o)
{
    enum model_word word =
        o->model == NULL && o->prompt == NULL && o->arg != NULL ? models_word(o->arg)
                                                                : MODEL_NOT;
    int code;

    if (word == MODEL_NOT)
        return -1;
    o->model = o->arg;
    code = models_resolve(o, CMD_RUN);
    if (code != EXIT_OK)
        return code;
    o->arg = NULL;
    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 ? cmd_chat.run(o) : -1;
}

static int run_run(const struct options *given)
{
    struct options used = *given, *o = &used;
    int named = o->server != NULL ? run_server(o) : take_model(o);
    struct prompt_source from = { .arg = o->arg,
                                  .stdin_use = o->stdin_too  ? PROMPT_STDIN_READ
                                               : o->no_stdin ? PROMPT_STDIN_NEVER
                                                             : PROMPT_STDIN_AUTO,
                                  .raw = o->chat.raw,
                                  .quiet = o->quiet };
    struct run *r = calloc(1, sizeof *r);
    struct mw_options *engine;
    struct mw_model_info info;
    struct settings_notice notice;
    struct err e = ERR_INIT, ignored = ERR_INIT;
    struct form form;
    char *text = NULL;
    size_t len = 0;
    int code;

    if (named >= 0) {
        free(r);
        return named;
    }
    if (r == NULL) {
        err_memory(&e, "an answer");
        return report_error(&e);
    }
    if (models_choose(o, &e) != 0) {
        free(r);
        return report_usage(&cmd_run, &e);
    }
    if (form_read(&form, o, false, &e) != 0) {
        free(r);
        return report_error(&e);
    }
    r->o = o;
    r->from = &from;
    engine = &r->chat_options.engine;
    settings_engine(o, engine, &notice);
    settings_no_screen(engine);
    settings_report(o, &notice);
    (void)paths_find(&r->paths, &ignored);
    if (settings_open(o->model, engine, &r->model, &e) != 0)
        code = report_error(&e);
    else if (prompt_make(&from, mw_text_bytes(r->model, engine), &text, &len,
                         &e) != 0)
        code = e.code == ERR_ARGUMENT ? report_usage(&cmd_run, &e) : report_error(&e);
    else {
        settings_chat(o, r->model, &r->chat_options);
        r->chat_options.grammar = form.grammar;
        r->chat_options.reports_ids = o->ids;
        if (form.grammar != NULL)
            engine->caller_bytes = mw_grammar_bytes(r->model);
        mw_model_info(r->model, &info);
        if (answer_from_help(r, &info, text)) {
            code = report_end(EXIT_OK);
            goto done;
        }
        settings_report_context(o, &info);
        limits_ensure(r->model, o->model, engine, LIMITS_KEPT);
        mw_model_limits(r->model, &r->limits);
        models_used(o->model);
        code = run_chat(r, text, len);
        prompt_report_left(&from);
    }
done:
    free(text);
    form_free(&form);
    if (r->model != NULL && !r->is_stuck)
        mw_model_close(r->model);
    free(r);
    return code;
}

const struct command cmd_run = {
    .name = "run",
    .args = "[PROMPT] [-]",
    .help = "answer one prompt on standard output",
    .about =
        "The prompt is the argument, standard input, or both: the argument first, then\n"
        "the input as attached text.  Next to an argument, standard input is left alone\n"
        "if it belongs to a loop or script that runs memwall; \"-\" reads it in any case,\n"
        "--no-stdin never.  Only the answer goes to standard output.  If standard error\n"
        "is a terminal, a line there shows the progress.  Ctrl-C stops the answer; a\n"
        "second Ctrl-C exits at once.",
    .examples = "memwall run model.gguf \"Why is the sky blue?\"\n"
                "memwall run -m model.gguf \"Sum this up.\" < notes.txt\n"
                "git diff | memwall run -m model.gguf -q \"Write a commit message.\"\n"
                "memwall run --server http://127.0.0.1:8080 \"Why is the sky blue?\"\n",
    .bit = CMD_RUN,
    .needs_model = true,
    .has_guide = true,
    .takes_arg = true,
    .reads_config = true,
    .run = run_run,
};
