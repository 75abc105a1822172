/*
 * Reads by io_uring.  Registered files and buffers save the kernel some work per read; if
 * the kernel refuses them (RLIMIT_MEMLOCK, older versions), reads work without them.
 *
 * The reader sleeps in the kernel until a read finishes or somebody wakes it.  For that, one
 * read of an eventfd is always in flight, and wake() writes to the eventfd.
 *
 * No DEFER_TASKRUN: with it a ring that fails could not be drained, and the kernel would go
 * on writing into memory that is used for something else.
 */
#include "config.h"

#include "engine/stream/backend.h"

#ifdef HAVE_LIBURING

#include <sys/eventfd.h>
#include <sys/uio.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <liburing.h>

/* Flags of kernels that may be newer than the library. */
#ifndef IORING_SETUP_COOP_TASKRUN
#define IORING_SETUP_COOP_TASKRUN (1u << 8)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1u << 12)
#endif

#define READ_MAX     ((size_t)1 << 30) /* per system read; the rest follows */
#define REAP_MAX     16
#define OTHER_FILE   UINT32_MAX /* one that is not registered */
#define FAILURES_MAX 100  /* of io_uring_enter in a row, 1 ms apart */
#define DRAIN_MAX_MS 5000 /* a read that a disk has not answered by then is lost */

struct backend {
    struct io_uring ring;
    const struct source *source;
    struct backend_buffer buffers[BACKEND_BUFFERS];
    bool has_files, has_buffers, is_broken, woken;
    int wake_fd;
    uint64_t wake_value; /* the read of wake_fd writes here */
    bool wake_flying;
    uint32_t n_flying;
    uint32_t failures;
    struct read_op *todo_first, *todo_last; /* urgent reads first */
    struct read_op *urgent_last;            /* of those; NULL: none */
};

static void sleep_1ms(void)
{
    const struct timespec t = { .tv_nsec = 1000000 };

    (void)nanosleep(&t, NULL);
}

static int init_ring(struct backend *b, unsigned entries)
{
    static const unsigned flags[] = { IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN,
                                      IORING_SETUP_COOP_TASKRUN, 0 };
    int r = -EINVAL;

    for (size_t i = 0; i < sizeof flags / sizeof flags[0] && r == -EINVAL; i++) {
        struct io_uring_params p = { .flags = flags[i] };

        r = io_uring_queue_init_params(entries, &b->ring, &p);
    }
    return r;
}

static void register_files(struct backend *b)
{
    uint32_t n = b->source->n_file;
    int *fds = malloc((2 * (size_t)n + 1) * sizeof *fds);

    if (fds == NULL)
        return;
    for (uint32_t i = 0; i < n; i++) {
        fds[i] = b->source->files[i].fd;
        fds[n + i] = b->source->files[i].mirror_fd; /* -1: none */
    }
    fds[2 * n] = b->wake_fd;
    b->has_files = io_uring_register_files(&b->ring, fds, 2 * n + 1) == 0;
    free(fds);
}

static void register_buffers(struct backend *b, const struct backend_buffer *buffers)
{
    struct iovec v[BACKEND_BUFFERS];
    unsigned n = 0;

    memset(b->buffers, 0, sizeof b->buffers);
    for (int i = 0; i < BACKEND_BUFFERS; i++) {
        if (buffers[i].bytes == 0)
            continue;
        b->buffers[n] = buffers[i];
        v[n] = (struct iovec){ buffers[i].base, buffers[i].bytes };
        n++;
    }
    b->has_buffers = n > 0 && io_uring_register_buffers(&b->ring, v, n) == 0;
}

/* Registered memory stays charged after it is unmapped, so it is unregistered first. */
static void set_buffers_uring(struct backend *b, const struct backend_buffer *buffers)
{
    if (b->has_buffers)
        (void)io_uring_unregister_buffers(&b->ring);
    register_buffers(b, buffers);
}

static int buffer_of(const struct backend *b, const struct read_op *op)
{
    uintptr_t at = (uintptr_t)op->dst;

    if (!b->has_buffers)
        return -1;
    for (int i = 0; i < BACKEND_BUFFERS; i++) {
        uintptr_t base = (uintptr_t)b->buffers[i].base;

        if (at >= base && at - base < b->buffers[i].bytes)
            return i;
    }
    return -1;
}

/* Copies are registered after the files.  The file of keys and values comes and goes. */
static uint32_t registered_file(const struct source *s, const struct read_op *op)
{
    if (op->file >= s->n_file)
        return OTHER_FILE;
    return op->disk == READ_MIRROR ? s->n_file + op->file : op->file;
}

static void set_file(const struct backend *b, struct io_uring_sqe *sqe, uint32_t file)
{
    if (!b->has_files || file == OTHER_FILE)
        return;
    sqe->fd = (int)file;
    sqe->flags |= IOSQE_FIXED_FILE;
}

/* The ring has an entry for every read, so one is always free.  But a kernel that takes
 * entries late must not make us lose this read. */
static bool arm_wake(struct backend *b)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&b->ring);

    if (sqe == NULL)
        return false;
    io_uring_prep_read(sqe, b->wake_fd, &b->wake_value, sizeof b->wake_value, 0);
    set_file(b, sqe, 2 * b->source->n_file); /* registered after the files */
    io_uring_sqe_set_data(sqe, NULL);
    b->wake_flying = true;
    return true;
}

static void queue_reads(struct backend *b)
{
    if (!b->wake_flying && !arm_wake(b))
        return;
    while (b->todo_first != NULL) {
        struct io_uring_sqe *sqe = io_uring_get_sqe(&b->ring);
        struct read_op *op = b->todo_first;
        size_t at = read_op_at(op);
        unsigned bytes = (unsigned)(op->bytes - at < READ_MAX ? op->bytes - at : READ_MAX);
        int buffer = buffer_of(b, op);
        int fd = read_op_fd(b->source, op);

        if (sqe == NULL)
            return;
        b->todo_first = op->next;
        if (b->urgent_last == op)
            b->urgent_last = NULL;
        if (buffer >= 0)
            io_uring_prep_read_fixed(sqe, fd, op->dst + at, bytes, op->offset + at, buffer);
        else
            io_uring_prep_read(sqe, fd, op->dst + at, bytes, op->offset + at);
        set_file(b, sqe, registered_file(b->source, op));
        io_uring_sqe_set_data(sqe, op);
        b->n_flying++;
    }
}

static int reap(struct backend *b, struct read_op **done, int max)
{
    struct io_uring_cqe *cqes[REAP_MAX];
    unsigned n_cqe =
        io_uring_peek_batch_cqe(&b->ring, cqes, (unsigned)(max < REAP_MAX ? max : REAP_MAX));
    int n = 0;

    for (unsigned i = 0; i < n_cqe; i++) {
        struct read_op *op = io_uring_cqe_get_data(cqes[i]);

        if (op != NULL) {
            op->result = cqes[i]->res;
            done[n++] = op;
            b->n_flying--;
        } else {
            b->wake_flying = false;
            b->woken = true;
            if (cqes[i]->res < 0 && cqes[i]->res != -EINTR && cqes[i]->res != -EAGAIN)
                b->is_broken = true;
        }
    }
    io_uring_cq_advance(&b->ring, n_cqe);
    return n;
}

/* Whether this result of the kernel means that the ring has stopped working. */
static bool is_fatal(struct backend *b, int r)
{
    if (r >= 0) {
        b->failures = 0;
        return false;
    }
    if (r != -EINTR && r != -EAGAIN && r != -EBUSY)
        return true;
    if (r != -EINTR && ++b->failures >= FAILURES_MAX)
        return true;
    if (r != -EINTR)
        sleep_1ms();
    return false;
}

static int wait_uring(struct backend *b, struct read_op **done, int max, bool block)
{
    int n;

    queue_reads(b);
    n = reap(b, done, max);
    if (!b->is_broken &&
        is_fatal(b, block && n == 0 && !b->woken ? io_uring_submit_and_wait(&b->ring, 1)
                                                 : io_uring_submit(&b->ring)))
        b->is_broken = true;
    n += reap(b, done + n, max - n);
    b->woken = false;
    return b->is_broken && n == 0 ? -1 : n;
}

static void submit_uring(struct backend *b, struct read_op *op)
{
    struct read_op *before = op->is_urgent ? b->urgent_last : b->todo_last;

    if (b->todo_first == NULL)
        before = NULL;
    op->next = before != NULL ? before->next : b->todo_first;
    if (before != NULL)
        before->next = op;
    else
        b->todo_first = op;
    if (op->next == NULL)
        b->todo_last = op;
    if (op->is_urgent)
        b->urgent_last = op;
}

static void wake_uring(struct backend *b)
{
    const uint64_t one = 1;
    ssize_t n = write(b->wake_fd, &one, sizeof one);

    (void)n; /* fails only if the eventfd is already set */
}

/* Reads that the kernel has taken but not finished, including the one of wake_fd. */
static uint32_t in_kernel(const struct backend *b)
{
    return b->n_flying + (b->wake_flying ? 1 : 0) - io_uring_sq_ready(&b->ring);
}

/* Wait until the kernel has stopped writing into our memory. */
static bool drain(struct backend *b)
{
    struct read_op *done[16];

    if (b->wake_flying)
        wake_uring(b);
    for (int i = 0; i < DRAIN_MAX_MS && in_kernel(b) > 0; i++)
        if (reap(b, done, 16) == 0 && in_kernel(b) > 0)
            sleep_1ms(); /* entering the kernel lets it post finished reads */
    return in_kernel(b) == 0;
}

static bool close_uring(struct backend *b)
{
    bool is_quiet = drain(b);

    io_uring_queue_exit(&b->ring);
    close(b->wake_fd);
    /* Otherwise the kernel may still write wake_value, and b is leaked on purpose. */
    if (is_quiet)
        free(b);
    return is_quiet;
}

static int open_uring(struct backend **out, const struct backend_options *options,
                      struct err *e)
{
    struct backend *b = calloc(1, sizeof *b);
    int r;

    *out = NULL;
    if (b == NULL)
        return err_memory(e, "io_uring");
    b->source = options->source;
    b->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (b->wake_fd < 0) {
        err_sys(e, "cannot create an eventfd for io_uring");
        free(b);
        return -1;
    }
    r = init_ring(b, options->n_op + 1);
    if (r < 0) {
        errno = -r;
        err_sys(e, "io_uring is not available");
        close(b->wake_fd);
        free(b);
        return -1;
    }
    register_files(b);
    register_buffers(b, options->buffers);
    *out = b;
    return 0;
}

static const struct backend_kind kind = {
    .name = "direct/io_uring",
    .open = open_uring,
    .submit = submit_uring,
    .wait = wait_uring,
    .wake = wake_uring,
    .set_buffers = set_buffers_uring,
    .close = close_uring,
};

const struct backend_kind *const backend_uring = &kind;

#else

const struct backend_kind *const backend_uring = NULL;

#endif
