/* The model of a conversation: opening it, and switching to another. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/talk/talk_internal.h"

#define ABANDON_MS 2000 /* longer than measuring the machine takes */

/* ---- the engine ---- */

void model_set_plan(struct talk *t, const struct plan *plan)
{
    struct mw_options o = talk_options(t)->engine;

    t->plan = *plan;
    if (plan->n_ctx > 0)
        o.n_ctx = plan->n_ctx;
    t->text_max = (size_t)t->engine->calls->text_bytes(t->engine, &o);
}

/* The plan before the model is loaded; of an engine that does not say it, only the context. */
static int first_plan(struct talk *t, const struct mw_options *o, struct plan *out,
                      struct err *e)
{
    *out = (struct plan){ .n_ctx = o->n_ctx != 0 ? o->n_ctx : t->info.n_ctx_train };
    return t->engine->calls->plan == NULL ? 0 : t->engine->calls->plan(t->engine, o, out, e);
}

/* Use g: the recommendations of its model for sampling, except where the person chose, and a
 * chat. */
static int start_engine(struct talk *t, struct engine *g, struct err *e)
{
    struct mw_chat_options o = *talk_options(t);
    struct options chosen;
    struct plan plan;

    t->engine = g;
    t->n_engine++;
    t->n_asked = 0;
    outbox_forget_tokens(&t->outbox); /* they were of another tokenizer */
    g->calls->info(g, &t->info);
    if (g->calls->recommend != NULL)
        g->calls->recommend(g, &o.sampling);
    talk_values(t, &chosen);
    options_overlay(&chosen, &o.sampling);
    if (changes_ask(&t->changes, NULL, &(struct change){ .o = o }, e) != 0 ||
        first_plan(t, &o.engine, &plan, e) != 0 || g->calls->start(g, talk_options(t), e) != 0)
        return -1;
    model_set_plan(t, &plan);
    t->state = TALK_LOADING;
    return 0;
}

/* Reading the header or measuring the machine may take a while, and nothing is on the screen
 * or on disk yet: a signal ends the program as it would without a handler. */
static int open_model(struct engine **out, const struct ui_chat_options *o, struct err *e)
{
    const struct engine_model model = { o->options->model, o->options->chat.engine,
                                        o->limits, o->server };
    sigset_t ending, before;
    int rc;

    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &ending, &before);
    rc = o->engine->open(out, &model, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int model_open_first(struct talk *t, struct err *e)
{
    struct engine *g;
    const char *lasting = t->o->options->model_lasting;

    t->model_path = strdup(t->o->options->model);
    t->model_lasting = strdup(lasting != NULL ? lasting : t->o->options->model);
    if (t->model_path == NULL || t->model_lasting == NULL)
        return err_memory(e, "the path of the model");
    return open_model(&g, t->o, e) != 0 ? -1 : start_engine(t, g, e);
}

void model_close(struct talk *t)
{
    opening_abandon(t->switching.opening, ABANDON_MS);
    if (t->engine != NULL)
        t->engine->calls->close(t->engine);
    free(t->switching.path);
    free(t->switching.lasting);
    free(t->model_path);
    free(t->model_lasting);
}

/* ---- switching ---- */

/* Open path on a thread.  Every step but the first closes the engine that there is. */
static int start_step(struct talk *t, enum switch_step step, const char *path, struct err *e)
{
    struct opening_job job = { t->o->engine,
                               { .path = path,
                                 .options = talk_options(t)->engine,
                                 .server = t->o->server },
                               NULL };
    uint64_t budget = t->plan.budget_bytes, sum = t->plan.sum_bytes;

    if (step == SWITCH_PROBE) {
        job.model.options.memory_bytes = budget > sum ? budget - sum : 1;
    } else {
        job.model.limits = t->o->limits;
        job.old = t->engine;
    }
    if (opening_start(&t->switching.opening, &job, e) != 0)
        return -1;
    t->switching.step = step;
    if (step != SWITCH_PROBE) {
        t->engine = NULL;
        changes_forget(&t->changes);
    }
    return 0;
}

int talk_open_model(struct talk *t, const char *path, const char *name, struct err *e)
{
    const struct mw_places *places = t->o->models.places;
    char lasting[4096], *copy = strdup(path), *kept;

    if (places == NULL || !mw_models_lasting(places, name, path, lasting, sizeof lasting))
        snprintf(lasting, sizeof lasting, "%s", path);
    kept = strdup(lasting);
    if (copy == NULL || kept == NULL)
        err_memory(e, "the path of the model");
    if (copy == NULL || kept == NULL || start_step(t, SWITCH_PROBE, copy, e) != 0) {
        free(copy);
        free(kept);
        return -1;
    }
    free(t->switching.path);
    free(t->switching.lasting);
    t->switching.path = copy;
    t->switching.lasting = kept;
    t->switching.before = t->state;
    t->state = TALK_SWITCHING;
    t->front.changed(t->front.ctx);
    return 0;
}

/* The old engine is still there and goes on. */
static void stay(struct talk *t, const struct err *e)
{
    talk_report(t, e);
    t->state = t->switching.before;
    talk_send_waiting(t);
}

/* The model can be read, or does not fit beside the old one. */
static void leave_old_model(struct talk *t)
{
    struct err e = ERR_INIT, ignored = ERR_INIT;

    if (talk_recording(t) != NULL) {
        talk_record_end(t, &ignored);
        talk_notice(t, "recording stopped, because another model is opened");
    }
    if (start_step(t, SWITCH_NEW, t->switching.path, &e) != 0)
        stay(t, &e);
}

static void use_new_model(struct talk *t)
{
    struct err e = ERR_INIT;

    free(t->model_path);
    free(t->model_lasting);
    t->model_path = t->switching.path;
    t->model_lasting = t->switching.lasting;
    t->switching.path = t->switching.lasting = NULL;
    kept_say_switched(t);
    if (saved_restore(t, &e) != 0)
        talk_report(t, &e);
    kv_load_if_own(t);
    t->front.dropped(t->front.ctx, t->ledger.n_dropped);
}

static void go_back(struct talk *t, const struct err *why)
{
    struct err e = ERR_INIT;

    talk_report(t, why);
    if (start_step(t, SWITCH_BACK, t->model_path, &e) == 0)
        return;
    talk_report(t, &e);
    talk_quit(t);
}

void model_opened(struct talk *t)
{
    enum switch_step step = t->switching.step;
    struct err e = ERR_INIT;
    struct engine *g = opening_take(t->switching.opening, &e);

    t->switching.opening = NULL;
    if (step == SWITCH_PROBE) {
        if (g != NULL)
            g->calls->close(g);
        if (g == NULL && e.code != ERR_BUDGET)
            stay(t, &e);
        else
            leave_old_model(t);
    } else if (g != NULL && start_engine(t, g, &e) == 0) {
        if (step == SWITCH_NEW)
            use_new_model(t);
        else if (saved_restore(t, &e) != 0)
            talk_report(t, &e);
        else
            kv_load_if_own(t);
    } else if (step == SWITCH_NEW) {
        go_back(t, &e);
    } else { /* neither model can be opened */
        talk_report(t, &e);
        talk_quit(t);
    }
    t->front.changed(t->front.ctx);
}
