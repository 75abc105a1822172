#include "config.h"

#include "engine/base/thread.h"

#include <signal.h>

int thread_start(pthread_t *out, const char *name, size_t stack_bytes, void *(*fn)(void *),
                 void *arg)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS };
    pthread_attr_t attr;
    sigset_t set, before;
    int rc = pthread_attr_init(&attr);

    if (rc != 0)
        return rc;
    rc = pthread_attr_setstacksize(&attr, stack_bytes);
    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_SETMASK, &set, &before);
    if (rc == 0)
        rc = pthread_create(out, &attr, fn, arg);
    if (rc == 0)
        pthread_setname_np(*out, name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return rc;
}
