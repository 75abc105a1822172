/* Events of the engine. */
#include "config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/numbers.h"
#include "ui/options/proposal.h"
#include "ui/talk/help_answer.h"
#include "ui/talk/server_setting.h"
#include "ui/talk/talk_internal.h"
#include "ui/words/clean.h"
#include "ui/words/receipt.h"
#include "ui/words/server.h"

/* ---- the model ---- */

/* Reads through the page cache are what this program avoids, so it says when it chose them. */
static void say_how_weights_are_read(struct talk *t)
{
    const struct mw_options *o = &talk_options(t)->engine;
    struct mw_io_choice choice;
    struct err ignored = ERR_INIT;

    if (o->io == MW_IO_AUTO && t->engine->calls->io != NULL &&
        t->engine->calls->io(t->engine, o, &choice, &ignored) == 0 &&
        strcmp(choice.name, mw_io_name(MW_IO_BUFFERED)) == 0)
        talk_notice(t,
                    "weights are read through the page cache (%s); /io direct reads them "
                    "without it",
                    choice.reason);
}

/* ", about 2.4 tokens a second", as the screen predicts for the next token; "": not known. */
static char *speed_text(struct talk *t, char *buf, size_t n)
{
    struct mw_diagnosis d;
    char rate[24], drafts[48] = "";

    buf[0] = '\0';
    if (!talk_diagnose_now(t, &d))
        return buf;
    if (d.assumed > 0)
        snprintf(drafts, sizeof drafts, " if %.0f %% of the drafts are right", 100 * d.assumed);
    snprintf(buf, n, ", %s %s tokens a second%s", d.is_doubtful ? "roughly" : "about",
             numbers_rough(rate, sizeof rate, d.tps), drafts);
    return buf;
}

/* "budget 1.46 GiB", with what comes before and after it; "": not known. */
static char *budget_text(const struct talk *t, const char *before, const char *after, char *buf,
                         size_t n)
{
    char size[16];

    buf[0] = '\0';
    if (talk_has_plan(t))
        snprintf(buf, n, "%sbudget %s%s", before,
                 units_size(size, sizeof size, t->plan.budget_bytes), after);
    return buf;
}

/* Introduce a model at a server. */
static void introduce_server(struct talk *t, const struct mw_server_figures *f)
{
    char name[200], count[24], ctx[60] = "", others[60] = "";

    if (t->plan.n_ctx > 0)
        snprintf(ctx, sizeof ctx, ", context %s",
                 numbers_count(count, sizeof count, t->plan.n_ctx));
    if (f->n_model > 1)
        snprintf(others, sizeof others, " It has %s models; /model lists them.",
                 numbers_count(count, sizeof count, f->n_model));
    talk_notice(t, "%s at %s%s. /help lists commands and keys.%s", t->info.name,
                server_name(f, name, sizeof name), ctx, others);
}

/* Introduce the model that was loaded. */
static void introduce(struct talk *t)
{
    const char *name = t->info.name[0] != '\0' ? t->info.name : t->model_path;
    char budget[40], clean[200], speed[112], ctx[24];
    struct mw_server_figures server;

    if (t->o->options->quiet)
        return;
    if (talk_server(t, &server)) {
        introduce_server(t, &server);
        return;
    }
    clean_line(clean, sizeof clean, name, strlen(name));
    talk_notice(t, "%s (%s, %s): %scontext %s%s. /help lists commands and keys.", clean,
                t->info.arch, t->info.type, budget_text(t, "", ", ", budget, sizeof budget),
                numbers_count(ctx, sizeof ctx, t->plan.n_ctx), speed_text(t, speed, sizeof speed));
    if (t->info.n_ctx_train > 0 && t->plan.n_ctx > t->info.n_ctx_train)
        talk_notice(t, "that context is more than the %s tokens that the model was trained for",
                    numbers_count(ctx, sizeof ctx, t->info.n_ctx_train));
    say_how_weights_are_read(t);
    if (help_is_guide(&t->info) && t->ledger.n == 0)
        talk_notice(t,
                    "ask it, for example: what is the memory wall? how do I change the memory "
                    "budget? which keys are there?");
}

static void on_ready(struct talk *t, const struct mw_event *ev)
{
    if (t->state == TALK_FAILED) { /* other options made it fit */
        changes_done(&t->changes);
        kv_load_if_own(t);
    }
    t->state = TALK_READY;
    t->measured_tps = 0;
    model_set_plan(t, &ev->plan);
    kept_begin(t);
    kv_share(t);
    introduce(t);
    talk_send_waiting(t);
}

/* ---- options ---- */

static void announce_plan(struct talk *t, const char *changed)
{
    char budget[40], speed[112], ctx[24];

    talk_notice(t, "now: context %s%s%s%s", numbers_count(ctx, sizeof ctx, t->plan.n_ctx),
                budget_text(t, ", ", "", budget, sizeof budget), changed,
                speed_text(t, speed, sizeof speed));
}

/* Give the engine messages that did not fit a shorter context.  While it answers, the answer
 * is missing in the saved chat. */
static void restore_more(struct talk *t)
{
    struct err e = ERR_INIT;

    if (!talk_is_answering(t) && t->ledger.n_absent > 0 &&
        t->plan.n_ctx > t->ledger.restored_ctx && saved_restore(t, &e) != 0)
        talk_report(t, &e);
}

static void on_plan(struct talk *t, const struct mw_event *ev)
{
    struct mw_options was;
    char changed[150];
    unsigned then;

    was = t->changes.applied.engine;
    then = changes_done(&t->changes);
    proposal_changed(changed, sizeof changed, &was, &t->changes.applied.engine);
    if (changed[0] != '\0' || t->plan.budget_bytes != ev->plan.budget_bytes ||
        t->plan.n_ctx != ev->plan.n_ctx) {
        t->answer.has_new_plan = true;
        t->measured_tps = 0;
    }
    model_set_plan(t, &ev->plan);
    kept_changed(t, &was, (then & THEN_OF_CHAT) != 0);
    if (t->ledger.n > 0)
        kept_system(t);
    restore_more(t);
    if ((then & THEN_CONTINUE) != 0)
        talk_continue(t);
    if ((then & THEN_ANNOUNCE) != 0)
        announce_plan(t, changed);
    talk_send_waiting(t);
}

/* ---- the answer ---- */

/* The engine closes a model or a head that drafts during an answer in which it gained too little,
 * and opens it again at the beginning of a later one, after a notice.  Returns whether the plan is
 * another one. */
static bool follow_drafter(struct talk *t, const struct mw_event *ev)
{
    const struct plan *now = &ev->plan, *before = &t->plan;
    bool has_head = before->has_head && !now->has_head;
    bool is_closed = has_head || (before->n_draft > 0 && now->n_draft == 0);

    if (now->budget_bytes == 0 ||
        ((now->n_draft > 0) == (before->n_draft > 0) && now->has_head == before->has_head))
        return false;
    model_set_plan(t, now);
    if (is_closed)
        talk_notice(t,
                    "drafts gained too little: the %s that made them was closed; a later answer "
                    "tries it again",
                    has_head ? "head" : "model");
    return true;
}

static void on_started(struct talk *t, const struct mw_event *ev)
{
    struct mw_diagnosis d;

    (void)follow_drafter(t, ev);
    t->answer.prefill_done = 0;
    t->answer.prefill_total = ev->n;
    t->answer.prompt_total = ev->total;
    t->answer.started_ns = clock_ns();
    t->answer.promised_tps = talk_diagnose_now(t, &d) ? d.tps : 0;
    if (t->state == TALK_ANSWERING)
        t->state = TALK_PREFILL;
}

/* The answer gets its first piece, or it ends without one. */
static void begin(struct talk *t)
{
    struct held *h = &t->held;

    if (t->answer.has_text)
        return;
    t->front.begin(t->front.ctx, t->answer.resumes);
    if (t->answer.resumes && h->n > 0)
        t->front.take_back(t->front.ctx, h->text, h->n, h->is_thinking);
    h->n = 0;
    t->answer.has_text = true;
}

static void on_text(struct talk *t, const struct mw_event *ev)
{
    struct answer *a = &t->answer;

    if (ev->len == 0)
        return;
    if (t->state == TALK_PREFILL)
        t->state = TALK_ANSWERING;
    if (t->compact.is_on) {
        compact_text(t, ev);
        return;
    }
    saving_piece(&t->saving, ev->text, ev->len, ev->is_thinking, a->resumes && !a->has_text);
    begin(t);
    t->front.piece(t->front.ctx, ev->text, ev->len, ev->is_thinking);
}

static void on_thought(struct talk *t)
{
    if (t->compact.is_on) {
        compact_thought(t);
        return;
    }
    saving_thought(&t->saving);
    begin(t);
    t->front.thought(t->front.ctx);
}

/* An answer that was stopped before its first token leaves no trace. */
static void on_cancelled(struct talk *t, bool is_back)
{
    if (!is_back && !t->answer.has_text && ledger_ends_with_user(&t->ledger))
        talk_take_back(t, t->ledger.n - 1);
}

void talk_predict_again(struct talk *t)
{
    struct mw_options o = talk_in_force(t);
    struct err ignored = ERR_INIT;
    struct plan again;

    if (talk_try_plan(t, &o, &again, &ignored) != 0 ||
        again.n_draft != t->plan.n_draft || again.has_head != t->plan.has_head)
        return;
    t->plan.decode_tps = again.decode_tps;
    t->plan.pass_tps = again.pass_tps;
    t->plan.assumed = again.assumed;
    t->plan.prefill_tps = again.prefill_tps;
    t->plan.binds = again.binds;
}

/* Whether the message itself is the reason why there is no answer: no prompt can be made of it.
 * If it stayed, all messages after it would be refused, too. */
static bool is_refused(const struct talk *t, const struct mw_event *ev)
{
    enum err_code code = ev->err.code;

    return ev->receipt.done == MW_DONE_ERROR && ev->receipt.n_prompt == 0 &&
           !t->answer.has_text && ledger_ends_with_user(&t->ledger) &&
           (code == ERR_ARGUMENT || code == ERR_FORMAT || code == ERR_UNSUPPORTED ||
            code == ERR_BUDGET);
}

/* Say why the answer has no text, unless an error says it, or the same was said before the
 * answer went on. */
static void say_empty(struct talk *t)
{
    char text[200];
    bool has_error = t->last.done == MW_DONE_ERROR || t->last.done == MW_DONE_CONTEXT;

    if (t->last.empty == MW_NOT_EMPTY || t->o->options->quiet ||
        (has_error && t->last.empty == MW_EMPTY_NOTHING) ||
        (t->last.empty == t->said.empty && t->last.done == t->said.done))
        return;
    t->said = t->last;
    talk_notice(t, "%s", receipt_empty(text, sizeof text, &t->last, true));
}

static void on_done(struct talk *t, const struct mw_event *ev)
{
    enum mw_done done = ev->receipt.done;
    uint32_t id = STORE_NO_ITEM;
    bool is_back;

    t->state = TALK_READY;
    t->last = ev->receipt;
    t->has_last = true;
    t->answer.has_new_plan |= follow_drafter(t, ev);
    t->promised_tps = t->answer.has_new_plan ? 0 : t->answer.promised_tps;
    talk_predict_again(t);
    if (!t->answer.has_new_plan) /* 0 if no token was made: as the dashboard shows it */
        t->measured_tps = receipt_decode_tps(&t->last);
    if (t->compact.is_on) {
        compact_done(t, ev);
        return;
    }
    if (!t->answer.has_new_plan && t->engine->calls->tried_peak != NULL)
        t->engine->calls->tried_peak(t->engine, &t->plan, receipt_peak(&t->last));
    /* An answer may go on without a token: nothing has changed, unless it ends now. */
    if (ev->has_answer &&
        (t->answer.has_text || ev->receipt.n_decoded > 0 || done == MW_DONE_STOP)) {
        begin(t);
        if (ev->len > 0) /* it was held back until the answer was cut */
            t->front.piece(t->front.ctx, ev->text, ev->len, ev->is_thinking);
        id = saving_done(&t->saving, &t->last, ev, talk_tokens(t), t->answer.resumes);
        if (!t->answer.resumes)
            ledger_add(&t->ledger, false);
        kv_save(t);
    }
    t->front.done(t->front.ctx, &t->last, t->answer.has_text, id);
    restore_more(t);
    is_back = (done == MW_DONE_CANCELLED || done == MW_DONE_ERROR) && answers_bring_back(t);
    /* First, because the front offers ways to continue only while its line is empty. */
    if (done == MW_DONE_CONTEXT || done == MW_DONE_ERROR)
        messages_return_waiting(t);
    switch (done) {
    case MW_DONE_STOP:
    case MW_DONE_LENGTH: break;
    case MW_DONE_CANCELLED: on_cancelled(t, is_back); break;
    case MW_DONE_CONTEXT: t->front.context_full(t->front.ctx); break;
    case MW_DONE_ERROR:
        if (!is_back && is_refused(t, ev)) /* the reason stays after the message */
            talk_take_back(t, t->ledger.n - 1);
        talk_report(t, &ev->err);
        break;
    }
    say_empty(t);
    if (is_back)
        talk_notice(t, "the answer before it stays");
    else
        answers_say(t);
    if (!is_back && answer_can_go_on(done) && !ledger_ends_with_user(&t->ledger))
        t->n_unfinished = t->ledger.n;
    if (done != MW_DONE_CONTEXT && done != MW_DONE_ERROR)
        talk_send_waiting(t);
}

/* ---- notices and errors ---- */

/* The model no longer sees the oldest ev->n messages, and the event says why.  Mark them and say
 * where they begin. */
static void on_dropped(struct talk *t, const struct mw_event *ev)
{
    char *text = talk_text_of(t, 0);
    char first[48] = "", why[256], notice[400];

    if (text != NULL)
        clean_line(first, sizeof first, text, strnlen(text, 40));
    free(text);
    clean_line(why, sizeof why, ev->text, ev->len);
    snprintf(notice, sizeof notice, "%s; they begin with \"%s\" and are marked x", why, first);
    t->ledger.n_dropped = ev->n;
    t->ledger.n_absent = 0; /* dropped messages are not given to the engine again */
    t->front.dropped(t->front.ctx, ev->n);
    t->front.say(t->front.ctx, SAY_NOTICE, notice, saving_notice(&t->saving, notice));
}

static void on_notice(struct talk *t, const struct mw_event *ev)
{
    char clean[1024];

    if (ev->n > 0) {
        on_dropped(t, ev);
        return;
    }
    clean_line(clean, sizeof clean, ev->text, ev->len);
    t->front.say(t->front.ctx, SAY_NOTICE, clean, saving_notice(&t->saving, clean));
}

/* A command failed: loading, or a message. */
static void on_error(struct talk *t, const struct mw_event *ev)
{
    talk_report(t, &ev->err);
    if (t->state == TALK_LOADING) {
        t->state = TALK_FAILED;
    } else if (talk_is_answering(t)) {
        t->state = TALK_READY;
        compact_failed(t);
        messages_return_waiting(t);
    }
}

/* A change of options failed.  An answer goes on with the old ones. */
static void on_refused(struct talk *t, const struct mw_event *ev)
{
    talk_report(t, &ev->err);
    changes_failed(&t->changes);
    talk_send_waiting(t);
}

static void on_event(struct talk *t, const struct mw_event *ev)
{
    switch (ev->kind) {
    case MW_EVENT_READY: on_ready(t, ev); break;
    case MW_EVENT_STARTED: on_started(t, ev); break;
    case MW_EVENT_PROGRESS:
        t->answer.prefill_done = ev->n;
        t->answer.prefill_total = ev->total;
        break;
    case MW_EVENT_TEXT: on_text(t, ev); break;
    case MW_EVENT_THOUGHT: on_thought(t); break;
    case MW_EVENT_DONE: on_done(t, ev); break;
    case MW_EVENT_PLAN: on_plan(t, ev); break;
    case MW_EVENT_NOTICE: on_notice(t, ev); break;
    case MW_EVENT_REFUSED: on_refused(t, ev); break;
    case MW_EVENT_ERROR: on_error(t, ev); break;
    case MW_EVENT_PROMPT_IDS:
    case MW_EVENT_IDS:
    case MW_EVENT_LOGPROBS: break; /* chats do not ask for them */
    case MW_EVENT_KV_SAVED: kv_saved(t, ev); break;
    case MW_EVENT_KV_LOADED: kv_loaded(t, ev); break;
    case MW_EVENT_KV_SHARED: kv_shared(t, ev); break;
    case MW_EVENT_SETTING:
        server_setting_replied(t, ev);
        restore_more(t); /* with a longer context */
        break;
    }
    t->front.changed(t->front.ctx);
}

int talk_fd(const struct talk *t)
{
    if (t->switching.opening != NULL)
        return opening_fd(t->switching.opening);
    return t->engine == NULL ? -1 : t->engine->calls->fd(t->engine);
}

void talk_pump(struct talk *t)
{
    struct mw_event ev;

    while (t->engine != NULL && t->engine->calls->next(t->engine, &ev))
        on_event(t, &ev);
    if (t->switching.opening != NULL && opening_is_over(t->switching.opening))
        model_opened(t);
}
