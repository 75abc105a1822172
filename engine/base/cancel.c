#include "config.h"

#include "engine/base/cancel.h"

#include <stddef.h>

void cancel_init(struct cancel *c)
{
    *c = (struct cancel){ .wake = NULL };
    pthread_mutex_init(&c->lock, NULL);
}

void cancel_destroy(struct cancel *c)
{
    pthread_mutex_destroy(&c->lock);
}

void cancel_set(struct cancel *c)
{
    atomic_store(&c->is_set, true);
    pthread_mutex_lock(&c->lock);
    if (c->wake != NULL)
        c->wake(c->ctx);
    pthread_mutex_unlock(&c->lock);
}

void cancel_clear(struct cancel *c)
{
    atomic_store(&c->is_set, false);
}

void cancel_wakes(struct cancel *c, cancel_wake_fn *wake, void *ctx)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->wake = wake;
    c->ctx = ctx;
    pthread_mutex_unlock(&c->lock);
}

void cancel_lets_sleep(struct cancel *c, const void *ctx)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    if (c->ctx == ctx)
        c->wake = NULL;
    pthread_mutex_unlock(&c->lock);
}

int cancel_check(const struct cancel *c, struct err *e)
{
    return cancel_is_set(c) ? err_set(e, ERR_CANCELLED, "cancelled") : 0;
}
