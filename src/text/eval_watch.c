/* See eval_watch.h. */
#include "config.h"

#include "src/text/eval_watch.h"

static void take(void *ctx, struct mw_sample *out)
{
    struct eval_watch *w = ctx;

    mw_session_sample(w->session, out);
    mw_watch_complete(w->watch, out);
}

int eval_watch_open(struct eval_watch *w, struct mw_session *s, struct mw_model *m,
                    const struct options *o, struct err *e)
{
    struct mw_output file = { o->telemetry, o->force, "--force" };
    bool is_new;
    int fd;

    *w = (struct eval_watch){ .session = s };
    if (o->telemetry == NULL)
        return 0;
    if (mw_watch_new(&w->watch, m, e) != 0)
        return -1;
    fd = mw_output_open(m, &file, &is_new, e);
    return fd < 0 ? -1 : mw_recorder_open(&w->recorder, fd, file.path, is_new, take, w, e);
}

int eval_watch_close(struct eval_watch *w, struct err *e)
{
    struct err ignored = ERR_INIT;
    int r = 0;

    if (w->recorder != NULL)
        r = mw_recorder_close(w->recorder, e != NULL ? e : &ignored);
    mw_watch_free(w->watch);
    *w = (struct eval_watch){ 0 };
    return r;
}
