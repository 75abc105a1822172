/*
 * cancel.h - one thread ends the work of another.
 *
 * The owner of the work has a token, and passes its address to everything that takes long.  Loops
 * look at it.  A thread that can be asleep registers a function that wakes it.  The token stays
 * set until its owner clears it.
 */
#ifndef MEMWALL_ENGINE_BASE_CANCEL_H
#define MEMWALL_ENGINE_BASE_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "engine/base/err.h"

typedef void cancel_wake_fn(void *ctx);

struct cancel {
    atomic_bool is_set;
    pthread_mutex_t lock; /* of the two below */
    cancel_wake_fn *wake; /* NULL: nothing sleeps */
    void *ctx;
};

void cancel_init(struct cancel *c);
void cancel_destroy(struct cancel *c);

/* Any thread. */
void cancel_set(struct cancel *c);
void cancel_clear(struct cancel *c);

/* Call wake(ctx) after the token was set, instead of the function before.  c may be NULL. */
void cancel_wakes(struct cancel *c, cancel_wake_fn *wake, void *ctx);
/* No longer, if ctx is the one to wake; no call is running when this returns. */
void cancel_lets_sleep(struct cancel *c, const void *ctx);

/* c may be NULL, which is never set. */
static inline bool cancel_is_set(const struct cancel *c)
{
    return c != NULL && atomic_load_explicit(&c->is_set, memory_order_relaxed);
}

/* Returns 0, or -1 with *e (ERR_CANCELLED) once the token is set. */
int cancel_check(const struct cancel *c, struct err *e);

#endif
