/* The recorder is a reader like the dashboard: on its own thread it takes a sample ten times
 * per second and writes the new figures.  A sample has the last MW_RECENT tokens, so up to 640
 * tokens per second each get a line.  Above that a line "lost" has the number of tokens
 * without one. */
#include "config.h"

#include "engine/telemetry/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/telemetry/json.h"

#define LOOK_NS     100000000u
#define SECOND_NS   1000000000u
#define STACK_BYTES ((size_t)1 << 20)

struct mw_recorder {
    char *path;
    int fd;
    mw_take_fn *take;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool closing; /* under lock */

    /* used by the thread alone after it has started */
    struct mw_sample sample;
    struct mw_run run; /* as written last */
    uint64_t plan[MW_PLAN_ROWS];
    bool has_start;
    uint64_t n_token; /* tokens that have a line or were lost */
    uint64_t next_second_ns;
    struct json line; /* being written */
    struct err err;   /* of the first failed write, after which nothing is written */
};

/* Write r->line to the file. */
static void write_line(struct mw_recorder *r)
{
    size_t done = 0;

    json_line(&r->line);
    if (r->line.failed && r->err.code == ERR_NONE)
        err_memory(&r->err, "a line of the recording");
    while (done < r->line.used && r->err.code == ERR_NONE) {
        ssize_t got = write(r->fd, r->line.buf + done, r->line.used - done);

        if (got > 0) {
            done += (size_t)got;
        } else if (errno != EINTR) {
            err_sys(&r->err, "could not write the recording");
            err_at(&r->err, r->path, ERR_NO_OFFSET, NULL);
        }
    }
    r->line.used = 0;
}

static void write_sample(struct mw_recorder *r, const char *event)
{
    mw_sample_json(&r->line, &r->sample, event);
    write_line(r);
}

static void write_lost(struct mw_recorder *r, uint64_t n)
{
    struct json *j = &r->line;

    json_object(j, NULL);
    json_string(j, "event", "lost");
    json_u64(j, "t_ns", r->sample.t_ns);
    json_u64(j, "n", n);
    json_end(j);
    write_line(r);
}

/* Write a line for each token that does not have one. */
static void write_tokens(struct mw_recorder *r)
{
    const struct mw_sample *s = &r->sample;

    if (s->n_token > r->n_token + MW_RECENT) {
        write_lost(r, s->n_token - r->n_token - MW_RECENT);
        r->n_token = s->n_token - MW_RECENT;
    }
    for (; r->n_token < s->n_token && r->err.code == ERR_NONE; r->n_token++) {
        token_json(&r->line, &s->recent[r->n_token % MW_RECENT],
                   &s->trace[r->n_token % MW_RECENT]);
        write_line(r);
    }
}

static bool plan_changed(const struct mw_recorder *r)
{
    return memcmp(&r->run, &r->sample.run, sizeof r->run) != 0 ||
           memcmp(r->plan, r->sample.mem.plan, sizeof r->plan) != 0;
}

/* Write the plan of the sample as a line. */
static void write_plan(struct mw_recorder *r, const char *event)
{
    write_sample(r, event);
    r->run = r->sample.run;
    memcpy(r->plan, r->sample.mem.plan, sizeof r->plan);
}

/* Write the start line, which contains the plan, as soon as there is a plan. */
static bool has_start(struct mw_recorder *r, bool is_last)
{
    if (!r->has_start && (r->sample.run.n_layer > 0 || is_last)) {
        write_plan(r, "start");
        r->next_second_ns = r->sample.t_ns;
        r->has_start = true;
    }
    return r->has_start;
}

static void look(struct mw_recorder *r, bool is_last)
{
    memset(&r->sample, 0, sizeof r->sample);
    r->take(r->ctx, &r->sample);
    if (!has_start(r, is_last))
        return;
    if (plan_changed(r))
        write_plan(r, "plan");
    write_tokens(r);
    if (is_last || r->sample.t_ns >= r->next_second_ns) {
        write_sample(r, "second");
        r->next_second_ns += SECOND_NS;
        if (r->next_second_ns <= r->sample.t_ns) /* the machine was suspended */
            r->next_second_ns = r->sample.t_ns + SECOND_NS;
    }
}

/* Wait until the next sample is due.  Returns false if the recorder is closing. */
static bool wait_for_next(struct mw_recorder *r, uint64_t *until_ns)
{
    bool closing;

    *until_ns += LOOK_NS;
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

static void recorder_free(struct mw_recorder *r)
{
    if (r->fd >= 0)
        close(r->fd);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->lock);
    json_release(&r->line);
    free(r->path);
    free(r);
}

int mw_recorder_open(struct mw_recorder **out, int fd, const char *name, mw_take_fn *take,
                     void *ctx, struct err *e)
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
    if (r->path == NULL) {
        err_memory(e, "a recorder");
        recorder_free(r);
        return -1;
    }
    take(ctx, &r->sample);
    r->n_token = r->sample.n_token;
    has_start(r, false);
    if (r->err.code != ERR_NONE) {
        *e = r->err;
        recorder_free(r);
        return -1;
    }
    errno = thread_start(&r->thread, "recorder", STACK_BYTES, record, r);
    if (errno != 0) {
        err_sys(e, "cannot start the recorder's thread");
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
