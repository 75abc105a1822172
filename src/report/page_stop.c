/* See page_stop.h. */
#include "config.h"

#include "src/report/page_stop.h"

#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <unistd.h>

#include "engine/base/thread.h"
#include "src/base/signals.h"

#define STACK_BYTES (64 * 1024)

static void cancel_session(struct page_stop *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->session != NULL)
        mw_session_cancel(s->session);
    pthread_mutex_unlock(&s->lock);
}

static void stop(struct page_stop *s, int signo)
{
    if (atomic_load(&s->cancelled))
        _exit(128 + signo);
    signals_end_soon(signo);
    s->signal = signo;
    atomic_store(&s->cancelled, true);
    cancel_session(s);
}

static void *wait_for_signals(void *arg)
{
    struct page_stop *s = arg;
    struct pollfd fds[] = { { s->signals, POLLIN, 0 },
                            { s->quit, POLLIN, 0 },
                            { s->timer, POLLIN, 0 } };

    while (poll(fds, 3, -1) >= 0 || errno == EINTR) {
        int signo = signals_take(s->signals);
        uint64_t n;

        if (signo != 0)
            stop(s, signo);
        if (read(s->timer, &n, sizeof n) == sizeof n) {
            atomic_store(&s->timed_out, true);
            cancel_session(s);
        }
        if ((fds[1].revents & POLLIN) != 0)
            break;
    }
    return NULL;
}

int page_stop_open(struct page_stop *s, struct err *e)
{
    int rc;

    s->session = NULL;
    s->signals = s->quit = s->timer = -1;
    pthread_mutex_init(&s->lock, NULL);
    s->signals = signals_block(&s->before);
    s->quit = eventfd(0, EFD_CLOEXEC);
    s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    rc = s->signals < 0 || s->quit < 0 || s->timer < 0
             ? errno
             : thread_start(&s->thread, "signals", STACK_BYTES, wait_for_signals, s);
    if (rc == 0)
        return 0;
    errno = rc;
    err_sys(e, "cannot wait for signals");
    if (s->signals >= 0) {
        pthread_sigmask(SIG_SETMASK, &s->before, NULL);
        close(s->signals);
    }
    if (s->quit >= 0)
        close(s->quit);
    if (s->timer >= 0)
        close(s->timer);
    s->signals = s->quit = s->timer = -1;
    return -1;
}

void page_stop_close(struct page_stop *s)
{
    const uint64_t one = 1;

    if (write(s->quit, &one, sizeof one) == sizeof one)
        pthread_join(s->thread, NULL);
    signals_end_off();
    pthread_sigmask(SIG_SETMASK, &s->before, NULL);
    close(s->signals);
    close(s->quit);
    close(s->timer);
    s->signals = s->quit = s->timer = -1;
    pthread_mutex_destroy(&s->lock);
}

void page_stop_limit(struct page_stop *s, uint32_t seconds)
{
    const struct itimerspec when = { .it_value = { .tv_sec = seconds } };

    atomic_store(&s->timed_out, false);
    timerfd_settime(s->timer, 0, &when, NULL);
}

void page_stop_use(struct page_stop *s, struct mw_session *session)
{
    pthread_mutex_lock(&s->lock);
    s->session = session;
    if (session != NULL && atomic_load(&s->cancelled))
        mw_session_cancel(session);
    pthread_mutex_unlock(&s->lock);
}
