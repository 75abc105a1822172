#include "config.h"

#include "ui/engine/remote.h"

#include <stdlib.h>

struct remote {
    struct engine engine; /* the first member */
    struct mw_remote *chat;
};

static struct mw_remote *of(struct engine *g)
{
    return ((struct remote *)g)->chat;
}

/* ---- the model ---- */

static int remote_open(struct engine **out, const struct engine_model *m, struct err *e)
{
    struct remote *r = calloc(1, sizeof *r);

    *out = NULL;
    if (r == NULL)
        return err_memory(e, "the engine");
    r->engine.calls = &engine_remote;
    if (mw_remote_open(&r->chat, m->server, m->path[0] != '\0' ? m->path : NULL, e) != 0) {
        free(r);
        return -1;
    }
    *out = &r->engine;
    return 0;
}

static void remote_close(struct engine *g)
{
    mw_remote_close(of(g));
    free(g);
}

static void remote_info(struct engine *g, struct mw_model_info *out)
{
    mw_remote_info(of(g), out);
}

static uint64_t remote_text_bytes(struct engine *g, const struct mw_options *o)
{
    (void)o;
    return mw_remote_text_bytes(of(g));
}

static void remote_recommend(struct engine *g, struct mw_sampling *out)
{
    (void)g;
    mw_remote_sampling(out);
}

static void remote_server(struct engine *g, struct mw_server_figures *out)
{
    mw_remote_figures(of(g), out);
}

static const char *remote_model(struct engine *g, size_t i)
{
    return mw_remote_model(of(g), i);
}

static int remote_setting(struct engine *g, enum mw_setting_step step, const char *name,
                          const char *value, uint64_t tag, struct err *e)
{
    return mw_remote_setting(of(g), step, name, value, tag, e);
}

/* ---- the chat ---- */

static int remote_start(struct engine *g, const struct mw_chat_options *o, struct err *e)
{
    return mw_remote_start(of(g), o, e);
}

static int remote_fd(struct engine *g)
{
    return mw_remote_fd(of(g));
}

static bool remote_next(struct engine *g, struct mw_event *out)
{
    return mw_remote_next(of(g), out);
}

static uint32_t remote_tokens(struct engine *g)
{
    return mw_remote_tokens(of(g));
}

static void remote_sample(struct engine *g, struct mw_sample *out)
{
    mw_remote_sample(of(g), out);
}

static int remote_send(struct engine *g, const char *text, size_t len, uint32_t n_predict,
                       struct err *e)
{
    return mw_remote_send(of(g), text, len, n_predict, e);
}

static int remote_resume(struct engine *g, struct err *e)
{
    return mw_remote_continue(of(g), e);
}

static bool remote_can_resume(struct engine *g)
{
    return mw_remote_can_continue(of(g));
}

static int remote_retry(struct engine *g, struct err *e)
{
    return mw_remote_retry(of(g), e);
}

static int remote_aside(struct engine *g, struct err *e)
{
    return mw_remote_aside(of(g), e);
}

static int remote_rewind(struct engine *g, size_t n, struct err *e)
{
    return mw_remote_rewind(of(g), n, e);
}

static int remote_stash(struct engine *g, size_t n, size_t n_all, struct err *e)
{
    return mw_remote_stash(of(g), n, n_all, e);
}

static int remote_unstash(struct engine *g, struct err *e)
{
    return mw_remote_unstash(of(g), e);
}

static int remote_restore(struct engine *g, const struct mw_message *messages, size_t n,
                          size_t n_before, struct err *e)
{
    return mw_remote_restore(of(g), messages, n, n_before, e);
}

static int remote_set(struct engine *g, const struct mw_chat_options *o, struct err *e)
{
    return mw_remote_set(of(g), o, e);
}

static void remote_cancel(struct engine *g)
{
    mw_remote_cancel(of(g));
}

const struct engine_calls engine_remote = {
    .open = remote_open,
    .close = remote_close,
    .info = remote_info,
    .text_bytes = remote_text_bytes,
    .start = remote_start,
    .fd = remote_fd,
    .next = remote_next,
    .tokens = remote_tokens,
    .sample = remote_sample,
    .send = remote_send,
    .resume = remote_resume,
    .retry = remote_retry,
    .aside = remote_aside,
    .rewind = remote_rewind,
    .stash = remote_stash,
    .unstash = remote_unstash,
    .restore = remote_restore,
    .set = remote_set,
    .cancel = remote_cancel,
    .keeps_options = true,
    .can_resume = remote_can_resume,
    .recommend = remote_recommend,
    .server = remote_server,
    .server_model = remote_model,
    .setting = remote_setting,
};
