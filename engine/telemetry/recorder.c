/* The recorder is a reader like the dashboard: on its own thread it takes a sample ten times
 * per second and writes the lines of the new figures. */
#include "config.h"

#include "engine/telemetry/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/new_file.h"
#include "engine/base/thread.h"
#include "engine/telemetry/lines.h"

#define STACK_BYTES ((size_t)1 << 20)

struct mw_recorder {
    char *path;
    int fd;
    bool is_new;
    mw_take_fn *take;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool closing; /* under lock */

    /* used by the thread alone after it has started */
    struct mw_sample sample;
    struct mw_lines lines;
    struct json text; /* of lines that are being written */
    struct err err;   /* of the first failed write, after which nothing is written */
};

/* Write the lines of the sample to the file. */
static void write_lines(struct mw_recorder *r, bool is_last)
{
    size_t done = 0;

    mw_lines_add(&r->lines, &r->sample, is_last, &r->text);
    if (r->text.failed && r->err.code == ERR_NONE)
        err_memory(&r->err, "a line of the recording");
    while (done < r->text.used && r->err.code == ERR_NONE) {
        ssize_t got = write(r->fd, r->text.buf + done, r->text.used - done);

        if (got > 0) {
            done += (size_t)got;
        } else if (errno != EINTR) {
            err_sys(&r->err, "could not write the recording");
            err_at(&r->err, r->path, ERR_NO_OFFSET, NULL);
        }
    }
    r->text.used = 0;
}

static void look(struct mw_recorder *r, bool is_last)
{
    memset(&r->sample, 0, sizeof r->sample);
    r->take(r->ctx, &r->sample);
    write_lines(r, is_last);
}

/* Wait until the next sample is due.  Returns false if the recorder is closing. */
static bool wait_for_next(struct mw_recorder *r, uint64_t *until_ns)
{
    bool closing;

    *until_ns += MW_LINES_NS;
    pthread_mutex_lock(&r->lock);
    while (!r->closing && clock_cond_wait(&r->wake, &r->lock, *until_ns))
        continue;
    closing = r->closing;
    pthread_mutex_unlock(&r->lock);
    return !closing;
}

static void *record(void *arg)
{
    struct mw_recorder *r = arg;
    uint64_t until_ns = clock_ns();

    while (wait_for_next(r, &until_ns))
        look(r, false);
    look(r, true);
    return NULL;
}

static void drop_empty(const struct mw_recorder *r)
{
    if (r->is_new)
        new_file_drop_empty(r->fd, r->path);
}

static void recorder_free(struct mw_recorder *r)
{
    if (r->fd >= 0)
        close(r->fd);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    json_release(&r->text);
    free(r->path);
    free(r);
}

int mw_recorder_open(struct mw_recorder **out, int fd, const char *name, bool is_new,
                     mw_take_fn *take, void *ctx, struct err *e)
{
    struct mw_recorder *r = calloc(1, sizeof *r);

    *out = NULL;
    if (r == NULL) {
        close(fd);
        return err_memory(e, "a recorder");
    }
    pthread_mutex_init(&r->lock, NULL);
    clock_cond_init(&r->wake);
    r->take = take;
    r->ctx = ctx;
    r->path = strdup(name);
    r->fd = fd;
    r->is_new = is_new;
    if (r->path == NULL) {
        err_memory(e, "a recorder");
        recorder_free(r);
        return -1;
    }
    take(ctx, &r->sample);
    mw_lines_start(&r->lines, &r->sample);
    write_lines(r, false);
    if (r->err.code != ERR_NONE) {
        *e = r->err;
        drop_empty(r);
        recorder_free(r);
        return -1;
    }
    errno = thread_start(&r->thread, "recorder", STACK_BYTES, record, r);
    if (errno != 0) {
        err_sys(e, "cannot start the recorder's thread");
        drop_empty(r);
        recorder_free(r);
        return -1;
    }
    *out = r;
    return 0;
}

int mw_recorder_close(struct mw_recorder *r, struct err *e)
{
    int result = 0;

    if (r == NULL)
        return 0;
    pthread_mutex_lock(&r->lock);
    r->closing = true;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->thread, NULL);
    if (r->err.code != ERR_NONE)
        drop_empty(r);
    if (close(r->fd) != 0 && r->err.code == ERR_NONE)
        err_sys(&r->err, "could not write the recording to \"%s\"", r->path);
    r->fd = -1;
    if (r->err.code != ERR_NONE) {
        *e = r->err;
        result = -1;
    }
    recorder_free(r);
    return result;
}
