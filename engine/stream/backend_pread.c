/*
 * Reads by threads that call pread: works everywhere.
 *
 * A limit of the read rate makes them slower disks: each delivers one byte after the other, so
 * that a read is done when its last byte would have arrived there.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/thread.h"
#include "engine/stream/backend.h"

#define THREADS_MAX 8
#define STACK_BYTES ((size_t)256 << 10)

struct queue {
    struct read_op *first, *last;
};

struct backend {
    const struct source *source;
    pthread_mutex_t lock;
    pthread_cond_t work; /* something in todo, or quit */
    pthread_cond_t news; /* something in done, or woken */
    struct queue todo, urgent, done;
    bool woken, quit;
    uint64_t bytes_s[READ_DISKS]; /* limits of the read rate; 0: none */
    uint64_t busy_ns[READ_DISKS]; /* until then the slower disk delivers what is done here */
    pthread_cond_t stop; /* quit is set; waits by the clock */
    uint32_t n_thread;
    pthread_t threads[THREADS_MAX];
};

static void put(struct queue *q, struct read_op *op)
{
    op->next = NULL;
    if (q->first == NULL)
        q->first = op;
    else
        q->last->next = op;
    q->last = op;
}

static struct read_op *take(struct queue *q)
{
    struct read_op *op = q->first;

    if (op != NULL)
        q->first = op->next;
    return op;
}

/* Wait until a disk of the limited rate would have finished a read that began at start_ns.
 * Under the lock. */
static void pace(struct backend *b, uint64_t start_ns, const struct read_op *op)
{
    uint64_t *busy_ns = &b->busy_ns[op->disk], bytes_s = b->bytes_s[op->disk], due_ns;

    if (bytes_s == 0 || op->result <= 0)
        return;
    if (*busy_ns < start_ns)
        *busy_ns = start_ns;
    *busy_ns += (uint64_t)((double)op->result * 1e9 / (double)bytes_s);
    due_ns = *busy_ns;
    while (!b->quit && clock_cond_wait(&b->stop, &b->lock, due_ns))
        ;
}

static void *thread_main(void *arg)
{
    struct backend *b = arg;

    pthread_mutex_lock(&b->lock);
    for (;;) {
        struct read_op *op = take(&b->urgent);
        uint64_t start_ns;
        size_t at;
        ssize_t n;

        if (op == NULL)
            op = take(&b->todo);
        if (op == NULL) {
            if (b->quit)
                break;
            pthread_cond_wait(&b->work, &b->lock);
            continue;
        }
        pthread_mutex_unlock(&b->lock);
        start_ns = clock_ns();
        at = read_op_at(op);
        n = pread(read_op_fd(b->source, op), op->dst + at, op->bytes - at,
                  (off_t)(op->offset + at));
        op->result = n < 0 ? -errno : n;
        pthread_mutex_lock(&b->lock);
        pace(b, start_ns, op);
        put(&b->done, op);
        pthread_cond_signal(&b->news);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static bool close_pread(struct backend *b)
{
    pthread_mutex_lock(&b->lock);
    b->quit = true;
    pthread_cond_broadcast(&b->work);
    pthread_cond_broadcast(&b->stop);
    pthread_mutex_unlock(&b->lock);
    for (uint32_t i = 0; i < b->n_thread; i++)
        pthread_join(b->threads[i], NULL);
    pthread_cond_destroy(&b->stop);
    pthread_cond_destroy(&b->news);
    pthread_cond_destroy(&b->work);
    pthread_mutex_destroy(&b->lock);
    free(b);
    return true;
}

static int start_threads(struct backend *b, uint32_t n)
{
    int failed = 0;

    while (b->n_thread < n && failed == 0) {
        failed = thread_start(&b->threads[b->n_thread], "reads", STACK_BYTES, thread_main, b);
        if (failed == 0)
            b->n_thread++;
    }
    return b->n_thread > 0 ? 0 : failed; /* fewer threads are only slower */
}

static int open_pread(struct backend **out, const struct backend_options *options,
                      struct err *e)
{
    struct backend *b = calloc(1, sizeof *b);
    uint32_t n = options->depth < THREADS_MAX ? options->depth : THREADS_MAX;

    *out = NULL;
    if (b == NULL)
        return err_memory(e, "reading threads");
    b->source = options->source;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->work, NULL);
    pthread_cond_init(&b->news, NULL);
    clock_cond_init(&b->stop);
    memcpy(b->bytes_s, options->bytes_s, sizeof b->bytes_s);
    errno = start_threads(b, n > 0 ? n : 1);
    if (errno != 0) {
        err_sys(e, "cannot start a reading thread");
        close_pread(b);
        return -1;
    }
    *out = b;
    return 0;
}

static void submit_pread(struct backend *b, struct read_op *op)
{
    pthread_mutex_lock(&b->lock);
    put(op->is_urgent ? &b->urgent : &b->todo, op);
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->lock);
}

static int wait_pread(struct backend *b, struct read_op **done, int max, bool block)
{
    int n = 0;

    pthread_mutex_lock(&b->lock);
    while (block && b->done.first == NULL && !b->woken)
        pthread_cond_wait(&b->news, &b->lock);
    b->woken = false;
    while (n < max && b->done.first != NULL)
        done[n++] = take(&b->done);
    pthread_mutex_unlock(&b->lock);
    return n;
}

static void wake_pread(struct backend *b)
{
    pthread_mutex_lock(&b->lock);
    b->woken = true;
    pthread_cond_signal(&b->news);
    pthread_mutex_unlock(&b->lock);
}

const struct backend_kind backend_pread = {
    .name = "direct/pread",
    .open = open_pread,
    .submit = submit_pread,
    .wait = wait_pread,
    .wake = wake_pread,
    .close = close_pread,
};
