/*
 * thread.h - start a thread.
 *
 * Two things must not depend on how the program is started: the size of a thread's stack,
 * whose default follows `ulimit -s` and may be too small, and the thread that receives
 * signals, which must be the one that reads the terminal.
 */
#ifndef MEMWALL_ENGINE_BASE_THREAD_H
#define MEMWALL_ENGINE_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * Start fn(arg) on a thread with a stack of stack_bytes, of which only touched pages are
 * charged.  The name has at most 15 bytes; tools such as top show it.  All signals are blocked
 * there except those that report a fault of the thread itself, so a crash handler still runs.
 *
 * Returns 0, or the error number if no thread was started.
 */
int thread_start(pthread_t *out, const char *name, size_t stack_bytes, void *(*fn)(void *),
                 void *arg);

#endif
