/*
 * thread.h - threads of the engine.
 *
 * Two things must not depend on who starts the program: the size of a thread's stack (the
 * default follows `ulimit -s`, which may be too small) and who receives signals (the thread
 * that reads the terminal, never one of these).
 */
#ifndef MEMWALL_ENGINE_BASE_THREAD_H
#define MEMWALL_ENGINE_BASE_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * Start fn(arg) on a thread with a stack of stack_bytes.  Only what it touches of them is
 * charged.  All signals are blocked there except those that report a fault of the thread
 * itself, so that a handler for crashes still runs.
 *
 * Returns 0, or the errno of what failed; then there is no thread.
 */
int thread_start(pthread_t *out, size_t stack_bytes, void *(*fn)(void *), void *arg);

#endif
