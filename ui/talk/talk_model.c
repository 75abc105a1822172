/* The model of a conversation: opening it, and switching to another. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "ui/talk/talk_internal.h"

#define STOP_MS 500

static int open_model(struct talk *t, const char *path, struct err *e)
{
    struct mw_chat_options o = *talk_options(t);

    if (mw_model_open_within(&t->model, path, o.engine.memory_bytes, e) != 0)
        return -1;
    mw_model_info(t->model, &t->info);
    /* The model's recommendation, except for what the person chose. */
    mw_sampling_default(t->model, &o.sampling);
    if (t->o->overlay != NULL)
        t->o->overlay(t->o->overlay_ctx, &o.sampling);
    if (t->o->limits != NULL)
        t->o->limits(t->model, path, &o.engine);
    return changes_ask(&t->changes, NULL, &o, THEN_NOTHING, e);
}

static int open_chat(struct talk *t, struct err *e)
{
    const struct mw_chat_options *o = talk_options(t);

    if (mw_plan(t->model, &o->engine, &t->plan, e) != 0 ||
        mw_watch_new(&t->watch, t->model, e) != 0 ||
        mw_chat_open(&t->chat, t->model, o, e) != 0)
        return -1;
    t->state = TALK_LOADING;
    return 0;
}

void model_close(struct talk *t)
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

/* Reading the header or measuring the machine may take a while, and nothing is on the screen
 * or on disk yet: a signal ends the program as it would without a handler. */
int model_open_first(struct talk *t, struct err *e)
{
    sigset_t ending, before;
    int rc;

    t->model_path = strdup(t->o->model_path);
    if (t->model_path == NULL)
        return err_memory(e, "the chat");
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &ending, &before);
    rc = open_model(t, t->model_path, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc != 0 ? -1 : open_chat(t, e);
}

int talk_open_model(struct talk *t, const char *path, struct err *e)
{
    struct err again = ERR_INIT, ignored = ERR_INIT;
    struct mw_model *probe = NULL;
    struct plan plan;
    char *name = strdup(path);
    int rc;

    if (name == NULL)
        return err_memory(e, "the path of the model");
    /* Headers only: can it be opened, and does it fit? */
    rc = mw_model_open_within(&probe, path, talk_options(t)->engine.memory_bytes, e);
    if (rc == 0)
        rc = mw_plan(probe, &talk_options(t)->engine, &plan, e);
    mw_model_close(probe);
    if (rc != 0) {
        free(name);
        return -1;
    }
    if (talk_recording(t) != NULL) {
        talk_record_end(t, &ignored);
        talk_notice(t, "recording stopped: the model was changed");
    }
    model_close(t);
    if (open_model(t, path, e) == 0 && open_chat(t, e) == 0) {
        free(t->model_path);
        t->model_path = name;
        return saved_restore(t, e);
    }
    free(name);
    model_close(t);
    if (open_model(t, t->model_path, &again) != 0 || open_chat(t, &again) != 0 ||
        saved_restore(t, &again) != 0)
        talk_quit(t); /* neither model can be opened */
    return -1;
}
