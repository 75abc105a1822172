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

#define STACK_BYTES                                                                            \
    ((size_t)8 << 20) /* reading a header needs as much as on the main thread                  \
                       */

struct opening {
    struct opening_job job;
    char *path;
    pthread_t thread;
    int fd; /* an eventfd, written when the thread ends */
    struct engine *engine;
    struct err err;
};

static void *open_thread(void *ctx)
{
    struct opening *o = ctx;
    const struct opening_job *job = &o->job;
    uint64_t one = 1;

    if (job->old != NULL)
        job->old->calls->close(job->old);
    job->calls->open(&o->engine, &job->model, &o->err);
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
    o->path = strdup(job->model.path);
    o->job.model.path = o->path;
    errno = o->path == NULL ? ENOMEM
            : o->fd < 0     ? errno
                            : thread_start(&o->thread, "opening", STACK_BYTES, open_thread, o);
    if (errno != 0) {
        err_sys(e, "cannot start a thread to open \"%.200s\"", job->model.path);
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

struct engine *opening_take(struct opening *o, struct err *e)
{
    struct engine *engine;

    pthread_join(o->thread, NULL);
    engine = o->engine;
    if (engine == NULL)
        *e = o->err;
    opening_free(o);
    return engine;
}

void opening_abandon(struct opening *o, int ms)
{
    struct err ignored = ERR_INIT;
    struct engine *engine;

    if (o == NULL || !is_over(o, ms))
        return;
    engine = opening_take(o, &ignored);
    if (engine != NULL)
        engine->calls->close(engine);
}
