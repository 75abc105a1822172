/* See signals.h. */
#include "config.h"

#include "src/base/signals.h"

#include <sys/signalfd.h>

#include <stdint.h>
#include <unistd.h>

#include "engine/memwall.h"

static volatile sig_atomic_t ending;

static uint64_t n_returned; /* from the library, at the last alarm */

static void end_if_stuck(int signo)
{
    uint64_t before = n_returned;

    (void)signo;
    if (mw_blas_is_inside(&n_returned) && n_returned == before)
        _exit(128 + ending);
    alarm(SIGNALS_STOP_S);
}

void signals_end_soon(int signo)
{
    struct sigaction action = { .sa_handler = end_if_stuck, .sa_flags = SA_RESTART };

    ending = signo;
    (void)mw_blas_is_inside(&n_returned);
    sigaction(SIGALRM, &action, NULL);
    alarm(SIGNALS_STOP_S);
}

void signals_end_off(void)
{
    alarm(0);
}

int signals_block(sigset_t *before)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, before);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        pthread_sigmask(SIG_SETMASK, before, NULL);
    return fd;
}

int signals_take(int fd)
{
    struct signalfd_siginfo info;

    return fd >= 0 && read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}
