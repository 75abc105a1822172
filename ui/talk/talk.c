#include "config.h"

#include "ui/talk/talk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "ui/talk/talk_internal.h"
#include "ui/words/clean.h"

/* ---- open and close ---- */

static int open_all(struct talk *t, struct err *e)
{
    struct mw_output telemetry = { t->o->options->telemetry, t->o->options->force, "--force" };

    if (saved_open(t, e) != 0 || model_open_first(t, e) != 0 || saved_begin(t, e) != 0)
        return -1;
    return telemetry.path == NULL ? 0 : talk_record(t, &telemetry, e);
}

int talk_open(struct talk **out, const struct ui_chat_options *o,
              const struct talk_front *front, struct err *e)
{
    struct talk *t = calloc(1, sizeof *t);

    *out = t;
    if (t == NULL)
        return err_memory(e, "the chat");
    t->o = o;
    t->front = *front;
    t->saving = (struct saving){ .front = &t->front, .o = o };
    memcpy(t->given, o->options->given, sizeof t->given);
    changes_begin(&t->changes, &o->options->chat);
    if (open_all(t, e) == 0)
        return 0;
    talk_close(t);
    *out = NULL;
    return -1;
}

void talk_close(struct talk *t)
{
    struct err ignored = ERR_INIT;

    if (t == NULL)
        return;
    if (t->engine != NULL)
        t->engine->calls->cancel(t->engine);
    talk_record_end(t, &ignored);
    if (shell_runs(&t->shell))
        shell_free(&t->shell);
    model_close(t);
    saving_close(&t->saving);
    carried_free(&t->compact.tail);
    free(t->compact.text);
    outbox_free(&t->outbox);
    ledger_free(&t->ledger);
    changes_free(&t->changes);
    free(t);
}

/* Show the lines of the configuration file that were skipped, one notice each. */
static void greet_skipped(struct talk *t)
{
    const char *line = t->o->options->skipped;

    while (line != NULL && *line != '\0') {
        int n = (int)strcspn(line, "\n");

        talk_notice(t, "%.*s", n, line);
        line += n + (line[n] == '\n');
    }
}

void talk_greet(struct talk *t)
{
    greet_skipped(t);
    saving_say_opened(&t->saving);
    if (t->o->notice != NULL && t->o->notice[0] != '\0')
        talk_notice(t, "%s", t->o->notice);
    if (t->changes.asked.engine.io == MW_IO_MMAP)
        talk_notice(t, "%s", mw_mmap_notice());
}

void talk_tick(struct talk *t)
{
    saving_tick(&t->saving);
    shell_tick(&t->shell);
    if (shell_runs(&t->shell) && t->shell.is_over)
        talk_shell_pump(t);
}

uint64_t talk_wait(const struct talk *t)
{
    uint64_t saving = saving_wait(&t->saving), shell = shell_wait(&t->shell);

    return shell < saving ? shell : saving;
}

/* ---- what is known ---- */

enum talk_state talk_state(const struct talk *t)
{
    return t->state;
}

bool talk_is_answering(const struct talk *t)
{
    return t->state >= TALK_PREFILL;
}

bool talk_is_loaded(const struct talk *t)
{
    return t->state >= TALK_READY;
}

bool talk_can_resume(const struct talk *t)
{
    return t->engine->calls->can_resume == NULL || t->engine->calls->can_resume(t->engine);
}

bool talk_can_continue(const struct talk *t)
{
    return t->state == TALK_READY && t->n_unfinished > 0 && t->n_unfinished == t->ledger.n &&
           talk_can_resume(t);
}

bool talk_has_text(const struct talk *t)
{
    return t->answer.has_text;
}

const struct ui_chat_options *talk_settings(const struct talk *t)
{
    return t->o;
}

void talk_values(const struct talk *t, struct options *out)
{
    *out = *t->o->options;
    out->chat = t->changes.asked;
    out->model = t->model_path;
    memcpy(out->given, t->given, sizeof out->given);
    t->front.look(t->front.ctx, &out->ui);
}

const struct mw_chat_options *talk_options(const struct talk *t)
{
    return &t->changes.asked;
}

const struct mw_model *talk_model(const struct talk *t)
{
    return t->engine == NULL || t->engine->calls->model == NULL
               ? NULL
               : t->engine->calls->model(t->engine);
}

bool talk_server(const struct talk *t, struct mw_server_figures *out)
{
    if (t->engine == NULL || t->engine->calls->server == NULL)
        return false;
    t->engine->calls->server(t->engine, out);
    return true;
}

bool talk_has_server(const struct talk *t)
{
    return t->o->server != NULL;
}

const char *talk_server_model(const struct talk *t, size_t i)
{
    return t->engine == NULL || t->engine->calls->server_model == NULL
               ? NULL
               : t->engine->calls->server_model(t->engine, i);
}

uint32_t talk_engine(const struct talk *t)
{
    return t->engine == NULL ? 0 : t->n_engine;
}

const char *talk_model_path(const struct talk *t)
{
    return t->model_path;
}

const char *talk_model_lasting(const struct talk *t)
{
    return t->model_lasting;
}

const char *talk_opening_path(const struct talk *t)
{
    return t->state == TALK_SWITCHING ? t->switching.path : NULL;
}

const struct mw_model_info *talk_info(const struct talk *t)
{
    return &t->info;
}

const struct plan *talk_plan(const struct talk *t)
{
    return &t->plan;
}

bool talk_has_plan(const struct talk *t)
{
    return t->plan.budget_bytes > 0;
}

const struct mw_receipt *talk_last(const struct talk *t)
{
    return t->has_last ? &t->last : NULL;
}

const struct ledger *talk_ledger(const struct talk *t)
{
    return &t->ledger;
}

const struct outbox *talk_outbox(const struct talk *t)
{
    return &t->outbox;
}

struct saving *talk_saving(struct talk *t)
{
    return &t->saving;
}

double talk_measured(const struct talk *t)
{
    return t->measured_tps;
}

double talk_promised_tps(const struct talk *t)
{
    return t->promised_tps;
}

uint32_t talk_tokens(const struct talk *t)
{
    return t->engine == NULL ? 0 : t->engine->calls->tokens(t->engine);
}

void talk_limits(const struct talk *t, struct mw_limits *out)
{
    *out = (struct mw_limits){ 0 };
    if (t->engine != NULL && t->engine->calls->limits != NULL)
        t->engine->calls->limits(t->engine, out);
}

void talk_anchor(const struct talk *t, struct plan_anchor *out)
{
    *out = (struct plan_anchor){ 0 };
    if (t->engine != NULL && t->engine->calls->anchor != NULL)
        t->engine->calls->anchor(t->engine, out);
}

size_t talk_tried(const struct talk *t, struct mw_tried *list)
{
    return t->engine == NULL || t->engine->calls->tried == NULL
               ? 0
               : t->engine->calls->tried(t->engine, list);
}

bool talk_progress(const struct talk *t, struct talk_progress *out)
{
    const struct answer *a = &t->answer;

    *out =
        (struct talk_progress){ a->prefill_done, a->prefill_total, clock_ns() - a->started_ns };
    return t->state == TALK_PREFILL && a->prefill_total > 0;
}

void talk_sample(struct talk *t, struct mw_sample *out)
{
    if (t->engine == NULL)
        *out = (struct mw_sample){ .state = MW_LOADING, .t_ns = clock_ns() };
    else
        t->engine->calls->sample(t->engine, out);
    if (out->run.budget_bytes == 0) /* no session publishes it yet */
        out->run.budget_bytes = t->plan.budget_bytes > 0 ? t->plan.budget_bytes
                                                         : talk_options(t)->engine.memory_bytes;
}

bool talk_diagnose(struct talk *t, const struct mw_options *o, struct mw_diagnosis *out)
{
    struct mw_sample *s;
    struct err ignored = ERR_INIT;
    bool is_known;

    *out = (struct mw_diagnosis){ 0 };
    if (t->engine->calls->diagnose == NULL)
        return false;
    s = malloc(sizeof *s);
    if (s == NULL)
        return false;
    talk_sample(t, s);
    is_known = t->engine->calls->diagnose(t->engine, o, s, out, &ignored) == 0 && out->tps > 0;
    free(s);
    return is_known;
}

struct mw_options talk_in_force(const struct talk *t)
{
    struct mw_options o = talk_options(t)->engine;

    if (t->plan.no_drafter == MW_DRAFTER_CLOSED)
        mw_options_without_drafter(&o);
    return o;
}

bool talk_diagnose_now(struct talk *t, struct mw_diagnosis *out)
{
    struct mw_options o = talk_in_force(t);

    o.memory_bytes = t->plan.budget_bytes;
    o.n_ctx = t->plan.n_ctx;
    return talk_diagnose(t, &o, out);
}

int talk_try_plan(struct talk *t, const struct mw_options *o, struct plan *out, struct err *e)
{
    if (t->engine->calls->plan == NULL)
        return err_set(e, ERR_UNSUPPORTED, TALK_NO_PLAN);
    return t->engine->calls->plan(t->engine, o, out, e);
}

bool talk_try_outlook(struct talk *t, const struct mw_options *o, const struct plan_run *run,
                      struct plan_outlook *out)
{
    struct err ignored = ERR_INIT;

    return t->engine->calls->outlook != NULL &&
           t->engine->calls->outlook(t->engine, o, run, out, &ignored) == 0;
}

bool talk_wall_begin(struct talk *t, struct mw_wall *w, const struct mw_options *o,
                     const struct mw_sample *s)
{
    return t->engine->calls->wall_begin != NULL &&
           t->engine->calls->wall_begin(t->engine, w, o, s);
}

bool talk_wall_step(struct talk *t, struct mw_wall *w, const struct mw_options *o,
                    const struct mw_sample *s, uint32_t n)
{
    return t->engine->calls->wall_step(t->engine, w, o, s, n);
}

bool talk_try_fit(struct talk *t, const struct mw_options *o, uint64_t *smallest_budget,
                  uint32_t *largest_ctx)
{
    struct err ignored = ERR_INIT;

    return t->engine->calls->fit != NULL &&
           t->engine->calls->fit(t->engine, o, smallest_budget, largest_ctx, &ignored) == 0;
}

void talk_cost_again(const struct talk *t, const struct plan *plan, struct mw_cost *out)
{
    *out = (struct mw_cost){ .n_again = talk_tokens(t) };
    if (t->engine->calls->cost_again != NULL)
        t->engine->calls->cost_again(t->engine, plan, out);
}

/* ---- messages to the person ---- */

void talk_notice(struct talk *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    front_vsay(&t->front, SAY_NOTICE, fmt, ap);
    va_end(ap);
}

void talk_error(struct talk *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    front_vsay(&t->front, SAY_ERROR, fmt, ap);
    va_end(ap);
}

void talk_report(struct talk *t, const struct err *e)
{
    front_report(&t->front, e);
}

/* ---- what the front shows or does ---- */

void talk_show(struct talk *t, struct sheet *s)
{
    t->front.sheet(t->front.ctx, s);
}

int talk_set_look(struct talk *t, enum option_id what, const struct ui_options *look,
                  struct err *e)
{
    return t->front.set_look(t->front.ctx, what, look, e);
}

int talk_act(struct talk *t, enum talk_action action, const char *arg, struct err *e)
{
    return t->front.act(t->front.ctx, action, arg, e);
}

bool talk_has_screen(const struct talk *t)
{
    return t->front.has_screen;
}

void talk_draft(struct talk *t, const char *text)
{
    t->front.draft(t->front.ctx, text);
}

bool talk_is_person(const struct talk *t)
{
    return t->front.is_person;
}

void talk_quit(struct talk *t)
{
    t->front.quit(t->front.ctx);
}

char *talk_text_of(struct talk *t, size_t n)
{
    return t->front.text_of(t->front.ctx, n);
}

char *talk_oldest_text(struct talk *t, char *buf, size_t n)
{
    char *text = talk_text_of(t, t->ledger.n_dropped);

    buf[0] = '\0';
    if (text != NULL)
        clean_line(buf, n, text, strnlen(text, 40));
    free(text);
    return buf;
}

/* ---- recording ---- */

/* Called on the recorder's thread.  It reads chat and watch only, which do not change while
 * the recorder runs. */
static void take_sample(void *ctx, struct mw_sample *out)
{
    talk_sample(ctx, out);
}

int talk_record(struct talk *t, const struct mw_output *file, struct err *e)
{
    bool is_new;
    int fd = mw_output_open(talk_model(t), file, &is_new, e);

    if (fd < 0 ||
        mw_recorder_open(&t->recorder, fd, file->path, is_new, take_sample, t, e) != 0)
        return -1;
    snprintf(t->recorder_path, sizeof t->recorder_path, "%.250s", file->path);
    return 0;
}

const char *talk_recording(const struct talk *t)
{
    return t->recorder == NULL ? NULL : t->recorder_path;
}

int talk_record_end(struct talk *t, struct err *e)
{
    struct mw_recorder *r = t->recorder;

    t->recorder = NULL;
    return r == NULL ? 0 : mw_recorder_close(r, e);
}
