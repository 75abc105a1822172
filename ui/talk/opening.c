#include "config.h"

#include "ui/talk/opening.h"

#include <sys/eventfd.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/thread.h"

#define STOP_MS 500
#define STACK_BYTES                                                                            \
    ((size_t)8 << 20) /* reading a header needs as much as on the main thread                  \
                       */

struct opening {
    struct opening_job job;
    char *path;
    pthread_t thread;
    int fd; /* an eventfd, written when the thread ends */
    struct mw_model *model;
    struct err err;
};

void engine_close(struct engine *e)
{
    if (e->chat == NULL || mw_chat_stop(e->chat, STOP_MS)) {
        mw_chat_close(e->chat);
        mw_watch_free(e->watch);
        mw_model_close(e->model);
    }
    *e = (struct engine){ 0 };
}

static void *open_thread(void *ctx)
{
    struct opening *o = ctx;
    const struct opening_job *job = &o->job;
    uint64_t one = 1;

    engine_close(&o->job.old);
    if (mw_model_open_within(&o->model, o->path, job->engine.memory_bytes, &o->err) != 0)
        o->model = NULL;
    else if (job->limits != NULL)
        job->limits(o->model, o->path, &job->engine);
    while (write(o->fd, &one, sizeof one) < 0 && errno == EINTR)
        continue;
    return NULL;
}

static void opening_free(struct opening *o)
{
    if (o->fd >= 0)
        close(o->fd);
    free(o->path);
    free(o);
}

int opening_start(struct opening **out, const struct opening_job *job, struct err *e)
{
    struct opening *o = calloc(1, sizeof *o);

    if (o == NULL)
        return err_memory(e, "opening a model");
    o->job = *job;
    o->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    o->path = strdup(job->path);
    errno = o->path == NULL ? ENOMEM
            : o->fd < 0     ? errno
                            : thread_start(&o->thread, "opening", STACK_BYTES, open_thread, o);
    if (errno != 0) {
        err_sys(e, "cannot start a thread to open \"%.200s\"", job->path);
        opening_free(o);
        return -1;
    }
    *out = o;
    return 0;
}

int opening_fd(const struct opening *o)
{
    return o->fd;
}

static bool is_over(const struct opening *o, int ms)
{
    struct pollfd fd = { o->fd, POLLIN, 0 };

    return poll(&fd, 1, ms) > 0;
}

bool opening_is_over(const struct opening *o)
{
    return is_over(o, 0);
}

struct mw_model *opening_take(struct opening *o, struct err *e)
{
    struct mw_model *model;

    pthread_join(o->thread, NULL);
    model = o->model;
    if (model == NULL)
        *e = o->err;
    opening_free(o);
    return model;
}

void opening_abandon(struct opening *o, int ms)
{
    struct err ignored = ERR_INIT;

    if (o == NULL || !is_over(o, ms))
        return;
    mw_model_close(opening_take(o, &ignored));
}
