/* Start the watcher of telemetry/ for the files of a model, and diagnose its samples. */
#include "config.h"

#include "engine/telemetry/watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/session/anchors.h"
#include "engine/session/model.h"

#define EVERY_NS 250000000u /* a diagnosis makes some dozen plans */

struct diagnoser {
    struct mw_model *m;
    pthread_mutex_t lock;
    /* The last diagnosis, and the sample that it is about. */
    struct mw_diagnosis last;
    struct mw_run run;
    enum mw_binds binds;
    uint64_t n_token, t_ns;
};

/* Whether the last diagnosis still holds. */
static bool is_recent(const struct diagnoser *d, const struct mw_sample *s)
{
    return d->t_ns != 0 && d->binds == s->verdict.binds &&
           d->run.budget_bytes == s->run.budget_bytes && d->run.ctx == s->run.ctx &&
           strcmp(d->run.kv_k, s->run.kv_k) == 0 && strcmp(d->run.kv_v, s->run.kv_v) == 0 &&
           d->run.threads == s->run.threads &&
           d->run.predicted_decode == s->run.predicted_decode && /* of another drafter */
           (d->n_token == s->n_token ||
            (s->state != MW_IDLE && s->t_ns - d->t_ns < EVERY_NS)); /* an answer has not ended */
}

static void diagnose(void *ctx, struct mw_sample *s)
{
    struct diagnoser *d = ctx;

    if (!(s->run.predicted_decode > 0)) /* settings are just changing: publish_budget() */
        return;
    pthread_mutex_lock(&d->lock);
    if (is_recent(d, s)) {
        mw_diagnosis_to_sample(&d->last, s);
    } else if (anchors_diagnose(d->m, s, &d->last)) {
        d->run = s->run;
        d->binds = s->verdict.binds;
        d->n_token = s->n_token;
        d->t_ns = s->t_ns;
        mw_diagnosis_to_sample(&d->last, s);
    } else {
        /* Settings are just changing.  The plan's own figures begin at no measurement, and would
         * be on the screen until the next sample. */
        s->run.predicted_decode = s->run.predicted_assumed = 0;
        s->run.predicted_binds = MW_BINDS_NONE;
    }
    pthread_mutex_unlock(&d->lock);
}

static void drop(void *ctx)
{
    struct diagnoser *d = ctx;

    pthread_mutex_destroy(&d->lock);
    free(d);
}

static int start(struct mw_watch **out, struct mw_model *m, struct watch_file *files,
                 struct err *e)
{
    const struct catalogue *c = m->catalogue;
    struct diagnoser *d = calloc(1, sizeof *d);

    if (d == NULL)
        return err_memory(e, "the diagnosis of a model");
    for (uint32_t i = 0; i < c->n_file; i++)
        files[i] = (struct watch_file){ c->files[i].fd, c->files[i].size };
    if (watch_start(out, "", files, c->n_file, e) != 0) {
        free(d);
        return -1;
    }
    d->m = m;
    pthread_mutex_init(&d->lock, NULL);
    watch_diagnose(*out, diagnose, drop, d);
    return 0;
}

int mw_watch_new(struct mw_watch **out, struct mw_model *m, struct err *e)
{
    struct watch_file *files = calloc((size_t)m->catalogue->n_file + 1, sizeof *files);
    int result;

    *out = NULL;
    if (files == NULL)
        return err_memory(e, "watching the model\'s files");
    result = start(out, m, files, e);
    free(files);
    return result;
}
