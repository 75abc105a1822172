/* See start.h. */
#include "config.h"

#include "src/start.h"

#include <sys/resource.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/thread.h"
#include "src/command.h"

/*
 * Kernels keep their tiles on the stack, and `eval` computes on the thread that runs main().
 *
 * A limit below about 20 KiB cannot be reported: the dynamic loader crashes before main(), as
 * it does for every program (of 30 starts with 16 KiB, 1 of /bin/true and 2 of memwall; with 8
 * KiB, all; with 20 KiB, none).
 */
#define STACK_BYTES  ((size_t)8 << 20)
#define STACK_ENOUGH ((size_t)2 << 20)

/*
 * Open the standard descriptors that are closed, from 0 upwards, so that each gets its own
 * number.  Standard output is opened for reading: writing to it fails, because an answer that
 * is lost is an error.
 */
static void open_descriptors(void)
{
    static const int modes[] = { O_RDONLY, O_RDONLY, O_WRONLY };

    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        if (open("/dev/null", modes[fd]) < 0) /* no /dev: occupy the number */
            (void)!open("/", O_PATH);
    }
}

struct call {
    int (*run)(int argc, char **argv);
    int argc;
    char **argv;
    int code;                 /* what run returned */
    unsigned long long limit; /* stack limit in KiB */
    sigset_t mask;
};

static void *call(void *arg)
{
    struct call *c = arg;

    pthread_sigmask(SIG_SETMASK, &c->mask, NULL);
    c->code = c->run(c->argc, c->argv);
    return NULL;
}

/* Run on a new thread.  The first thread only waits, with all signals blocked. */
static int run_on_thread(struct call *c)
{
    struct err e = ERR_INIT;
    pthread_t thread;
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &c->mask);
    errno = thread_start(&thread, "memwall", STACK_BYTES, call, c);
    if (errno != 0) {
        err_sys(&e,
                "the stack limit is %llu KiB, and memwall cannot allocate a stack of %zu MiB; "
                "raise it with ulimit -s",
                c->limit, STACK_BYTES >> 20);
        return report_error(&e);
    }
    pthread_join(thread, NULL);
    return c->code;
}

int start_process(int (*run)(int argc, char **argv), int argc, char **argv)
{
    struct call c = { .run = run, .argc = argc, .argv = argv };
    struct rlimit limit;

    open_descriptors();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    /* OpenBLAS starts its threads while it is loaded, before blas.c can ask it for one. */
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur >= STACK_ENOUGH)
        return run(argc, argv);
    c.limit = limit.rlim_cur >> 10;
    return run_on_thread(&c);
}
